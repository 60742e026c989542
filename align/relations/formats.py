"""Rounding to a shorter float: which format a tensor went through, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from align.tolerance import PRECISIONS, TF32, Precision

Numbers = NDArray[np.float64]

FORMATS: dict[str, Precision] = {
    name: PRECISIONS[name] for name in ("bfloat16", "float16", "float32", "float8_e4m3fn", "float8_e5m2")
} | {"tfloat32": TF32}
"""The formats that are tried, in this order; the dtypes of both tensors are tried first."""

SAMPLE = 256
"""So many elements are rounded first: most formats are ruled out by them."""


class Shortening(NamedTuple):
    """Through which format one side went: the candidate's or the reference's, and whether bits were cut off."""

    name: str
    candidate_short: bool
    cut: bool


def rounded(numbers: Numbers, precision: Precision) -> Numbers:
    """The nearest numbers of a format, ties to even; what is too large becomes infinite."""
    return _to_format(numbers, precision, np.rint)


def cut_off(numbers: Numbers, precision: Precision) -> Numbers:
    """The numbers of a format with the bits that do not fit left out, as devices do that truncate."""
    return _to_format(numbers, precision, np.trunc)


def unit_of(dtype: str) -> float:
    """The unit roundoff of a dtype, 0 for integers."""
    precision = PRECISIONS.get(dtype)
    return precision.unit if precision is not None else 0.0


def format_between(ours: Numbers, theirs: Numbers, first: Sequence[str]) -> Shortening | None:
    """The format that one side is rounded to, None where none fits.

    Every number of one tensor is that of the other rounded to the format. `first` are the formats to try first.
    """
    step = max(ours.size // SAMPLE, 1)
    ways = ((True, (ours, theirs)), (False, (theirs, ours)))
    for name in dict.fromkeys([*(name for name in first if name in FORMATS), *FORMATS]):
        for way in (rounded, cut_off):
            for theirs_is_short, (full, short) in ways:
                if _fits(full[::step], short[::step], name, way) and _fits(full, short, name, way):
                    return Shortening(name, theirs_is_short, way is cut_off)
    return None


def _fits(full: Numbers, short: Numbers, name: str, way: Callable[[Numbers, Precision], Numbers]) -> bool:
    return bool(np.array_equal(way(full, FORMATS[name]), short))


def _to_format(numbers: Numbers, precision: Precision, to_integer: Callable[[Numbers], Numbers]) -> Numbers:
    significand = round(-math.log2(precision.unit))
    least = round(math.log2(precision.spacing))
    _, exponent = np.frexp(numbers)
    quantum = np.maximum(exponent - significand, least)
    found = np.ldexp(to_integer(np.ldexp(numbers, -quantum)), quantum)
    infinite: Numbers = np.where(np.abs(found) > precision.largest, np.copysign(np.inf, found), found)
    return infinite
