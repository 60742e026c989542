"""AL210: ranks that train on different samples draw the same dropout masks."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis import telling
from align.diagnosis.job import ranks_telling
from align.diagnosis.registry import job_rule
from align.inspection import Job
from align.records import Finding, Severity
from align.sentences import say

CODE = "AL210"
LABEL = "rng-duplicated"


@job_rule(CODE, LABEL, rank=20)
def find(job: Job) -> Iterator[Finding]:
    """As many dropped elements in every dropout of two ranks that were given other batches."""
    found = job.duplicated_draws
    if found is None:
        return
    key, ranks = found.key, [ranks_telling.number(job, place) for place in found.ranks]
    why = (
        say(
            "the generator of {} has the same state on both as {} begins",
            ranks_telling.GENERATORS[found.generator],
            wording.step(key.step),
        )
        if found.generator
        else "so many equal counts are no accident"
    )
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "{}: {} drops the same elements on {}, although they train on different samples: {} of {} on each, and "
            "as many on both in all {} of {}; {}. The mean over the ranks then has the noise of one of them.",
            telling.opening(key),
            key.name,
            ranks_telling.ranks(job, found.ranks),
            wording.count(found.zeros[0]),
            wording.count(found.numel),
            wording.plural(found.masks, "dropout"),
            wording.steps(found.steps),
            why,
        ),
        "Seed each data-parallel rank with a number of its own after the weights are made: "
        "`torch.manual_seed(seed + rank)`. Only ranks that share one sample (tensor parallel) are seeded alike.",
        telling.place_of(key),
        {"ranks": ranks, "dropouts": found.masks, "zeros": list(found.zeros), "elements": found.numel},
        {"step": key.step, "ranks": ranks, "name": key.name, "generator": found.generator},
    )
