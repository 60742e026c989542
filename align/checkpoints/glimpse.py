"""A look at a part of two large tensors that differ everywhere: most of them need no more to be told.

Rows spread evenly over both are related as values. Where the part is near the reference's, but not by a factor or a
constant, so is the whole: a tensor in another order would not be. Where it is not near, the whole may hold the same
values in another order: then the extremes of both are equal, and all of it has to be read again and again.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from align.checkpoint_files import Entry
from align.checkpoints.contents import ELEMENTS, as_matrix, blocks
from align.relations import Basis, Circumstances, Relation, RelationKind, Values, relate_values

SMALLEST = 1 << 20
"""Elements from which a part is looked at first; smaller tensors are related as a whole in less than a second."""
PART = 1 << 15
"""Elements of the part: a correlation of 0.9 is then known to 0.002, and relating it takes about 0.2 s."""
PIECES = 64
FEWEST_DIFFERING = 0.5
"""The share of elements that must differ in every piece, else the difference is one of a few elements or slices."""

BY_PART = frozenset({RelationKind.DRIFTED})
BY_PART_AND_EXTREMES = frozenset({RelationKind.OTHER_SEED, RelationKind.UNRELATED, RelationKind.NOT_LOADED})

_MUST_BE_EQUAL: Circumstances[Values] = Circumstances()


def glimpse(ours: Entry, theirs: Entry) -> Relation | None:
    """The relation of two large tensors of one shape, None where a part does not tell it."""
    if ours.shape != theirs.shape or ours.numel < SMALLEST:
        return None
    mine, other = _part(ours), _part(theirs)
    if mine is None or other is None or (np.mean(mine != other, axis=1) < FEWEST_DIFFERING).any():
        return None
    shape = (-1, *ours.shape[1:]) if as_matrix(ours.shape)[1] == mine.shape[1] else (-1,)
    values = Values(mine.reshape(shape), ours.dtype), Values(other.reshape(shape), theirs.dtype)
    found = relate_values(*values, _MUST_BE_EQUAL)
    note = "read from a part of it"
    if found.kind in BY_PART:
        return replace(found, basis=Basis.BLOCKS, note=note)
    if found.kind in BY_PART_AND_EXTREMES:
        extremes = _extremes(ours), _extremes(theirs)
        if extremes[0] != extremes[1]:
            contents = [
                replace(one, minimum=low, maximum=high, shape=ours.shape)
                for one, (low, high) in zip((found.reference, found.candidate), extremes, strict=True)
            ]
            return replace(found, basis=Basis.BLOCKS, reference=contents[0], candidate=contents[1], note=note)
    return None


def _part(entry: Entry) -> NDArray[np.generic] | None:
    """Rows spread evenly, one piece a row of the result; stretches of a vector. None where a row is too long."""
    height, width = as_matrix(entry.shape)
    if width == 1:
        height, width = entry.numel // (PART // PIECES), PART // PIECES
    if width > PART:
        return None
    count = min(max(PART // width, 1), height)
    rows = np.unique(np.linspace(0, height - 1, count).astype(np.int64))
    return np.stack([entry.read(row * width, (row + 1) * width) for row in rows.tolist()])


def _extremes(entry: Entry) -> tuple[float, float]:
    low, high = math.inf, -math.inf
    for _, numbers in blocks(entry, ELEMENTS):
        low, high = min(low, float(numbers.min())), max(high, float(numbers.max()))
    return low, high
