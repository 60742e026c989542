"""The differences of one step in execution order, against the floor and the limit above it."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from align import wording
from align.records import Status
from align.reports.figures.canvas import (
    BAND,
    DOTTED,
    ERROR,
    EXPLAINED,
    INHERITED,
    INK,
    KEPT,
    LIMIT,
    MUTED,
    RULE,
    drawing,
    new_figure,
    worded,
)
from align.reports.figures.picture import (
    CROSS,
    DISC,
    SQUARE,
    Cell,
    Mark,
    Picture,
    Title,
    Valued,
    mark_field,
    mark_shape,
)
from align.reports.series import BAND_FROM, Panel, Point, make_panels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

    from align.records import DiffResult
    from align.reports.language import Language

HEIGHT = 2.9
MOST_ROWS = 30
TOP_EDGE, BOTTOM_EDGE = 0.96, 0.02


def difference_pictures(result: DiffResult, phrases: Language) -> tuple[Picture, ...]:
    """One picture for forward and one for backward of the shown step, or one of the initial weights."""
    return tuple(_picture(number, panel, phrases) for number, panel in enumerate(make_panels(result)))


def _picture(number: int, panel: Panel, phrases: Language) -> Picture:
    name, title = f"fig-along-{number}", phrases[panel.name]
    if not panel.drawable:
        reason = phrases["not_measurable" if panel.captured else "not_captured"]
        return Picture(name, title, phrases["panel_missing"].format(panel=title, reason=reason))
    rows, more = _twin(panel, phrases)
    titles = (
        Title(phrases["col_number"]),
        Title(phrases["figure_tensor"], Cell.NAME),
        Title(phrases["figure_status"], Cell.TEXT),
        Title(phrases["axis_relative"]),
        Title(phrases["figure_threshold"]),
    )
    svg = _drawn(panel, number, phrases)
    return Picture(name, title, panel_sentence(panel, phrases), svg, _legend(panel, phrases), titles, rows, more)


def panel_sentence(panel: Panel, phrases: Language) -> str:
    """What is to be seen: how many tensors, the largest difference, the first one."""
    drawn = [point for point in panel.points if point.relative is not None]
    largest = max(drawn, key=lambda point: point.relative or 0.0, default=None)
    said = phrases["figure_along"].format(
        total=wording.count(panel.tensors),
        judged=wording.count(panel.total),
        largest=phrases.said(wording.relative(largest.relative)) if largest else phrases["figure_unknown"],
        name=largest.label if largest else phrases["figure_unknown"],
        first=_first_sentence(panel, phrases),
    )
    if panel.banded:
        cut = phrases["figure_along_cut"].format(most=wording.count(BAND_FROM))
        said = phrases["figure_between"].join((said, cut))
    return said


def _first_sentence(panel: Panel, phrases: Language) -> str:
    first = next((point for point in panel.points if point.first), None)
    if first is None:
        key = "figure_along_inherited" if panel.inherited else "figure_along_none"
        return phrases[key].format(count=wording.count(panel.inherited))
    words = {"place": wording.count(first.place + 1), "name": panel.first_label}
    if first.relative is None or first.times is None:
        return phrases["figure_along_first_odd"].format(**words)
    relative, times = phrases.said(wording.relative(first.relative)), phrases.said(wording.times(first.times))
    return phrases["figure_along_first"].format(relative=relative, times=times, **words)


def _twin(panel: Panel, phrases: Language) -> tuple[tuple[tuple[str, ...], ...], int]:
    """The first difference and those around it; without one the largest ones, in execution order."""
    places = [place for place, point in enumerate(panel.points) if point.relative is not None or point.first]
    first = next((number for number, place in enumerate(places) if panel.points[place].first), None)
    if first is None:
        ranked = sorted(places, key=lambda place: -(panel.points[place].relative or 0.0))[:MOST_ROWS]
        chosen = sorted(ranked)
    else:
        start = max(0, first - MOST_ROWS // 2)
        chosen = places[start : start + MOST_ROWS]
    rows = tuple(_row(panel.points[place], phrases) for place in chosen)
    return rows, panel.tensors - len(rows)


def _row(point: Point, phrases: Language) -> tuple[str, ...]:
    numbers = (
        "" if number is None else Valued(phrases.said(wording.relative(number)), number)
        for number in (point.relative, point.band)
    )
    return (str(point.place + 1), point.label, phrases[f"status_{point.status}"], *numbers)


def _legend(panel: Panel, phrases: Language) -> tuple[Mark, ...]:
    statuses = {point.status for point in panel.marks}
    marks = [mark_field("--band", phrases["band"])]
    if panel.banded:
        marks.append(mark_field("--explained", phrases["figure_along_band"]))
        if panel.inherited:
            marks.append(mark_field("--inherited", phrases["figure_along_band_inherited"]))
    shapes = (
        (Status.WITHIN, DISC, "--explained", True),
        (Status.PROPAGATED, DISC, "--inherited", False),
        (Status.ORIGIN, SQUARE, "--error", True),
        (Status.NONFINITE, CROSS, "--error", False),
    )
    marks += [
        mark_shape(path, variable, phrases[f"mark_{status}"], filled=filled)
        for status, path, variable, filled in shapes
        if status in statuses
    ]
    if Status.EQUAL in statuses:
        marks.append(mark_shape("M12 2v8", "--muted", phrases["mark_equal"], filled=False))
    return tuple(marks)


def _drawn(panel: Panel, number: int, phrases: Language) -> Markup:
    words: dict[str, str] = {
        "@y": phrases["axis_relative"],
        "@x": phrases["axis_order"],
        "@first": panel.first_label,
        "@limit": phrases["figure_threshold"],
        "@floor": phrases["figure_floor"],
        **{f"@{place}@": label for place, label in panel.labels},
    }
    return worded(_drawing(panel, number), words)


@lru_cache(KEPT)
def _drawing(panel: Panel, number: int) -> str:
    figure, axes = new_figure(HEIGHT)
    low, high = _limits(panel.points)
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    span = max(panel.tensors - 1, 0)
    axes.set_xlim(-0.02 * span - 0.5, 1.05 * span + 0.5)
    _draw_blocks(axes, panel)
    _draw_floor(axes, panel.points, low)
    if panel.banded:
        _draw_stretches(axes, panel)
    _draw_marks(axes, panel.marks)
    _draw_first(axes, panel.points, span)
    axes.set_xticks([place for place, _ in panel.labels])
    axes.set_xticklabels([f"@{place}@" for place, _ in panel.labels], ha="left")
    axes.yaxis.set_major_formatter(lambda value, _: _power(value))
    axes.minorticks_off()
    return drawing(figure, f"fig-along-{number}")


def _limits(points: Sequence[Point]) -> tuple[float, float]:
    """The range of the axis in whole powers of ten, with room above for the label of the first difference."""
    known = [value for point in points for value in (point.relative, point.lowest, point.band, point.floor)]
    values = [value for value in known if value is not None and value > 0]
    if not values:
        return 1e-9, 1.0
    low = 10 ** math.floor(math.log10(min(values)) - 0.3)
    return low, 10 ** math.ceil(math.log10(max(values)) + 0.9)


def _draw_blocks(axes: Any, panel: Panel) -> None:
    """A thin line where each module begins, all of one tone: the labels name those that have room."""
    places = [place - 0.5 for place in panel.blocks if place]
    if places:
        axes.vlines(places, 0.0, 1.0, color=RULE, linewidth=0.5, transform=axes.get_xaxis_transform())


def _draw_floor(axes: Any, points: Sequence[Point], low: float) -> None:
    """The floor as a thin line, what it explains as a field up to the limit, which is named at its right end."""
    known = [point for point in points if point.band is not None]
    if not known:
        return
    places = [point.place for point in known]
    limit = [point.band for point in known]
    axes.fill_between(places, low, limit, step="mid", color=BAND, linewidth=0)
    axes.step(places, limit, where="mid", color=LIMIT, linewidth=1.2, linestyle=DOTTED)
    axes.step(places, [point.floor for point in known], where="mid", color=LIMIT, linewidth=0.6)
    for token, height, lift in (("@limit", known[-1].band, "bottom"), ("@floor", known[-1].floor, "top")):
        axes.annotate(
            token, (places[-1], height), xytext=(4, 0), textcoords="offset points", ha="left", va=lift, fontsize=8,
            color=MUTED, annotation_clip=False,
        ).set_in_layout(False)  # fmt: skip


def _draw_stretches(axes: Any, panel: Panel) -> None:
    """The smallest to the largest difference of each stretch as a field; what is inherited in its own colour."""
    known = [point for point in panel.points if point.relative is not None and point.lowest is not None]
    places = [point.place for point in known]
    lowest, highest = [point.lowest for point in known], [point.relative for point in known]
    inherited = [point.status in {Status.PROPAGATED, Status.ORIGIN} for point in known]
    for colour, chosen in ((EXPLAINED, [not each for each in inherited]), (INHERITED, inherited)):
        axes.fill_between(places, lowest, highest, where=chosen, step="mid", color=colour, linewidth=0.8, alpha=0.6)


def _draw_marks(axes: Any, points: Sequence[Point]) -> None:
    styles: Mapping[Status, dict[str, Any]] = {
        Status.WITHIN: {"marker": "o", "markersize": 3, "color": EXPLAINED},
        Status.PROPAGATED: {"marker": "o", "markersize": 4, "markerfacecolor": "none", "color": INHERITED},
        Status.ORIGIN: {"marker": "s", "markersize": 6, "color": ERROR},
    }
    for status, style in styles.items():
        chosen = [point for point in points if point.status is status and not point.first]
        chosen = [point for point in chosen if point.relative is not None]
        axes.plot([point.place for point in chosen], [point.relative for point in chosen], linestyle="none", **style)
    on_edges = ((Status.NONFINITE, TOP_EDGE, "x", ERROR), (Status.EQUAL, BOTTOM_EDGE, "|", MUTED))
    for status, height, marker, colour in on_edges:
        places = [point.place for point in points if point.status is status]
        heights = np.full(len(places), height)
        axes.plot(places, heights, linestyle="none", marker=marker, color=colour, transform=axes.get_xaxis_transform())


def _draw_first(axes: Any, points: Sequence[Point], span: int) -> None:
    """The square of the first difference, its name beside it and a line down to its place."""
    first = next((point for point in points if point.first), None)
    if first is None:
        return
    axes.axvline(first.place, color=ERROR, linewidth=0.8, linestyle=(0, (2, 2)), gid="first")
    if first.relative is not None:
        axes.plot([first.place], [first.relative], linestyle="none", marker="s", markersize=9, color=ERROR)
    right = first.place > span / 2
    axes.annotate(
        "@first",
        (first.place, TOP_EDGE),
        xycoords=axes.get_xaxis_transform(),
        xytext=(-9 if right else 9, 0),
        textcoords="offset points",
        ha="right" if right else "left",
        va="top",
        fontsize=10,
        fontweight="bold",
        color=INK,
        annotation_clip=False,
    ).set_in_layout(False)


def _power(value: float) -> str:
    """A tick of the logarithmic axis: `1e-6`, `0.01`, `1`."""
    return f"{value:g}" if 0.01 <= value <= 100 else f"1e{round(math.log10(value))}"  # noqa: PLR2004
