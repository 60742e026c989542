"""The sentences of a document: text that keeps its template, so that it can be said in another language."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Any

from align import sentences
from align.reports.reading.values import Misread, below, sequence
from align.sentences import say, told

parse = Formatter().parse

KEY = "sentences"
"""The key under which a document, and each of its findings, keeps the trees of its sentences."""

HOMES: Mapping[str, tuple[str, ...]] = {
    "precision": ("resolution", "precision"),
    "floor_method": ("resolution", "floor_method"),
    "pairing_notes": ("pairing", "notes"),
    "said": ("records", "dictionaries", "said"),
}
"""Where the text of a tree stands that is not under the tree's own name."""


def with_sentences(value: Any) -> Any:
    """The document with each text that has a tree as a sentence; raises Misread for what is no tree.

    The trees of an object stand under its key `sentences`. A text that is not what its tree says was changed by hand,
    and stays as it is.
    """
    if isinstance(value, list):
        # Columns are long, and hold no objects.
        return [with_sentences(entry) for entry in value] if value and isinstance(value[0], (dict, list)) else value
    if not isinstance(value, dict):
        return value
    found = {name: with_sentences(entry) for name, entry in value.items() if name != KEY}
    trees = value.get(KEY)
    return _laid(found, _mirrored(trees), KEY) if isinstance(trees, dict) else found


def _mirrored(trees: Mapping[str, Any]) -> dict[str, Any]:
    """The trees where their texts stand in the document."""
    mirrored: dict[str, Any] = {}
    for name, tree in trees.items():
        inner = mirrored
        *path, last = HOMES.get(name, (name,))
        for step in path:
            inner = inner.setdefault(step, {})
        inner[last] = [_of_table(each) for each in tree] if name == "tables" and isinstance(tree, list) else tree
    return mirrored


def _of_table(trees: Any) -> Any:
    """Those of a table: titles of columns, and the cells that are sentences by their rows and columns."""
    if not isinstance(trees, dict):
        return trees
    cells: dict[Any, dict[Any, Any]] = {}
    for number, cell in enumerate(sequence(trees.get("cells", []), f"{KEY}.tables.cells")):
        if not (isinstance(cell, list) and len(cell) == 3 and all(type(place) is int for place in cell[:2])):  # noqa: PLR2004 - row, column and tree
            raise Misread(f"{KEY}.tables.cells[{number}]", say("is not a row, a column and a sentence"))
        cells.setdefault(cell[0], {})[cell[1]] = cell[2]
    titles = [{"title": each} for each in sequence(trees.get("columns", []), f"{KEY}.tables.columns")]
    return {**trees, "columns": titles, "rows": cells}


def _laid(value: Any, trees: Any, place: str) -> Any:
    """A value with the sentences of the trees that have its shape; a list may have trees for some of its places."""
    if isinstance(value, str):
        return _sentence(value, trees, place)
    if isinstance(value, dict) and isinstance(trees, dict):
        known = {name: _laid(value[name], trees[name], below(place, name)) for name in trees if name in value}
        return {**value, **known}
    if isinstance(value, list) and isinstance(trees, dict):
        known = {i: _laid(value[i], trees[i], below(place, i)) for i in trees if type(i) is int and 0 <= i < len(value)}
        return [known.get(i, entry) for i, entry in enumerate(value)] if known else value
    if isinstance(value, list) and isinstance(trees, list):
        if len(trees) != len(value):
            raise Misread(place, say("has {} entries, not {}", len(trees), len(value)))
        return [_laid(each, tree, below(place, i)) for i, (each, tree) in enumerate(zip(value, trees, strict=True))]
    return value


def _sentence(text: str, tree: Any, place: str) -> str:
    if tree is None:
        return text
    try:
        _check(tree)
        said = sentences.read(tree)
    except ValueError as error:
        raise Misread(place, say("is {}", told(error))) from error
    return said if said == text else text


def _check(tree: Any) -> None:
    """Raise ValueError for places that are more than places: a format of a hostile width would fill the memory."""
    if not isinstance(tree, list) or not tree or not isinstance(tree[0], str):
        return
    try:
        plain = all(not form and not turn and (not name or name.isdecimal()) for _, name, form, turn in parse(tree[0]))
    except ValueError:
        plain = False
    if not plain:
        message = say("no template: {}", tree[0][:100])
        raise ValueError(message)
    for argument in tree[1] if len(tree) > 1 and isinstance(tree[1], list) else ():
        _check(argument)
