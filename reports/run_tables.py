"""The tables that analyses gave, with every cell written as its column says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from align import wording
from align.records import FactValue, Shown
from align.reports.bars import Bars, make_bars
from align.reports.visible import shortened, visible
from align.sentences import Sentence

if TYPE_CHECKING:
    from align.records import Curve, Table
    from align.reports.language import Language

MOST_ROWS = 200
"""Rows of a table on the page; the JSON has all."""
LONGEST_FILE = 60
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
    """A table whose cells are text; `cut` says in a sentence that not all rows are shown.

    `values` are what rows are sorted and saved by, cell by cell, in full precision. `emphasis` says of each row whether
    it is `first` (what the table is about), `later` (what follows from it) or neither. `bars` is the column of bars,
    None where the table has none.
    """

    name: str
    title: str
    lead: str
    titles: tuple[Title, ...]
    rows: tuple[tuple[str, ...], ...]
    cut: str
    question: str
    curve: Curve | None
    values: tuple[tuple[str, ...], ...] = ()
    emphasis: tuple[str, ...] = ()
    bars: Bars | None = None

    @property
    def file(self) -> str:
        """What its CSV is called, without what file names do not have."""
        return re.sub(r"\W+", "-", self.name)[:LONGEST_FILE] or "table"


def make_table(table: Table, phrases: Language) -> ShownTable:
    """One table, its first rows."""
    shown, total = table.rows[:MOST_ROWS], len(table.rows)
    cut = ""
    if len(shown) < total:
        cut = phrases["table_cut"].format(shown=wording.count(len(shown)), total=wording.count(total))
    kinds = [column.shown for column in table.columns]
    return ShownTable(
        name=visible(table.name),
        title=visible(phrases.said(table.title)),
        lead=visible(phrases.said(table.lead)),
        titles=tuple(
            Title(_title(column.title, phrases), column.shown in NUMBERS, column.shown is Shown.NAME)
            for column in table.columns
        ),
        rows=tuple(
            tuple(cell_text(cell, kind, phrases) for cell, kind in zip(row, kinds, strict=True)) for row in shown
        ),
        cut=cut,
        question=visible(phrases.word(table.question)),
        curve=table.curve,
        values=tuple(
            tuple(cell_value(cell, kind, phrases) for cell, kind in zip(row, kinds, strict=True)) for row in shown
        ),
        emphasis=_emphasis(table, shown),
        bars=make_bars(table, shown, phrases),
    )


def _title(title: str, phrases: Language) -> str:
    """`step` is a word of its own, since optimizers have tensors of that name."""
    return phrases["col_step"] if title == "step" else visible(phrases.word(title))


NOT_FINITE = "{} of {} not finite"
"""What a cell of the steps around a NaN says of a phase in which something is not finite."""


def _emphasis(table: Table, rows: Sequence[Sequence[FactValue]]) -> tuple[str, ...]:
    """The first row that says so is what a table of reasons or of a birth is about."""
    test = _FIRST.get(table.name)
    if test is None:
        return ("",) * len(rows)
    found = [test(row) for row in rows]
    first = found.index(True) if True in found else len(rows)
    after = "later" if table.name == "learning" else ""
    return tuple("" if place < first else "first" if place == first else after for place in range(len(rows)))


_FIRST: Mapping[str, Callable[[Sequence[FactValue]], bool]] = {
    "learning": lambda row: "yes" in row,
    "nonfinite_producer": lambda row: "starts here" in row,
    "nonfinite_steps": lambda row: any(isinstance(cell, Sentence) and cell.template == NOT_FINITE for cell in row),
}


def cell_text(cell: FactValue, kind: Shown, phrases: Language) -> str:
    """One cell in words or digits."""
    if cell is None:
        return phrases["cell_unknown"]
    if isinstance(cell, bool):
        return phrases["yes" if cell else "no"]
    if isinstance(cell, str):
        return shortened(phrases.said(cell)) if kind is Shown.NAME else visible(phrases.word(cell))
    if kind in _WRITE:
        return phrases.said(_WRITE[kind](float(cell)))
    return wording.count(cell) if isinstance(cell, int) else wording.value(cell)


def cell_value(cell: FactValue, kind: Shown, phrases: Language) -> str:
    """One cell as a spreadsheet wants it: numbers in full, without units; what is not known is empty."""
    if cell is None:
        return ""
    if isinstance(cell, (bool, str)):
        return visible(phrases.said(cell)) if kind is Shown.NAME else cell_text(cell, kind, phrases)
    return repr(cell)
