"""Layers and steps as a picture of fields in seven classes, written as SVG by hand.

One path of strokes for each class takes 10 bytes a field, follows the page's light, dark and print colours, and stays
sharp; a field of an image would have one fixed colour.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from markupsafe import Markup

from align import wording
from align.records import Status
from align.reports.figures.heat_cells import CLASSES, PARTED, Field, Heat, make_heat
from align.reports.figures.picture import CROSS, Cell, Mark, Picture, Title, Valued, mark_field, mark_shape
from align.reports.rows import step_text
from align.reports.visible import shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from align.records import DiffResult
    from align.reports.language import Language

NAME = "fig-heat"
WIDTH, LEFT, TOP, BOTTOM = 720.0, 150.0, 4.0, 30.0
TALLEST_ROW, SHORTEST_ROW, WIDEST_COLUMN = 14.0, 4.0, 40.0
ROOM = 420.0
"""The height that many rows share."""
LABEL_HEIGHT, STEP_WIDTH = 9.5, 34.0
"""Room that the label of a row and that of a step need."""
LONGEST_LABEL = 30
MOST_TWIN_ROWS = 50
SMALLEST_IN_POWERS = 1e7
"""Ends of classes from here on are written with a power of ten."""
FULL, INNER = 0.9, 0.45
"""How thick fields are drawn, of a row; inherited ones less, so that an origin stands out."""


def heat_picture(result: DiffResult, phrases: Language) -> Picture:
    """Layers x steps as a static picture: for print and where scripts are off."""
    title = phrases["figure_heat"]
    heat = make_heat(result)
    if not heat.fields:
        return Picture(NAME, title, phrases["figure_heat_empty"])
    if heat.steps < 2:  # noqa: PLR2004 - one step has no course
        return Picture(NAME, title, phrases["figure_heat_one"])
    worst = sorted(heat.fields.values(), key=lambda field: field.rank, reverse=True)
    worst = [field for field in worst if field.times is not None or field.status is Status.NONFINITE]
    titles = (
        Title(phrases["figure_module"], Cell.NAME),
        Title(phrases["figure_step"]),
        Title(phrases["figure_times"]),
        Title(phrases["figure_status"], Cell.TEXT),
    )
    rows = tuple(_row(field, phrases) for field in worst[:MOST_TWIN_ROWS])
    more = len(heat.fields) - len(rows)
    return Picture(
        NAME, title, _sentence(heat, worst, phrases), _drawn(heat, phrases), _legend(heat, phrases), titles, rows, more
    )


def _row(field: Field, phrases: Language) -> tuple[str, ...]:
    times = "NaN/Inf"
    if field.status is not Status.NONFINITE and field.times is not None:
        times = Valued(phrases.said(wording.times(field.times)), field.times)
    return shortened(field.name), str(field.step), times, phrases[f"status_{field.status}"]


def _sentence(heat: Heat, worst: Sequence[Field], phrases: Language) -> str:
    said = [
        phrases["figure_heat_lead"].format(layers=wording.count(heat.modules), steps=wording.count(heat.steps)),
    ]
    if heat.first is not None:
        words = {"name": shortened(heat.first_name, 70), "step": step_text(heat.first_step, phrases)}
        said.append(phrases["figure_heat_first"].format(**words))
    else:
        said.append(_largest(heat, worst, phrases))
    nonfinite = sum(field.status is Status.NONFINITE for field in heat.fields.values())
    if nonfinite:
        key = "figure_heat_lost_one" if nonfinite == 1 else "figure_heat_lost"
        said.append(phrases[key].format(count=wording.count(nonfinite)))
    if max(heat.merged) > 1:
        rows, columns = heat.merged
        which = "both" if min(heat.merged) > 1 else "rows" if rows > 1 else "columns"
        words = {"rows": wording.count(rows), "columns": wording.count(columns)}
        said.append(phrases[f"figure_heat_cut_{which}"].format(**words))
    return phrases["figure_between"].join(said)


def _largest(heat: Heat, worst: Sequence[Field], phrases: Language) -> str:
    """The largest field of a result without a first difference, and that it is within its limit where it is."""
    measured = [field for field in worst if field.times is not None]
    if not measured:
        return phrases["figure_heat_equal"]
    top = max(measured, key=lambda field: field.times or 0.0)
    key = "figure_heat_none" if (heat.class_of(top) or 0) < PARTED else "figure_heat_largest"
    words = {"name": shortened(top.name, 70), "step": step_text(top.step, phrases)}
    return phrases[key].format(times=phrases.said(wording.times(top.times)), **words)


def _drawn(heat: Heat, phrases: Language) -> Markup:
    rows, columns = len(heat.labels), len(heat.columns)
    tall = min(TALLEST_ROW, max(SHORTEST_ROW, ROOM / rows))
    wide = min(WIDEST_COLUMN, (WIDTH - LEFT - 4.0) / columns)
    height = TOP + tall * rows + BOTTOM
    parts = [
        Markup(
            '<defs><pattern id="{}-unseen" width="5" height="5" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><path d="M0 0V5" stroke="var(--rule)" stroke-width="1.5"/></pattern></defs>'
        ).format(NAME),
        Markup('<rect x="{}" y="{}" width="{}" height="{}" fill="url(#{}-unseen)"/>').format(
            _short(LEFT), _short(TOP), _short(wide * columns), _short(tall * rows), NAME
        ),
        Markup('<g transform="translate({} {}) scale({} {})" fill="none">').format(
            _short(LEFT), _short(TOP), round(wide, 4), round(tall, 4)
        ),
        *_fields(heat),
        Markup("</g>"),
        *_labels(heat, (wide, tall), phrases),
        *_outline(heat, (wide, tall)),
    ]
    head = Markup('<svg viewBox="0 0 {} {}" aria-hidden="true" focusable="false">\n').format(
        _short(WIDTH), _short(height)
    )
    return head + Markup("\n").join(parts) + Markup("\n</svg>")


def _fields(heat: Heat) -> Iterable[Markup]:
    """A path for each class, fields beside one another as one stroke; the group's scale makes them as large as rows."""
    layers: dict[tuple[str, float], list[tuple[int, int]]] = defaultdict(list)
    crosses: list[tuple[int, int]] = []
    for place, field in sorted(heat.fields.items()):
        number = heat.class_of(field)
        if field.status is Status.NONFINITE:
            crosses.append(place)
        inherited = field.status is Status.PROPAGATED and number is not None and number >= PARTED
        inherited = inherited and place not in heat.origins
        layers["--page", 1.0].append(place)
        layers[_colour(number), INNER if inherited else FULL].append(place)
        if inherited:
            layers["--heat-0", FULL].append(place)
    for (variable, thick), places in sorted(layers.items(), key=lambda layer: -layer[0][1]):
        yield Markup('<path d="{}" stroke="var({})" stroke-width="{}"/>').format(_strokes(places), variable, thick)
    if crosses:
        path = "".join(f"M{column + 0.2:g} {row + 0.2:g}l.6 .6m0-.6l-.6 .6" for row, column in crosses)
        yield Markup('<path d="{}" stroke="var(--ink)" stroke-width="1.5" vector-effect="non-scaling-stroke"/>').format(
            path
        )


