"""A picture as a page shows it: the figure, a sentence that says what is to be seen, a legend, the data as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from align import wording
from align.records import Word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.reports.language import Language


KEY = "display: inline; width: 24px; min-width: 0; height: 12px"
"""The drawings of a legend do not take the width that figures have."""


NOTHING = Markup()


class Cell(Word):
    """What the cells of a column of a twin are."""

    TEXT = "text"
    NAME = "name"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Title:
    """The title of a column of a twin, and what its cells are."""

    text: str
    cell: Cell = Cell.NUMBER


class Valued(str):
    """The text of a cell that stands for a number: tables are sorted by it, and CSV has all its digits."""

    __slots__ = ("value",)
    value: float

    def __new__(cls, text: str, value: float) -> Valued:
        """The text as it is shown, and its number."""
        made = super().__new__(cls, text)
        made.value = float(value)
        return made


@dataclass(frozen=True, slots=True)
class Mark:
    """One entry of a legend: a small drawing in a field of 24 x 12, and what it stands for."""

    drawing: Markup
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure and all that a page says around it; every text is safe to show and in the page's language.

    `name` begins all ids of the figure and is unique among the pictures of a page. `sentence` says what is to be seen,
    also to those who cannot see it; without `svg` there is nothing to draw, and it says why. `rows` are the data as a
    table (the twin), `more` is how many rows it leaves out.
    """

    name: str
    title: str
    sentence: str
    svg: Markup = NOTHING
    legend: tuple[Mark, ...] = ()
    titles: tuple[Title, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    more: int = 0

    @property
    def drawn(self) -> bool:
        """Whether there is something to see."""
        return bool(self.svg)


def block(picture: Picture, phrases: Language) -> Markup:
    """The picture as a page shows it whole: caption, legend, figure and its twin; a sentence where nothing is drawn."""
    caption = Markup("<strong>{}</strong> {}").format(picture.title, picture.sentence)
    if not picture.drawn:
        return Markup('<p class="muted">{}</p>').format(caption)
    return Markup(
        '<figure aria-labelledby="{name}-caption">\n<figcaption id="{name}-caption">{caption}</figcaption>\n{legend}'
        '<div class="scroll" tabindex="0" role="region" aria-labelledby="{name}-caption">{svg}</div>\n{twin}</figure>'
    ).format(
        name=picture.name,
        caption=caption,
        legend=legend(picture.legend),
        svg=picture.svg,
        twin=twin(picture, phrases),
    )


def legend(marks: Sequence[Mark]) -> Markup:
    """The legend of a picture, empty without marks."""
    if not marks:
        return Markup()
    entries = Markup("\n").join(
        Markup('<li><svg viewBox="0 0 24 12" aria-hidden="true" style="{}">{}</svg> {}</li>').format(
            KEY, mark.drawing, mark.text
        )
        for mark in marks
    )
    return Markup('<ul class="legend">\n{}\n</ul>\n').format(entries)


def twin(picture: Picture, phrases: Language) -> Markup:
    """The data of a picture as a folded table, empty without rows."""
    if not picture.rows:
        return Markup()
    head = Markup().join(
        Markup('<th scope="col"{}>{}</th>').format(_class(title.cell), title.text) for title in picture.titles
    )
    body = Markup("\n").join(
        Markup("<tr>{}</tr>").format(
            Markup().join(_cell(title, cell) for title, cell in zip(picture.titles, row, strict=True))
        )
        for row in picture.rows
    )
    cut = Markup()
    if picture.more:
        shown, total = wording.count(len(picture.rows)), wording.count(len(picture.rows) + picture.more)
        cut = Markup('<p class="muted">{}</p>\n').format(phrases["figure_cut"].format(shown=shown, total=total))
    return Markup(
        '<details class="twin">\n<summary>{summary}</summary>\n{cut}<div class="scroll" tabindex="0" role="region" '
        'aria-labelledby="{name}-caption">\n<table class="plain sortable" data-csv="{name}">\n<thead><tr>{head}</tr>'
        "</thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>\n</details>\n"
    ).format(summary=phrases["figure_values"], cut=cut, name=picture.name, head=head, body=body)


def _class(cell: Cell) -> Markup:
    return Markup(' class="number"') if cell is Cell.NUMBER else Markup()


def _cell(title: Title, text: str) -> Markup:
    if title.cell is Cell.NAME:
        return Markup('<td><bdi class="name">{}</bdi></td>').format(text)
    value = Markup(' data-value="{}"').format(f"{text.value!r}") if isinstance(text, Valued) else Markup()
    return Markup("<td{}{}>{}</td>").format(_class(title.cell), value, text)


def mark_line(variable: str, text: str, dash: str = "", width: float = 2) -> Mark:
    """The entry of a line in one of the page's colours, such as `--reference`; `dash` and `width` as SVG has them."""
    dashes = Markup(' stroke-dasharray="{}"').format(dash) if dash else Markup()
    drawing = Markup('<path d="M0 6H24" stroke="var({})" stroke-width="{}"{}/>').format(variable, width, dashes)
    return Mark(drawing, text)


def mark_field(variable: str, text: str) -> Mark:
    """The entry of a filled field."""
    drawing = Markup('<rect x="0" y="0" width="24" height="12" fill="var({})" stroke="var(--rule)"/>').format(variable)
    return Mark(drawing, text)


def mark_shape(path: str, variable: str, text: str, *, filled: bool = True) -> Mark:
    """The entry of a small shape, its path in a field of 24 x 12."""
    paint = 'fill="var({})"' if filled else 'fill="none" stroke="var({})" stroke-width="1.6"'
    return Mark(Markup('<path d="{}" {}/>').format(path, Markup(paint).format(variable)), text)  # noqa: S704 - ours


CROSS = "M8 2l8 8M16 2l-8 8"
DOWN = "M7 2h10l-5 9z"
UP = "M7 10h10l-5 -9z"
SQUARE = "M8 2h8v8h-8z"
DISC = "M9 6a3 3 0 1 0 6 0a3 3 0 1 0 -6 0"
