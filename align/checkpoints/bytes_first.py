"""The first pass: are two tensors the same bytes, or the same numbers in another dtype? Both are read once, in step."""

from __future__ import annotations

import numpy as np

from align.checkpoint_files import Entry
from align.checkpoints.contents import ELEMENTS, rounded_to
from align.records import Word
from align.value_types import as_numbers

BLOCK = 1 << 20
"""Bytes of each side that are read at a time; both blocks stay in a processor's cache until they are compared."""

COARSENESS = (
    "float8_e5m2", "float8_e5m2fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "bfloat16", "float16", "float32", "float64",
)  # fmt: skip
"""Float dtypes, those with the fewest bits of fraction first."""


class Casting(Word):
    """What a pair of other dtypes is: the same numbers, the same once rounded to the coarser dtype, or neither."""

    SAME = "same"
    ROUNDED = "rounded"
    OTHER = "other"


class BytesReader:
    """Two buffers that are used again for all tensors of two checkpoints."""

    def __init__(self) -> None:
        self._ours = bytearray(BLOCK)
        self._theirs = bytearray(BLOCK)

    def same(self, ours: Entry, theirs: Entry) -> bool:
        """Whether two tensors of one shape and dtype are equal to the bit; stops at the first block that is not."""
        total = ours.nbytes
        for start in range(0, total, BLOCK):
            size = min(BLOCK, total - start)
            mine, other = self._ours, self._theirs
            if size < BLOCK:
                mine, other = bytearray(size), bytearray(size)
            ours.read_into(start, memoryview(mine))
            theirs.read_into(start, memoryview(other))
            # Two bytearrays are compared by one memcmp; two memoryviews element by element.
            if mine != other:
                return False
        return True


def casting(ours: Entry, theirs: Entry) -> Casting:
    """What two tensors of one shape and different dtypes are to each other; infinities and NaN equal themselves."""
    coarse = coarser(ours.dtype, theirs.dtype)
    found = Casting.SAME
    for start in range(0, ours.numel, ELEMENTS):
        stop = min(start + ELEMENTS, ours.numel)
        mine, other = (as_numbers(entry.read(start, stop), entry.dtype) for entry in (ours, theirs))
        if found is Casting.SAME and np.array_equal(mine, other, equal_nan=_has_nan(mine)):
            continue
        found = Casting.ROUNDED
        mine, other = rounded_to(mine, coarse), rounded_to(other, coarse)
        if not np.array_equal(mine, other, equal_nan=_has_nan(mine)):
            return Casting.OTHER
    return found


def _has_nan(numbers: np.ndarray) -> bool:
    return numbers.dtype.kind in "fc"


def coarser(ours: str, theirs: str) -> str:
    """Of two float dtypes the one with fewer bits of fraction; an integer beside a float says nothing."""
    known = [dtype for dtype in COARSENESS if dtype in (ours, theirs)]
    return known[0] if known else ours
