"""What all files become first: rows in the order of the file, and columns that hold a number in some of them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from align.curve_records import CurveKind


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The numbers of one column: in which rows (int64, rising) one is written, and which (float64)."""

    rows: NDArray[np.int64]
    values: NDArray[np.float64]

    def spread(self, count: int) -> NDArray[np.float64]:
        """One value for each of `count` rows, NaN where none is written."""
        spread = np.full(count, np.nan)
        spread[self.rows] = self.values
        return spread

    def written(self, count: int) -> NDArray[np.bool_]:
        """Whether a number is written, for each of `count` rows."""
        written = np.zeros(count, dtype=bool)
        written[self.rows] = True
        return written


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A file as a table of `count` rows.

    `columns` are those that may be asked for, by their names in the file; `names` are all names, in the order of the
    file. `steps` are the steps where the file itself says which they are (None elsewhere). `notes` are sentences, such
    as on what could not be read.
    """

    kind: CurveKind
    count: int
    columns: Mapping[str, Column]
    names: tuple[str, ...]
    steps: Column | None = None
    notes: tuple[str, ...] = ()


class TableBuilder:
    """Gathers rows whose columns are not known in advance; memory only for the columns that are wanted."""

    def __init__(self, wanted: Callable[[str], bool]) -> None:
        self.count = 0
        self._wanted = wanted
        self._stores: dict[str, tuple[array[int], array[float]] | None] = {}

    def add(self, cells: Iterable[tuple[str, float]]) -> int:
        """Append a row and return its number; of a name that comes twice the first value stays."""
        row = self.count
        self.count += 1
        for name, value in cells:
            try:
                store = self._stores[name]
            except KeyError:
                store = self._stores[name] = (array("q"), array("d")) if self._wanted(name) else None
            if store is not None:
                rows, values = store
                if not rows or rows[-1] != row:
                    rows.append(row)
                    values.append(value)
        return row

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order in which they came."""
        return tuple(self._stores)

    def columns(self) -> dict[str, Column]:
        """The columns that are wanted and hold a number."""
        return {name: as_column(*store) for name, store in self._stores.items() if store is not None and store[0]}


def as_column(rows: array[int], values: array[float]) -> Column:
    """A column of what was gathered."""
    return Column(np.array(rows, dtype=np.int64), np.array(values, dtype=np.float64))


def kept_rows(columns: Mapping[str, Column], keep: NDArray[np.bool_]) -> dict[str, Column]:
    """The columns without the rows that are not kept; rows are numbered anew."""
    if keep.all():
        return dict(columns)
    places = np.cumsum(keep) - 1
    found = {}
    for name, column in columns.items():
        there = keep[column.rows]
        if there.any():
            found[name] = Column(places[column.rows[there]].astype(np.int64), column.values[there])
    return found
