"""Whose gradient grows: the parameter whose gradient norm leaves its own course first, over the captured steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from align.inspection.view import RunView
from align.optimizer_records import by_owner
from align.records import Owner, Phase, TimelineRow

FEWEST_STEPS = 3
"""So many captured steps make a course."""

GROWN = 4.0
"""A gradient has left its course where its norm is so many times the median of the captured steps before. It is only
asked when the loss has jumped: many a gradient of a healthy run grows so much in the first steps."""

NORM_BEFORE = 20
NORM_GROWN = 4.0
"""The same of the norm of all gradients, against the median of so many steps."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A parameter whose gradient norm is `factor` times the median of the captured steps before `step`."""

    step: int
    owner: Owner
    norm: float
    before: float

    @property
    def factor(self) -> float:
        """How many times the median norm before."""
        return self.norm / self.before


def growth_of(view: RunView, until: int) -> Growth | None:
    """The parameter whose gradient grew first up to a step, of several in one step the one that grew most."""
    skipped = {row.step for row in view.timeline if row.skipped or row.nonfinite}
    course: dict[Owner, list[float]] = {}
    for number in view.steps:
        if number in skipped or number > until:
            continue
        step = view.step(number)
        records = by_owner(step.by_phase[Phase.UPDATE]) or by_owner(step.by_phase[Phase.GRADIENT])
        norms = {owner: record.stats.norm for owner, record in records.items() if record.stats is not None}
        grown = [
            Growth(number, owner, norm, float(np.median(before)))
            for owner, norm in norms.items()
            if len(before := course.get(owner, [])) >= FEWEST_STEPS and norm > GROWN * float(np.median(before)) > 0.0
        ]
        if grown:
            return max(grown, key=lambda one: one.factor)
        for owner, norm in norms.items():
            course.setdefault(owner, []).append(norm)
    return None


def norm_jump(timeline: Sequence[TimelineRow], first: int, last: int) -> int | None:
    """The first step of a range in which the norm of all gradients is far above that of the steps before."""
    known = [row for row in timeline if np.isfinite(row.gradient_norm) and not row.skipped]
    for place, row in enumerate(known):
        before = [one.gradient_norm for one in known[max(0, place - NORM_BEFORE) : place]]
        told = first <= row.step <= last and len(before) >= NORM_BEFORE // 2
        if told and row.gradient_norm > NORM_GROWN * float(np.median(before)):
            return row.step
    return None
