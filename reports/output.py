"""Where results go: text on stdout; JSON, pages, Markdown and JUnit XML into files; and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from align.checkpoint_records import CheckpointResult
from align.errors import UsageError
from align.records import DiffResult, Health, InspectResult, Verdict
from align.reports.checkpoint_json import checkpoint_document, checkpoint_json
from align.reports.checkpoint_text import print_checkpoint
from align.reports.inspect_json import inspect_document, inspect_json
from align.reports.inspect_text import print_inspection
from align.reports.json_report import diff_json, document
from align.reports.language import Language, chosen
from align.reports.text import print_diff
from align.reports.writing import check_writable, write_text
from align.sentences import joined, say
from align.watching import Stage, begin, end

EXIT_CODES = {Verdict.ALIGNED: 0, Verdict.DIVERGED: 1, Verdict.INCOMPARABLE: 2}
HEALTH_EXIT_CODES = {Health.HEALTHY: 0, Health.UNHEALTHY: 1, Health.UNKNOWN: 2}
STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a user asked for: files (`-` is one alone on stdout), the whole text instead of a screen of it.

    `lang` is the code of the language, None for that of the environment. Raises UsageError where a file cannot be
    written, or two are to be alone on stdout: it is made before the work is done.
    """

    html_path: str | None = None
    json_path: str | None = None
    whole: bool = False
    lang: str | None = None
    markdown_path: str | None = None
    junit_path: str | None = None

    def __post_init__(self) -> None:
        """Try all paths."""
        alone = [name for name, path in self.paths.items() if path == STDOUT]
        if len(alone) > 1:
            raise UsageError(
                say(
                    "Cannot print {}: one of them has stdout for itself. Name a file for the other.",
                    joined(" and ", (f"--{name} -" for name in alone)),
                )
            )
        for path in self.paths.values():
            if path is not None and path != STDOUT:
                check_writable(path)

    @property
    def paths(self) -> dict[str, str | None]:
        """The files by the options that ask for them, in the order in which they are written."""
        return {
            "json": self.json_path, "html": self.html_path, "markdown": self.markdown_path, "junit": self.junit_path,
        }  # fmt: skip

    @property
    def language(self) -> Language:
        """The language of text, page and Markdown."""
        return chosen(self.lang, sys.stdout.encoding)


@dataclass(frozen=True, slots=True)
class Renderings:
    """How one result is written in each way; only what is wanted is made."""

    say: Callable[[], None]
    json: Callable[[], str]
    html: Callable[[], str]
    markdown: Callable[[], str]
    junit: Callable[[], str]


def show_diff(result: DiffResult, wanted: Wanted) -> None:
    """Print a comparison and write the files that were asked for."""

    @cache
    def saved() -> DiffResult:
        from align.reports.reading import as_saved

        return as_saved(result, document(result))

    def page() -> str:
        # matplotlib and jinja2 are imported only where a page is wanted.
        from align.reports.html import diff_page

        return diff_page(saved(), wanted.language)

    def markdown() -> str:
        from align.reports.markdown import diff_markdown

        return diff_markdown(saved(), wanted.language)

    def junit() -> str:
        from align.reports.junit import diff_junit

        return diff_junit(result)

    def say() -> None:
        print_diff(result, sys.stdout, wanted.language, whole=wanted.whole)

    put(wanted, Renderings(say, lambda: diff_json(result), page, markdown, junit))


def show_inspection(result: InspectResult, wanted: Wanted) -> None:
    """Print an inspection and write the files that were asked for."""

    def page() -> str:
        from align.reports.inspect_html import inspect_page
        from align.reports.reading import as_saved

        return inspect_page(as_saved(result, inspect_document(result)), wanted.language)

    def markdown() -> str:
        from align.reports.markdown import inspect_markdown

        return inspect_markdown(result, wanted.language)

    def junit() -> str:
        from align.reports.junit import inspect_junit

        return inspect_junit(result)

    def say() -> None:
        print_inspection(result, sys.stdout, wanted.language, whole=wanted.whole)

    put(wanted, Renderings(say, lambda: inspect_json(result), page, markdown, junit))


def show_checkpoint(result: CheckpointResult, wanted: Wanted) -> None:
    """Print a comparison of checkpoints and write the files that were asked for."""

    def page() -> str:
        from align.reports.checkpoint_html import checkpoint_page
        from align.reports.reading import as_saved

        return checkpoint_page(as_saved(result, checkpoint_document(result)), wanted.language)

    def markdown() -> str:
        from align.reports.markdown import checkpoint_markdown

        return checkpoint_markdown(result, wanted.language)

    def junit() -> str:
        from align.reports.junit import checkpoint_junit

        return checkpoint_junit(result)

    def say() -> None:
        print_checkpoint(result, sys.stdout, wanted.language, whole=wanted.whole)

    put(wanted, Renderings(say, lambda: checkpoint_json(result), page, markdown, junit))


def put(wanted: Wanted, renderings: Renderings) -> None:
    """The text on stdout, or what was asked for there alone; the files after it."""
    alone = [name for name, path in wanted.paths.items() if path == STDOUT]
    if alone:
        begin(Stage.WRITING)
        text = getattr(renderings, alone[0])()
        end()
        sys.stdout.write(text)
    else:
        end()
        renderings.say()
    for name, path in wanted.paths.items():
        if path is not None and path != STDOUT:
            begin(Stage.WRITING)
            _write(path, getattr(renderings, name)(), chosen(wanted.lang, sys.stderr.encoding))


def _write(path: str, text: str, language: Language) -> None:
    write_text(path, text)
    end()
    sys.stderr.write(f"align: {language.said(say('wrote'))} {path}\n")
