"""Columns of numbers as base64: two bytes a number where there are many, four where there are few.

Two bytes hold `round(1000 * log10(value))`, which is the value to 0.23 %, from 1e-32 to 1e32; four are a float32. Both
are little-endian, as every browser's arrays are.
"""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from align.reports.kept import kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

PER_DECADE = 1000
LARGEST_CODE = 32000
"""Codes beyond it, and below its negative, say what is no number between."""
NEAR_A_HALF = 0.01
"""More than the digits that are kept can move `1000 * log10(value)`."""
INFINITE, NOT_A_NUMBER, ZERO, NOTHING = 32767, 32766, -32767, -32768


def exact(values: Iterable[float | None]) -> dict[str, str] | None:
    """A column of float32; what is None is NaN there. None where nothing is known."""
    column = np.array([math.nan if value is None else kept(value) for value in values], dtype=np.float64)
    if not column.size or np.isnan(column).all():
        return None
    with np.errstate(over="ignore", under="ignore"):
        return _column("f4", column.astype("<f4"))


def logarithmic(values: Iterable[float | None]) -> dict[str, str] | None:
    """A column of numbers that are not negative, as two bytes each; None where nothing is known."""
    column = np.array([-1.0 if value is None else value for value in values], dtype=np.float64)
    if not column.size or (column < 0).all():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        places = PER_DECADE * np.log10(column)
        # Where the digits that a saved result keeps might decide, they do.
        for place in np.flatnonzero(np.abs(places - np.floor(places) - 0.5) < NEAR_A_HALF):
            places[place] = PER_DECADE * np.log10(kept(float(column[place])))
        codes = np.clip(np.round(places), -LARGEST_CODE, LARGEST_CODE)
    codes[np.isnan(column)] = NOT_A_NUMBER
    codes[np.isinf(column)] = INFINITE
    codes[column == 0] = ZERO
    codes[column < 0] = NOTHING
    return _column("log", codes.astype("<i2"))


def integers(values: Sequence[int] | NDArray[Any]) -> dict[str, str]:
    """A column of integers that are not negative, in as few bytes as the largest of them needs."""
    column = np.asarray(values, dtype=np.int64)
    largest = int(column.max()) if column.size else 0
    kind = "u1" if largest < 2**8 else "u2" if largest < 2**16 else "u4"
    return _column(kind, column.astype(f"<{kind}"))


def _column(kind: str, values: NDArray[Any]) -> dict[str, str]:
    return {"kind": kind, "data": base64.b64encode(values.tobytes()).decode()}


class Places:
    """Distinct values in the order of their first use: a column holds their places."""

    def __init__(self, shown: Callable[[Any], Any] = lambda value: value) -> None:
        self._places: dict[Any, int] = {}
        self._shown = shown

    def __call__(self, value: Any) -> int:
        """The place of a value."""
        return self._places.setdefault(value, len(self._places))

    def values(self) -> list[Any]:
        """The values, each as it is shown."""
        return [self._shown(value) for value in self._places]
