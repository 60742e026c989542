"""JSON: lines of objects, arrays of them, the state of a Hugging Face Trainer, and columns in one object."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

from align.curve_files.source import Source
from align.curve_files.tables import Table, TableBuilder
from align.curve_records import CurveKind
from align.sentences import say

_DEEPEST = 4
_LONGEST_OBJECT = 1 << 26
HISTORY = re.compile(r'"log_history"\s*:\s*\[')
_SUMMARY = "train_runtime"
"""A Trainer ends its history with a row of means over the whole run; this tells it from the others."""
ARRAY = re.compile(r"\[")
_BEGIN = re.compile(r"[\s,]*")
_decode = json.JSONDecoder().raw_decode


def numbers_of(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, float]]:
    """The numbers of an object by their names; those of an object in it as `outer/inner`."""
    if isinstance(value, Mapping):
        if depth < _DEEPEST:
            for key, inner in value.items():
                yield from numbers_of(inner, f"{name}/{key}" if name else str(key), depth + 1)
        return
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    number = _number(value)
    if number is not None and name:
        yield name, number


def _number(value: Any) -> float | None:
    """A value as a number, also one that is written as text."""
    if isinstance(value, (int, float, str)):
        try:
            return float(value)
        except (ValueError, OverflowError):
            return None
    return None


def read_objects(objects: Iterator[Any], kind: CurveKind, wanted: Callable[[str], bool]) -> Table:
    """A table with a row for each object."""
    builder = TableBuilder(wanted)
    for given in objects:
        if isinstance(given, Mapping) and _SUMMARY not in given:
            builder.add(numbers_of(given))
        elif isinstance(given, list):
            builder.add((f"column {place}", number) for place, value in enumerate(given, start=1)
                        if (number := _number(value)) is not None)  # fmt: skip
    return Table(kind, builder.count, builder.columns(), builder.names)


def objects_of_lines(source: Source, lines: Iterator[tuple[int, str]]) -> Iterator[Any]:
    """The object of each line; lines that hold none are counted."""
    for number, line in lines:
        text = line.strip()
        if not text:
            continue
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, Mapping):
            yield found
        else:
            source.mark_unreadable(number)


def objects_of_text(source: Source, pieces: Iterator[str], begin: re.Pattern[str] | None) -> Iterator[Any]:
    """Objects one after another: the elements of the array that begins where `begin` is found, or of the whole text."""
    text, begun = "", begin is None
    for piece in pieces:
        text += piece
        if begin is not None and not begun:
            found = begin.search(text)
            if found is None:
                continue
            text, begun = text[found.end() :], True
        text, over = yield from _elements(text)
        if over:
            break
        if len(text) > _LONGEST_OBJECT:
            source.notes.append(say("The file holds an object of more than 64 MB: it was read up to there."))
            break
    else:
        source.cut = begin is not None or bool(text.strip())
    for _ in pieces:
        pass


def _elements(text: str) -> Generator[Any, None, tuple[str, bool]]:
    """Yields the elements that are complete; returns the rest of the text and whether the array has ended."""
    at = 0
    while True:
        begin = _BEGIN.match(text, at)
        at = begin.end() if begin else at
        if text.startswith("]", at):
            return "", True
        try:
            found, at = _decode(text, at)
        except (ValueError, RecursionError):
            return text[at:], False
        yield found


def read_documents(source: Source, pieces: Iterator[str], wanted: Callable[[str], bool]) -> Table:
    """A table from objects that go over several lines: one a row, or one that holds rows or columns."""
    documents = list(objects_of_text(source, pieces, None))
    if len(documents) != 1:
        return read_objects(iter(documents), CurveKind.JSON, wanted)
    rows = next(_rows(documents[0]), None)
    if rows is not None:
        return read_objects(iter(rows), CurveKind.JSON, wanted)
    lists = dict(_lists(documents[0]))
    builder = TableBuilder(wanted)
    for row in range(max(map(len, lists.values()), default=0)):
        here = ((name, _number(values[row])) for name, values in lists.items() if row < len(values))
        builder.add((name, number) for name, number in here if number is not None)
    return Table(CurveKind.JSON, builder.count, builder.columns(), builder.names)


def _rows(given: Any, depth: int = 0) -> Iterator[list[Any]]:
    """The lists of objects in an object."""
    if isinstance(given, list) and given and all(isinstance(row, Mapping) for row in given):
        yield given
    elif isinstance(given, Mapping) and depth < _DEEPEST:
        for inner in given.values():
            yield from _rows(inner, depth + 1)


def _lists(given: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, list[Any]]]:
    """The lists of numbers in an object, by their names."""
    if isinstance(given, Mapping) and depth < _DEEPEST:
        for key, inner in given.items():
            yield from _lists(inner, f"{name}/{key}" if name else str(key), depth + 1)
    elif isinstance(given, list) and any(_number(value) is not None for value in given):
        yield name, given
