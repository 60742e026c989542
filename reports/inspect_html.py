"""The page of an inspection: one file that needs neither network nor script."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from align.reports.inspect_sections import make_sections
from align.reports.inspect_view import make_inspect_page
from align.reports.language import ENGLISH, Language
from align.reports.templating import Sheet, whole_page
from align.reports.timeline_table import make_run_timeline
from align.reports.visible import visible

if TYPE_CHECKING:
    from align.records import InspectResult


def inspect_page(result: InspectResult, phrases: Language = ENGLISH) -> str:
    """The whole page as text."""
    sheet = Sheet(template="inspect.html.j2", context=partial(_context, result), styles=("tables.css",))
    return whole_page(sheet, phrases)


def _context(result: InspectResult, phrases: Language) -> dict[str, Any]:
    """What the template fills in, in one language."""
    # matplotlib is imported only where a page is made.
    from align.reports import figures

    page = make_inspect_page(result, phrases)
    pictures = [
        *figures.run_pictures(result, phrases),
        *([figures.scale_picture(result, phrases)] if result.timeline else []),
        figures.exponent_picture(result, phrases),
    ]
    return {
        "title": page.title,
        "page": page,
        "sections": make_sections(result, page.answers, pictures, phrases),
        "block": partial(figures.block, phrases=phrases),
        "timeline": make_run_timeline(result, phrases),
        "version": visible(result.run.align_version),
    }
