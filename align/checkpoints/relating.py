"""The relation of each pair of entries: bytes first, then `align.relations` where they differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align import sketch
from align.checkpoint_files import WITHOUT_NUMBERS, Checkpoint, Entry
from align.checkpoints.bytes_first import COARSENESS, BytesReader, Casting, casting, coarser
from align.checkpoints.contents import rounded_to
from align.checkpoints.glimpse import glimpse
from align.checkpoints.names import NamePair
from align.records import INIT_STEP, Phase, TensorKey, TensorRecord
from align.relations import (
    Basis,
    Circumstances,
    Contents,
    Relation,
    RelationKind,
    Side,
    TensorSource,
    relate_records,
    relate_sources,
    summarize,
)
from align.sentences import say
from align.value_types import BIT_FLOATS, as_numbers

RESOLUTION = 0.7 * 2.0**-24
"""The error of a sketch that was summed in float64 and kept in float32, relative to the norm."""

QUANTIZED = "quantized: what its integers stand for is told by scales"

_MUST_BE_EQUAL: Circumstances[TensorSource] = Circumstances()


@dataclass(frozen=True, slots=True, eq=False)
class EntryPair:
    """Two entries, how they were paired, and what the candidate's is to the reference's.

    `lossless` says of a cast that no number changed.
    """

    names: NamePair
    reference: Entry
    candidate: Entry
    relation: Relation
    lossless: bool = False

    @property
    def same(self) -> bool:
        """Whether both hold the same numbers in the same order."""
        return self.relation.agrees or self.lossless


def relate_pairs(pairs: tuple[NamePair, ...], reference: Checkpoint, candidate: Checkpoint) -> Iterator[EntryPair]:
    """The relation of every pair; a tied entry whose twin was compared is not read again."""
    reader = BytesReader()
    known: dict[tuple[str, str], EntryPair] = {}
    for names in pairs:
        ours, theirs = reference.entries[names.reference], candidate.entries[names.candidate]
        twin = known.get((ours.tied_to, theirs.tied_to))
        if twin is not None:
            pair = EntryPair(names, ours, theirs, twin.relation, twin.lossless)
        else:
            pair = _relate(names, ours, theirs, reader)
        known[names.reference, names.candidate] = pair
        yield pair


def relate_entries(names: NamePair, ours: Entry, theirs: Entry) -> EntryPair:
    """The relation of one pair."""
    return _relate(names, ours, theirs, BytesReader())


def _relate(names: NamePair, ours: Entry, theirs: Entry, reader: BytesReader) -> EntryPair:
    if ours.bytes_at is None or theirs.bytes_at is None:
        return _relate_without_values(names, ours, theirs)
    if ours.dtype != theirs.dtype and "complex" in ours.dtype + theirs.dtype:
        note = say("{} is not compared with {}", ours.dtype, theirs.dtype)
        return EntryPair(names, ours, theirs, plain(RelationKind.UNKNOWN, ours, theirs, note))
    if ours.shape == theirs.shape:
        if ours.dtype == theirs.dtype:
            if reader.same(ours, theirs):
                return EntryPair(names, ours, theirs, plain(RelationKind.EQUAL, ours, theirs))
        elif ours.readable and theirs.readable:
            found = casting(ours, theirs)
            if found is not Casting.OTHER:
                return EntryPair(names, ours, theirs, _cast(ours, theirs), lossless=found is Casting.SAME)
    if not (ours.readable and theirs.readable):
        note = say("the numbers of {} are not read, only its bytes", ours.dtype)
        return EntryPair(names, ours, theirs, plain(RelationKind.UNKNOWN, ours, theirs, note))
    if ours.floating != theirs.floating and ours.shape == theirs.shape:
        relation = plain(RelationKind.UNKNOWN, ours, theirs, QUANTIZED)
    else:
        relation = _without_chance(glimpse(ours, theirs) or relate_sources(ours, theirs, _MUST_BE_EQUAL))
    return EntryPair(names, ours, theirs, relation)


def plain(kind: RelationKind, ours: Entry, theirs: Entry, note: str = "") -> Relation:
    """A relation that says nothing but its kind."""
    return Relation(
        kind, Basis.BLOCKS, Contents(ours.dtype, ours.shape), Contents(theirs.dtype, theirs.shape), note=note
    )


def _without_chance(relation: Relation) -> Relation:
    """A constant is near whatever varies little around it: that is no rounding to a short format."""
    if relation.kind is not RelationKind.CAST:
        return relation
    short = relation.candidate if relation.side is Side.CANDIDATE else relation.reference
    constant = short.minimum == short.maximum
    return replace(relation, kind=RelationKind.DRIFTED, side=None, format="") if constant else relation


def _cast(ours: Entry, theirs: Entry) -> Relation:
    coarse = coarser(ours.dtype, theirs.dtype)
    side = Side.CANDIDATE if theirs.dtype == coarse else Side.REFERENCE
    return Relation(
        RelationKind.CAST, Basis.BLOCKS, Contents(ours.dtype, ours.shape), Contents(theirs.dtype, theirs.shape),
        side=side, format=coarse,
    )  # fmt: skip


def _relate_without_values(names: NamePair, ours: Entry, theirs: Entry) -> EntryPair:
    """A capture that kept hashes and sketches: those of the other side are made, rounded to its dtype where needed."""
    if ours.record is None and theirs.record is None:
        why = ours.why or theirs.why
        return EntryPair(names, ours, theirs, plain(RelationKind.UNKNOWN, ours, theirs, why))
    records = [entry.record or _record_of(entry) for entry in (ours, theirs)]
    mine, other = records
    if mine is None or other is None:
        why = ours.why if mine is None else theirs.why
        return EntryPair(names, ours, theirs, plain(RelationKind.UNKNOWN, ours, theirs, why))
    if ours.shape == theirs.shape and _can_be_rounded(ours, theirs):
        rounded = [
            entry.record or _record_of(Rounded(entry, other.dtype)) for entry, other in ((ours, theirs), (theirs, ours))
        ]
        if (
            all(each is not None and each.hash is not None for each in rounded)
            and len({r.hash for r in rounded if r}) == 1
        ):
            lossless = COARSENESS.index(ours.dtype) < COARSENESS.index(theirs.dtype)
            return EntryPair(names, ours, theirs, _cast(ours, theirs), lossless=lossless)
    if mine.hash is not None and mine.hash == other.hash and (mine.dtype, mine.shape) == (other.dtype, other.shape):
        return EntryPair(names, ours, theirs, plain(RelationKind.EQUAL, ours, theirs))
    return EntryPair(names, ours, theirs, relate_records(mine, other))


def _can_be_rounded(ours: Entry, theirs: Entry) -> bool:
    return ours.dtype != theirs.dtype and {ours.dtype, theirs.dtype} <= set(COARSENESS)


def _record_of(entry: Entry | Rounded) -> TensorRecord | None:
    """A record of values that can be read, as a capture would hold it."""
    if not entry.readable:
        return None
    made = summarize(entry)
    floating = entry.dtype in COARSENESS
    return TensorRecord(
        TensorKey(INIT_STEP, Phase.INIT, entry.name, ""), 0, entry.dtype, entry.shape, made.stats, made.hash,
        sketch_of_source(entry) if floating else None, RESOLUTION if floating else 0.0,
    )  # fmt: skip


def sketch_of_source(source: Entry | Rounded) -> NDArray[np.float32]:
    """`align.sketch.sketch_array` of a tensor that is read in blocks."""
    buckets, numel = sketch.bucket_count(source.shape), math.prod(source.shape)
    total = np.zeros(buckets, dtype=np.float64)
    block = sketch.ROWS * buckets
    for start in range(0, numel, block):
        piece = as_numbers(source.read(start, min(start + block, numel)), source.dtype).astype(np.float64)
        offset = start % sketch.PERIOD
        padded = np.zeros(-(-piece.size // buckets) * buckets, dtype=np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            np.multiply(piece, sketch.signs()[offset : offset + piece.size], out=padded[: piece.size])
            total += padded.reshape(-1, buckets).sum(axis=0)
    with np.errstate(over="ignore"):
        return total[: min(numel, buckets)].astype(np.float32)


class Rounded:
    """An entry as it is in another float dtype: rounded to it, to nearest with ties to even."""

    def __init__(self, entry: Entry, dtype: str) -> None:
        self._entry = entry
        self.name = entry.name
        self.dtype = dtype
        self.shape = entry.shape
        self.readable = entry.readable and entry.dtype not in WITHOUT_NUMBERS

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """The elements start to stop, as `align.value_types` stores them."""
        numbers = rounded_to(as_numbers(self._entry.read(start, stop), self._entry.dtype), self.dtype)
        if self.dtype == "bfloat16":
            bits = np.ascontiguousarray(numbers, dtype=np.float32).view(np.uint32)
            short: NDArray[Any] = (bits >> np.uint32(16)).astype("<u2")
            return short
        if self.dtype in BIT_FLOATS:
            codes = np.arange(256, dtype=np.uint8)
            values = as_numbers(codes, self.dtype)
            order = np.argsort(values[np.isfinite(values)], kind="stable")
            finite = codes[np.isfinite(values)][order]
            spot = np.searchsorted(values[finite], numbers.astype(np.float32))
            codes_of: NDArray[Any] = finite[np.minimum(spot, len(finite) - 1)]
            return codes_of
        found: NDArray[Any] = numbers.astype(self.dtype)
        return found


def counts_of(pairs: list[EntryPair]) -> Mapping[str, int]:
    """How many pairs are in each relation."""
    counts: dict[str, int] = {}
    for pair in pairs:
        counts[str(pair.relation.kind)] = counts.get(str(pair.relation.kind), 0) + 1
    return counts
