"""Values over steps as figures draw them: gaps, what was not finite, thinned to what can be seen. No drawing here."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Steps = NDArray[np.int64]
Values = NDArray[np.float64]

MOST_POINTS = 1500
"""Points of a line: two for each of 750 stretches of steps, more than a page has columns for."""
MOST_MARKS = 60
"""Marks of one kind; of more, one of each stretch is drawn."""
SMALLEST_SHARE = 0.05
"""No difference of losses is held against less than this share of the first loss: near 0 healthy runs differ by a
large share of themselves (the scale of `align accept`)."""
RANGE = (5.0, 95.0)
"""Percentiles between which the range of a loss that takes both signs is taken."""


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One value over the steps of a run; steps rise. `lost` are the steps at which it was seen and was not finite.

    Lines of the same bytes are equal.
    """

    steps: Steps
    values: Values
    lost: Steps

    def __eq__(self, other: object) -> bool:
        """Whether all numbers are the same to the bit."""
        return isinstance(other, Line) and self._bytes == other._bytes

    def __hash__(self) -> int:
        """The hash of all numbers."""
        return hash(self._bytes)

    @property
    def _bytes(self) -> tuple[bytes, bytes, bytes]:
        return self.steps.tobytes(), self.values.tobytes(), self.lost.tobytes()

    @property
    def known(self) -> Values:
        """The finite values."""
        found: Values = self.values[np.isfinite(self.values)]
        return found

    @property
    def drawable(self) -> bool:
        """Whether there are two points to join."""
        return len(self.known) > 1

    @property
    def spread(self) -> float:
        """The quotient of the largest and the smallest value, 0 where one is not above 0."""
        known = self.known
        return float(known.max() / known.min()) if len(known) and known.min() > 0 else 0.0


def make_line(
    steps: Iterable[int] | Steps, values: Iterable[float] | Values, lost: Iterable[bool] | None = None
) -> Line:
    """A line of what was recorded: NaN is a gap in what was recorded, or a step that was `lost`; Inf always is."""
    numbers = _steps(steps)
    seen = np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64)
    gone = np.isinf(seen)
    if lost is not None:
        gone = gone | np.asarray(lost if isinstance(lost, np.ndarray) else list(lost), dtype=np.bool_)
    kept = np.isfinite(seen) | gone
    return Line(numbers[kept], np.where(gone, np.nan, seen)[kept], numbers[gone])


def _steps(steps: Iterable[int] | Steps) -> Steps:
    return np.asarray(steps if isinstance(steps, np.ndarray) else list(steps), dtype=np.int64)


def thinned(line: Line, most: int = MOST_POINTS) -> Line:
    """All points, or the lowest and the highest of each stretch of steps in their order; gaps stay gaps."""
    if len(line.steps) <= most:
        return line
    edges = np.linspace(0, len(line.steps), most // 2 + 1).astype(np.int64)
    kept: list[int] = []
    for start, end in pairwise(edges.tolist()):
        stretch = line.values[start:end]
        finite = np.flatnonzero(np.isfinite(stretch))
        if not len(finite):
            kept.append(int(start))
            continue
        known = stretch[finite]
        kept.extend(sorted({int(start + finite[known.argmin()]), int(start + finite[known.argmax()])}))
    return Line(line.steps[kept], line.values[kept], line.lost)


def some(steps: Steps, most: int = MOST_MARKS) -> Steps:
    """All of these steps, or one of each stretch."""
    if len(steps) <= most:
        return steps
    return steps[np.linspace(0, len(steps) - 1, most).astype(np.int64)]


def at_common_steps(reference: Line, candidate: Line) -> tuple[Steps, Values, Values]:
    """The steps at which both are finite, and the values there."""
    common, ours, theirs = np.intersect1d(reference.steps, candidate.steps, assume_unique=True, return_indices=True)
    first, second = reference.values[ours], candidate.values[theirs]
    both = np.isfinite(first) & np.isfinite(second)
    return common[both], first[both], second[both]


def relative_differences(reference: Line, candidate: Line) -> Line:
    """(candidate - reference) / |reference| at the common steps.

    Where the reference is below a share of its first value, relative to that share; of values that take both signs,
    relative to the range that they span. Steps whose scale is 0 are left out.
    """
    steps, ours, theirs = at_common_steps(reference, candidate)
    if not len(steps):
        return Line(steps, ours, steps)
    if ours.min() < 0 < ours.max():
        low, high = np.percentile(ours, RANGE)
        least = float(high - low)
    else:
        least = SMALLEST_SHARE * abs(float(ours[0]))
    scale = np.maximum(np.abs(ours), least)
    kept = scale > 0
    return Line(steps[kept], (theirs[kept] - ours[kept]) / scale[kept], steps[:0])


def moving_mean(line: Line, window: int) -> Line:
    """The mean over the last `window` points of each, from the first on that has so many."""
    if window < 2 or len(line.steps) < window:  # noqa: PLR2004 - a mean of one is that one
        return Line(line.steps[:0], line.values[:0], line.lost[:0])
    sums = np.concatenate([[0.0], np.cumsum(line.values)])
    return Line(line.steps[window - 1 :], (sums[window:] - sums[:-window]) / window, line.lost[:0])


def changes(line: Line) -> Line:
    """The points at which a value changes and the ends of what stays: all that a stepped line needs."""
    if len(line.steps) < 3:  # noqa: PLR2004 - two ends
        return line
    moved = line.values[1:] != line.values[:-1]
    kept = np.concatenate([[True], moved]) | np.concatenate([moved, [True]])
    return Line(line.steps[kept], line.values[kept], line.lost)


def even_places(total: int, most: int, also: Sequence[int] = ()) -> list[int]:
    """Places spread evenly over `total`, with some that have to be there, in order."""
    if total <= most:
        return list(range(total))
    spread = np.linspace(0, total - 1, max(1, most - len(also))).astype(np.int64).tolist()
    return sorted({*spread, *also})


def spans(steps: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """The first and the last step of each stretch of steps that follow one another; of very many, of all of them."""
    ordered = np.unique(np.asarray(list(steps), dtype=np.int64))
    if not len(ordered):
        return ()
    breaks = np.flatnonzero(np.diff(ordered) != 1) + 1
    parts = np.split(ordered, breaks)
    if len(parts) > MOST_MARKS:
        return ((int(ordered[0]), int(ordered[-1])),)
    return tuple((int(part[0]), int(part[-1])) for part in parts)
