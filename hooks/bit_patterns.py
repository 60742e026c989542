"""What can be read from the bits of floats: least and greatest element, exponents.

Bit patterns taken as integers stand in the same order as the floats of one sign. Comparing integers is cheaper than
comparing floats, raises no warning for NaN, and sees subnormals whatever the processor is told to do with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Form:
    """How a float type is laid out: sign, exponent, fraction.

    `as_signed` and `as_unsigned` are numpy's integers of its size. `as_float` is a numpy float, `as_carrier` the
    integer of that size, that has the same bits when `below` zero bits are put behind them.
    """

    as_signed: Any
    as_unsigned: Any
    as_float: Any
    as_carrier: Any
    fraction_bits: int
    exponent_bits: int
    below: int = 0

    @property
    def codes(self) -> int:
        """How many exponent codes there are."""
        return 1 << self.exponent_bits

    @property
    def infinity(self) -> int:
        """The bits of +Inf, which are also those of the whole exponent."""
        return (self.codes - 1) << self.fraction_bits

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.fraction_bits + self.exponent_bits)

    def number(self, bits: int) -> float:
        """The number with these bits; -0.0 is 0.0."""
        return float(self.as_carrier(bits << self.below).view(self.as_float)) + 0.0


FORMS = {
    torch.float16: Form(np.int16, np.uint16, np.float16, np.uint16, 10, 5),
    torch.bfloat16: Form(np.int16, np.uint16, np.float32, np.uint32, 7, 8, below=16),
    torch.float32: Form(np.int32, np.uint32, np.float32, np.uint32, 23, 8),
    torch.float64: Form(np.int64, np.uint64, np.float64, np.uint64, 52, 11),
}
SHORT = (torch.float16, torch.bfloat16)
"""The dtypes whose subnormals are counted."""
COUNTED = (torch.float16, torch.bfloat16, torch.float32)
"""The dtypes whose exponents can be counted."""


def bits_of(flat: torch.Tensor) -> Array:
    """The bits of a contiguous tensor of one of the FORMS, as unsigned integers."""
    if flat.dtype is torch.bfloat16:
        flat = flat.view(torch.int16)
    bits: Array = flat.numpy()
    return bits.view(f"u{bits.itemsize}")


def extremes(bits: Array, form: Form) -> tuple[float, float]:
    """Least and greatest number of some that are all finite."""
    signed = bits.view(form.as_signed)
    greatest, most_negative = int(np.maximum.reduce(signed)), int(np.maximum.reduce(bits))
    if most_negative <= form.sign:
        # No number below zero, at most -0.0, whose bits are the least signed integer.
        least = max(int(np.minimum.reduce(signed)), 0)
        return form.number(least), form.number(greatest) if greatest >= 0 else 0.0
    if greatest < 0:
        return form.number(most_negative), form.number(int(np.minimum.reduce(bits)))
    return form.number(most_negative), form.number(greatest)


class ExponentCounter:
    """Counts the exponent codes of a tensor whose bits come in blocks."""

    BATCH = 1 << 20
    """Codes that are counted at a time."""
    PAIRED = 1 << 16
    """From so many codes on they are counted in pairs, as one number of 16 bits: a counter waits for the one before,
    and there are half as many to wait for (1.3 and 0.6 ns an element). Fewer are not worth a table of that size."""

    def __init__(self) -> None:
        self._codes = np.empty(0, np.uint8)
        self._used = 0
        self._counts = np.zeros(0, np.int64)

    def begin(self, form: Form) -> None:
        """Begin with a new tensor."""
        self._counts = np.zeros(form.codes, np.int64)
        self._used = 0

    def add(self, bits: Array, form: Form, shifted: Array) -> None:
        """Count a block of at most BATCH elements; `shifted` is working memory like `bits`."""
        if self._used + len(bits) > max(self.BATCH, len(bits)) or not len(self._codes):
            self._count()
            if len(self._codes) < max(self.BATCH, len(bits)):
                self._codes = np.empty(max(self.BATCH, len(bits)), np.uint8)
        np.right_shift(bits, form.as_unsigned(form.fraction_bits), out=shifted)
        if form.exponent_bits < np.iinfo(np.uint8).bits:
            np.bitwise_and(shifted, form.as_unsigned(form.codes - 1), out=shifted)
        # Above 8 bits of exponent stands the sign, which is cut off here.
        np.copyto(self._codes[self._used : self._used + len(bits)], shifted, casting="unsafe")
        self._used += len(bits)

    def result(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The number of elements of each code."""
        self._count()
        return self._counts

    def _count(self) -> None:
        codes, self._used = self._codes[: self._used], 0
        if len(codes) >= self.PAIRED:
            even = len(codes) - len(codes) % 2
            pairs = np.bincount(codes[:even].view(np.uint16))
            table = np.zeros((-(-len(pairs) // 256), 256), np.int64)
            table.reshape(-1)[: len(pairs)] = pairs
            first, second = table.sum(axis=0), table.sum(axis=1)
            self._counts += first[: len(self._counts)]
            self._counts[: len(second)] += second
            codes = codes[even:]
        if len(codes):
            self._counts += np.bincount(codes, minlength=len(self._counts))
