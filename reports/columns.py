"""Records as columns of numbers: a tenth of the size of one object a record."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

T = TypeVar("T")


def columnar(
    texts: Mapping[str, Callable[[T], str]],
    numbers: Mapping[str, Callable[[T], Any]],
    items: Sequence[T],
) -> dict[str, Any]:
    """One list a getter; a column of text holds places in its list under `dictionaries` instead."""
    dictionaries: dict[str, list[str]] = {}
    columns: dict[str, list[Any]] = {}
    for name, text in texts.items():
        dictionaries[name], columns[name] = _encoded(text(item) for item in items)
    for name, number in numbers.items():
        columns[name] = [number(item) for item in items]
    return {"length": len(items), "dictionaries": dictionaries, "columns": columns}


def rounded(value: float | None, digits: int) -> float | int | None:
    """The number to so many significant digits; what is not finite is left for `finite` to name."""
    if value is None or isinstance(value, int) or not math.isfinite(value):
        return value
    return float(f"{value:.{digits}g}")


def finite(value: float | None) -> float | str | None:
    """A number that JSON can hold: NaN and infinities become the words nan, inf and -inf."""
    return value if value is None or math.isfinite(value) else str(float(value))


def _encoded(texts: Iterable[str]) -> tuple[list[str], list[int]]:
    places: dict[str, int] = {}
    codes = [places.setdefault(text, len(places)) for text in texts]
    return list(places), codes
