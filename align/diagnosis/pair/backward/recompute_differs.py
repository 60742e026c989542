"""AL506: the gradients differ because an activation checkpoint computes another thing than it did first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from align.comparison import Walk
from align.diagnosis import recompute_telling, telling
from align.diagnosis.registry import rule
from align.recomputing import Recomputing
from align.records import Finding, Kind, Phase, Severity
from align.sentences import joined, say

CODE = "AL506"
LABEL = "recompute-differs"

SIDES = ("reference", "candidate")


class _Found(NamedTuple):
    """The first step in which a run does not repeat its forward."""

    side: int
    step: Recomputing


@rule(CODE, LABEL, rank=42)
def find(walk: Walk) -> Iterator[Finding]:
    """The first repetition that is another one; an error where the first gradient that differs comes right behind."""
    found = [
        _Found(side, step)
        for side, steps in enumerate(walk.recomputing)
        for step in [next((one for one in steps if one.differing), None)]
        if step is not None
    ]
    if not found:
        return
    parting = next((one for one in reversed(found) if _parts(walk, one)), None)
    told = parting or found[-1]
    repeated = told.step.differing[0]
    key = repeated.first.key
    sides = joined(" and ", (SIDES[one.side] for one in found if one.step.step == told.step.step))
    first = walk.first
    parts = ""
    if parting is not None and first is not None:
        parts = say(
            " The forward agrees; {} of {} is the first gradient that differs: {}.",
            telling.tensor(first.comparison.key),
            telling.point(first.comparison.key),
            telling.amount(first.comparison),
        )
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if parting is not None else Severity.WARNING,
        say(
            "{}: an activation checkpoint of the {} computes {} {} again in the backward, and {}. {}{}",
            telling.opening(key),
            sides,
            key.name,
            key.slot,
            recompute_telling.how(repeated),
            recompute_telling.so_many(told.step),
            parts,
        ),
        recompute_telling.advice(repeated),
        telling.place_of(first.comparison.key if parting is not None and first is not None else key),
        {
            **recompute_telling.evidence_of(told.step),
            "side": SIDES[told.side],
            "repeated": say("{} {}", key.name, key.slot),
        },
        {"step": key.step, "name": key.name, "slot": key.slot, "cause": repeated.cause, "side": SIDES[told.side]},
    )


def _parts(walk: Walk, found: _Found) -> bool:
    """Whether the runs part in a gradient that was made after the repetition."""
    first = walk.first
    if first is None or first.comparison.key.step != found.step.step or first.kind not in {Kind.VALUE, Kind.NONFINITE}:
        return False
    if first.comparison.key.phase not in {Phase.BACKWARD, Phase.GRADIENT}:
        return False
    made = (first.comparison.reference, first.comparison.candidate)[found.side]
    return found.step.differing[0].again.order < made.order
