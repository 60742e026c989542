"""Loss, gradient norm and learning rate of two runs over their steps, each with the relative difference under it."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from align import wording
from align.records import INIT_STEP
from align.reports.figures.canvas import (
    BAND,
    CANDIDATE,
    DASHED,
    INK,
    KEPT,
    MUTED,
    REFERENCE,
    drawing,
    logarithmic,
    number_axis,
    short_number,
    stacked,
    step_axis,
    worded,
)
from align.reports.figures.courses import Course, course_of, course_sentence, course_twin, norm_of
from align.reports.figures.lines import Line, relative_differences, some, spans, thinned
from align.reports.figures.picture import CROSS, Mark, Picture, mark_field, mark_line, mark_shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

    from align.records import DiffResult
    from align.reports.language import Language

CURVE_HEIGHT, DIFFERENCE_HEIGHT = 2.2, 1.3
MOST_MARKED_STEPS = 40
"""Curves with fewer steps mark each of them."""
FAR_APART = 30.0
"""The quotient of largest and smallest value above which a gradient norm needs a logarithmic axis."""
OUTLIER = 200.0
"""A largest difference so many times the median bends the axis: linear near 0, logarithmic outside."""
DASHES = "4 2"


def training_pictures(result: DiffResult, phrases: Language) -> tuple[Picture, ...]:
    """Loss and gradient norm, and the learning rate where it differs, in this order."""
    shaded = spans(pair.key.step for pair in result.comparisons if pair.key.step != INIT_STEP)
    courses = [
        course_of("loss", lambda row: row.loss, wording.loss, result),
        course_of("gradient_norm", norm_of, wording.value, result),
        course_of("learning_rate", lambda row: row.learning_rate, wording.relative, result),
    ]
    kept = [course for course in courses if course.name != "learning_rate" or course.differs]
    return tuple(course_picture(course, shaded, phrases) for course in kept)


def course_picture(course: Course, shaded: Sequence[tuple[int, int]], phrases: Language) -> Picture:
    """The picture of one value; `shaded` are the first and last steps of stretches whose tensors were compared."""
    name = f"fig-{course.name.replace('_', '-')}"
    title = phrases[f"figure_{course.name}"]
    if not course.drawable:
        return Picture(name, title, phrases[f"figure_none_{course.name}"])
    differences = relative_differences(*course.lines)
    titles, rows, more = course_twin(course, differences, phrases)
    return Picture(
        name,
        title,
        course_sentence(course, differences, phrases),
        _drawn(course, tuple(shaded), name, phrases),
        _legend(course, shaded, phrases),
        titles,
        rows,
        more,
    )


def _drawn(course: Course, shaded: tuple[tuple[int, int], ...], name: str, phrases: Language) -> Markup:
    words = {
        "@y0": phrases[f"figure_{course.name}"],
        "@y1": phrases[f"figure_{course.name}_relative"],
        "@x": phrases["figure_step"],
    }
    return worded(_drawing(course, shaded, name), words)


@lru_cache(KEPT)
def _drawing(course: Course, shaded: tuple[tuple[int, int], ...], name: str) -> str:
    differences = relative_differences(*course.lines)
    both = len(differences.steps) > 0
    figure, axes = stacked([CURVE_HEIGHT, DIFFERENCE_HEIGHT] if both else [CURVE_HEIGHT])
    low, high = step_range(course.lines)
    for each in axes:
        shade(each, shaded, (low, high))
    draw_pair(axes[0], course)
    if both:
        draw_difference(axes[1], differences)
    step_axis(axes[-1], low, high)
    return drawing(figure, name)


def step_range(lines: Sequence[Line]) -> tuple[int, int]:
    """The first and the last step of any line."""
    steps = np.concatenate([line.steps for line in lines])
    return int(steps.min()), int(steps.max())


def shade(axes: Any, shaded: Sequence[tuple[int, int]], limits: tuple[int, int]) -> None:
    """The stretches of steps whose tensors are known, as a band behind the curves."""
    for first, last in shaded:
        if first <= limits[1] and last >= limits[0]:
            axes.axvspan(max(first, limits[0]) - 0.5, min(last, limits[1]) + 0.5, color=BAND, linewidth=0)


def draw_pair(axes: Any, course: Course) -> None:
    """Both runs, the reference wide under the dashed candidate; crosses on the upper edge for what is not finite."""
    styles: tuple[Mapping[str, Any], ...] = (
        {"color": REFERENCE, "marker": "o", "linewidth": 2.2},
        {"color": CANDIDATE, "marker": "s", "linewidth": 1.2, "linestyle": DASHED},
    )
    edge = axes.get_xaxis_transform()
    for number, (line, style) in enumerate(zip(course.lines, styles, strict=True)):
        shown = thinned(line)
        marker = style["marker"] if len(line.steps) <= MOST_MARKED_STEPS else None
        axes.plot(shown.steps, shown.values, **{**style, "marker": marker, "markersize": 3.5})
        lost = some(line.lost)
        heights = [0.97 - 0.1 * number] * len(lost)
        axes.plot(lost, heights, linestyle="none", marker="x", color=style["color"], transform=edge)
    spread = [line.spread for line in course.lines if len(line.known)]
    if course.name == "gradient_norm" and min(spread, default=0.0) > 0 and max(spread) > FAR_APART:
        logarithmic(axes)
    else:
        number_axis(axes)


def draw_difference(axes: Any, differences: Line) -> None:
    """The relative difference in percent, and the line of no difference."""
    shown = thinned(differences)
    marker = "." if len(differences.steps) <= MOST_MARKED_STEPS else None
    axes.axhline(0.0, color=MUTED, linewidth=1.0)
    axes.plot(shown.steps, shown.values, color=INK, linewidth=1.0, marker=marker)
    difference_axis(axes, differences)


def difference_axis(axes: Any, differences: Line) -> None:
    """Percent; where one difference dwarfs all others, linear near 0 and logarithmic outside."""
    sizes = np.abs(differences.values)
    largest, typical = float(sizes.max()), float(np.median(sizes[sizes > 0])) if sizes.any() else 0.0
    if largest == 0.0:
        axes.set_ylim(-1.0, 1.0)
        axes.set_yticks([0.0])
    elif largest > OUTLIER * typical:
        axes.set_yscale("symlog", linthresh=10.0 ** math.ceil(math.log10(typical)))
        axes.yaxis.get_major_locator().set_params(numticks=5)
        axes.minorticks_off()
    else:
        axes.yaxis.get_major_locator().set_params(nbins=4)
    axes.yaxis.set_major_formatter(lambda value, _: f"{short_number(100.0 * value)} %")


def _legend(course: Course, shaded: Sequence[tuple[int, int]], phrases: Language) -> tuple[Mark, ...]:
    marks = [
        mark_line("--reference", phrases["figure_reference"], width=3),
        mark_line("--candidate", phrases["figure_candidate"], DASHES),
    ]
    if shaded:
        marks.append(mark_field("--band", phrases["figure_compared"]))
    if any(len(line.lost) for line in course.lines):
        marks.append(mark_shape(CROSS, "--ink", phrases["figure_lost"], filled=False))
    return tuple(marks)
