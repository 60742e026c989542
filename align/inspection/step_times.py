"""How long the steps took, and whether all of them take longer from one step on."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from align.records import TimelineRow

WARM_UP = 3
"""The first steps allocate, compile and choose kernels."""

FEWEST = 50
"""So many steps on each side, so that a checkpoint, a validation or a short load of the machine is none of it: on the
shared machine of the tests 21 steps at the end of 400 once took 6 times as long."""

SLOWER = 2.0
"""Nine tenths of the steps behind take at least so many times as long as nine tenths of those before take at most."""


SLOW_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The medians of the seconds of a step, before and from `cliff` on; `cliff` is None where there is none."""

    median: float = math.nan
    cliff: int | None = None
    before: float = math.nan
    after: float = math.nan
    count: int = 0


def step_times(timeline: Sequence[TimelineRow], captured: Collection[int] = ()) -> StepTimes:
    """Read the times of the steps that were not captured: capturing takes time of its own, also in the step behind."""
    watched = {step + more for step in captured for more in (0, 1)}
    rows = [
        row
        for row in timeline[WARM_UP:]
        if math.isfinite(row.seconds) and row.seconds > 0.0 and row.step not in watched
    ]
    if not rows:
        return StepTimes()
    seconds = np.array([row.seconds for row in rows])
    found = StepTimes(median=float(np.median(seconds)), count=len(rows))
    place = _parting(np.log(seconds))
    if place is None or not _slower(seconds, place) > SLOWER:
        return found
    return StepTimes(
        found.median, rows[place].step, float(np.median(seconds[:place])), float(np.median(seconds[place:])), len(rows)
    )


def _parting(values: NDArray[np.float64]) -> int | None:
    """The place that parts a series into the two halves whose means are farthest apart, in standard errors."""
    places = np.arange(FEWEST, len(values) - FEWEST + 1)
    if not len(places):
        return None
    total = np.concatenate([[0.0], np.cumsum(values)])
    before = total[places] / places
    behind = (total[-1] - total[places]) / (len(values) - places)
    weight = places * (len(values) - places) / len(values)
    return int(places[np.argmax(weight * np.square(behind - before))])


def _slower(seconds: NDArray[np.float64], place: int) -> float:
    """How many times as long the quick ones of the steps from a place on take as the slow ones before it."""
    quick = float(np.quantile(seconds[:place], SLOW_SHARE))
    return float(np.quantile(seconds[place:], 1.0 - SLOW_SHARE)) / quick
