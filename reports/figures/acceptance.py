"""The curves of an acceptance: losses, their relative difference against the limits, gradient norms; reads in grey."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from align import wording
from align.acceptance_records import Measure
from align.curve_records import Curves, Quantity
from align.reports.figures.canvas import (
    CANDIDATE,
    DOTTED,
    INK,
    KEPT,
    LIMIT,
    MUTED,
    drawing,
    note_in,
    stacked,
    step_axis,
    worded,
)
from align.reports.figures.courses import Course, course_sentence, course_twin, percent
from align.reports.figures.lines import Line, make_line, moving_mean, relative_differences, thinned
from align.reports.figures.picture import CROSS, Mark, Picture, mark_line, mark_shape
from align.reports.figures.two_runs import DASHES, difference_axis, draw_pair, step_range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from align.acceptance_records import AcceptResult
    from align.reports.language import Language

NAME = "fig-accept"
HEIGHTS = (2.2, 1.8)
NORM_HEIGHT = 1.6
LINES = ("early-window", "mean-error", "worst-window", "divergence", "bias")
"""The criteria whose limits hold for means of the relative difference of the loss: lines in its picture."""
MOST_LINES = 3
LABELS, APART = 0.1, 0.11
"""The part of the width that the labels of the limits take, and the part of the height that keeps two apart."""
SIGHT = 3.0
"""A limit so many times what the curves reach is left out of the picture: it would press them flat."""
PERPLEXITY_NAME = re.compile(r"ppl|perplexity", re.IGNORECASE)
HIGH_PERPLEXITY, FALLEN = 100.0, 0.05
"""What begins so high, falls to such a share of it and is never below 1 is a perplexity (as `align accept` judges)."""


@dataclass(frozen=True, slots=True)
class LimitLine:
    """A limit on the relative difference, and the numbers of the criteria that have it (from 1, as the table)."""

    value: float
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """All that is drawn: both courses, the relative difference of the loss, its moving mean, the limits in sight."""

    loss: Course
    norm: Course
    differences: Line
    mean: Line
    limits: tuple[LimitLine, ...]


def accept_picture(result: AcceptResult, phrases: Language) -> Picture:
    """The curves of an acceptance with the limits of its criteria."""
    return curves_picture(result.reference, result.candidate, phrases, limits=limits_of(result), window=result.window)


def limits_of(result: AcceptResult) -> tuple[LimitLine, ...]:
    """The limits that are lines of the picture, the lowest first."""
    numbers: dict[float, list[int]] = defaultdict(list)
    for number, criterion in enumerate(result.criteria, 1):
        shares = criterion.measure in {Measure.PERCENT, Measure.RELATIVE}
        if criterion.code in LINES and criterion.limit is not None and shares and criterion.limit.value > 0:
            numbers[criterion.limit.value].append(number)
    return tuple(LimitLine(value, tuple(found)) for value, found in sorted(numbers.items()))[:MOST_LINES]


def curves_picture(
    reference: Curves, candidate: Curves, phrases: Language, *, limits: Sequence[LimitLine] = (), window: int = 0
) -> Picture:
    """The losses of two recordings, their relative difference with its mean over `window` points, gradient norms."""
    title = phrases["figure_accept"]
    course = _course("loss", Quantity.LOSS, reference, candidate)
    if not course.drawable:
        return Picture(NAME, title, phrases["figure_accept_none"])
    logarithm = _is_perplexity(course, reference)
    differences = _differences(course, logarithm=logarithm)
    mean = moving_mean(differences, window)
    norm = _course("gradient_norm", Quantity.GRADIENT_NORM, reference, candidate)
    shown = _in_sight(limits, mean if len(mean.steps) else differences)
    said = [course_sentence(course, differences, phrases), *_told(shown, phrases)]
    if logarithm:
        said.append(phrases["figure_accept_log"])
    titles, rows, more = course_twin(course, differences, phrases)
    drawn = _drawn(Scene(course, norm, differences, mean, shown), phrases)
    legend = _legend(course, mean, shown, window, phrases)
    return Picture(NAME, title, phrases["figure_between"].join(said), drawn, legend, titles, rows, more)


def _course(name: str, quantity: Quantity, reference: Curves, candidate: Curves) -> Course:
    lines = []
    for curves in (reference, candidate):
        values = curves.columns.get(quantity, np.full(len(curves.steps), np.nan))
        lines.append(make_line(curves.steps, values, curves.nonfinite if quantity is Quantity.LOSS else None))
    return Course(name, lines[0], lines[1], wording.loss if quantity is Quantity.LOSS else wording.value)


def _is_perplexity(course: Course, reference: Curves) -> bool:
    ours, theirs = (line.known for line in course.lines)
    if not len(ours) or not len(theirs) or ours.min() < 1.0 or theirs.min() <= 0.0:
        return False
    if PERPLEXITY_NAME.search(reference.taken.get(Quantity.LOSS, "")):
        return True
    return bool(ours[0] >= HIGH_PERPLEXITY and ours.min() < FALLEN * ours[0])


def _differences(course: Course, *, logarithm: bool) -> Line:
    if not logarithm:
        return relative_differences(*course.lines)
    logarithms = (Line(line.steps, np.log(line.values), line.lost) for line in course.lines)
    return relative_differences(*logarithms)


def _in_sight(limits: Sequence[LimitLine], differences: Line) -> tuple[LimitLine, ...]:
    """The lowest limit, and others that the curves come near to."""
    reached = float(np.abs(differences.values).max()) if len(differences.values) else 0.0
    return tuple(
        line for place, line in enumerate(limits) if place == 0 or line.value <= SIGHT * max(reached, limits[0].value)
    )


def _told(limits: Sequence[LimitLine], phrases: Language) -> list[str]:
    if not limits:
        return []
    said = [
        phrases["figure_accept_limit"].format(limit=percent(line.value, phrases), numbers=_listed(line))
        for line in limits
    ]
    return [phrases["figure_accept_limits"].format(limits=phrases["figure_accept_and"].join(said))]


def _listed(line: LimitLine) -> str:
    return ", ".join(map(str, line.numbers))


def _drawn(scene: Scene, phrases: Language) -> Markup:
    titles = [phrases["figure_loss"]]
    if len(scene.differences.steps):
        titles.append(phrases["figure_loss_relative"])
    if scene.norm.drawable:
        titles.append(phrases["figure_gradient_norm"])
    words = {"@x": phrases["figure_step"], **{f"@y{number}": title for number, title in enumerate(titles)}}
    for number, line in enumerate(scene.limits):
        limit = percent(line.value, phrases)
        words[f"@l{number}@"] = phrases["figure_accept_label"].format(numbers=_listed(line), limit=limit)
    return worded(_drawing(scene), words)


@lru_cache(KEPT)
def _drawing(scene: Scene) -> str:
    course, norm, limits = scene.loss, scene.norm, scene.limits
    differences = (scene.differences, scene.mean)
    both = len(differences[0].steps) > 0
    heights = [HEIGHTS[0], *([HEIGHTS[1]] if both else []), *([NORM_HEIGHT] if norm.drawable else [])]
    figure, axes = stacked(heights)
    if limits and both:
        figure.get_layout_engine().set(rect=(0.0, 0.0, 1.0 - LABELS, 1.0))
    low, high = step_range(course.lines)
    draw_pair(axes[0], course)
    if both:
        _draw_differences(axes[1], differences, limits)
    if norm.drawable:
        draw_pair(axes[-1], norm)
    step_axis(axes[-1], low, high)
    return drawing(figure, NAME)


def _draw_differences(axes: Any, differences: tuple[Line, Line], limits: Sequence[LimitLine]) -> None:
    """Each step thin, the mean thick, both sides of each limit dotted and named at the right end."""
    each, mean = differences
    axes.axhline(0.0, color=MUTED, linewidth=1.0)
    shown = thinned(each)
    alone = not len(mean.steps)
    axes.plot(shown.steps, shown.values, color=INK if alone else MUTED, linewidth=1.0 if alone else 0.5)
    if not alone:
        shown = thinned(mean)
        axes.plot(shown.steps, shown.values, color=CANDIDATE, linewidth=2.0, zorder=4)
    difference_axis(axes, each)
    for line in limits:
        for sign in (1.0, -1.0):
            axes.axhline(sign * line.value, color=LIMIT, linewidth=1.5, linestyle=DOTTED, zorder=3)
    for number, height in enumerate(_heights(axes, limits)):
        style = {"xycoords": "axes fraction", "ha": "left", "va": "center", "fontsize": 8, "color": INK}
        note_in(axes, f"@l{number}@", (1.01, height), **style)


def _heights(axes: Any, limits: Sequence[LimitLine]) -> list[float]:
    """Where the labels of the limits stand, as parts of the axis from below: at their lines, but apart."""
    ends = axes.transScale.transform([(0.0, end) for end in axes.get_ylim()])[:, 1]
    heights: list[float] = []
    for line in limits:
        place = float(axes.transScale.transform((0.0, line.value))[1] - ends[0]) / float(ends[1] - ends[0])
        heights.append(max(place, heights[-1] + APART) if heights else place)
    return heights


def _legend(
    course: Course, mean: Line, limits: Sequence[LimitLine], window: int, phrases: Language
) -> tuple[Mark, ...]:
    marks = [
        mark_line("--reference", phrases["figure_reference"], width=3),
        mark_line("--candidate", phrases["figure_candidate"], DASHES),
    ]
    if len(mean.steps):
        marks.append(mark_line("--muted", phrases["figure_accept_each"], width=1))
        text = phrases["figure_accept_mean"].format(window=wording.count(window))
        marks.append(mark_line("--candidate", text, width=3))
    if limits:
        marks.append(mark_line("--limit", phrases["figure_accept_line"], "2 3"))
    if any(len(line.lost) for line in course.lines):
        marks.append(mark_shape(CROSS, "--ink", phrases["figure_lost"], filled=False))
    return tuple(marks)
