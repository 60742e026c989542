"""The curves of one run over its steps, and what is said of each. No drawing here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from align import wording
from align.records import Curve
from align.reports.series import curve

if TYPE_CHECKING:
    from align.records import InspectResult, TimelineRow
    from align.reports.language import Language

MOST_MARKS = 300
"""Skipped steps that are marked; of more, one of each stretch is."""
MOST_SPANS = 200
LOGARITHMIC_FROM = 100.0
"""The quotient of largest and smallest value above which an axis is logarithmic: less is read well on a plain one."""
SECONDS_LOGARITHMIC_FROM = 3.0
"""Times of steps are compared by how many times as long they take."""

WRITTEN: Mapping[Curve, Callable[[float], str]] = {
    Curve.LOSS: wording.loss,
    Curve.LOSS_SCALE: wording.loss_scale,
    Curve.GRADIENT_NORM: wording.value,
    Curve.SECONDS: wording.seconds,
}


@dataclass(frozen=True, slots=True)
class RunCurve:
    """One value over the steps of a run; `points` may be thinned, the sentence was made from all.

    `limit` is what gradients were clipped at, step by step. `skipped` and `lost` are steps, `captured` the first and
    the last step of each stretch of captured ones, `first` is the step of the first wrong place. `levels` are medians,
    each from a first to a last step; of two the second begins where steps take longer for good.
    """

    curve: Curve
    points: tuple[tuple[int, float], ...]
    sentence: str
    limit: tuple[tuple[int, float], ...] = ()
    skipped: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    captured: tuple[tuple[int, int], ...] = ()
    first: int | None = None
    levels: tuple[tuple[int, int, float], ...] = ()

    @property
    def drawable(self) -> bool:
        """Whether there are two points to join, or one and marks beside it."""
        finite = sum(math.isfinite(value) for _, value in self.points)
        return finite > 1 or (finite == 1 and bool(self.lost or self.skipped))

    @property
    def logarithmic(self) -> bool:
        """Whether the values are so far apart that only their logarithms can be read."""
        values = [value for _, value in self.points if math.isfinite(value)]
        above = SECONDS_LOGARITHMIC_FROM if self.curve is Curve.SECONDS else LOGARITHMIC_FROM
        return min(values) > 0 and max(values) > above * min(values)


def make_curves(result: InspectResult, phrases: Language) -> tuple[RunCurve, ...]:
    """Loss, loss scale, gradient norm and time per step, in this order; empty ones say so."""
    return tuple(_curve(which, result, phrases) for which in Curve) if result.timeline else ()


def _curve(which: Curve, result: InspectResult, phrases: Language) -> RunCurve:
    rows = result.timeline
    points = [(row.step, _value(row, which)) for row in rows]
    skipped = [row.step for row in rows if row.skipped]
    lost = [row.step for row in rows if _is_lost(row, which)]
    known = [(step, value) for step, value in points if math.isfinite(value)]
    if not known and not lost:
        return RunCurve(which, (), phrases[f"no_{which}"])
    return RunCurve(
        which,
        curve(points),
        " ".join(_sentences(which, known, lost, skipped, phrases)),
        limit=_limits(rows) if which is Curve.GRADIENT_NORM else (),
        skipped=_thinned(skipped) if which is not Curve.SECONDS else (),
        lost=_thinned(lost),
        captured=_spans(result.captured),
        first=None if result.first is None or (result.first.step or 0) < 0 else result.first.step,
        levels=_levels(result, known) if which is Curve.SECONDS and known else (),
    )


CLIFF = "step-time-cliff"


def _levels(result: InspectResult, known: Sequence[tuple[int, float]]) -> tuple[tuple[int, int, float], ...]:
    """The median time of a step; two where a finding says that steps take longer from one on."""
    first, last = known[0][0], known[-1][0]
    cliff = next((finding.where.step for finding in result.findings if finding.label == CLIFF), None)
    if cliff is not None and first < cliff <= last:
        before, after = ([value for step, value in known if (step >= cliff) is late] for late in (False, True))
        return (first, cliff - 1, median(before)), (cliff, last, median(after))
    return ((first, last, median(value for _, value in known)),)


def _value(row: TimelineRow, which: Curve) -> float:
    if which is Curve.GRADIENT_NORM and not math.isnan(row.clip_norm):
        # Behind the clipping all norms are the limit.
        return row.clip_norm
    value: float = getattr(row, which.value)
    return value


def _is_lost(row: TimelineRow, which: Curve) -> bool:
    """Whether the value was seen and is not finite; NaN alone says that it was not recorded."""
    value = _value(row, which)
    seen = (which is Curve.LOSS and row.nonfinite) or (which is Curve.GRADIENT_NORM and math.isfinite(row.clip_limit))
    return math.isinf(value) or (math.isnan(value) and seen)


def _sentences(
    which: Curve, known: Sequence[tuple[int, float]], lost: Sequence[int], skipped: Sequence[int], phrases: Language
) -> list[str]:
    """What there is to see, in words."""
    said = [_course(which, known, phrases)] if known else []
    if lost:
        key = "curve_lost_one" if len(lost) == 1 else "curve_lost"
        said.append(phrases[key].format(count=wording.count(len(lost)), step=lost[0]))
    if skipped and which is Curve.LOSS_SCALE:
        key = "curve_skipped_one" if len(skipped) == 1 else "curve_skipped"
        steps = _some_ranges(skipped, phrases)
        said.append(phrases[key].format(count=wording.count(len(skipped)), step=skipped[0], steps=steps))
    return said


def _course(which: Curve, known: Sequence[tuple[int, float]], phrases: Language) -> str:
    write = WRITTEN[which]
    low, high = (pick(known, key=lambda entry: entry[1]) for pick in (min, max))
    if len(known) == 1:
        return phrases["curve_one"].format(step=known[0][0], value=write(known[0][1]))
    if low[1] == high[1]:
        return phrases["curve_same"].format(value=write(low[1]))
    if which is Curve.SECONDS:
        middle = median(value for _, value in known)
        return phrases["curve_median"].format(median=write(middle), high=write(high[1]), high_step=high[0])
    from_to = phrases["curve_from_to"].format(
        first=write(known[0][1]), first_step=known[0][0], last=write(known[-1][1]), last_step=known[-1][0]
    )
    if {low[0], high[0]} == {known[0][0], known[-1][0]}:
        return from_to
    between = phrases["curve_range"].format(low=write(low[1]), low_step=low[0], high=write(high[1]), high_step=high[0])
    return f"{from_to} {between}"


def _some_ranges(steps: Sequence[int], phrases: Language) -> str:
    """`3-8, 12`; of many stretches the first ones."""
    parts = wording.ranges(steps).split(", ")
    shown = ", ".join(parts[:8])
    if len(parts) <= 8:  # noqa: PLR2004 - as many as fit on a line
        return shown
    return f"{shown}, {phrases['and_more'].format(count=wording.count(len(parts) - 8))}"


def _limits(rows: Sequence[TimelineRow]) -> tuple[tuple[int, float], ...]:
    return curve([(row.step, row.clip_limit) for row in rows if math.isfinite(row.clip_limit)])


def _thinned(steps: Sequence[int]) -> tuple[int, ...]:
    if len(steps) <= MOST_MARKS:
        return tuple(steps)
    return tuple(steps[number * len(steps) // MOST_MARKS] for number in range(MOST_MARKS))


def _spans(steps: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The stretches of steps that follow one another; of very many, none: they would be one grey field."""
    ordered = sorted(set(steps))
    breaks = [place for place, (low, high) in enumerate(pairwise(ordered), 1) if high != low + 1]
    edges = [0, *breaks, len(ordered)]
    spans = tuple((ordered[start], ordered[end - 1]) for start, end in pairwise(edges) if end > start)
    return spans if len(spans) <= MOST_SPANS else ()
