"""Which entry of one checkpoint answers which of the other: names first, values where names do not tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from align.checkpoint_files import Checkpoint, Entry
from align.checkpoints.bytes_first import coarser
from align.checkpoints.changed_merges import merges_by_name
from align.checkpoints.contents import Fingerprint, blocks, fingerprint
from align.checkpoints.merging import Merge, find_merges, order_of_vector
from align.checkpoints.names import NamePair, Unpaired, Way, pair_by_name
from align.checkpoints.rules import pair_by_learned_rules, renaming
from align.checkpoints.schemes import roles_of

LONGEST_VECTOR = 1 << 20
"""Vectors up to this length are merged by their values."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairing:
    """The pairs in the order of the reference, merged tensors, and what has no partner."""

    pairs: tuple[NamePair, ...]
    merges: tuple[Merge, ...]
    only_reference: tuple[str, ...]
    only_candidate: tuple[str, ...]


class _Contents:
    """Fingerprints of what is left, each made once; floats are rounded to the coarsest dtype of both sides first."""

    def __init__(self, reference: Mapping[str, Entry], candidate: Mapping[str, Entry], unpaired: Unpaired) -> None:
        self._entries = (reference, candidate)
        dtypes = [
            {entries[name].dtype for name in names if entries[name].floating}
            for entries, names in zip(self._entries, (unpaired.reference, unpaired.candidate), strict=True)
        ]
        self._dtype = ""
        if dtypes[0] != dtypes[1]:
            for dtype in sorted(dtypes[0] | dtypes[1]):
                self._dtype = coarser(self._dtype, dtype) if self._dtype else dtype
        self._made: dict[tuple[int, str], Fingerprint] = {}

    def of(self, side: int, names: Iterable[str]) -> dict[str, Fingerprint]:
        """The fingerprints of names whose values can be read and say something."""
        found = {}
        for name in names:
            entry = self._entries[side][name]
            if not entry.readable or entry.numel <= 1:
                continue
            if (side, name) not in self._made:
                self._made[side, name] = fingerprint(entry, self._dtype if entry.floating else "")
            if not self._made[side, name].constant:
                found[name] = self._made[side, name]
        return found

    def constants(self, side: int, names: Iterable[str]) -> dict[tuple[int, tuple[int, ...]], list[str]]:
        """The names of tensors of one value, by value and shape."""
        found: dict[tuple[int, tuple[int, ...]], list[str]] = defaultdict(list)
        self.of(side, names)
        for name in names:
            made = self._made.get((side, name))
            if made is not None and made.constant:
                found[made.multiset, self._entries[side][name].shape].append(name)
        return found


def pair_checkpoints(reference: Checkpoint, candidate: Checkpoint) -> Pairing:
    """Pair two checkpoints. Values are read only of entries that names do not pair."""
    unpaired = Unpaired(reference.entries, candidate.entries)
    pair_by_name(unpaired)
    merges: list[Merge] = []
    if unpaired.reference and unpaired.candidate:
        _pair_schemes(unpaired)
        contents = _Contents(reference.entries, candidate.entries, unpaired)
        _pair_contents(unpaired, contents)
        merges = _merges(unpaired, contents)
        _merge_vectors(unpaired, merges)
        merges += merges_by_name(unpaired, merges)
        pair_by_learned_rules(unpaired)
        _pair_constants(unpaired, contents)
        _pair_in_order(unpaired)
    place = {name: number for number, name in enumerate(reference.entries)}
    pairs = sorted(unpaired.pairs, key=lambda pair: place[pair.reference])
    return Pairing(tuple(pairs), tuple(merges), tuple(unpaired.reference), tuple(unpaired.candidate))


def _pair_schemes(unpaired: Unpaired) -> None:
    """Names of known frameworks; a merged tensor and its parts are left for their values to tell."""
    ours, theirs = roles_of(unpaired.reference), roles_of(unpaired.candidate)
    for role, name in ours.items():
        partner = theirs.get(role)
        if partner is not None and unpaired.fits(name, partner):
            unpaired.pair(name, partner, Way.SCHEME, renaming(name, partner))


def _pair_contents(unpaired: Unpaired, contents: _Contents) -> None:
    """Equal values in any order under other names, where no third tensor holds them too."""
    sides: list[dict[int, list[str]]] = []
    for side, names in enumerate((list(unpaired.reference), list(unpaired.candidate))):
        known: dict[int, list[str]] = defaultdict(list)
        for name, print_ in contents.of(side, names).items():
            known[print_.multiset].append(name)
        sides.append(known)
    for key, ours in sides[0].items():
        theirs = sides[1].get(key, [])
        if len(ours) == len(theirs):
            # Of tied weights both names hold the same values: they are paired in the order of the files.
            for name, partner in zip(ours, theirs, strict=True):
                unpaired.pair(name, partner, Way.CONTENT, renaming(name, partner))


