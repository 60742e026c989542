"""AL210: ranks that train on different samples draw the same dropout masks."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis import telling
from align.diagnosis.job import ranks_telling
from align.diagnosis.registry import job_rule
from align.inspection import Job
from align.records import Finding, Severity

CODE = "AL210"
LABEL = "rng-duplicated"

WORDS = {"torch": "torch", "device": "the device"}


@job_rule(CODE, LABEL, rank=20)
def find(job: Job) -> Iterator[Finding]:
    """As many dropped elements in every dropout of two ranks that were given other batches."""
    found = job.duplicated_draws
    if found is None:
        return
    key, ranks = found.key, [ranks_telling.number(job, place) for place in found.ranks]
    why = (
        f"the generator of {WORDS[found.generator]} has the same state on both as {wording.step(key.step)} begins"
        if found.generator
        else "so many equal counts are no accident"
    )
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        f"{telling.opening(key)}: {key.name} drops the same elements on {ranks_telling.ranks(job, found.ranks)}, "
        f"although they train on different samples: {wording.count(found.zeros[0])} of {wording.count(found.numel)} on "
        f"each, and as many on both in all {wording.plural(found.masks, 'dropout')} of {wording.steps(found.steps)}; "
        f"{why}. The mean over the ranks then has the noise of one of them.",
        "Seed each data-parallel rank with a number of its own after the weights are made: "
        "`torch.manual_seed(seed + rank)`. Only ranks that share one sample (tensor parallel) are seeded alike.",
        telling.place_of(key),
        {"ranks": ranks, "dropouts": found.masks, "zeros": list(found.zeros), "elements": found.numel},
        {"step": key.step, "ranks": ranks, "name": key.name, "generator": found.generator},
    )
