"""Tables that a document keeps as columns: one list for each name, words as places in a dictionary."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from align.reports.reading.values import MOST, Misread, below, mapping, number, read_as, sequence, shown
from align.sentences import say

T = TypeVar("T")


PLAIN = frozenset({float, bool, str})
"""Types whose values are in a document as they are."""


@dataclass(frozen=True, slots=True)
class Columns:
    """A table as a document holds it, and the place where it stands."""

    length: int
    columns: Mapping[str, Any]
    dictionaries: Mapping[str, Any]
    place: str

    def words(self, name: str, read: Callable[[str, str], T], default: T | None = None) -> list[T]:
        """A column of text, each word of which is read once by `read(word, place)`.

        Without such a column every row has the default; without a default it has to be there.
        """
        if name not in self.columns and default is not None:
            return [default] * self.length
        place = below(below(self.place, "dictionaries"), name)
        listed = sequence(self.dictionaries.get(name), place)
        known = [read(_text(word, below(place, i)), below(place, i)) for i, word in enumerate(listed)]
        codes = self._column(name)
        if not _are(codes, int) or (codes and not 0 <= min(codes) <= max(codes) < len(known)):
            row = next(i for i, code in enumerate(codes) if type(code) is not int or not 0 <= code < len(known))
            raise Misread(
                self._at(name, row), say("is {}, not the place of one of {} words", shown(codes[row]), len(known))
            )
        return [known[code] for code in codes]

    def texts(self, name: str) -> list[str]:
        """A column of text as it is."""
        return self.words(name, lambda word, _: word)

    def integers(self, name: str, default: int | None = None) -> list[int]:
        """A column of whole numbers; without it every row has the default, without a default it has to be there."""
        if name not in self.columns and default is not None:
            return [default] * self.length
        column = self._column(name)
        if not _are(column, int) or (column and not -MOST <= min(column) <= max(column) < MOST):
            row = next(i for i, value in enumerate(column) if type(value) is not int or not -MOST <= value < MOST)
            raise Misread(self._at(name, row), say("is {}, not a whole number of 64 bits", shown(column[row])))
        return column

    def numbers(self, name: str) -> list[float | None]:
        """A column of numbers that may be unknown; one that is not there is unknown in every row."""
        if name not in self.columns:
            return [None] * self.length
        column = self._column(name)
        if _are(column, float, type(None)):
            return column
        return [None if value is None else number(value, self._at(name, row)) for row, value in enumerate(column)]

    def counts(self, name: str) -> list[int | None]:
        """A column of numbers of things, which may be unknown; one that is not there is unknown in every row."""
        if name not in self.columns:
            return [None] * self.length
        column = self._column(name)
        for row, value in enumerate(column):
            if value is not None and (type(value) is not int or not 0 <= value < MOST):
                raise Misread(self._at(name, row), say("is {}, not a number of elements", shown(value)))
        return column

    def _column(self, name: str) -> list[Any]:
        place = below(below(self.place, "columns"), name)
        if name not in self.columns:
            raise Misread(place, say("is missing"))
        column = sequence(self.columns[name], place)
        if len(column) != self.length:
            raise Misread(place, say("has {} rows, not {}", len(column), self.length))
        return column

    def _at(self, name: str, row: int) -> str:
        return f"{below(below(self.place, 'columns'), name)}[{row}]"


def read_columns(value: Any, place: str) -> Columns:
    """The table that `reports.columns.columnar` wrote; raises Misread where it is none."""
    table = mapping(value, place)
    return Columns(
        length=_length(table, place),
        columns=mapping(table.get("columns"), below(place, "columns")),
        dictionaries=mapping(table.get("dictionaries"), below(place, "dictionaries")),
        place=place,
    )


def read_rows(kind: type[T], value: Any, place: str) -> tuple[T, ...]:
    """Records whose fields are kept as one list each; a field without a list has its default in every record."""
    table = mapping(value, place)
    length = _length(table, place)
    hints = get_type_hints(kind)
    columns: dict[str, Sequence[Any]] = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        where = below(place, field.name)
        if field.name not in table:
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
                raise Misread(where, say("is missing"))
            continue
        column = sequence(table[field.name], where)
        if len(column) != length:
            raise Misread(where, say("has {} rows, not {}", len(column), length))
        kind_of_column = hints[field.name]
        plain = kind_of_column in PLAIN and _are(column, kind_of_column)
        columns[field.name] = (
            column if plain else [read_as(kind_of_column, each, below(where, i)) for i, each in enumerate(column)]
        )
    if not columns:
        return ()
    return tuple(kind(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))


def _are(column: list[Any], *kinds: type) -> bool:
    """Whether all values are of these types; asked of columns of a hundred thousand."""
    return set(map(type, column)) <= set(kinds)


def _length(table: Mapping[str, Any], place: str) -> int:
    length = table.get("length")
    if type(length) is not int or length < 0:
        raise Misread(below(place, "length"), say("is {}, not a number of rows", shown(length)))
    return length


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise Misread(place, say("is {}, not a text", shown(value)))
    return value
