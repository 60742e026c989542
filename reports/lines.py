"""Lines of terminal text: broken at words, coloured on a terminal, plain in a file or pipe, a screen at most."""

from __future__ import annotations

import re
import shutil
import textwrap
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from align.reports.wide import folded, is_wide, kept, padded, width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

WIDTH = 100
"""The width of plain text; a terminal's own width where it is narrower."""
HEIGHT = 40
"""The lines of a screen, which a text has at most unless all of it is asked for."""
UNBROKEN = "\x00"
"""Stands for a space that lines are not broken at while they are made; no visible text holds it."""
CUT = " ..."

Line = tuple[str, str]
"""A line and its style, a word of rich or an empty string."""

STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan", "pass": "bold blue", "unknown": "bold"}


@dataclass(frozen=True, slots=True)
class Screen:
    """How wide lines may be, and whether everything is said or what fits on a screen."""

    width: int = WIDTH
    whole: bool = False


def plain(lines: Iterable[Line]) -> str:
    """The lines as text without colour."""
    return "".join(f"{text}\n" for text, _ in lines)


def print_lines(make: Callable[[Screen], Iterable[Line]], stream: IO[str], *, whole: bool) -> None:
    """Write what `make` says for a screen, with colour when the stream is a terminal."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if not stream.isatty():
        stream.write(_encodable(plain(make(Screen(whole=whole))), encoding))
        return
    # rich costs 50 ms to import: pipes and files do without it.
    from rich.console import Console
    from rich.text import Text

    size = min(WIDTH, shutil.get_terminal_size().columns)
    console = Console(file=stream, highlight=False, soft_wrap=True)
    for text, style in make(Screen(size, whole)):
        console.print(Text(_encodable(text, encoding), style=style))


def _encodable(text: str, encoding: str) -> str:
    """The text with what the stream cannot hold as escapes, ideographs as question marks: not all are UTF-8."""
    return text.encode(encoding, "replace" if is_wide(text) else "backslashreplace").decode(encoding)


def wrapped(text: str, size: int, indent: str = "", style: str = "", *, first: str | None = None) -> Iterator[Line]:
    """A sentence in lines of so many columns; commands between backticks, names, a number and its `%` are not broken.

    `first` begins the first line where that is another than the indent of the rest.
    """
    begin = indent if first is None else first
    if is_wide(text) or is_wide(begin):
        for line in folded(text, size, begin, indent):
            yield line, style
        return
    whole = re.sub(r"`[^`]*`|\d %", lambda kept: kept.group().replace(" ", UNBROKEN), text)
    for line in textwrap.wrap(
        whole,
        size,
        initial_indent=begin,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ):
        yield line.replace(UNBROKEN, " "), style


def cut(text: str, size: int) -> str:
    """The text, or as many of its words as have room, with a sign that there are more."""
    if width(text) <= size:
        return text
    if is_wide(text):
        return f"{kept(text, size - len(CUT)).rstrip()}{CUT}"
    words = text[: size - len(CUT) + 1]
    return f"{words[: words.rindex(' ')] if ' ' in words.strip() else words[:-1]}{CUT}"


def columns(cells: Sequence[Sequence[str]], right: frozenset[int]) -> list[str]:
    """Rows of cells in columns of one width each; those with these numbers stand to the right."""
    widths = [max(width(line[column]) for line in cells) for column in range(len(cells[0]))]
    return [
        "  ".join(
            padded(cell, size, right=column in right)
            for column, (cell, size) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]


def fitted(forms: Sequence[Sequence[Sequence[Line]]], room: int) -> list[Sequence[Line]]:
    """One form of each entry, shortest first given, so that all together have at most `room` lines where that goes.

    All begin with their shortest form; the longer ones are given in order, form by form.
    """
    chosen = [0] * len(forms)
    spent = sum(len(of_one[0]) for of_one in forms)
    for level in range(1, max((len(of_one) for of_one in forms), default=0)):
        for place, of_one in enumerate(forms):
            if level < len(of_one):
                more = len(of_one[level]) - len(of_one[chosen[place]])
                if spent + more <= room:
                    chosen[place], spent = level, spent + more
    return [of_one[level] for of_one, level in zip(forms, chosen, strict=True)]
