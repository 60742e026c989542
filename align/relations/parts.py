"""Whether two tensors differ in few elements, in one run of them, or in few slices along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from align.relations.relation import Part

FEW_ELEMENTS = 0.02
FEW_SLICES = 0.1
"""At most so many of all are few (2 % of the elements, 10 % of the slices)."""

LONGEST_RUN = 0.5
"""Slices or elements that follow on one another are told up to half of the tensor: a part that was not loaded."""

FULL = 0.75
FULL_UNDER_NOISE = 0.5
"""Differing elements are told as slices where they fill at least so much of them; under noise some do not stand out."""

ELSEWHERE = 1.0 / 9.0
"""Few places explain a noisy difference where at most a third of it (a ninth of its square) is elsewhere."""

FEWEST_ELEMENTS = 8
"""One of fewer numbers is no small part."""

SHORTEST_RUN = 8
FEWEST_SLICES = 4
INDICES = 16


class Found(NamedTuple):
    """Where the difference is, and the share of its square that lies elsewhere."""

    part: Part
    slices: bool
    left: float


def differing_part(difference: NDArray[np.float64], allowed: float) -> Found | None:
    """The few places whose difference explains all but `allowed` (the square of a norm) of it, None where many differ.

    With `allowed` 0 those are the elements that differ at all.
    """
    squares = np.square(difference)
    flat = squares.reshape(-1)
    dimensions = range(squares.ndim)
    by_slice = [squares.sum(axis=tuple(other for other in dimensions if other != kept)) for kept in dimensions]
    slices = few_slices(by_slice, squares.size, allowed)
    if slices is not None and slices.left > ELSEWHERE:
        slices = None
    least = max(slices.left * float(flat.sum()), allowed) if slices is not None and allowed else allowed
    few = _largest(flat, least)
    if slices is not None and fills(few.size, squares.shape, slices.part, FULL_UNDER_NOISE if allowed else FULL):
        return slices
    elements = _found(few, None, flat)
    is_run = elements.part.run is not None and few.size <= LONGEST_RUN * flat.size
    is_few = flat.size >= FEWEST_ELEMENTS and few.size <= max(1, int(FEW_ELEMENTS * flat.size))
    if (is_few or is_run) and elements.left <= ELSEWHERE:
        return elements
    return slices


def few_slices(by_slice: Sequence[NDArray[np.float64]], size: int, allowed: float) -> Found | None:
    """The fewest slices along any dimension that explain the difference; of equally few elements, the first.

    `by_slice` are the sums of the squared difference for each dimension, `size` is the number of elements.
    """
    best: Found | None = None
    smallest = size + 1
    for dimension, sums in enumerate(by_slice):
        length = sums.size
        if length < FEWEST_SLICES or size == length:
            continue
        few = _largest(sums, allowed)
        most = LONGEST_RUN if run_of(few, 2) is not None else FEW_SLICES
        if few.size <= max(1, int(most * length)) and few.size * (size // length) < smallest:
            smallest = few.size * (size // length)
            best = _found(few, dimension, sums)
    return best


def _largest(squares: NDArray[np.float64], allowed: float) -> NDArray[np.int64]:
    """The places of the fewest numbers whose removal leaves a sum of at most `allowed`, in order."""
    if allowed <= 0.0:
        return np.flatnonzero(squares)
    falling = np.argsort(squares)[::-1]
    left = squares.sum() - np.cumsum(squares[falling])
    count = int(np.searchsorted(-left, -allowed)) + 1
    return np.sort(falling[:count])


def _found(places: NDArray[np.int64], dimension: int | None, squares: NDArray[np.float64]) -> Found:
    total = float(squares.sum())
    left = max(total - float(squares[places].sum()), 0.0) / total if total > 0.0 else 0.0
    run = run_of(places, 2 if dimension is not None else SHORTEST_RUN)
    indices = tuple(int(place) for place in places[:INDICES])
    return Found(Part(int(places.size), dimension, indices, run), dimension is not None, left)


def run_of(places: NDArray[np.int64], shortest: int = SHORTEST_RUN) -> tuple[int, int] | None:
    """(start, stop) where the places follow on one another, but for values that happen to agree."""
    if places.size < shortest:
        return None
    start, stop = int(places[0]), int(places[-1]) + 1
    return (start, stop) if places.size >= 0.9 * (stop - start) else None


def fills(count: int, shape: tuple[int, ...], part: Part, share: float) -> bool:
    """Whether so many differing elements are most of these slices, and more than one each."""
    if part.dimension is None:
        return False
    size = int(np.prod(shape)) // shape[part.dimension]
    return size >= FEWEST_SLICES and count >= share * part.count * size
