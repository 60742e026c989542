"""The records of a checkpoint: its tensors by name, where their bytes lie, and what was noticed on the way."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from align.records import TensorRecord
from align.value_types import is_floating, storage_dtype
from align.watching import advance

ITEM_BITS: Mapping[str, int] = {
    "bool": 8,
    "uint8": 8,
    "int8": 8,
    "uint16": 16,
    "int16": 16,
    "uint32": 32,
    "int32": 32,
    "uint64": 64,
    "int64": 64,
    "float16": 16,
    "bfloat16": 16,
    "float32": 32,
    "float64": 64,
    "complex32": 32,
    "complex64": 64,
    "complex128": 128,
    "float8_e4m3fn": 8,
    "float8_e5m2": 8,
    "float8_e4m3fnuz": 8,
    "float8_e5m2fnuz": 8,
    "float8_e8m0fnu": 8,
    "float6_e2m3fn": 6,
    "float6_e3m2fn": 6,
    "float4_e2m1fn": 4,
}
"""Bits of one element, by torch's name of the dtype."""

MOST_DIMENSIONS = 32
"""Shapes of more dimensions are damaged: numpy before 2.0 can hold no more."""

WITHOUT_NUMBERS = frozenset({"float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "complex32"})
"""Dtypes whose bytes can be compared and whose numbers cannot."""


class ByteSource(Protocol):
    """The logical row-major bytes of one tensor, wherever they lie."""

    def read_into(self, start: int, target: memoryview) -> None:
        """Fill `target` with the bytes from `start` on."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One tensor of a checkpoint; it is a source for `align.relations` where it has values.

    `bytes_at` is None where only a record is known (a capture that kept no values) or the layout cannot be read:
    then `why` says so. `file` is the name of the file that holds it. `tied_to` is the name of an earlier entry that
    is the same memory.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes_at: ByteSource | None = None
    record: TensorRecord | None = None
    why: str = ""
    file: str = ""
    tied_to: str = ""

    @property
    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return (self.numel * ITEM_BITS[self.dtype] + 7) // 8

    @property
    def readable(self) -> bool:
        """Whether the values can be read as numbers."""
        return self.bytes_at is not None and self.dtype not in WITHOUT_NUMBERS

    @property
    def floating(self) -> bool:
        """Whether the elements are floats."""
        return is_floating(self.dtype)

    def read_into(self, start: int, target: memoryview) -> None:
        """Fill `target` with bytes from `start` on; raises CheckpointError where the file has fewer."""
        if self.bytes_at is None:
            msg = f"the values of '{self.name}' are not there"
            raise ValueError(msg)
        self.bytes_at.read_into(start, target)
        advance(target.nbytes)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """The elements start to stop of the row-major order, bfloat16 and float8 as unsigned integers."""
        kind = storage_dtype(self.dtype) or np.dtype(self.dtype).newbyteorder("<")
        values = np.empty(stop - start, dtype=kind)
        if values.size:
            self.read_into(start * kind.itemsize, values.view(np.uint8).data)
        return values


@dataclass(frozen=True, slots=True, eq=False)
class OptimizerState:
    """The state of one optimizer: of each parameter number its tensors, in the order of its groups.

    `order` are the parameter numbers in the order of the groups; `names` are theirs where the groups tell them.
    """

    states: Mapping[int, Mapping[str, Entry]]
    order: tuple[int, ...]
    names: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A checkpoint that is open. `what` says what it is: `safetensors`, `torch, 3 files`, `capture (init)`.

    `others` are the names of further containers of tensors in the file that are not compared (`ema`: 12 tensors).
    """

    path: str
    what: str
    entries: Mapping[str, Entry]
    optimizers: Mapping[str, OptimizerState] = field(default_factory=dict)
    others: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    is_capture: bool = False
