"""Tensors that are read in blocks: what a source is, and one pass over it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from align import sketch
from align.hashing import BlockHash
from align.records import TensorStats
from align.relations.both import Numbers, Values
from align.relations.draws import SAMPLE, Spread, initial_look
from align.relations.formats import unit_of
from align.relations.multisets import multiset_hash
from align.relations.relation import Contents
from align.tolerance import PRECISIONS

ELEMENTS = 1 << 18
"""Elements of a block: 2 MB as float64; a pass holds about ten such arrays."""


class TensorSource(Protocol):
    """A tensor on disk: torch's name of its dtype, its logical shape, and a way to read some of it."""

    @property
    def dtype(self) -> str:
        """Torch's name, `bfloat16`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """The elements start to stop of the row-major order, one-dimensional, as `align.value_types` stores them."""


@dataclass(frozen=True, slots=True, eq=False)
class ArraySource:
    """A tensor in memory (or memory-mapped) as a source."""

    values: Values

    @property
    def dtype(self) -> str:
        """Torch's name."""
        return self.values.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.values.array.shape

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """A part of it."""
        return self.values.array.reshape(-1)[start:stop]


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """What one read of a tensor leaves: equal hashes of equal dtypes mean equal bits.

    `hash` is `align.hashing.hash_bytes` of the values, `stats` and `sketch` are those of a record (the sketch only
    where it was asked for). `sample` are numbers at even distances, in their order.
    """

    contents: Contents
    stats: TensorStats
    hash: int
    sample: Numbers
    sketch: NDArray[np.float32] | None = None


class Piece(NamedTuple):
    """A block of a tensor: where it begins, the elements as stored and as numbers."""

    start: int
    raw: NDArray[Any]
    numbers: NDArray[Any]


def pieces(source: TensorSource, length: int = ELEMENTS) -> Iterator[Piece]:
    """The tensor in row-major order, `length` elements at a time."""
    count = math.prod(source.shape)
    for start in range(0, count, length):
        raw = source.read(start, min(start + length, count))
        yield Piece(start, raw, Values(raw, source.dtype).numbers())


def same_bits(reference: TensorSource, candidate: TensorSource) -> bool:
    """Whether dtype, shape and all bits are equal: one read of both, up to the first block that differs; two blocks."""
    if reference.dtype != candidate.dtype or reference.shape != candidate.shape:
        return False
    count = math.prod(reference.shape)
    for start in range(0, count, ELEMENTS):
        stop = min(start + ELEMENTS, count)
        ours, theirs = (np.ascontiguousarray(each.read(start, stop)) for each in (reference, candidate))
        if not np.array_equal(ours.view(np.uint8), theirs.view(np.uint8)):
            return False
    return True


def summarize(source: TensorSource, *, with_sketch: bool = False) -> Summary:
    """One read, in blocks; below 30 MB of memory whatever the tensor's size."""
    hasher = BlockHash()
    tally = _Tally(source)
    drawing = _Drawing(source.shape) if with_sketch else None
    block = ELEMENTS if drawing is None else drawing.block
    for piece in pieces(source, block):
        hasher.add(piece.raw)
        tally.add(piece)
        if drawing is not None:
            drawing.add(piece)
    digest = hasher.finish()
    return tally.summary(digest, drawing.finish() if drawing is not None else None)


class _Tally:
    """The statistics of a tensor as its blocks go by."""

    def __init__(self, source: TensorSource) -> None:
        self._source = source
        self._count = math.prod(source.shape)
        self._step = max(-(-self._count // SAMPLE), 1)
        self._ends: list[tuple[float, float]] = []
        self._sums = np.zeros(2)
        self._counts = np.zeros(5, dtype=np.int64)
        self._multiset = 0
        self._sample: list[Numbers] = []

    def add(self, piece: Piece) -> None:
        """The next block."""
        wide = piece.numbers.astype(np.float64).reshape(-1)
        finite = wide[np.isfinite(wide)]
        if finite.size:
            self._ends.append((float(finite.min()), float(finite.max())))
        self._sums += finite.sum(), finite @ finite
        self._counts += np.array(
            [
                np.count_nonzero(finite == 0.0),
                np.count_nonzero(np.isnan(wide)),
                np.count_nonzero(wide == np.inf),
                np.count_nonzero(wide == -np.inf),
                self._subnormals(finite),
            ]
        )
        self._multiset = multiset_hash(piece.numbers, self._multiset)
        self._sample.append(wide[-piece.start % self._step :: self._step].copy())  # a view would keep the block

    def _subnormals(self, finite: Numbers) -> int:
        if self._source.dtype not in {"float16", "bfloat16"}:
            return 0
        precision = PRECISIONS[self._source.dtype]
        smallest = precision.spacing / (2.0 * precision.unit)
        return int(np.count_nonzero((finite != 0.0) & (np.abs(finite) < smallest)))

    def summary(self, digest: int, drawn: NDArray[np.float32] | None) -> Summary:
        """All of it."""
        zeros, nans, above, below, subnormals = (int(each) for each in self._counts)
        total, squares = (float(each) for each in self._sums)
        least = min((low for low, _ in self._ends), default=0.0)
        most = max((high for _, high in self._ends), default=0.0)
        stats = TensorStats(self._count, least, most, total, squares, zeros, nans, above, below, subnormals)
        finite = self._count - stats.nonfinite
        deviation = math.sqrt(max(squares / finite - stats.mean**2, 0.0)) if finite else 0.0
        spread = Spread(finite, least, most, stats.mean, deviation)
        sample = np.concatenate(self._sample) if self._sample else np.zeros(0)
        dtype, shape = self._source.dtype, self._source.shape
        look = "" if stats.nonfinite else initial_look(spread, shape, np.sort(sample), unit_of(dtype))
        contents = Contents(
            dtype, shape, least, most, stats.mean, deviation, stats.norm, zeros, stats.nonfinite,
            self._multiset, digest, look,
        )  # fmt: skip
        return Summary(contents, stats, digest, sample, drawn)


class _Drawing:
    """The sketch of a tensor as its blocks go by, the same as `align.sketch.sketch_array` makes."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._buckets = sketch.bucket_count(shape)
        self._total = np.zeros(self._buckets)
        self._count = math.prod(shape)
        self.block = sketch.ROWS * self._buckets

    def add(self, piece: Piece) -> None:
        """The next block, of `block` elements but for the last."""
        numbers = piece.numbers.astype(np.float64)
        offset = piece.start % sketch.PERIOD
        padded = np.zeros(-(-numbers.size // self._buckets) * self._buckets)
        with np.errstate(invalid="ignore", over="ignore"):
            np.multiply(numbers, sketch.signs()[offset : offset + numbers.size], out=padded[: numbers.size])
            self._total += padded.reshape(-1, self._buckets).sum(axis=0)

    def finish(self) -> NDArray[np.float32]:
        """The sketch, trimmed."""
        with np.errstate(over="ignore"):
            return self._total[: min(self._count, self._buckets)].astype(np.float32)
