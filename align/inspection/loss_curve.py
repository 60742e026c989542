"""The curve of a run as its timeline has it: whether the loss falls, where it jumps, where it rises and stays.

Every step of a run is in the timeline, captured or not, so this needs no tensor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from align.records import TimelineRow

FEWEST_STEPS = 100
"""Of fewer steps it is not said that their loss does not fall: noise of 3 % hides what so few steps learn."""

SHARE = 4
"""First and last are the medians of a fourth of the steps each, of at most this many:"""
LONGEST_WINDOW = 50

SURE = 2.0
"""A fall below so many standard errors of the two medians is no fall (Mann-Kendall's 5 %);"""
SMALLEST_FALL = 1e-3
"""nor is one below this share of the loss."""

BEFORE = 50
"""A jump is measured against the median of so many steps before it, as the rule for spikes of two runs does."""
FEWEST_BEFORE = 20
DEVIATIONS = 6.0
"""It is above the median by so many robust standard deviations,"""
SHARE_OF_MEDIAN = 0.1
"""by this share of the median,"""
SHARE_OF_START = 0.05
"""and by this share of the first loss: near 0 every loss jumps."""
ONE_JUMP = 10
"""Jumps so close together are one."""

STAYS = 20
"""A rise has lasted for so many steps to the end of the run, none of them back where the loss was."""

NORMAL = 1.4826
"""The standard deviation of normal numbers over the median of their absolute deviations."""
MEDIAN_ERROR = 1.2533
"""The standard error of a median over that of a mean."""

Curve = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Jump:
    """A step whose loss is far above those before it; `before` is their median. `steps` is how long it lasted."""

    step: int
    loss: float
    before: float
    steps: int = 1


@dataclass(frozen=True, slots=True)
class LossCurve:
    """What the losses of a run say, `count` of them known and finite.

    `first` and `last` are the medians of the first and last steps; `fell` says whether the loss fell between them,
    None where there are too few steps to tell. `constant` says that all are the same number to the last bit. `jumps`
    came back, `rise` did not.
    """

    count: int
    first: float = math.nan
    last: float = math.nan
    lowest: float = math.nan
    fell: bool | None = None
    constant: bool = False
    jumps: tuple[Jump, ...] = ()
    rise: Jump | None = None

    @property
    def first_jump(self) -> Jump | None:
        """The first jump, or the rise where that comes first."""
        found = [*self.jumps, *((self.rise,) if self.rise is not None else ())]
        return min(found, key=lambda jump: jump.step, default=None)


def loss_curve(timeline: Sequence[TimelineRow], *, takes_turns: bool = False) -> LossCurve:
    """Read the curve of a timeline.

    `takes_turns` says that several optimizers step one after the other, each with a loss of its own: then steps are
    not comparable with the steps before them, and no jump is told.
    """
    known = [row for row in timeline if math.isfinite(row.loss)]
    losses = np.array([row.loss for row in known], dtype=np.float64)
    if not len(losses):
        return LossCurve(0)
    window = max(1, min(LONGEST_WINDOW, len(losses) // SHARE))
    first, last = float(np.median(losses[:window])), float(np.median(losses[-window:]))
    steps = [row.step for row in known]
    past = _past(losses)
    rise = None if takes_turns else _rise(steps, losses, past)
    return LossCurve(
        count=len(losses),
        first=first,
        last=last,
        lowest=float(losses.min()),
        fell=_fell(losses[:window], losses[-window:]) if len(losses) >= FEWEST_STEPS else None,
        constant=len(losses) > 1 and bool((losses == losses[0]).all()),
        jumps=() if takes_turns else tuple(_jumps(steps, losses, past, rise)),
        rise=rise,
    )


def _fell(first: Curve, last: Curve) -> bool:
    """Whether the median of the last losses is surely below that of the first."""
    fall = float(np.median(first) - np.median(last))
    error = MEDIAN_ERROR * math.hypot(_deviation(first), _deviation(last)) / math.sqrt(len(first))
    return fall > max(SURE * error, SMALLEST_FALL * abs(float(np.median(first))))


def _deviation(losses: Curve) -> float:
    return NORMAL * float(np.median(np.abs(losses - np.median(losses))))


class _Past(NamedTuple):
    """For each place of a curve: the median of the losses before it, and from how far above it a loss is a jump."""

    median: Curve
    limit: Curve


def _past(losses: Curve) -> _Past:
    """The past of every place; infinite where too few losses lie before it."""
    median, limit = np.full(len(losses), np.nan), np.full(len(losses), np.inf)
    for place in range(FEWEST_BEFORE, min(BEFORE, len(losses))):
        median[place], limit[place] = (float(part[0]) for part in _spread(losses[None, :place], losses[0]))
    if len(losses) > BEFORE:
        windows = sliding_window_view(losses[:-1], BEFORE)
        median[BEFORE:], limit[BEFORE:] = _spread(windows, losses[0])
    return _Past(median, limit)


def _spread(windows: Curve, start: float) -> tuple[Curve, Curve]:
    middle = np.median(windows, axis=1)
    deviation = NORMAL * np.median(np.abs(windows - middle[:, None]), axis=1)
    apart = np.maximum(DEVIATIONS * deviation, SHARE_OF_MEDIAN * np.abs(middle))
    return middle, np.maximum(apart, SHARE_OF_START * abs(start))


def _jumps(steps: Sequence[int], losses: Curve, past: _Past, rise: Jump | None) -> Iterator[Jump]:
    """The jumps from which the loss came back, those within a few steps as one."""
    high = np.flatnonzero(losses > past.median + past.limit)
    places = [int(place) for place in high if rise is None or steps[int(place)] < rise.step]
    starts = [number for number, place in enumerate(places) if not number or place - places[number - 1] > ONE_JUMP]
    for start, end in pairwise([*starts, len(places)]):
        group = places[start:end]
        highest = max(float(losses[place]) for place in group)
        yield Jump(steps[group[0]], highest, float(past.median[group[0]]), group[-1] - group[0] + 1)


def _rise(steps: Sequence[int], losses: Curve, past: _Past) -> Jump | None:
    """Where the loss rose for good: from there to the end of the run it was never back where it had been."""
    if len(losses) < STAYS:
        return None
    lowest_behind = np.minimum.accumulate(losses[::-1])[::-1]
    places = np.flatnonzero(lowest_behind[: len(losses) - STAYS + 1] > (past.median + past.limit)[: -STAYS + 1])
    if not len(places):
        return None
    place = int(places[0])
    return Jump(steps[place], float(losses[place:].max()), float(past.median[place]), len(losses) - place)
