"""How the slices along a dimension were put into another order, and which dimensions changed places."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
from numpy.typing import NDArray

from align.relations.relation import Order, OrderKind

Permutation = NDArray[np.int64]
Numbers = NDArray[np.float64]

EXAMPLES = 5
MOST_DIMENSIONS = 5
"""Of more dimensions than a convolution over volumes has, transposes are not tried (5 have 119)."""

FEWEST_NUMBERS = 8
"""Slices of fewer numbers are not matched by likeness: unrelated ones look alike by chance."""

MOST_SLICES = 1 << 15
TOGETHER = 256
"""So many slices are compared with all others at a time."""

PROJECTED = 96
"""Slices of more numbers are compared by so many random sums of them."""


def matched(ours: NDArray[np.uint64], theirs: NDArray[np.uint64]) -> Permutation | None:
    """The place in `ours` of each of `theirs`, None where they are not the same hashes; equal ones stay in order."""
    if ours.size != theirs.size:
        return None
    mine, others = np.argsort(ours, kind="stable"), np.argsort(theirs, kind="stable")
    if not np.array_equal(ours[mine], theirs[others]):
        return None
    found = np.empty(ours.size, dtype=np.int64)
    found[others] = mine
    return found


def transposed_axes(ours: list[NDArray[np.uint64]], theirs: list[NDArray[np.uint64]]) -> tuple[int, ...] | None:
    """Numpy's transpose argument that makes the candidate of the reference, from the slice hashes of both."""
    dimensions = len(ours)
    if not 1 < dimensions == len(theirs) <= MOST_DIMENSIONS:
        return None
    for axes in permutations(range(dimensions)):
        if axes != tuple(range(dimensions)) and all(
            np.array_equal(theirs[place], ours[axis]) for place, axis in enumerate(axes)
        ):
            return axes
    return None


def order_along(ours: list[NDArray[np.uint64]], theirs: list[NDArray[np.uint64]]) -> Order | None:
    """The order of the slices of one dimension where that is all that differs, from the slice hashes of both."""
    for dimension, (mine, others) in enumerate(zip(ours, theirs, strict=True)):
        found = matched(mine, others) if mine.size > 1 else None
        if found is not None and not np.array_equal(found, np.arange(found.size)):
            return order_of(found, dimension)
    return None


def order_of(permutation: Permutation, dimension: int) -> Order:
    """What a permutation is; permutation[i] is the place in the reference of the candidate's slice i."""
    length = permutation.size
    places = np.arange(length)
    away = np.flatnonzero(permutation != places)
    examples = tuple((int(place), int(permutation[place])) for place in away[:EXAMPLES])
    plain = Order(dimension, OrderKind.GENERAL, int(away.size), length, examples=examples)
    if away.size == 2:  # noqa: PLR2004 - two slices changed places
        return replace(plain, how=OrderKind.EXCHANGED)
    if np.array_equal(permutation, places[::-1]):
        return replace(plain, how=OrderKind.REVERSED)
    if np.array_equal(permutation, (places + permutation[0]) % length):
        forward = int(-permutation[0]) % length
        return replace(plain, how=OrderKind.ROLLED, shift=forward if 2 * forward <= length else forward - length)
    block = _block(permutation)
    blocks = permutation[::block] // block
    swapped = _swapped_axes(blocks)
    if swapped is not None:
        outer, first, second = swapped
        return replace(plain, how=OrderKind.SWAPPED_AXES, block=block, outer=outer, first=first, second=second)
    parts = _grouped(blocks) or _grouped(np.argsort(blocks))
    if parts is not None:
        return replace(plain, how=OrderKind.GROUPED, block=block, first=blocks.size // sum(parts), parts=parts)
    return replace(plain, how=OrderKind.BLOCKS, block=block) if block > 1 else plain


def nearest_slices(ours: Numbers, theirs: Numbers) -> Permutation | None:
    """The likeliest place in `ours` of each row of `theirs` where rows are noisy; None where it is no permutation."""
    count, width = ours.shape
    if width < FEWEST_NUMBERS or not 2 < count <= MOST_SLICES:  # noqa: PLR2004 - two slices have no other order but one
        return None
    if width > PROJECTED:
        directions = np.random.default_rng(0).standard_normal((width, PROJECTED))
        ours, theirs = ours @ directions, theirs @ directions
    ours, theirs = _unit_rows(ours), _unit_rows(theirs)
    found = np.concatenate(
        [(theirs[start : start + TOGETHER] @ ours.T).argmax(axis=1) for start in range(0, count, TOGETHER)]
    )
    if np.unique(found).size != count:
        return None
    return found.astype(np.int64)


def rows_along(numbers: Numbers, dimension: int) -> Numbers:
    """The slices along a dimension as the rows of a matrix."""
    return np.moveaxis(numbers, dimension, 0).reshape(numbers.shape[dimension], -1)


def _unit_rows(rows: Numbers) -> Numbers:
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    unit: Numbers = rows / np.maximum(norms, np.finfo(np.float64).tiny)[:, None]
    return unit


def _block(permutation: Permutation) -> int:
    """The largest number of slices that stay together throughout."""
    ends = np.flatnonzero(np.diff(permutation) != 1) + 1
    lengths = np.diff(np.concatenate([[0], ends, [permutation.size]]))
    found = int(np.gcd.reduce(lengths))
    return found if np.all(permutation[::found] % found == 0) else 1


def _swapped_axes(blocks: Permutation) -> tuple[int, int, int] | None:
    """(outer, first, second) where an axis outer x first x second became outer x second x first."""
    size = blocks.size
    if size < 4 or blocks[0] != 0:  # noqa: PLR2004 - two by two
        return None
    second = int(blocks[1])
    ones = np.flatnonzero(blocks == 1)
    first = int(ones[0]) if ones.size else 0
    if second < 2 or first < 2 or size % (first * second):  # noqa: PLR2004 - an axis of one does not swap
        return None
    outer = size // (first * second)
    expected = np.arange(size).reshape(outer, first, second).swapaxes(1, 2).reshape(-1)
    return (outer, first, second) if np.array_equal(blocks, expected) else None


def _grouped(blocks: Permutation) -> tuple[int, ...] | None:
    """The widths of the parts of each group where stacked parts were dealt out in groups."""
    size = blocks.size
    for groups in (number for number in range(2, size // 2 + 1) if size % number == 0):
        table = blocks.reshape(groups, -1)
        steps = np.diff(table, axis=0)
        if np.all(steps == steps[0]) and np.all(steps[0] > 0):
            breaks = np.flatnonzero((np.diff(table[0]) != 1) | (np.diff(steps[0]) != 0)) + 1
            ends = [0, *breaks.tolist(), table.shape[1]]
            widths = [stop - start for start, stop in pairwise(ends)]
            if len(widths) > 1 and all(steps[0][start] == width for start, width in zip(ends, widths, strict=False)):
                return tuple(widths)
    return None
