"""AL208 among ranks: replicas train on the same samples."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis import telling
from align.diagnosis.job import ranks_telling
from align.diagnosis.registry import job_rule
from align.inspection import Job
from align.inspection.ranks_data import SameSamples
from align.records import Finding, Severity
from align.sentences import capital, say

CODE = "AL208"
LABEL = "duplicate-samples"


@job_rule(CODE, LABEL, rank=18)
def find(job: Job) -> Iterator[Finding]:
    """The same batches in all captured steps: an error where DataLoaders over enough samples hand them out."""
    found = job.same_samples
    if found is None:
        return
    ranks = [ranks_telling.number(job, place) for place in found.ranks]
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if found.everything and _enough(found) else Severity.WARNING,
        say(
            "{} train on the same samples in {}: all {} of {} are equal, in the same order, on replicas of one "
            "model.{} A step then learns of the samples of one rank.",
            capital(ranks_telling.ranks(job, found.ranks)),
            wording.steps(found.steps),
            wording.plural(found.samples, "sample"),
            found.key.name,
            _loader(found),
        ),
        "Give each rank its part: `DataLoader(..., sampler=DistributedSampler(dataset))`, with "
        "`sampler.set_epoch(epoch)` in every epoch; of an IterableDataset take every world_size-th sample from the "
        "rank's number on. Data that are drawn need a seed of their own on each rank.",
        telling.place_of(found.key),
        {
            "ranks": ranks,
            "samples": found.samples,
            "equal_outputs": found.everything,
            "sampler": found.loader.get("sampler"),
        },
        {"ranks": ranks, "samples": found.samples, "sampler": found.loader.get("sampler")},
    )


def _enough(found: SameSamples) -> bool:
    """Whether the data hold enough for each rank to have samples of its own."""
    length, batch = found.loader.get("length"), found.loader.get("batch_size")
    return isinstance(length, int) and isinstance(batch, int) and length >= 2 * batch


def _loader(found: SameSamples) -> str:
    if not found.loader:
        return ""
    sampler = found.loader.get("sampler")
    distributed = found.loader.get("distributed")
    if distributed:
        return say(" Their samplers read the same part: number {} of ", distributed.get("rank"))
        f"{distributed.get('num_replicas')}."
    return say(
        " Their DataLoaders have {}, which divides nothing.", "no sampler" if sampler is None else say("a {}", sampler)
    )
