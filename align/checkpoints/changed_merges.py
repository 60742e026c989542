"""Merged tensors whose values changed, too: by their names, in the order of other layers, else one behind the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from align.checkpoint_files import Checkpoint, Entry
from align.checkpoint_files.joined import JoinedSpan
from align.checkpoints.merging import Merge
from align.checkpoints.names import NamePair, Unpaired, Way
from align.checkpoints.relating import EntryPair, plain, relate_entries
from align.checkpoints.rules import template
from align.checkpoints.schemes import Role, roles_of
from align.relations import RelationKind
from align.value_types import as_numbers

PARTS: Mapping[str, tuple[str, ...]] = {"qkv": ("q", "k", "v"), "gate_up": ("gate", "up"), "up_or_both": ("gate", "up")}
"""What is merged, by the roles of `align.checkpoints.schemes`."""

ORDER_UNKNOWN = "its parts were merged and changed, and their order is not known"
ROWS_TRIED = 32
MOST_GROUPS = 256
"""Heads of attention that are tried."""

UNLIKE = frozenset({RelationKind.UNRELATED, RelationKind.OTHER_SEED, RelationKind.NOT_LOADED})


def merges_by_name(unpaired: Unpaired, exact: Sequence[Merge]) -> list[Merge]:
    """Merges of what neither names nor values have paired; those that are found are no longer unpaired."""
    orders = {(template(merge.merged)[0], merge.of_candidate): merge for merge in exact if merge.dimension == 0}
    found = []
    for of_candidate in (True, False):
        whole, parts = (unpaired.candidate, unpaired.reference)[:: 1 if of_candidate else -1]
        entries, others = unpaired.entries[int(of_candidate)], unpaired.entries[1 - int(of_candidate)]
        roles = roles_of(parts)
        for role, name in roles_of(whole).items():
            names = [roles.get(Role(role.layer, part, role.slot), "") for part in PARTS.get(role.part, ())]
            if not names or "" in names or not _fits(entries[name], [others[part] for part in names]):
                continue
            lengths = [others[part].shape[0] for part in names]
            owner = np.repeat(np.arange(len(names), dtype=np.int32), lengths)
            place = np.concatenate([np.arange(length) for length in lengths]).astype(np.int64)
            known = orders.get((template(name)[0], of_candidate))
            if known is not None and not known.transposed and np.array_equal(np.bincount(known.owner), lengths):
                owner, place = known.owner, known.place
            found.append(
                Merge(name, of_candidate, tuple(names), 0, transposed=False, owner=owner, place=place, exact=False)
            )
    for merge in found:
        whole, parts = (unpaired.candidate, unpaired.reference)[:: 1 if merge.of_candidate else -1]
        del whole[merge.merged]
        for name in merge.parts:
            del parts[name]
    return found


def _fits(whole: Entry, parts: Sequence[Entry]) -> bool:
    shapes = [part.shape for part in parts]
    return (
        all(part.readable and part.dtype == parts[0].dtype and part.shape for part in parts)
        and len({shape[1:] for shape in shapes}) == 1
        and whole.readable
        and whole.shape == (sum(shape[0] for shape in shapes), *shapes[0][1:])
    )


def relate_changed(
    merges: Sequence[Merge], reference: Checkpoint, candidate: Checkpoint
) -> Iterator[tuple[Merge, EntryPair]]:
    """Each merge in the order that is known or likeliest, and what the merged tensor is to its parts in that order.

    The order is known where another layer, or the weight of a bias, tells it. Else each usual order is tried on a few
    rows; where none is like the merged tensor, the relation is unknown.
    """
    known = {template(merge.merged)[0] for merge in merges if merge.exact}
    known |= {f"{name.removesuffix('weight')}bias" for name in known if name.endswith("weight")}
    for merge in (one for one in merges if not one.exact):
        whole = (candidate if merge.of_candidate else reference).entries[merge.merged]
        others = (reference if merge.of_candidate else candidate).entries
        parts = [others[name] for name in merge.parts]
        told = template(merge.merged)[0] in known
        found = merge if told else _likeliest(merge, parts, whole)
        ours, theirs = (_joined(found, parts), whole)[:: 1 if merge.of_candidate else -1]
        pair = relate_entries(NamePair(merge.merged, merge.merged, Way.SCHEME), ours, theirs)
        if not told and pair.relation.kind in UNLIKE:
            pair = replace(pair, relation=plain(RelationKind.UNKNOWN, ours, theirs, ORDER_UNKNOWN))
        yield found, pair


def _likeliest(merge: Merge, parts: Sequence[Entry], whole: Entry) -> Merge:
    """The merge with its parts stacked or by heads, in any turn, whichever is most like the merged tensor."""
    rows = np.unique(np.linspace(0, len(merge.owner) - 1, ROWS_TRIED).astype(np.int64))
    wanted = _rows(whole, rows)
    best, likeness = merge, -1.0
    for owner, place in _orders([part.shape[0] for part in parts]):
        tried = replace(merge, owner=owner, place=place)
        found = float(np.vdot(wanted, _rows(_joined(tried, parts), rows)))
        if found > likeness:
            best, likeness = tried, found
    return best


def _rows(entry: Entry, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rows of an entry, as one vector of length 1; what is not finite is 0."""
    width = math.prod(entry.shape[1:])
    read = [as_numbers(entry.read(row * width, (row + 1) * width), entry.dtype) for row in rows.tolist()]
    numbers = np.nan_to_num(np.concatenate(read).astype(np.float64), posinf=0.0, neginf=0.0)
    norm = float(np.linalg.norm(numbers))
    return numbers / norm if norm > 0.0 else numbers


def _orders(lengths: Sequence[int]) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
    """(owner, place) of parts one behind the other, and by turns in as many groups as divide all of them."""
    common = math.gcd(*lengths)
    for groups in (count for count in range(1, min(common, MOST_GROUPS) + 1) if common % count == 0):
        for turn in permutations(range(len(lengths))):
            owners = [np.full(lengths[part] // groups, part, np.int32) for part in turn]
            owner = np.tile(np.concatenate(owners), groups)
            place = np.empty(len(owner), np.int64)
            for part, length in enumerate(lengths):
                place[owner == part] = np.arange(length)
            yield owner, place


def _joined(merge: Merge, parts: Sequence[Entry]) -> Entry:
    shape = (len(merge.owner), *parts[0].shape[1:])
    row = parts[0].nbytes // parts[0].shape[0] if parts[0].shape[0] else math.prod(shape[1:])
    stretches = []
    begin = 0
    for part, length in merge.runs():
        stretches.append((parts[part], int(merge.place[begin]) * row, length * row))
        begin += length
    return Entry(merge.merged, parts[0].dtype, shape, JoinedSpan(stretches), file=parts[0].file)
