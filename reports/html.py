"""The page of a comparison: one file that needs neither network nor script."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from align import wording
from align.reports.page_data import page_data
from align.reports.phrases import ENGLISH, Phrases
from align.reports.rows import STATUS_SIGNS, focus_index, step_text, window
from align.reports.series import Curves, Panel, make_curves, make_panels, shown_step
from align.reports.view import STATIC_ROWS, make_page
from align.reports.visible import visible

if TYPE_CHECKING:
    from align.records import DiffResult, TimelineRow

SIGNS = {"error": "\u2715", "warning": "\u25b2", "note": "i", "pass": "\u2713", "unknown": "\u25cb"}
"""The sign of each badge: colour never speaks alone."""
LOSS_ROWS = 20


def diff_page(result: DiffResult, phrases: Phrases = ENGLISH) -> str:
    """The whole page as text."""
    script = _resource("page.js")
    start = window(len(result.comparisons), focus_index(result), STATIC_ROWS).start
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            page=make_page(result, phrases),
            t=phrases,
            signs=SIGNS,
            status_signs={str(status): sign for status, sign in STATUS_SIGNS.items()},
            style=Markup(_resource("page.css")),  # noqa: S704 - our own file
            script=Markup(script),  # noqa: S704 - our own file
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            data=Markup(page_data(result, start, phrases)),  # noqa: S704 - escaped for a script element
            difference=_difference(result, phrases),
            loss=_loss(result, phrases),
            version=visible(result.reference.align_version),
            count=wording.count,
        )
    )


@lru_cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_resource),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["marked"] = marked
    return environment


def marked(sentence: str) -> Markup:
    """The sentence escaped, with what stands between backticks as code."""
    escaped = str(escape(sentence))
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", escaped))  # noqa: S704 - escaped one line above


def _resource(name: str) -> str:
    return (resources.files("align.reports") / "templates" / name).read_text(encoding="utf-8")


def _difference(result: DiffResult, phrases: Phrases) -> dict[str, Any]:
    """The section of the difference along the run: a lead, the figures and how to read them."""
    step = shown_step(result)
    panels = make_panels(result)
    if step is None or not any(panel.drawable for panel in panels):
        return {"lead": phrases["difference_empty"], "panels": [], "how": ""}
    return {
        "lead": phrases["difference_lead"].format(step=step_text(step, phrases)),
        "panels": [_drawn(number, panel, phrases) for number, panel in enumerate(panels)],
        "how": phrases["difference_how"],
    }


def _drawn(number: int, panel: Panel, phrases: Phrases) -> dict[str, Any]:
    title = phrases[panel.name]
    if not panel.drawable:
        reason = phrases["not_measurable" if panel.captured else "not_captured"]
        return {"title": title, "figure": "", "caption": phrases["panel_missing"].format(panel=title, reason=reason)}
    from align.reports.figures import panel_figure

    caption = []
    first = next((point for point in panel.points if point.first), None)
    if first is not None:
        key = "difference_first" if first.relative is not None else "difference_first_nonfinite"
        caption.append(phrases[key].format(name=panel.first_label))
    drawn = sum(point.relative is not None for point in panel.points)
    if drawn < panel.total:
        caption.append(phrases["difference_cut"].format(total=wording.count(panel.total), drawn=wording.count(drawn)))
    return {"title": title, "figure": panel_figure(panel, number, phrases), "caption": " ".join(caption)}


def _loss(result: DiffResult, phrases: Phrases) -> dict[str, Any]:
    """The section of the loss: the curves where there are enough steps, and the first values."""
    curves = make_curves(result)
    figure: Markup | str = ""
    if curves.drawable:
        from align.reports.figures import loss_figure

        figure = loss_figure(curves, phrases)
    return {"figure": figure, "lead": _loss_lead(curves, phrases), "rows": _loss_rows(result)}


def _loss_lead(curves: Curves, phrases: Phrases) -> str:
    if curves.drawable:
        return phrases["loss_how"]
    return phrases["loss_missing"].format(reason=phrases["loss_one_step" if curves.recorded else "loss_no_timeline"])


def _loss_rows(result: DiffResult) -> list[tuple[str, str, str, str]]:
    """The losses of the first steps, and how far the candidate's lies above the reference's."""
    reference = {row.step: row for row in result.reference_timeline}
    candidate = {row.step: row for row in result.candidate_timeline}
    steps = sorted({*reference, *candidate})[:LOSS_ROWS]
    return [(str(step), *_loss_cells(reference.get(step), candidate.get(step))) for step in steps]


def _loss_cells(reference: TimelineRow | None, candidate: TimelineRow | None) -> tuple[str, str, str]:
    one = wording.loss(reference.loss) if reference else ""
    other = wording.loss(candidate.loss) if candidate else ""
    if reference is None or candidate is None:
        return one, other, ""
    difference = candidate.loss - reference.loss
    sign = "+" if difference >= 0 else ""
    return one, other, f"{sign}{wording.loss(difference)}"
