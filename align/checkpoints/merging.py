"""Tensors that one checkpoint keeps apart and the other in one: q, k, v; gate and up; shards of tensor parallelism.

Each row of the merged tensor has a hash, and so has each row or column of what is left on the other side. Where the
rows come from says which parts were merged and in which order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from align.checkpoints.contents import Fingerprint
from align.records import Word

MOST_UNKNOWN = 0.1
"""A share of rows that may be alike in several parts (zeros) and then tell nothing; the sum of all values decides."""


class PartOrder(Word):
    """How the parts of a merged tensor stand: one behind the other, in groups by turns, or otherwise."""

    STACKED = "stacked"
    GROUPED = "grouped"
    OTHER = "other"


@dataclass(frozen=True, slots=True, eq=False)
class Merge:
    """A tensor of one side that holds several of the other.

    `of_candidate` says on which side it is. The parts stand along `dimension` of it as a matrix, `transposed` before
    they were put together. `owner` and `place` give for each slice its part and the slice's number there (-1: not
    known). `exact` says that all values are those of the parts, in this order.
    """

    merged: str
    of_candidate: bool
    parts: tuple[str, ...]
    dimension: int
    transposed: bool
    owner: NDArray[np.int32]
    place: NDArray[np.int64]
    exact: bool

    @property
    def order(self) -> PartOrder:
        """How the parts stand."""
        runs = self.runs()
        if len(runs) == len(self.parts):
            return PartOrder.STACKED
        for part in range(len(self.parts)):
            places = self.place[self.owner == part]
            if (np.diff(places) <= 0).any():
                return PartOrder.OTHER
        return PartOrder.GROUPED

    @property
    def block(self) -> int:
        """The slices that stay together."""
        return math.gcd(*(length for _, length in self.runs()))

    def runs(self) -> list[tuple[int, int]]:
        """(part, number of slices) of stretches that are in order in both."""
        broken = (np.diff(self.owner) != 0) | (np.diff(self.place) != 1)
        edges = [0, *(np.flatnonzero(broken) + 1).tolist(), len(self.owner)]
        return [(int(self.owner[start]), stop - start) for start, stop in pairwise(edges)]


def find_merges(
    merged: Mapping[str, Fingerprint], parts: Mapping[str, Fingerprint], *, of_candidate: bool
) -> list[Merge]:
    """Which tensors of one side hold several of the other, whole; each part is used once."""
    left = dict(parts)
    found = []
    tables = [_Table(left, by_column=by_column) for by_column in (False, True)]
    for name, print_ in merged.items():
        for dimension, slices in enumerate((print_.rows, print_.columns)):
            merge = _merge_of(name, slices, dimension, tables, of_candidate=of_candidate)
            if merge is None or any(part not in left for part in merge.parts):
                continue
            total = sum(parts[part].multiset for part in merge.parts) % 2**64
            if total == print_.multiset:
                found.append(merge)
                for part in merge.parts:
                    del left[part]
                break
    return found


class _Table:
    """The hashes of all slices of many tensors, in order; those that occur twice tell nothing."""

    def __init__(self, prints: Mapping[str, Fingerprint], *, by_column: bool) -> None:
        self.names = list(prints)
        self.by_column = by_column
        slices = [(each.columns if by_column else each.rows) for each in prints.values()]
        keys = np.concatenate([*slices, np.zeros(0, np.uint64)])
        owners = np.repeat(np.arange(len(slices), dtype=np.int32), [len(each) for each in slices])
        places = np.concatenate([*(np.arange(len(each)) for each in slices), np.zeros(0, np.int64)]).astype(np.int64)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        alike = np.zeros(len(keys), dtype=bool)
        if len(keys) > 1:
            same = keys[1:] == keys[:-1]
            alike[1:] |= same
            alike[:-1] |= same
        self.lengths = [len(each) for each in slices]
        self._keys, self._owners, self._places = keys[~alike], owners[order][~alike], places[order][~alike]

    def find(self, slices: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """For each slice the tensor and the place where it is, -1 where it is nowhere or in several."""
        if not len(self._keys):
            return np.full(len(slices), -1, np.int32), np.full(len(slices), -1, np.int64)
        spot = np.minimum(np.searchsorted(self._keys, slices), len(self._keys) - 1)
        there = self._keys[spot] == slices
        return np.where(there, self._owners[spot], -1).astype(np.int32), np.where(there, self._places[spot], -1)


def _merge_of(
    name: str, slices: NDArray[np.uint64], dimension: int, tables: Sequence[_Table], *, of_candidate: bool
) -> Merge | None:
    """The merge along one dimension, where nearly all slices are found in several tensors that they use up."""
    for table in tables:
        owner, place = table.find(slices)
        known = owner >= 0
        if not len(slices) or known.mean() < 1.0 - MOST_UNKNOWN:
            continue
        owners = list(dict.fromkeys(owner[known].tolist()))
        if len(owners) < 2 or sum(table.lengths[each] for each in owners) != len(slices):  # noqa: PLR2004 - several
            continue
        numbers = {each: number for number, each in enumerate(owners)}
        local = np.array([numbers.get(each, -1) for each in owner.tolist()], dtype=np.int32)
        _fill_gaps(local, place)
        transposed = table.by_column != (dimension == 1)
        parts = tuple(table.names[each] for each in owners)
        return Merge(name, of_candidate, parts, dimension, transposed, local, place, exact=True)
    return None


def _fill_gaps(owner: NDArray[np.int32], place: NDArray[np.int64]) -> None:
    """Slices that are alike in several places belong behind their neighbour before them, as far as is known."""
    for index in np.flatnonzero(owner < 0).tolist():
        if index > 0:
            owner[index], place[index] = owner[index - 1], place[index - 1] + 1
        else:
            following = np.flatnonzero(owner >= 0)
            if len(following):
                owner[0], place[0] = owner[following[0]], 0


def order_of_vector(
    merged: NDArray[np.float64], parts: Sequence[NDArray[np.float64]]
) -> tuple[NDArray[np.int32], NDArray[np.int64]] | None:
    """Where the elements of a merged vector are in its parts; None where values repeat or others are there."""
    values = np.concatenate(parts)
    if len(values) != len(merged) or len(np.unique(values)) != len(values):
        return None
    order = np.argsort(values)
    spot = np.minimum(np.searchsorted(values[order], merged), len(values) - 1)
    if not np.array_equal(values[order][spot], merged):
        return None
    owners = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts])
    places = np.concatenate([np.arange(len(part)) for part in parts]).astype(np.int64)
    return owners[order][spot], places[order][spot]
