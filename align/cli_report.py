"""The command `align report`: a saved result as text, page, Markdown, JUnit XML or JSON again."""

from __future__ import annotations

from typing import Any

import click

from align.cli_language import spoken


@click.command("report")
@click.argument("path", metavar="RESULT.json")
@click.option("--html", "html_path", metavar="FILE", help="Also write the page.")
@click.option(
    "--markdown", "markdown_path", metavar="FILE", help="Also write Markdown for an issue; - prints it alone."
)
@click.option("--junit", "junit_path", metavar="FILE", help="Also write JUnit XML, for build servers.")
@click.option("--json", "json_path", metavar="FILE", help="Also write the JSON again; - prints it alone.")
@click.option("--all", "whole", is_flag=True, help="Print everything instead of a screen of it.")
@click.option(
    "--redact",
    is_flag=True,
    help="Leave out host names, folders, command lines and environment variables: for what leaves the company.",
)
@spoken
@click.pass_context
def report(ctx: click.Context, /, path: str, *, redact: bool, **wanted: Any) -> None:
    """Report a saved result again: as text, or as the page of which only the JSON was kept.

    RESULT.json is what --json wrote with align diff, inspect, checkpoint, replay or accept; - is standard input. The
    captures are not needed.

    Exit codes: as of the command that made it.
    """
    from align.reports.output import Wanted
    from align.reports.reading import read_file
    from align.reports.redacting import redacted
    from align.reports.showing import show

    asked = Wanted(**wanted)
    result = read_file(path)
    ctx.exit(show(redacted(result) if redact else result, asked))
