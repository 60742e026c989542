"""The page of a comparison: one file that needs neither network nor script."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from align import wording
from align.records import Phase
from align.reports.language import ENGLISH, Language
from align.reports.page_data import page_data
from align.reports.rows import STATUS_SIGNS, focus_index, window
from align.reports.templating import Sheet, whole_page
from align.reports.timeline_table import make_timeline
from align.reports.view import STATIC_ROWS, make_page
from align.reports.visible import visible

if TYPE_CHECKING:
    from align.records import DiffResult

LOSS_ROWS = 20
SMALLEST_LOSS = 1e-3
"""Differences of losses below this are written with an exponent."""

SCRIPTS = (
    "records.js",
    "filter.js",
    "grid.js",
    "search.js",
    "modules.js",
    "tree.js",
    "detail.js",
    "along.js",
    "heat.js",
)
PREFIXES = (
    *("along_", "aspect_", "cell_", "class_", "col_", "detail_", "grid_"),
    *("heat_", "nothing_", "panel_", "show_row", "status_", "tree_"),
)
"""The phrases that the scripts say begin with one of these, or are among the others."""
OTHERS = (
    "absolute_maximum",
    "and_more",
    "axis_order",
    "before_training",
    "init_step",
    "percent",
    "show_later",
    "step",
    "times",
)


def diff_page(result: DiffResult, phrases: Language = ENGLISH) -> str:
    """The whole page as text."""
    sheet = Sheet(
        template="page.html.j2",
        context=partial(_context, result),
        styles=("diff.css",),
        scripts=SCRIPTS if result.comparisons else (),
        words=(*(key for key in ENGLISH if key.startswith(PREFIXES)), *OTHERS),
        more_words=_phases,
        data=page_data(result, window(len(result.comparisons), focus_index(result), STATIC_ROWS)),
    )
    return whole_page(sheet, phrases)


def _phases(phrases: Language) -> dict[str, str]:
    """The words for phases, as the scripts ask for them."""
    return {f"phase:{phase}": phrases.word(str(phase)) for phase in Phase}


def _context(result: DiffResult, phrases: Language) -> dict[str, Any]:
    """What the template fills in, in one language."""
    page = make_page(result, phrases)
    return {
        "title": page.title,
        "page": page,
        "status_signs": {str(status): sign for status, sign in STATUS_SIGNS.items()},
        **_pictures(result, phrases),
        "limit": f"{page.limit:g}",
        "one_step": page.step_count <= 1,
        "loss": {"lead": _largest_difference(result, phrases), "rows": _loss_rows(result, phrases)},
        "timeline": make_timeline(result, phrases),
        "version": visible(result.reference.align_version),
    }


def _pictures(result: DiffResult, phrases: Language) -> dict[str, Any]:
    """The pictures of each section, whole."""
    # matplotlib is imported only where a page is made.
    from align.reports import figures

    def shown(*pictures: figures.Picture) -> list[Markup]:
        return [figures.block(each, phrases) for each in pictures]

    scale, heat = figures.scale_picture(result, phrases), figures.heat_picture(result, phrases)
    return {
        "difference": shown(*figures.difference_pictures(result, phrases)),
        "training": shown(*figures.training_pictures(result, phrases), *([scale] if scale.drawn else [])),
        "heat": shown(heat),
        "heat_drawn": heat.drawn,
        "formats": shown(figures.exponent_picture(result, phrases)),
    }


def _largest_difference(result: DiffResult, phrases: Language) -> str:
    """Where the losses lie furthest apart: curves that differ little look like one."""
    reference = {row.step: row.loss for row in result.reference_timeline}
    if any(row.nonfinite for row in (*result.reference_timeline, *result.candidate_timeline)):
        # The sentence of the figure tells of them; that all other losses are equal is no comfort.
        return ""
    apart = [(row.loss - reference.get(row.step, math.nan), row.step) for row in result.candidate_timeline]
    known = [entry for entry in apart if math.isfinite(entry[0])]
    if not known:
        return ""
    difference, step = max(known, key=lambda entry: abs(entry[0]))
    if difference == 0:
        return phrases["loss_equal"]
    return phrases["loss_largest"].format(difference=_signed(difference, phrases), step=step)


def _loss_rows(result: DiffResult, phrases: Language) -> list[tuple[str, str, str, str]]:
    """The losses of the first steps, and how far the candidate's lies above the reference's."""
    reference = {row.step: row.loss for row in result.reference_timeline}
    candidate = {row.step: row.loss for row in result.candidate_timeline}
    rows = []
    for step in sorted({*reference, *candidate})[:LOSS_ROWS]:
        one, other = (wording.loss(run[step]) if step in run else "" for run in (reference, candidate))
        both = step in reference and step in candidate
        rows.append((str(step), one, other, _signed(candidate[step] - reference[step], phrases) if both else ""))
    return rows


def _signed(difference: float, phrases: Language) -> str:
    """A difference of losses: `+0.0031`, or two digits of it where four decimals would show nothing."""
    if difference == 0:
        return phrases["cell_equal"]
    sign = "-" if difference < 0 else "+" if difference > 0 else ""
    size = abs(difference)
    return f"{sign}{wording.relative(size) if size < SMALLEST_LOSS else wording.loss(size)}"
