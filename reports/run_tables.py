"""The tables that analyses gave, with every cell written as its column says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from align import wording
from align.records import FactValue, Shown
from align.reports.visible import shortened, visible

if TYPE_CHECKING:
    from align.records import Curve, Table
    from align.reports.language import Language

MOST_ROWS = 40
"""Rows of a table on the page; the JSON has all."""
NUMBERS = frozenset(Shown) - {Shown.TEXT, Shown.NAME}
"""Columns that stand to the right."""

_WRITE: Mapping[Shown, Callable[[float], str]] = {
    Shown.NUMBER: wording.value,
    Shown.SHARE: wording.percent,
    Shown.RELATIVE: wording.relative,
    Shown.TIMES: wording.times,
    Shown.LOSS: wording.loss,
    Shown.SCALE: wording.loss_scale,
    Shown.SECONDS: wording.seconds,
}


@dataclass(frozen=True, slots=True)
class Title:
    """The head of a column."""

    text: str
    number: bool
    name: bool


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table whose cells are text; `cut` says in a sentence that not all rows are shown."""

    name: str
    title: str
    lead: str
    titles: tuple[Title, ...]
    rows: tuple[tuple[str, ...], ...]
    cut: str
    question: str
    curve: Curve | None


def make_table(table: Table, phrases: Language) -> ShownTable:
    """One table, its first rows."""
    shown, total = table.rows[:MOST_ROWS], len(table.rows)
    cut = ""
    if len(shown) < total:
        cut = phrases["table_cut"].format(shown=wording.count(len(shown)), total=wording.count(total))
    kinds = [column.shown for column in table.columns]
    return ShownTable(
        name=visible(table.name),
        title=visible(table.title),
        lead=visible(table.lead),
        titles=tuple(
            Title(visible(column.title), column.shown in NUMBERS, column.shown is Shown.NAME)
            for column in table.columns
        ),
        rows=tuple(
            tuple(cell_text(cell, kind, phrases) for cell, kind in zip(row, kinds, strict=True)) for row in shown
        ),
        cut=cut,
        question=visible(table.question),
        curve=table.curve,
    )


def cell_text(cell: FactValue, kind: Shown, phrases: Language) -> str:
    """One cell in words or digits."""
    if cell is None:
        return phrases["cell_unknown"]
    if isinstance(cell, bool):
        return phrases["yes" if cell else "no"]
    if isinstance(cell, str):
        return shortened(cell) if kind is Shown.NAME else visible(cell)
    if kind in _WRITE:
        return _WRITE[kind](float(cell))
    return wording.count(cell) if isinstance(cell, int) else wording.value(cell)
