"""The acceptance document: one page of A4 sheets that needs neither network nor script, to be printed and signed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from align.reports.accept_phrases import accept_language
from align.reports.accept_view import DECISIONS, SIGNERS, make_sheet
from align.reports.language import ENGLISH, Language
from align.reports.templating import Sheet, whole_page

if TYPE_CHECKING:
    from align.acceptance_records import AcceptResult


def accept_page(result: AcceptResult, language: Language = ENGLISH) -> str:
    """The whole document as text."""
    sheet = Sheet(
        template="accept.html.j2", context=lambda each: _context(result, each), styles=("accept.css",),
    )  # fmt: skip
    return whole_page(sheet, language)


def _context(result: AcceptResult, language: Language) -> dict[str, Any]:
    # matplotlib is slow, and drawn with only here.
    from align.reports import figures

    words = accept_language(language)
    page = make_sheet(result, words)
    picture = figures.accept_picture(result, language)
    return {
        "title": page.title,
        "page": page,
        "words": words,
        "curves": figures.block(picture, language),
        "signers": SIGNERS,
        "decisions": DECISIONS,
    }
