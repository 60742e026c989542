"""Steps that find the reference's values elsewhere: another shape, a transpose, slices or elements in another order."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.relations.both import Both
from align.relations.circumstances import Circumstances
from align.relations.orders import MOST_DIMENSIONS, nearest_slices, order_along, order_of, rows_along, transposed_axes
from align.relations.relation import Part, Relation, RelationKind
from align.relations.sums import sums_of
from align.sentences import say

LIKELY = 0.5
"""Slices in another order bring the tensors at least so much nearer, as a share of their distance."""

FEW_VALUES = 3
"""With fewer distinct values than this every tensor of the same counts is a reordering."""


def reshaped_or_transposed(both: Both) -> Relation | None:
    """Tensors of two shapes that hold the same values."""
    ours, theirs, cast = both.levelled
    if ours.size != theirs.size:
        return None
    note = _also(cast)
    if both.same_values:
        if _same(ours.reshape(-1), theirs.reshape(-1)):
            return both.answer(RelationKind.RESHAPED, residual=0.0, note=note)
        axes = transposed_axes(*_without_ones(both))
        if axes is not None:
            return both.answer(RelationKind.TRANSPOSED, axes=_all_axes(both, axes), residual=0.0, note=note)
        return both.answer(RelationKind.REORDERED, residual=0.0, note=note)
    return _noisy_transpose(both) or _noisy_reshape(both)


def same_values(both: Both, _: Circumstances[Any]) -> Relation | None:
    """Tensors of one shape that hold the same values at other places."""
    if not both.same_values:
        return None
    ours, theirs, cast = both.levelled
    note = _also(cast)
    if np.unique(ours.reshape(-1)[: 1 << 16]).size < FEW_VALUES:
        return None
    axes = transposed_axes(*both.slice_hashes)
    if axes is not None and ours.ndim > 1:
        return both.answer(RelationKind.TRANSPOSED, axes=axes, residual=0.0, note=note)
    order = order_along(*both.slice_hashes)
    if order is not None:
        return both.answer(RelationKind.PERMUTED, order=order, residual=0.0, note=note)
    part = Part(int(np.count_nonzero(ours != theirs)))
    return both.answer(RelationKind.REORDERED, part=part, residual=0.0, note=note)


def noisy(both: Both, _: Circumstances[Any]) -> Relation | None:
    """As `same_values`, where noise or another format lies over it."""
    sums = both.sums
    if not _norms_agree(both) or sums.ours_squared == 0.0 or both.wide[0].ndim == 0:
        return None
    return _noisy_transpose(both) or _noisy_order(both)


def _noisy_transpose(both: Both) -> Relation | None:
    ours, theirs = (each.astype(np.float64) for each in both.numbers)
    if not 1 < ours.ndim <= MOST_DIMENSIONS or ours.ndim != theirs.ndim or not _finite(ours, theirs):
        return None
    for axes in permutations(range(ours.ndim)):
        if axes == tuple(range(ours.ndim)) or tuple(ours.shape[axis] for axis in axes) != theirs.shape:
            continue
        residual = _distance(np.transpose(ours, axes), theirs)
        if _explains(both, residual):
            return both.answer(RelationKind.TRANSPOSED, axes=axes, residual=residual)
    return None


def _noisy_reshape(both: Both) -> Relation | None:
    ours, theirs = (each.astype(np.float64).reshape(-1) for each in both.numbers)
    if not _finite(ours, theirs):
        return None
    residual = _distance(ours, theirs)
    return both.answer(RelationKind.RESHAPED, residual=residual) if _explains(both, residual) else None


def _noisy_order(both: Both) -> Relation | None:
    ours, theirs = both.wide
    if ours.ndim < 2:  # noqa: PLR2004 - single numbers are not recognised under noise
        return None
    for dimension in range(ours.ndim):
        mine, others = rows_along(ours, dimension), rows_along(theirs, dimension)
        found = nearest_slices(mine, others)
        if found is None or np.array_equal(found, np.arange(found.size)):
            continue
        residual = _distance(mine[found], others)
        if _explains(both, residual):
            return both.answer(RelationKind.PERMUTED, order=order_of(found, dimension), residual=residual)
    return None


def _explains(both: Both, residual: float) -> bool:
    before = both.sums.relative_l2 if both.same_shape else math.sqrt(2.0)
    return both.fits(residual, before) and residual <= LIKELY * before


def _norms_agree(both: Both) -> bool:
    """Another order leaves the norm as it is, but for noise."""
    sums = both.sums
    if not (sums.ours_squared > 0.0 and sums.theirs_squared > 0.0):
        return False
    away = abs(math.sqrt(sums.theirs_squared / sums.ours_squared) - 1.0)
    return away <= max(4.0 * both.noise, 2.0 * both.unit)


def _distance(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float:
    return sums_of(np.ascontiguousarray(ours).reshape(-1), theirs.reshape(-1)).relative_l2


def _finite(*arrays: NDArray[np.float64]) -> bool:
    return all(bool(np.isfinite(array).all()) for array in arrays)


def _same(ours: NDArray[Any], theirs: NDArray[Any]) -> bool:
    return bool(np.array_equal(ours, theirs, equal_nan="f" in {ours.dtype.kind} & {theirs.dtype.kind}))


def _without_ones(both: Both) -> tuple[list[NDArray[np.uint64]], list[NDArray[np.uint64]]]:
    """The slice hashes along dimensions that are longer than one."""
    ours, theirs = both.slice_hashes
    return [each for each in ours if each.size > 1], [each for each in theirs if each.size > 1]


def _all_axes(both: Both, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of the reference in the candidate's order; without those of length one where one side has more."""
    long = [place for place, length in enumerate(both.contents[0].shape) if length > 1]
    found = iter(long[axis] for axis in axes)
    theirs = both.contents[1].shape
    if len(theirs) != len(both.contents[0].shape):
        return tuple(found)
    ones = iter(place for place, length in enumerate(both.contents[0].shape) if length == 1)
    return tuple(next(found) if length > 1 else next(ones) for length in theirs)


def _also(cast: str) -> str:
    return say("rounded to {} too", cast) if cast else ""
