"""Terminal text of a comparison: plain and stable in a file or pipe, with colour on a terminal."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from align.reports.card_lines import Above, findings_and_notes
from align.reports.language import ENGLISH, Language
from align.reports.lines import STYLES, WIDTH, Line, Screen, columns, plain, print_lines, wrapped
from align.reports.view import Page, make_page
from align.reports.visible import shortened
from align.reports.wide import padded
from align.sentences import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from align.records import DiffResult
    from align.reports.rows import Row

NAME_WIDTH = 40
TABLE = ("col_phase", "col_module", "col_tensor", "col_relative", "col_floor", "col_times", "col_status")
NUMBERS = frozenset({3, 4, 5})
"""The columns of numbers."""


def diff_text(result: DiffResult, phrases: Language = ENGLISH, width: int = WIDTH, *, whole: bool = False) -> str:
    """The text of a comparison without colour: what fits on a screen, or the whole."""
    return plain(_lines(make_page(result, phrases), phrases, Screen(width, whole)))


def print_diff(result: DiffResult, stream: IO[str], phrases: Language = ENGLISH, *, whole: bool = False) -> None:
    """Write the text to a stream, with colour when it is a terminal."""
    page = make_page(result, phrases)
    print_lines(lambda screen: _lines(page, phrases, screen), stream, whole=whole)


def _lines(page: Page, phrases: Language, screen: Screen) -> Iterator[Line]:
    above = [*_head(page, phrases, screen), *_around(page, phrases)]
    yield from above
    notes = (page.steps_line, *filter(None, (page.confidence,)), *page.notes)
    said = frozenset({page.sentence, page.next_step})
    yield from findings_and_notes(page.cards, notes, Above(len(above), said), screen, phrases)


def _head(page: Page, phrases: Language, screen: Screen) -> Iterator[Line]:
    ours, theirs = (say("{} ({})", side.path, side.word) for side in page.sides)
    heading = phrases.said(say("{} {} {}", ours, phrases["against"], theirs))
    yield f"{page.verdict}  {heading}", STYLES[page.role]
    yield from wrapped(page.sentence, screen.width)
    if page.next_step:
        yield from wrapped(phrases.headed(phrases["next_step"], page.next_step), screen.width, style="bold")
    yield from wrapped(page.comparable, screen.width)


def _around(page: Page, phrases: Language) -> Iterator[Line]:
    if page.around:
        yield "", ""
        yield page.around_title, "bold"
        yield from _table(page.around, phrases)


def _table(rows: Sequence[Row], phrases: Language) -> Iterator[Line]:
    steps = len({row.step for row in rows}) > 1
    cells = [[phrases[name] for name in TABLE]]
    for row in rows:
        name, slot = shortened(row.name, NAME_WIDTH), shortened(row.slot, NAME_WIDTH)
        numbers = [phrases.said(number) for number in (row.relative, row.floor, row.times)]
        cells.append([phrases.word(row.phase), name, slot, *numbers, row.status_word])
    if steps:
        words = [phrases["col_step"], *(row.step for row in rows)]
        cells = [
            [f"{padded(word, 4, right=True)}  {line[0]}", *line[1:]] for word, line in zip(words, cells, strict=True)
        ]
    styles = ["bold", *(STYLES["error"] if row.first else "" for row in rows)]
    marks = [" ", *(">" if row.first else " " for row in rows)]
    for line, mark, style in zip(columns(cells, NUMBERS), marks, styles, strict=True):
        yield f"{mark} {line}", style
