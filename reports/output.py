"""Where results go: text on stdout, JSON and HTML into files, and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from align.checkpoint_records import CheckpointResult
from align.records import DiffResult, Health, InspectResult, Verdict
from align.reports.checkpoint_json import checkpoint_json
from align.reports.checkpoint_text import print_checkpoint
from align.reports.inspect_json import inspect_json
from align.reports.inspect_text import print_inspection
from align.reports.json_report import diff_json
from align.reports.text import print_diff
from align.reports.writing import check_writable, write_text

EXIT_CODES = {Verdict.ALIGNED: 0, Verdict.DIVERGED: 1, Verdict.INCOMPARABLE: 2}
HEALTH_EXIT_CODES = {Health.HEALTHY: 0, Health.UNHEALTHY: 1, Health.UNKNOWN: 2}
STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a user asked for: a page, the JSON (`-` alone on stdout), the whole text instead of a screen of it.

    Raises UsageError where a file cannot be written: it is made before the work is done.
    """

    html_path: str | None = None
    json_path: str | None = None
    whole: bool = False

    def __post_init__(self) -> None:
        """Try both paths."""
        for path in (self.html_path, self.json_path):
            if path is not None and path != STDOUT:
                check_writable(path)


def show_diff(result: DiffResult, wanted: Wanted) -> None:
    """Print a comparison and write the files that were asked for."""

    def page() -> str:
        # matplotlib and jinja2 are imported only where a page is wanted.
        from align.reports.html import diff_page

        return diff_page(result)

    _put(wanted, lambda: print_diff(result, sys.stdout, whole=wanted.whole), lambda: diff_json(result), page)


def show_inspection(result: InspectResult, wanted: Wanted) -> None:
    """Print an inspection and write the files that were asked for."""

    def page() -> str:
        from align.reports.inspect_html import inspect_page

        return inspect_page(result)

    _put(wanted, lambda: print_inspection(result, sys.stdout, whole=wanted.whole), lambda: inspect_json(result), page)


def show_checkpoint(result: CheckpointResult, *, json_path: str | None, whole: bool) -> None:
    """Print a comparison of checkpoints and write the JSON that was asked for; `-` prints it alone."""
    wanted = Wanted(json_path=json_path)
    _put(wanted, lambda: print_checkpoint(result, sys.stdout, whole=whole), lambda: checkpoint_json(result), str)


def _put(wanted: Wanted, say: Callable[[], None], json: Callable[[], str], page: Callable[[], str]) -> None:
    """The text on stdout, or the JSON alone; the files after it."""
    if wanted.json_path == STDOUT:
        sys.stdout.write(json())
    else:
        say()
        if wanted.json_path is not None:
            _write(wanted.json_path, json())
    if wanted.html_path is not None:
        _write(wanted.html_path, page())


def _write(path: str, text: str) -> None:
    write_text(path, text)
    sys.stderr.write(f"align: wrote {path}\n")
