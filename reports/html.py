"""The page of a comparison: one file that needs neither network nor script."""

from __future__ import annotations

import base64
import hashlib
import math
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from align import wording
from align.reports.language import ENGLISH, Language
from align.reports.page_data import page_data
from align.reports.rows import STATUS_SIGNS, focus_index, step_text, window
from align.reports.series import Curves, Panel, Point, make_curves, make_panels, shown_step
from align.reports.templating import SIGNS, resource, templates
from align.reports.timeline_table import make_timeline
from align.reports.view import STATIC_ROWS, make_page
from align.reports.visible import visible

if TYPE_CHECKING:
    from align.records import DiffResult

LOSS_ROWS = 20
SMALLEST_LOSS = 1e-3
"""Differences of losses below this are written with an exponent."""


def diff_page(result: DiffResult, phrases: Language = ENGLISH) -> str:
    """The whole page as text."""
    script = resource("page.js")
    start = window(len(result.comparisons), focus_index(result), STATIC_ROWS).start
    return (
        templates()
        .get_template("page.html.j2")
        .render(
            page=make_page(result, phrases),
            t=phrases,
            signs=SIGNS,
            status_signs={str(status): sign for status, sign in STATUS_SIGNS.items()},
            style=Markup(resource("page.css")),  # noqa: S704 - our own file
            script=Markup(script),  # noqa: S704 - our own file
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            data=Markup(page_data(result, start, phrases)),  # noqa: S704 - escaped for a script element
            difference=_difference(result, phrases),
            loss=_loss(result, phrases),
            timeline=make_timeline(result, phrases),
            version=visible(result.reference.align_version),
            count=wording.count,
        )
    )


def _difference(result: DiffResult, phrases: Language) -> dict[str, Any]:
    """The section of the difference along the run: a lead, the figures and how to read them."""
    step = shown_step(result)
    panels = make_panels(result)
    if step is None or not any(panel.drawable for panel in panels):
        return {"lead": phrases["difference_empty"], "panels": [], "how": ""}
    return {
        "lead": phrases["difference_lead"].format(step=step_text(step, phrases)),
        "panels": [_drawn(number, panel, phrases) for number, panel in enumerate(panels)],
        "how": f"{phrases['difference_how']}{'' if result.first_divergence else ' ' + phrases['difference_none']}",
    }


def _drawn(number: int, panel: Panel, phrases: Language) -> dict[str, Any]:
    title = phrases[panel.name]
    if not panel.drawable:
        reason = phrases["not_measurable" if panel.captured else "not_captured"]
        return {"title": title, "figure": "", "caption": phrases["panel_missing"].format(panel=title, reason=reason)}
    from align.reports.figures import panel_figure

    caption = []
    first = next((point for point in panel.points if point.first), None)
    if first is not None:
        caption.append(phrases[_first_key(panel, first)].format(name=panel.first_label))
    drawn = sum(point.relative is not None for point in panel.points)
    if drawn < panel.total:
        caption.append(phrases["difference_cut"].format(total=wording.count(panel.total), drawn=wording.count(drawn)))
    return {"title": title, "figure": panel_figure(panel, number, phrases), "caption": " ".join(caption)}


def _first_key(panel: Panel, first: Point) -> str:
    if first.relative is None:
        return "difference_first_nonfinite"
    return "difference_first_weights" if panel.name == "panel_init" else "difference_first"


def _loss(result: DiffResult, phrases: Language) -> dict[str, Any]:
    """The section of the loss: the curves where there are enough steps, and the first values."""
    curves = make_curves(result)
    figure: Markup | str = ""
    if curves.drawable:
        from align.reports.figures import loss_figure

        figure = loss_figure(curves, phrases)
    return {"figure": figure, "lead": _loss_lead(result, curves, phrases), "rows": _loss_rows(result, phrases)}


def _loss_lead(result: DiffResult, curves: Curves, phrases: Language) -> str:
    if not curves.drawable:
        return phrases["loss_missing"].format(
            reason=phrases["loss_one_step" if curves.recorded else "loss_no_timeline"]
        )
    return " ".join([phrases["loss_how"], _largest_difference(result, phrases)]).rstrip()


def _largest_difference(result: DiffResult, phrases: Language) -> str:
    """Where the losses lie furthest apart: curves that differ little look like one."""
    reference = {row.step: row.loss for row in result.reference_timeline}
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
