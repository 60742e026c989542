"""How each torch dtype is kept: its numpy form in memory, its HDF5 type in the file, its numbers for a reader."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import h5py
import numpy as np
from numpy.typing import NDArray


class BitFloat(NamedTuple):
    """A float that numpy does not know: where its sign, exponent and fraction are, and its special codes."""

    sign: int
    exponent: int
    fraction: int
    bias: int
    specials: str

    @property
    def size(self) -> int:
        """The number of bytes."""
        return (self.sign + 1) // 8


BIT_FLOATS = {
    "bfloat16": BitFloat(sign=15, exponent=8, fraction=7, bias=127, specials="ieee"),
    "float8_e5m2": BitFloat(sign=7, exponent=5, fraction=2, bias=15, specials="ieee"),
    "float8_e4m3fn": BitFloat(sign=7, exponent=4, fraction=3, bias=7, specials="nan at the end"),
    "float8_e5m2fnuz": BitFloat(sign=7, exponent=5, fraction=2, bias=16, specials="nan for -0"),
    "float8_e4m3fnuz": BitFloat(sign=7, exponent=4, fraction=3, bias=8, specials="nan for -0"),
}
"""Kept as unsigned integers in memory and as true floats in the file, so that other tools show numbers."""


def is_floating(dtype: str) -> bool:
    """Whether a torch dtype is a real floating one, of any width."""
    return dtype.startswith(("float", "bfloat"))


def storage_dtype(dtype: str) -> np.dtype[Any] | None:
    """The numpy dtype that holds the bits of a torch dtype, None where the array itself decides."""
    if dtype in BIT_FLOATS:
        return np.dtype(f"<u{BIT_FLOATS[dtype].size}")
    return None


def as_stored(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """The array in the numpy dtype that is kept; the bits of a float that numpy does not know stay as they are."""
    stored = storage_dtype(dtype)
    if stored is None:
        return array.astype(array.dtype.newbyteorder("<"), copy=False)
    if array.dtype.itemsize != stored.itemsize or array.dtype.kind not in "iu":
        raise ValueError(f"Cannot keep {array.dtype} as {dtype}: give its bits as {stored.name}.")
    return array.view(stored)


@lru_cache(maxsize=64)
def file_type(dtype: str, array_dtype: np.dtype[Any]) -> Any:
    """The HDF5 type under which an array of this torch dtype is written and read without conversion."""
    if dtype not in BIT_FLOATS:
        return h5py.h5t.py_create(array_dtype, logical=True)
    layout = BIT_FLOATS[dtype]
    kind = (h5py.h5t.IEEE_F32LE if layout.size > 1 else h5py.h5t.IEEE_F16LE).copy()
    kind.set_fields(layout.sign, layout.fraction, layout.exponent, 0, layout.fraction)
    kind.set_precision(layout.sign + 1)
    kind.set_size(layout.size)
    kind.set_ebias(layout.bias)
    return kind


def as_numbers(raw: NDArray[Any], dtype: str) -> NDArray[Any]:
    """The values as numpy numbers: bfloat16 and float8 become float32 exactly, all others stay as they are."""
    if dtype == "bfloat16":
        wide: NDArray[np.uint32] = np.left_shift(raw, 16, dtype=np.uint32)
        return wide.view(np.float32)
    if dtype in BIT_FLOATS:
        numbers: NDArray[np.float32] = _table(dtype)[raw]
        return numbers
    return raw


def write_numbers(raw: NDArray[Any], dtype: str, out: NDArray[Any]) -> None:
    """The values as numpy numbers, in a float32 or float64 array that is there already.

    All 16-bit and 8-bit floats are exact in either; other numbers are rounded where they do not fit. A complex number
    is its two parts.
    """
    if dtype == "bfloat16" and out.dtype == np.float32:
        wide = out.view(np.uint32)
        np.copyto(wide, raw)
        np.left_shift(wide, 16, out=wide)
    elif dtype == "float16" and out.dtype == np.float32:
        # Three times as fast as numpy's own conversion.
        np.take(_halves(), raw.view(np.uint16), out=out, mode="clip")
    elif dtype in BIT_FLOATS and out.dtype == np.float32 and raw.dtype == np.uint8:
        np.take(_table(dtype), raw, out=out, mode="clip")
    else:
        np.copyto(out, as_numbers(raw, dtype), casting="same_kind" if raw.dtype.kind in "fui" else "unsafe")


@lru_cache(maxsize=1)
def _halves() -> NDArray[np.float32]:
    """The number behind each of the 65,536 codes of a float16."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


@lru_cache(maxsize=8)
def _table(dtype: str) -> NDArray[np.float32]:
    """The number behind each of the 256 codes of a float8."""
    layout = BIT_FLOATS[dtype]
    codes = np.arange(256)
    exponent = codes >> layout.fraction & (1 << layout.exponent) - 1
    fraction = codes & (1 << layout.fraction) - 1
    normal = exponent > 0
    significand = fraction + (normal << layout.fraction)
    power = np.where(normal, exponent, 1) - layout.bias - layout.fraction
    numbers: NDArray[np.float32] = np.ldexp(significand.astype(np.float32), power)
    if layout.specials == "ieee":
        top = exponent == (1 << layout.exponent) - 1
        numbers[top] = np.where(fraction[top] == 0, np.inf, np.nan)
    elif layout.specials == "nan at the end":
        numbers[(exponent == exponent.max()) & (fraction == fraction.max())] = np.nan
    np.negative(numbers, out=numbers, where=codes >> layout.sign == 1)
    if layout.specials == "nan for -0":
        numbers[1 << layout.sign] = np.nan
    return numbers