def _colour(number: int | None) -> str:
    """The page's variable of a class; what is equal or has no number has the colour of the page."""
    return "--page" if number is None else f"--heat-{number}"


def _strokes(places: Iterable[tuple[int, int]]) -> str:
    said: list[tuple[int, int, int]] = []
    row_before, end = -1, -1
    for row, column in sorted(places):
        if row == row_before and column == end:
            end += 1
            said[-1] = (said[-1][0], row, end)
        else:
            row_before, end = row, column + 1
            said.append((column, row, end))
    return "".join(f"M{column} {row}.5h{end - column}" for column, row, end in said)


def _labels(heat: Heat, size: tuple[float, float], phrases: Language) -> Iterable[Markup]:
    """Names of rows and numbers of columns, as many as have room."""
    wide, tall = size
    text = Markup('<text x="{}" y="{}" font-size="{}" fill="var(--muted)" text-anchor="{}">{}</text>')
    every = max(1, -int(-LABEL_HEIGHT // tall))
    font = 8.5
    for row in range(0, len(heat.labels), every):
        height = TOP + tall * (row + 0.5) + 3.0
        yield text.format(_short(LEFT - 5), _short(height), font, "end", shortened(heat.labels[row], LONGEST_LABEL))
    below = TOP + tall * len(heat.labels) + 11.0
    every = max(1, -int(-STEP_WIDTH // wide))
    for column in range(0, len(heat.columns), every):
        place = LEFT + wide * (column + 0.5)
        yield text.format(_short(place), _short(below), font, "middle", wording.count(heat.columns[column]))
    yield text.format(_short(LEFT + wide * len(heat.columns)), _short(below + 13), 9, "end", phrases["figure_step"])


def _outline(heat: Heat, size: tuple[float, float]) -> Iterable[Markup]:
    """A frame around the first difference."""
    if heat.first is not None:
        wide, tall = size
        row, column = heat.first
        yield Markup(
            '<rect x="{}" y="{}" width="{}" height="{}" fill="none" stroke="var(--error)" stroke-width="1.8"/>'
        ).format(_short(LEFT + wide * column - 1), _short(TOP + tall * row - 1), _short(wide + 2), _short(tall + 2))


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _class(heat: Heat, number: int, phrases: Language) -> str:
    """What a class holds: `2 to the limit (7x)`, `30 to 300`, `2e7 to 3.4e7, the largest`."""
    ends = [_end(end) for end in heat.ends]
    words = {
        "limit": phrases.said(wording.times(heat.limit)),
        "low": ends[number - 1] if number else "",
        "high": ends[number] if number < len(ends) else "",
    }
    if number == len(ends) and heat.top is not None:
        return phrases["figure_heat_top"].format(low=words["low"], high=wording.relative(heat.top))
    return phrases[f"figure_heat_{number}"].format(**words)


def _end(number: float) -> str:
    """`7.5`, `4,000,000`, `2e7`."""
    if number >= SMALLEST_IN_POWERS:
        return f"{number:.0e}".replace("e+0", "e").replace("e+", "e")
    return wording.count(int(number)) if number.is_integer() else f"{number:g}"


def _legend(heat: Heat, phrases: Language) -> tuple[Mark, ...]:
    """The classes that are there, with the limit that was applied, and the other kinds of fields."""
    fields = heat.fields.values()
    there = {heat.class_of(field) for field in fields}
    marks = [
        mark_field(f"--heat-{number}", _class(heat, number, phrases)) for number in range(CLASSES) if number in there
    ]
    if any(field.status is Status.NONFINITE for field in fields):
        marks.append(mark_shape(CROSS, "--ink", phrases["figure_heat_nonfinite"], filled=False))
    if any(field.status is Status.PROPAGATED for field in fields):
        marks.append(mark_shape("M0 6h24", "--heat-4", phrases["figure_heat_inherited"], filled=False))
    if None in there:
        marks.append(mark_field("--page", phrases["figure_heat_bits"]))
    if len(heat.fields) < len(heat.labels) * len(heat.columns):
        hatch = Markup('<path d="M0 12L12 0M8 12L20 0M16 12L24 4" stroke="var(--rule)" stroke-width="1.5"/>')
        marks.append(Mark(hatch, phrases["figure_heat_unseen"]))
    return tuple(marks)
