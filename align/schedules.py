"""How one run's learning rates follow the other's: faster, slower, shifted, or one number times them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from align.records import TimelineRow, Word

SAME = 1e-4
"""Rates of one schedule agree to the digits of float64; a schedule may be computed in float32."""

FEWEST_STEPS = 3
"""Rates of so many steps, all different, make a schedule."""

LARGEST_PACE = 64
LARGEST_SHIFT = 3


class ScheduleKind(Word):
    """What the candidate's rates are to the reference's."""

    TIMES = "times"
    FASTER = "faster"
    SLOWER = "slower"
    SHIFTED = "shifted"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The kind, its number (a factor, steps in one step, steps ahead), and over how many steps it holds."""

    kind: ScheduleKind
    number: float
    steps: int


def schedule_between(ours: Iterable[TimelineRow], theirs: Iterable[TimelineRow]) -> Schedule | None:
    """What the rates of the candidate are to those of the reference over both timelines; None where that is not known.

    It holds for every step that both timelines can tell of.
    """
    mine, its = _rates(ours), _rates(theirs)
    common = [step for step in its if step in mine]
    if all(_same(mine[step], its[step]) for step in common):
        return None
    ratios = [its[step] / mine[step] for step in common if mine[step] > 0.0]
    if len(ratios) >= FEWEST_STEPS and all(math.isclose(ratio, ratios[0], rel_tol=SAME) for ratio in ratios):
        return Schedule(ScheduleKind.TIMES, ratios[0], len(ratios))
    for pace in range(2, LARGEST_PACE + 1):
        for kind, fast, slow in ((ScheduleKind.FASTER, its, mine), (ScheduleKind.SLOWER, mine, its)):
            steps = _following(fast, slow, {step: step * pace for step in fast})
            if steps:
                return Schedule(kind, pace, steps)
    for shift in range(1, LARGEST_SHIFT + 1):
        for ahead in (shift, -shift):
            steps = _following(its, mine, {step: step + ahead for step in its})
            if steps:
                return Schedule(ScheduleKind.SHIFTED, ahead, steps)
    return None


def _rates(rows: Iterable[TimelineRow]) -> dict[int, float]:
    return {row.step: row.learning_rate for row in rows if math.isfinite(row.learning_rate)}


def _following(one: Mapping[int, float], other: Mapping[int, float], steps: Mapping[int, int]) -> int:
    """Over how many steps the rates of one run are those of other steps of the other run, 0 where they are not."""
    told = [(one[step], other[there]) for step, there in steps.items() if there in other]
    different = {f"{rate:.6g}" for rate, _ in told}
    return len(told) if len(different) >= FEWEST_STEPS and all(_same(*rates) for rates in told) else 0


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=SAME)
