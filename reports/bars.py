"""Bars beside the rows of a table: how much of a gradient is lost, how near a tensor comes to its format's limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from align import wording

if TYPE_CHECKING:
    from align.records import FactValue, Table
    from align.reports.language import Language

FULL = 100.0
LOST_LIMITS = (5.0, 20.0)
"""Percent of a gradient that is lost: from the first on worth a look, above the second it harms (measured, in the notes
on numerics: zeros above 20 % harm, 5 % warn)."""
SHOWN_DOUBLINGS = 24.0
"""The bar of headroom begins so many doublings below the limit."""
LITTLE_HEADROOM = 2.0
"""With so few doublings left the next growth but one overflows, as `align.inspection.headroom` has it."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: percent of its length that are filled (`solid`), and hatched behind that (`hatched`); its words."""

    solid: float
    hatched: float
    text: str


@dataclass(frozen=True, slots=True)
class Bars:
    """The column of bars of a table, one a row; `how` says how to read it, `limits` are percent of the length."""

    title: str
    how: str
    limits: tuple[float, ...]
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class _Kind:
    """What the bars of a table are made from: the titles of its columns, in the order in which `make` takes them."""

    columns: tuple[str, ...]
    limits: tuple[float, ...]
    make: Callable[[Sequence[float], Language], Bar]


def make_bars(table: Table, rows: Sequence[Sequence[FactValue]], phrases: Language) -> Bars | None:
    """The bars of these rows; None for tables that have none, and where a number is not known."""
    kind = _KINDS.get(table.name)
    places = {str(column.title): place for place, column in enumerate(table.columns)}
    if kind is None or not rows or not places.keys() >= set(kind.columns):
        return None
    cells = [[row[places[title]] for title in kind.columns] for row in rows]
    numbers = [[float(cell) for cell in row if isinstance(cell, (int, float))] for row in cells]
    if any(len(row) < len(kind.columns) or not all(map(math.isfinite, row)) for row in numbers):
        return None
    return Bars(
        phrases[f"bar_{table.name}"],
        phrases[f"bar_{table.name}_how"],
        kind.limits,
        tuple(kind.make(row, phrases) for row in numbers),
    )


def _lost(numbers: Sequence[float], phrases: Language) -> Bar:
    """Zeros filled, subnormals hatched; of the subnormals the share among the rest is known."""
    zeros, among_rest = numbers
    subnormals = (1.0 - zeros) * among_rest
    words = phrases["bar_lost"].format(zeros=wording.percent(zeros), subnormals=wording.percent(subnormals))
    return Bar(FULL * zeros, FULL * subnormals, words)


def _headroom(numbers: Sequence[float], phrases: Language) -> Bar:
    """The fuller, the fewer doublings are left."""
    (share,) = numbers
    left = -math.log2(share) if share > 0.0 else SHOWN_DOUBLINGS
    solid = FULL * min(1.0, max(0.0, 1.0 - left / SHOWN_DOUBLINGS))
    return Bar(solid, 0.0, phrases["bar_left"].format(count=f"{max(left, 0.0):.1f}"))


def _moved(numbers: Sequence[float], phrases: Language) -> Bar:
    """The share of the elements that stay as they are."""
    (still,) = numbers
    return Bar(FULL * still, 0.0, phrases.said(wording.percent(still)))


_KINDS: Mapping[str, _Kind] = {
    "fp16_range": _Kind(("zeros", "below 6.1e-5"), LOST_LIMITS, _lost),
    "headroom": _Kind(("share",), (FULL * (1.0 - LITTLE_HEADROOM / SHOWN_DOUBLINGS),), _headroom),
    "unmoved": _Kind(("unchanged",), (), _moved),
}
