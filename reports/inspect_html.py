"""The page of an inspection: one file that needs neither network nor script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from align import wording
from align.reports.inspect_view import make_inspect_page
from align.reports.language import ENGLISH, Language
from align.reports.run_figures import curve_figure
from align.reports.templating import SIGNS, resource, templates
from align.reports.timeline_table import make_run_timeline
from align.reports.visible import visible

if TYPE_CHECKING:
    from align.records import InspectResult

MARKS = ("captured", "skipped", "lost", "first", "limit")
"""What a figure may have beside its curve; the legend explains those that are there."""


def inspect_page(result: InspectResult, phrases: Language = ENGLISH) -> str:
    """The whole page as text."""
    page = make_inspect_page(result, phrases)
    drawn = [curve for curve in page.curves if curve.drawable]
    return (
        templates()
        .get_template("inspect.html.j2")
        .render(
            page=page,
            t=phrases,
            signs=SIGNS,
            style=Markup(resource("page.css")),  # noqa: S704 - our own file
            figures=[(curve, curve_figure(curve, phrases) if curve.drawable else "") for curve in page.curves],
            marks={name: any(getattr(curve, name) not in {None, ()} for curve in drawn) for name in MARKS},
            timeline=make_run_timeline(result, phrases),
            version=visible(result.run.align_version),
            count=wording.count,
        )
    )
