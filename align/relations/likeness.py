"""Steps that find two tensors alike: equal, rounded, within noise, repeated from earlier; or not comparable."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.relations.both import ARITHMETIC, Both, Compared, Values, simple
from align.relations.changes import hidden_factor
from align.relations.circumstances import Circumstances
from align.relations.formats import format_between, unit_of
from align.relations.rearrangements import reshaped_or_transposed
from align.relations.relation import Contents, Part, Relation, RelationKind, Side
from align.relations.sums import sums_of

STALE_SHARE = 0.25
"""A repeated tensor is at most a quarter as far from the earlier one as from what it should be: all of 452 stale
tensors were."""

MOST_INDICES = 16


def other_shape(both: Both, _: Circumstances[Any]) -> Relation | None:
    """Tensors of two shapes: the same values in another form, or not comparable."""
    if both.same_shape:
        return None
    return reshaped_or_transposed(both) or both.answer(RelationKind.OTHER_SHAPE)


def equal(both: Both, _: Circumstances[Any]) -> Relation | None:
    """The same bits, or the same values: -0.0 is 0.0, and NaNs are alike whatever their payload."""
    ours, theirs = both.contents
    if ours.dtype != theirs.dtype:
        return None
    if ours.hash == theirs.hash:
        return both.answer(RelationKind.EQUAL)
    same = np.array_equal(*both.numbers, equal_nan=both.numbers[0].dtype.kind == "f")
    return both.answer(RelationKind.EQUAL_BUT_BITS) if same else None


def nonfinite(both: Both, _: Circumstances[Any]) -> Relation | None:
    """NaN or Inf that the other run does not have at that place."""
    ours, theirs = both.numbers
    if ours.dtype.kind != "f" and theirs.dtype.kind != "f":
        return None
    other = _classes(ours) != _classes(theirs)
    if not other.any():
        return None
    places = np.flatnonzero(other)
    counts = [contents.nonfinite for contents in both.contents]
    side = Side.BOTH if min(counts) else Side.CANDIDATE if counts[1] else Side.REFERENCE
    part = Part(int(places.size), None, tuple(int(place) for place in places[:MOST_INDICES]))
    return both.answer(RelationKind.NONFINITE, side=side, part=part)


def all_zero(both: Compared, _: Circumstances[Any]) -> Relation | None:
    """Zeros on one side only."""
    zero = [is_zero(contents) for contents in both.contents]
    if zero[0] == zero[1]:
        return None
    return both.answer(RelationKind.ALL_ZERO, side=Side.REFERENCE if zero[0] else Side.CANDIDATE)


def is_zero(contents: Contents) -> bool:
    """Whether every element is zero."""
    return contents.nonfinite == 0 and contents.minimum == contents.maximum == 0.0


def cast(both: Both, _: Circumstances[Any]) -> Relation | None:
    """Every number of one side is that of the other rounded to a shorter format, or both are equal in two formats."""
    names = [contents.dtype for contents in both.contents]
    units = [unit_of(name) for name in names]
    if 0.0 in units:
        return _other_integers(both) if names[0] != names[1] else None
    ours, theirs = both.flat
    if np.array_equal(ours, theirs):
        short = int(units[1] >= units[0])
        return both.answer(RelationKind.CAST, format=names[short], side=_side(bool(short)), residual=0.0)
    if any(contents.minimum == contents.maximum for contents in both.contents):
        return None  # gains near 1 all round to 1
    found = format_between(ours, theirs, sorted(names, key=unit_of, reverse=True))
    if found is None:
        return None
    note = "cut off, not rounded" if found.cut else ""
    return both.answer(RelationKind.CAST, format=found.name, side=_side(found.candidate_short), residual=0.0, note=note)


def _other_integers(both: Both) -> Relation | None:
    """The same whole numbers in two dtypes."""
    if not np.array_equal(*both.numbers):
        return None
    short = both.values[1].array.dtype.itemsize <= both.values[0].array.dtype.itemsize
    return both.answer(RelationKind.CAST, format=both.contents[int(short)].dtype, side=_side(short), residual=0.0)


def _side(candidate: bool) -> Side:  # noqa: FBT001 - two sides
    return Side.CANDIDATE if candidate else Side.REFERENCE


def repeated(both: Both, known: Circumstances[Values]) -> Relation | None:
    """Bit for bit an earlier tensor."""
    for name, earlier in known.earlier.items():
        if earlier.array.shape == both.contents[1].shape and np.array_equal(
            earlier.numbers(), both.numbers[1], equal_nan=earlier.numbers().dtype.kind == "f"
        ):
            return both.answer(RelationKind.STALE, earlier=name, residual=0.0)
    return None


def within_noise(both: Compared, known: Circumstances[Any]) -> Relation | None:
    """Not further from the reference than noise, and no common factor is nearly all of the difference."""
    if both.sums.relative_l2 > both.tolerance:
        return None
    return hidden_factor(both, known) or both.answer(RelationKind.WITHIN_NOISE)


def stale(both: Both, known: Circumstances[Values]) -> Relation | None:
    """Much nearer to an earlier tensor than to the reference."""
    best: tuple[float, str] | None = None
    for name, earlier in known.earlier.items():
        if earlier.array.shape != both.contents[1].shape:
            continue
        pair = Both(earlier, both.values[1], both.noise)
        residual = sums_of(*pair.flat).relative_l2
        rounding = 2.0 * both.unit if earlier.name != both.contents[1].dtype else ARITHMETIC
        limit = max(both.tolerance, rounding, simple(both.noise, both.sums.relative_l2))
        if residual <= min(limit, STALE_SHARE * both.sums.relative_l2) and (best is None or residual < best[0]):
            best = residual, name
    return both.answer(RelationKind.STALE, earlier=best[1], residual=best[0]) if best is not None else None


def _classes(numbers: NDArray[Any]) -> NDArray[np.int8]:
    """0 for a finite number, 1 for NaN, 2 and 3 for the infinities."""
    if numbers.dtype.kind != "f":
        return np.zeros(numbers.shape, dtype=np.int8)
    return np.where(
        np.isnan(numbers), 1, np.where(np.isposinf(numbers), 2, np.where(np.isneginf(numbers), 3, 0))
    ).astype(np.int8)