def _pair_constants(unpaired: Unpaired, contents: _Contents) -> None:
    """Tensors of one value, such as untrained norms: all of one shape and value are equal, whatever the pairs."""
    ours = contents.constants(0, list(unpaired.reference))
    theirs = contents.constants(1, list(unpaired.candidate))
    for key, names in ours.items():
        partners = theirs.get(key, [])
        if len(names) == len(partners):
            for name, partner in zip(names, partners, strict=True):
                unpaired.pair(name, partner, Way.CONTENT, renaming(name, partner))


def _merges(unpaired: Unpaired, contents: _Contents) -> list[Merge]:
    found: list[Merge] = []
    for of_candidate in (True, False):
        whole, parts = (unpaired.candidate, unpaired.reference)
        if not of_candidate:
            whole, parts = parts, whole
        side = int(of_candidate)
        for merge in find_merges(contents.of(side, whole), contents.of(1 - side, parts), of_candidate=of_candidate):
            _take(unpaired, merge)
            found.append(_in_usual_order(merge))
    return found


def _take(unpaired: Unpaired, merge: Merge) -> None:
    whole, parts = unpaired.candidate, unpaired.reference
    if not merge.of_candidate:
        whole, parts = parts, whole
    del whole[merge.merged]
    for part in merge.parts:
        del parts[part]


def _in_usual_order(merge: Merge) -> Merge:
    """The parts in the order of their names and numbers, so that an order other than that shows."""
    places = {name: number for number, name in enumerate(sorted(merge.parts, key=_natural))}
    roles = {name: role for role, name in roles_of(merge.parts).items()}
    usual = ("q", "k", "v", "gate", "up")
    order = sorted(
        range(len(merge.parts)),
        key=lambda part: (
            usual.index(roles[merge.parts[part]].part)
            if merge.parts[part] in roles and roles[merge.parts[part]].part in usual
            else len(usual),
            places[merge.parts[part]],
        ),
    )
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return replace(merge, parts=tuple(merge.parts[part] for part in order), owner=number[merge.owner])


def _natural(name: str) -> list[tuple[int, str]]:
    """Part 10 stands behind part 2."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in name.split(".")]


def _merge_vectors(unpaired: Unpaired, merges: list[Merge]) -> None:
    """The biases of merged weights: by the names of their weights, in the same order or in that of their values."""
    for weights in list(merges):
        names = [_sibling(name) for name in (weights.merged, *weights.parts)]
        whole, parts = unpaired.candidate, unpaired.reference
        if not weights.of_candidate:
            whole, parts = parts, whole
        if names[0] not in whole or any(name not in parts for name in names[1:]):
            continue
        side = int(weights.of_candidate)
        entries = [unpaired.entries[side][names[0]], *(unpaired.entries[1 - side][name] for name in names[1:])]
        if any(len(entry.shape) != 1 or entry.numel > LONGEST_VECTOR or not entry.readable for entry in entries):
            continue
        merged, *vectors = (_values(entry, _coarse(entries)) for entry in entries)
        merge = _vector_merge(weights, names, merged, vectors)
        if merge is not None:
            _take(unpaired, merge)
            merges.append(merge)


def _vector_merge(weights: Merge, names: list[str], merged: np.ndarray, vectors: list[np.ndarray]) -> Merge | None:
    """The bias in the order of its weight where that holds, else in that of its values."""
    if len(merged) != len(weights.owner) or sum(map(len, vectors)) != len(merged):
        return None
    expected = np.array([vectors[part][place] for part, place in zip(weights.owner, weights.place, strict=True)])
    owner, place, exact = weights.owner, weights.place, bool(np.array_equal(expected, merged, equal_nan=True))
    if not exact:
        found = order_of_vector(merged, vectors)
        if found is not None:
            owner, place, exact = *found, True
    return Merge(
        names[0], weights.of_candidate, tuple(names[1:]), 0, transposed=False, owner=owner, place=place, exact=exact
    )


def _coarse(entries: list[Entry]) -> str:
    dtype = entries[0].dtype
    for entry in entries[1:]:
        dtype = coarser(dtype, entry.dtype)
    return dtype


def _values(entry: Entry, dtype: str) -> np.ndarray:
    return np.concatenate([numbers.astype(np.float64) for _, numbers in blocks(entry, LONGEST_VECTOR, dtype)])


def _sibling(name: str) -> str:
    """The bias beside a weight."""
    return f"{name.removesuffix('weight')}bias" if name.endswith("weight") else f"{name}_bias"


def _pair_in_order(unpaired: Unpaired) -> None:
    """Where nothing else tells: all that is left has the same shapes in the same order on both sides."""
    ours, theirs = list(unpaired.reference), list(unpaired.candidate)
    shapes = [[entries[name].shape for name in names] for entries, names in
              zip(unpaired.entries, (ours, theirs), strict=True)]  # fmt: skip
    if len(ours) > 1 and shapes[0] == shapes[1] and len(set(shapes[0])) > 1:
        for name, partner in zip(ours, theirs, strict=True):
            unpaired.pair(name, partner, Way.ORDER, renaming(name, partner))
