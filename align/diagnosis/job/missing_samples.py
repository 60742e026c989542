"""AL209 among ranks: the samplers divide the data into parts of which some are read by no rank."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.registry import job_rule
from align.inspection import Job
from align.records import Finding, Phase, Place, Severity
from align.sentences import say

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
    size = say(" of {} samples", wording.count(found.length)) if found.length is not None else ""
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "The DistributedSamplers divide the data{} into {} parts, but the {} of this job read only part{} {}: "
            "part{} {} ({} of the data) {} read by none.",
            size,
            wording.count(found.of),
            wording.plural(len(job.ranks), "rank"),
            say("s") if len(found.parts) > 1 else "",
            wording.ranges(found.parts),
            say("s") if several else "",
            wording.ranges(found.missing),
            wording.percent(share),
            "are" if several else "is",
        ),
        "Make the sampler with the numbers of this job: `DistributedSampler(dataset)` takes them from the process "
        "group; give num_replicas and rank only as the data-parallel size and the rank within it.",
        Place(None, str(Phase.INPUT), "<DataLoader>"),
        {"parts": found.of, "read": list(found.parts), "missing": list(found.missing), "samples": found.length},
        {"parts": found.of, "read": list(found.parts), "missing": list(found.missing)},
    )
