"""Terminal text of a comparison: plain and stable in a file or pipe, with colour on a terminal."""

from __future__ import annotations

import re
import shutil
import textwrap
from typing import IO, TYPE_CHECKING

from align.reports.phrases import ENGLISH, Phrases
from align.reports.view import Card, Page, make_page
from align.reports.visible import shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from align.records import DiffResult
    from align.reports.rows import Row

WIDTH = 100
"""The width of plain text; a terminal's own width where it is narrower."""
NAME_WIDTH = 40
UNBROKEN = "\x00"
"""Stands for a space inside a command while lines are broken; no visible text holds it."""

Line = tuple[str, str]
"""A line and its style, a word of rich or an empty string."""

STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan", "pass": "bold blue", "unknown": "bold"}


def diff_text(result: DiffResult, phrases: Phrases = ENGLISH, width: int = WIDTH) -> str:
    """The whole text of a comparison, without colour."""
    return "".join(f"{text}\n" for text, _ in _lines(make_page(result, phrases), phrases, width))


def print_diff(result: DiffResult, stream: IO[str], phrases: Phrases = ENGLISH) -> None:
    """Write the text to a stream, with colour when it is a terminal."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if not stream.isatty():
        stream.write(_encodable(diff_text(result, phrases), encoding))
        return
    # rich costs 50 ms to import: pipes and files do without it.
    from rich.console import Console
    from rich.text import Text

    width = min(WIDTH, shutil.get_terminal_size().columns)
    console = Console(file=stream, highlight=False, soft_wrap=True)
    for text, style in _lines(make_page(result, phrases), phrases, width):
        console.print(Text(_encodable(text, encoding), style=style))


def _encodable(text: str, encoding: str) -> str:
    """The text with what the stream cannot hold as escapes: terminals are not all UTF-8."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _lines(page: Page, phrases: Phrases, width: int) -> Iterator[Line]:
    reference, candidate = page.sides
    heading = f"{reference.path} ({reference.word}) {phrases['against']} {candidate.path} ({candidate.word})"
    yield f"{page.verdict}  {heading}", STYLES[page.role]
    yield from _wrapped(page.sentence, width)
    if page.next_step:
        yield from _wrapped(f"{phrases['next_step']}: {page.next_step}", width, style="bold")
    yield from _wrapped(page.comparable, width)
    if page.around:
        yield "", ""
        yield page.around_title, "bold"
        yield from _table(page.around, phrases)
    for number, card in enumerate(page.cards):
        if number == 0:
            yield "", ""
            yield phrases["findings"], "bold"
        yield from _card_lines(card, page, phrases, width)
    yield "", ""
    for note in (page.steps_line, page.confidence, *page.notes):
        yield from _wrapped(f"{phrases['note']}: {note}", width)


def _wrapped(text: str, width: int, indent: str = "", style: str = "") -> Iterator[Line]:
    """A sentence in lines; commands between backticks and names are never broken."""
    whole = re.sub("`[^`]*`", lambda command: command.group().replace(" ", UNBROKEN), text)
    for line in textwrap.wrap(
        whole,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ):
        yield line.replace(UNBROKEN, " "), style


def _card_lines(card: Card, page: Page, phrases: Phrases, width: int) -> Iterator[Line]:
    """A finding; what the head of the text has already said is not said again."""
    place = f"  {card.place}" if card.place else ""
    yield f"  {card.severity} {card.code} {card.label}{place}", STYLES[card.role]
    if card.summary != page.sentence:
        yield from _wrapped(card.summary, width, "    ")
    if card.consequence:
        yield from _wrapped(card.consequence, width, "    ")
    if card.advice and card.advice != page.next_step:
        yield from _wrapped(f"{phrases['what_to_do']}: {card.advice}", width, "    ")


def _table(rows: Sequence[Row], phrases: Phrases) -> Iterator[Line]:
    names = ("col_phase", "col_module", "col_tensor", "col_relative", "col_floor", "col_times", "col_status")
    steps = len({row.step for row in rows}) > 1
    cells = [[phrases[name] for name in names]]
    for row in rows:
        name, slot = shortened(row.name, NAME_WIDTH), shortened(row.slot, NAME_WIDTH)
        cells.append([row.phase, name, slot, row.relative, row.floor, row.times, row.status_word])
    if steps:
        words = [phrases["col_step"], *(row.step for row in rows)]
        cells = [[f"{word:>4}  {line[0]}", *line[1:]] for word, line in zip(words, cells, strict=True)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    styles = ["bold", *(STYLES["error"] if row.first else "" for row in rows)]
    marks = [" ", *(">" if row.first else " " for row in rows)]
    for line, mark, style in zip(cells, marks, styles, strict=True):
        aligned = [
            cell.rjust(size) if 3 <= column <= 5 else cell.ljust(size)  # noqa: PLR2004 - the columns of numbers
            for column, (cell, size) in enumerate(zip(line, widths, strict=True))
        ]
        yield f"{mark} {'  '.join(aligned)}".rstrip(), style
