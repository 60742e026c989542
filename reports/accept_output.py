"""Where an acceptance goes: text on stdout, the document, JSON, JUnit and Markdown into files, and the exit code."""

from __future__ import annotations

import sys

from align.acceptance_records import Acceptance, AcceptResult
from align.reports.accept_json import accept_document, accept_json
from align.reports.accept_text import print_acceptance
from align.reports.output import Renderings, Wanted, put

EXIT_CODES = {Acceptance.PASS: 0, Acceptance.FAIL: 1, Acceptance.UNKNOWN: 2}


def show_acceptance(result: AcceptResult, wanted: Wanted) -> None:
    """Print an acceptance and write the files that were asked for."""
    language = wanted.language

    def page() -> str:
        # matplotlib and jinja2 are imported only where a page is wanted.
        from align.reports.accept_html import accept_page
        from align.reports.reading import as_saved

        return accept_page(as_saved(result, accept_document(result)), language)

    def markdown() -> str:
        from align.reports.accept_markdown import accept_markdown

        return accept_markdown(result, language)

    def junit() -> str:
        from align.reports.junit import accept_junit

        return accept_junit(result)

    def say() -> None:
        print_acceptance(result, sys.stdout, language, whole=wanted.whole)

    put(wanted, Renderings(say, lambda: accept_json(result), page, markdown, junit))
