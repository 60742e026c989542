"""AL202 among ranks: those that share one tensor drop other elements of it."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis import telling
from align.diagnosis.job import ranks_telling
from align.diagnosis.registry import job_rule
from align.inspection import Job
from align.records import Finding, Severity
from align.sentences import say

CODE = "AL202"
LABEL = "rng-mismatch"


@job_rule(CODE, LABEL, rank=12)
def find(job: Job) -> Iterator[Finding]:
    """Ranks that hold parts of the weights and the same activation: an error where they were seeded alike."""
    found = job.parted_draws
    if found is None:
        return
    key, ranks = found.key, [ranks_telling.number(job, place) for place in found.ranks]
    certain = found.seeded_alike and bool(found.generator)
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if certain else Severity.WARNING,
        say(
            "{}: {} is given the same tensor on {}, which share one batch and hold parts of the weights, but drops "
            "other elements on each{}. What all of them should hold differs from there.",
            telling.opening(key),
            key.name,
            ranks_telling.ranks(job, found.ranks),
            _why(found.generator, key.step, alike=found.seeded_alike),
        ),
        "Draw nothing on one rank alone between the seed and the first step: give the DataLoader that only one rank "
        "reads a `generator=` of its own (`iter(loader)` draws from torch's). Seed tensor parallel ranks alike for "
        "what all of them hold. `align show RUN.rank0000.h5` tells the states of the generators.",
        telling.place_of(key),
        {"ranks": ranks, "dropouts": found.masks, "zeros": list(found.zeros), "seeded_alike": found.seeded_alike},
        {"step": key.step, "ranks": ranks, "name": key.name, "generator": found.generator},
    )


def _why(generator: str, step: int, *, alike: bool) -> str:
    if not generator:
        return ""
    seeds = "they were seeded alike, but " if alike else ""
    return say(
        ": {}the generator of {} has another state on each as {} begins",
        seeds,
        ranks_telling.GENERATORS[generator],
        wording.step(step),
    )
