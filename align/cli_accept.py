"""The command `align accept`: two runs and a policy, PASS or FAIL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from align.cli_language import spoken
from align.errors import UsageError
from align.sentences import say


def _show_policy(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:  # noqa: ARG001 - click's
    """Print a policy and end."""
    if value is None or ctx.resilient_parsing:
        return
    from align.acceptance import policy_text

    click.echo(policy_text(value), nl=False)
    ctx.exit()


@click.command("accept")
@click.argument("reference", metavar="REF")
@click.argument("candidate", metavar="CAND")
@click.option(
    "--policy",
    default="default",
    show_default=True,
    metavar="NAME",
    help="The limits: default, mindformers, modelzoo-2pct, strict-fp32, or a TOML file.",
)
@click.option(
    "--show-policy",
    metavar="NAME",
    expose_value=False,
    callback=_show_policy,
    help="Print a policy, to start one of your own from, and end.",
)
@click.option(
    "--floor",
    "floors",
    multiple=True,
    metavar="RUN",
    help="A further run of the reference that differs by rounding alone (a repeat, or captured with --perturb): limits "
    "rise to what such runs differ by; may be repeated, two are better than one.",
)
@click.option(
    "--ops",
    metavar="FILE",
    help="Results of single operators: a CSV file with the columns op, dtype, ratio, limit and source.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="loss=NAME",
    help="Which column is the loss, gradient_norm, learning_rate, loss_scale, seconds or tokens_per_second; "
    "candidate:loss=NAME for one file alone; may be repeated.",
)
@click.option(
    "--steps", default="", metavar="A:B", help="Judge only steps from A on and before B, in the reference's numbers."
)
@click.option("--title", default="", metavar="TEXT", help="The model or task, for the head of the document.")
@click.option("--project", default="", metavar="TEXT", help="The project, for the head of the document.")
@click.option("--all", "whole", is_flag=True, help="Print everything instead of a screen of it.")
@click.option("--html", "html_path", metavar="FILE", help="Also write the document as one self-contained page.")
@click.option("--json", "json_path", metavar="FILE", help="Also write the result as JSON; - prints it alone.")
@click.option(
    "--junit",
    "junit_path",
    metavar="FILE",
    help="Also write JUnit XML, a test case for each criterion; - prints it alone.",
)
@click.option(
    "--markdown", "markdown_path", metavar="FILE", help="Also write the document as Markdown; - prints it alone."
)
@spoken
@click.pass_context
def accept(ctx: click.Context, /, reference: str, candidate: str, **options: Any) -> None:
    """Judge whether the training in CAND may be accepted in place of the one in REF.

    REF and CAND are captures, or logs of the loss: CSV, JSON lines, trainer_state.json, TensorBoard, text logs of
    Megatron and DeepSpeed. Two captures are compared by their tensors, too. torch is not needed.

    Exit codes: 0 pass, 1 fail, 2 could not tell.
    """
    from align.accepting import Asked, accept_files
    from align.reports.accept_output import EXIT_CODES, show_acceptance
    from align.reports.output import Wanted

    files = ("html_path", "json_path", "junit_path", "markdown_path", "whole", "lang")
    wanted = Wanted(**{name: options.pop(name) for name in files})
    given = [reference, candidate, *options["floors"], options["ops"], options["policy"]]
    _keep_apart([path for path in given if path], wanted.paths)
    result = accept_files(reference, candidate, Asked(**options))
    show_acceptance(result, wanted)
    ctx.exit(EXIT_CODES[result.verdict])


def _keep_apart(given: Sequence[str], written: Mapping[str, str | None]) -> None:
    """Raise UsageError where what is written would replace what is read, or one report another."""
    read = {Path(path).resolve(): path for path in given}
    taken: dict[Path, str] = {}
    for option, path in written.items():
        if path is None or path == "-":
            continue
        place = Path(path).resolve()
        if place in read:
            raise UsageError(say("Cannot write --{} to '{}': that file is read. Name another file.", option, path))
        # A device takes both.
        if place in taken and (place.is_file() or not place.exists()):
            raise UsageError(
                say("Cannot write --{} and --{} to one file, '{}'. Name a file for each.", taken[place], option, path)
            )
        taken[place] = option
