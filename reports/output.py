"""Where results go: text on stdout, JSON and HTML into files, and the exit code."""

from __future__ import annotations

import sys

from align.records import DiffResult, Health, InspectResult, Verdict
from align.reports.inspect_json import inspect_json
from align.reports.inspect_text import print_inspection
from align.reports.json_report import diff_json
from align.reports.text import print_diff
from align.reports.writing import check_writable, write_text

EXIT_CODES = {Verdict.ALIGNED: 0, Verdict.DIVERGED: 1, Verdict.INCOMPARABLE: 2}
HEALTH_EXIT_CODES = {Health.HEALTHY: 0, Health.UNHEALTHY: 1, Health.UNKNOWN: 2}
STDOUT = "-"


def show_diff(result: DiffResult, *, html_path: str | None = None, json_path: str | None = None) -> None:
    """Print a comparison and write the files that were asked for; `-` prints the JSON alone."""
    for path in (html_path, json_path):
        if path is not None and path != STDOUT:
            check_writable(path)
    if json_path == STDOUT:
        sys.stdout.write(diff_json(result))
    else:
        print_diff(result, sys.stdout)
        if json_path is not None:
            write_text(json_path, diff_json(result))
            sys.stderr.write(f"align: wrote {json_path}\n")
    if html_path is not None:
        # matplotlib and jinja2 are imported only where a page is wanted.
        from align.reports.html import diff_page

        write_text(html_path, diff_page(result))
        sys.stderr.write(f"align: wrote {html_path}\n")


def show_inspection(result: InspectResult, *, json_path: str | None = None) -> None:
    """Print an inspection and write the file that was asked for; `-` prints the JSON alone."""
    if json_path == STDOUT:
        sys.stdout.write(inspect_json(result))
        return
    if json_path is not None:
        check_writable(json_path)
    print_inspection(result, sys.stdout)
    if json_path is not None:
        write_text(json_path, inspect_json(result))
        sys.stderr.write(f"align: wrote {json_path}\n")
