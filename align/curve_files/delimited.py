"""Tables of text: CSV, TSV, with semicolons or blanks, with a header or without."""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from align.curve_files.source import Source
from align.curve_files.tables import Table, as_column
from align.curve_records import CurveKind

_DELIMITERS = ("\t", ";", ",", "|", "")
"""An empty one stands for any number of blanks. A table with semicolons may have decimal commas."""
_LOOKED_AT = 30
_NUMERIC_SHARE = 0.5
_LINE_SHARE = 0.5
_COMMA = re.compile(r"[-+]?\d+,\d+(?:[eE][-+]?\d+)?")
_TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
_EMPTY = frozenset({"", "na", "n/a", "null", "none", "-", "--", "#n/a"})
"""What stands in a cell where nothing was recorded. `nan` is not among them: see `recorded`."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a table is written: what stands between cells, and the names of its columns."""

    delimiter: str
    header: tuple[str, ...]
    has_header: bool

    @property
    def width(self) -> int:
        """How many cells a row has."""
        return len(self.header)


def split_cells(line: str, delimiter: str) -> list[str]:
    """The cells of one line; a quoted cell does not go over its end."""
    if not delimiter:
        return line.split()
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def number_in(text: str, *, comma: bool = False) -> float | None:
    """The number of a cell, None for an empty one; raises ValueError for any other text."""
    try:
        return float(text)
    except ValueError:
        small = text.strip().lower()
        if small in _EMPTY:
            return None
        if small in _TRUTH:
            return _TRUTH[small]
        if comma and _COMMA.fullmatch(small):
            return float(small.replace(",", "."))
        raise


def form_of(lines: Iterable[str]) -> Form | None:
    """How the first lines of a table are written; None where they are no table."""
    given = [line for line in lines if line.strip()][: _LOOKED_AT + 1]
    comments = [line for line in given if line.lstrip().startswith("#")]
    rows = [line for line in given if not line.lstrip().startswith("#")]
    for delimiter in _DELIMITERS:
        form = _form(rows, comments, delimiter)
        if form is not None:
            return form
    return None


def _form(rows: Sequence[str], comments: Sequence[str], delimiter: str) -> Form | None:
    """The form of a table with this delimiter, None where it has another."""
    if not rows:
        return None
    first, *others = [_trimmed(split_cells(line, delimiter)) for line in rows]
    headed = not _is_numeric(first)
    body = others if headed else [first, *others]
    width = len(first)
    # Words of a sentence stand between blanks, too: there every cell has to be a number.
    share = _NUMERIC_SHARE if delimiter else 1.0
    fitting = [cells for cells in body if _fits(cells, width) and _is_numeric(cells, share)]
    single = width == 1 and delimiter != ","
    if not width or single or len(fitting) < _LINE_SHARE * len(body) or (headed and not fitting and width == 1):
        return None
    if headed:
        usable = all(len(cell) > 0 for cell in first) or bool(fitting)
        return (
            Form(delimiter, _unique(first), has_header=True) if usable and _is_header(first, body, delimiter) else None
        )
    named = _trimmed(split_cells(comments[-1].lstrip("# "), delimiter)) if comments else []
    names = named if len(named) == width and not _is_numeric(named) else [f"column {n}" for n in range(1, width + 1)]
    return Form(delimiter, _unique(names), has_header=False)


def _trimmed(cells: list[str]) -> list[str]:
    return [cell.strip().strip("\"'") for cell in cells]


def _fits(cells: Sequence[str], width: int) -> bool:
    """Whether a row has as many cells as the header, apart from a delimiter at its end."""
    return len(cells) == width or (len(cells) == width + 1 and not cells[-1])


def _is_numeric(cells: Sequence[str], share: float = _NUMERIC_SHARE) -> bool:
    """Whether this share of the cells that are not empty are numbers."""
    texts = [cell for cell in cells if cell.strip().lower() not in _EMPTY]
    numbers = 0
    for text in texts:
        try:
            number_in(text, comma=True)
        except ValueError:
            continue
        numbers += 1
    return bool(texts) and numbers >= share * len(texts)


def _is_header(cells: Sequence[str], body: Sequence[Sequence[str]], delimiter: str) -> bool:
    """Whether a line without numbers names columns: a table of a header alone has names without blanks only."""
    return bool(body) or (len(cells) > 1 and delimiter != "" and all(cell and " " not in cell for cell in cells))


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    """Names that differ: a second column of a name says which it is."""
    found: list[str] = []
    for number, name in enumerate(names, start=1):
        text = name or f"column {number}"
        found.append(f"{text} (column {number})" if text in found else text)
    return tuple(found)


def read_table(source: Source, lines: Iterator[tuple[int, str]], form: Form, wanted: Callable[[str], bool]) -> Table:
    """Read a table line by line; rows that do not fit the header are counted and left out."""
    stores = [
        (place, array("q"), array("d")) for place, name in enumerate(form.header) if wanted(name) or not form.has_header
    ]
    comma = form.delimiter in {";", "\t", ""}
    count, before_header = 0, form.has_header
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = split_cells(line, form.delimiter)
        if before_header or (form.has_header and _unique(_trimmed(cells)) == form.header):
            before_header = False
            continue
        row = _numbers(cells, form.width, [place for place, _, _ in stores], comma=comma)
        if row is None:
            source.mark_unreadable(number)
            continue
        for (_, rows, values), value in zip(stores, row, strict=True):
            if value is not None:
                rows.append(count)
                values.append(value)
        count += 1
    columns = {form.header[place]: as_column(rows, values) for place, rows, values in stores if rows}
    return Table(CurveKind.CSV, count, columns, form.header)


def _numbers(cells: Sequence[str], width: int, places: Sequence[int], *, comma: bool) -> list[float | None] | None:
    """The numbers of a row that are wanted, None for a row that cannot be read."""
    if not _fits(cells, width):
        return None
    found: list[float | None] = []
    for place in places:
        try:
            found.append(number_in(cells[place], comma=comma))
        except ValueError:
            return None
    return found
