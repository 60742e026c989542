"""AL209 among ranks: the samplers divide the data into parts of which some are read by no rank."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.registry import job_rule
from align.inspection import Job
from align.records import Finding, Phase, Place, Severity

CODE = "AL209"
LABEL = "missing-samples"


@job_rule(CODE, LABEL, rank=19)
def find(job: Job) -> Iterator[Finding]:
    """Parts of a DistributedSampler that no rank reads; told only where the files of all ranks are there."""
    found = job.sampler_parts
    if found is None or not found.missing:
        return
    several = len(found.missing) > 1
    share = len(found.missing) / found.of
    size = f" of {wording.count(found.length)} samples" if found.length is not None else ""
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        f"The DistributedSamplers divide the data{size} into {wording.count(found.of)} parts, but the "
        f"{wording.plural(len(job.ranks), 'rank')} of this job read only part{'s' if len(found.parts) > 1 else ''} "
        f"{wording.ranges(found.parts)}: part{'s' if several else ''} {wording.ranges(found.missing)} "
        f"({wording.percent(share)} of the data) {'are' if several else 'is'} read by none.",
        "Make the sampler with the numbers of this job: `DistributedSampler(dataset)` takes them from the process "
        "group; give num_replicas and rank only as the data-parallel size and the rank within it.",
        Place(None, str(Phase.INPUT), "<DataLoader>"),
        {"parts": found.of, "read": list(found.parts), "missing": list(found.missing), "samples": found.length},
        {"parts": found.of, "read": list(found.parts), "missing": list(found.missing)},
    )
