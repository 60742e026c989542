"""Which elements of a tensor differ beyond noise: all of them, a slice, a run in memory, more towards one end."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from align import sketch
from align.pairing import Pair
from align.records import Comparison
from align.value_reader import ValueReader, kept

Array = NDArray[np.float64]

MOST_ELEMENTS = 1 << 22
"""Larger tensors are not looked at: three copies in float64 are 100 MB."""

BEYOND = 8.0
"""An element is wrong where it differs by so many times the floor, of the root mean square or of itself; of normal
noise as large as the floor one element in 10^15 does."""

LARGEST_SHARE = 0.5
"""What is wrong is a part of the tensor where it lies within so much of a dimension, or of the memory."""

FILLED = 0.5
"""At least so many of the elements of a slice or run are wrong; of foreign values some are near the right ones."""

FEWEST_STEPS = 8
GROWN = 4.0
ORDERED = 0.95
"""An error grows along a dimension of at least 8 where its end has 4 times the error of its begin, and the rank
correlation of error and place is 0.95; that of 8 unordered numbers is larger once in 3,000 times."""


@dataclass(frozen=True, slots=True)
class WrongPart:
    """Which elements are wrong, of a tensor of `shape`: `count` of them, the others agree up to noise.

    `dimension`, `start` and `stop` are the slice that holds them all, where there is one. `run` is the part of the
    memory (row-major begin and end) that they fill where they lie side by side. `similarity` is the cosine between both
    runs' values of the wrong elements; `zeros` says that one run has only zeros there. `grows` is the dimension along
    which the relative error grows, from the first to the second number of `growth`.
    """

    shape: tuple[int, ...]
    count: int
    dimension: int | None = None
    start: int = 0
    stop: int = 0
    run: tuple[int, int] | None = None
    similarity: float = 0.0
    zeros: bool = False
    grows: int | None = None
    growth: tuple[float, float] = (0.0, 0.0)

    @property
    def numel(self) -> int:
        """The number of elements of the tensor."""
        return math.prod(self.shape)

    @property
    def length(self) -> int:
        """How long the dimension of the slice is."""
        return self.shape[self.dimension] if self.dimension is not None else 0


def find_wrong_part(values: ValueReader, comparison: Comparison, scale: float = 1.0) -> WrongPart | None:
    """The wrong elements of a pair that differs, from kept values or from sketches that hold every element.

    None where neither is there, or nothing is beyond noise by itself. `scale` undoes the loss scales.
    Raises CaptureFileError where a file cannot be read.
    """
    pair = Pair(comparison.reference, comparison.candidate)
    found = _numbers(values, pair, scale)
    if found is None or not 0.0 < comparison.floor < math.inf:
        return None
    return wrong_part(*found, comparison.floor)


def wrong_part(reference: Array, candidate: Array, floor: float) -> WrongPart | None:
    """The same of two arrays of one shape, of which rounding may part `floor` (relative L2)."""
    difference = candidate - reference
    if not reference.size or not np.isfinite(difference).all():
        return None
    size = np.maximum(np.abs(reference), math.sqrt(float(np.mean(reference**2))))
    wrong = np.abs(difference) > BEYOND * floor * size
    count = int(np.count_nonzero(wrong))
    if count == 0:
        return None
    ours, theirs = reference[wrong], candidate[wrong]
    product = math.sqrt(float(ours @ ours) * float(theirs @ theirs))
    dimension, start, stop = _slice_of(wrong, count)
    grows, growth = _growth(reference, difference)
    return WrongPart(
        reference.shape,
        count,
        dimension,
        start,
        stop,
        _run_of(wrong, count),
        similarity=float(ours @ theirs) / product if product else 0.0,
        zeros=not (ours.any() and theirs.any()),
        grows=grows,
        growth=growth,
    )


def _numbers(values: ValueReader, pair: Pair, scale: float) -> tuple[Array, Array] | None:
    shape, numel = pair.reference.shape, pair.reference.numel
    if not pair.same_shape or numel > MOST_ELEMENTS:
        return None
    if kept(pair):
        return values.arrays(pair, scale)
    sides = [
        sketch.recovered(record.sketch, numel) if record.sketch is not None else None
        for record in (pair.reference, pair.candidate)
    ]
    if sides[0] is None or sides[1] is None:
        return None
    return sides[0].astype(np.float64).reshape(shape), sides[1].astype(np.float64).reshape(shape) * scale


def _slice_of(wrong: NDArray[np.bool_], count: int) -> tuple[int | None, int, int]:
    """The narrowest range along one dimension that holds all wrong elements, most of it wrong."""
    best: tuple[float, int | None, int, int] = (LARGEST_SHARE, None, 0, 0)
    for dimension, length in enumerate(wrong.shape):
        others = tuple(axis for axis in range(wrong.ndim) if axis != dimension)
        places = np.flatnonzero(wrong.any(axis=others))
        start, stop = int(places[0]), int(places[-1]) + 1
        share = (stop - start) / length
        filled = count / ((stop - start) * wrong.size / length)
        if filled >= FILLED and (share < best[0] or (best[1] is None and share <= LARGEST_SHARE)):
            best = (share, dimension, start, stop)
    return best[1:]


def _run_of(wrong: NDArray[np.bool_], count: int) -> tuple[int, int] | None:
    places = np.flatnonzero(wrong)
    start, stop = int(places[0]), int(places[-1]) + 1
    if count < FILLED * (stop - start) or stop - start > LARGEST_SHARE * wrong.size:
        return None
    return start, stop


def _growth(reference: Array, difference: Array) -> tuple[int | None, tuple[float, float]]:
    """The dimension along which the relative error grows most steadily."""
    best: tuple[float, int | None, tuple[float, float]] = (ORDERED, None, (0.0, 0.0))
    for dimension, length in enumerate(reference.shape):
        if length < FEWEST_STEPS:
            continue
        others = tuple(axis for axis in range(reference.ndim) if axis != dimension)
        norms = np.sqrt((reference**2).sum(axis=others))
        if not norms.all():
            continue
        errors = np.sqrt((difference**2).sum(axis=others)) / norms
        quarter = length // 4
        begin, end = float(errors[:quarter].mean()), float(errors[-quarter:].mean())
        order = _rank_correlation(errors)
        if end > GROWN * begin and order > best[0]:
            best = (order, dimension, (begin, end))
    return best[1], best[2]


def _rank_correlation(numbers: Array) -> float:
    ranks = np.argsort(np.argsort(numbers, kind="stable"), kind="stable")
    return float(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1])
