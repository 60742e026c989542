"""Two kept tensors of one shape, block by block, as numbers in memory that is used again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from align.value_source import ValueSource
from align.value_types import BIT_FLOATS, write_numbers

ELEMENTS = 1 << 17
"""Elements of each side that are read at a time: 512 KB of float32, so that both stay in a processor's second cache. A
quarter and four times as many were equally fast, less costs more calls."""

_EXACT_IN_FLOAT32 = frozenset({"float32", "float16", *BIT_FLOATS, "bool", "uint8", "int8", "int16", "complex64"})
_PARTS: dict[str, np.dtype[Any]] = {
    "complex64": np.dtype("<f4"),
    "complex128": np.dtype("<f8"),
    "complex32": np.dtype("<f2"),
}


class Block(NamedTuple):
    """The same elements of both sides, from `start` on; one-dimensional arrays, good until the next block is asked."""

    start: int
    reference: NDArray[Any]
    candidate: NDArray[Any]


class KeptPair(NamedTuple):
    """Two kept tensors of one shape; the candidate's elements are multiplied by `scale`."""

    reference: ValueSource
    candidate: ValueSource
    scale: float = 1.0

    @property
    def kind(self) -> Any:
        """The numpy dtype in which both are exact: float32 where it can be, else float64 (integers up to 2^53)."""
        exact = {self.reference.dtype, self.candidate.dtype} <= _EXACT_IN_FLOAT32
        return np.float32 if exact and _is_power_of_two(self.scale) else np.float64

    @property
    def parts(self) -> int:
        """How many numbers an element is: a complex one is two."""
        return 2 if self.reference.dtype in _PARTS else 1


class BlockReader:
    """Reads pairs of tensors into four buffers that are kept from pair to pair."""

    def __init__(self) -> None:
        self._buffers: dict[str, NDArray[np.uint8]] = {}

    def blocks(self, pair: KeptPair, cuts: Iterable[tuple[int, int]] | None = None) -> Iterator[Block]:
        """The elements in row-major order; `cuts` are (start, count) of the blocks, by default those of `plain_cuts`.

        Raises CaptureFileError where a file cannot be read.
        """
        kind = pair.kind
        for start, count in plain_cuts(pair.reference.numel) if cuts is None else cuts:
            yield self.block(pair, start, count, kind)

    def block(self, pair: KeptPair, start: int, count: int, kind: Any = np.float64) -> Block:
        """One block of both, as numbers of a kind that holds them."""
        ours = self._numbers("reference", pair.reference, (start, count), kind)
        theirs = self._numbers("candidate", pair.candidate, (start, count), kind)
        if pair.scale != 1.0:
            np.multiply(theirs, theirs.dtype.type(pair.scale), out=theirs)
        return Block(start, ours, theirs)

    def _numbers(self, side: str, source: ValueSource, part: tuple[int, int], kind: Any) -> NDArray[Any]:
        start, count = part
        raw = self._room(f"{side}, stored", source.stored, count)
        source.read(start, raw)
        if source.dtype in _PARTS:
            raw = raw.view(_PARTS[source.dtype])
        if raw.dtype == kind and source.dtype not in BIT_FLOATS:
            return raw
        numbers = self._room(side, np.dtype(kind), len(raw))
        write_numbers(raw, source.dtype, numbers)
        return numbers

    def _room(self, name: str, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        size = count * dtype.itemsize
        if name not in self._buffers or len(self._buffers[name]) < size:
            self._buffers[name] = np.empty(max(size, min(ELEMENTS, 2 * count) * dtype.itemsize), dtype=np.uint8)
        return self._buffers[name][:size].view(dtype)


def _is_power_of_two(number: float) -> bool:
    return abs(math.frexp(number)[0]) == 0.5  # noqa: PLR2004 - the significand of every power of two


def plain_cuts(numel: int, unit: int = 1) -> Iterator[tuple[int, int]]:
    """(start, count) of blocks of whole units, as many as fit in ELEMENTS, one at least."""
    step = max(ELEMENTS // unit, 1) * unit
    return ((start, min(step, numel - start)) for start in range(0, numel, step))
