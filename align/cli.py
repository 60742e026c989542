"""The command line: each command reads its options, calls one function of the library, prints and exits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from align import __version__
from align.cli_accept import accept
from align.cli_language import Function, complain, language, spoken
from align.cli_report import report
from align.errors import AlignError, UsageError
from align.sentences import say, told
from align.watching import end

EXIT_UNKNOWN = 2
EXIT_INTERRUPTED = 130
"""As shells have it: 128 and the number of the signal."""
RUN_SCRIPTS = frozenset({"capture", "replay-one"})
"""The commands in whose process a user's script runs; they show no progress of their own."""


class AlignGroup(click.Group):
    """The one place where an AlignError, or Ctrl-C, becomes a message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; whatever it could not do is said in one sentence, in the command's language, exit code 2."""
        try:
            return super().invoke(ctx)
        except AlignError as error:
            end()
            complain(told(error))
            ctx.exit(EXIT_UNKNOWN)
        except KeyboardInterrupt:
            end()
            complain(say("interrupted before it was done; no file was left half written."))
            ctx.exit(EXIT_INTERRUPTED)


def reported(function: Function) -> Function:
    """The options of a command whose result is a report; the values are those of `reports.output.Wanted`."""
    for option in (
        click.option("--all", "whole", is_flag=True, help="Print everything instead of a screen of it."),
        click.option("--json", "json_path", metavar="FILE", help="Also write the result as JSON; - prints it alone."),
        click.option("--junit", "junit_path", metavar="FILE", help="Also write JUnit XML, for build servers."),
        click.option(
            "--markdown", "markdown_path", metavar="FILE", help="Also write Markdown for issues; - prints it."
        ),
        click.option("--html", "html_path", metavar="FILE", help="Also write the report as one self-contained page."),
        spoken,
    ):
        function = option(function)
    return function


@click.group(cls=AlignGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="align")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Find where two PyTorch training runs first part, and why.

    \b
    align capture -o gpu.h5 train.py                  on the reference machine
    align capture --device npu -o npu.h5 train.py     on the other machine
    align diff gpu.h5 npu.h5 --html report.html       anywhere; torch is not needed
    align inspect npu.h5                              one run alone: NaN, loss scale, a loss that stalls
    align checkpoint a.pt b.safetensors               what a conversion made of the weights

    Exit codes: 0 aligned, 1 diverged, 2 could not tell.
    """  # noqa: D301 - click needs the character itself to keep the lines apart
    if ctx.invoked_subcommand not in RUN_SCRIPTS:
        from align.reports.progress_line import shown

        ctx.with_resource(shown(lambda: language().code))


@main.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@click.option("-o", "--output", metavar="RUN.h5", help="File to write. [default: SCRIPT.DEVICE.h5]")
@click.option(
    "--device", type=click.Choice(["auto", "cpu", "cuda", "npu"]), default="auto", show_default=True,
    help="Where training must run. npu imports torch_npu and lets scripts that say cuda run there; cpu hides "
    "accelerators; auto changes nothing.",
)  # fmt: skip
@click.option(
    "--steps",
    metavar="RANGES",
    help="Steps to capture, such as 0:3,100 or 10: (all from 10 on). [default: 0:3; all with --every]",
)
@click.option(
    "--every", type=click.IntRange(min=1), default=1, metavar="N", help="Of each range, only every N-th step."
)
@click.option("--stop", is_flag=True, help="End the script after the last captured step (exit code 0).")
@click.option(
    "--detail", type=click.Choice(["stats", "sketch", "tensors"]), default="sketch", show_default=True,
    help="stats: statistics; sketch: also what a comparison needs, 1 kB a tensor; tensors: also the values.",
)  # fmt: skip
@click.option("--modules", multiple=True, metavar="GLOB", help="Only modules whose name matches; may be repeated.")
@click.option("--phases", default="", metavar="LIST", help="Only these phases, such as forward,backward; else all.")
@click.option(
    "--keep",
    default="",
    metavar="LIST",
    help="Also keep the values of init (the initial weights), of batches, or both as init,batches, for a run that is "
    "to start from them.",
)
@click.option(
    "--exponents", is_flag=True, help="Count the exponents of all floats; those of 16-bit gradients always are."
)
@click.option(
    "--max-size", metavar="SIZE", help="Keep no more values once the file has this size, such as 500MB or 2GB."
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    metavar="N",
    help="Same start: seed python, numpy and torch before the script's first line.",
)
@click.option(
    "--deterministic",
    is_flag=True,
    help="Same start: choose kernels that give the same result each time; torch warns where there is none.",
)
@click.option("--no-dropout", is_flag=True, help="Same start: no dropout drops anything, in no module.")
@click.option(
    "--init-from",
    metavar="REF.h5",
    help="Same start: begin with the initial weights of a capture that was made with --keep init.",
)
@click.option(
    "--batches-from",
    metavar="REF.h5",
    help="Same start: train on the batches of a capture that was made with --keep batches, as far as it has any.",
)
@click.option(
    "--perturb",
    type=click.IntRange(0, 2**32 - 1),
    metavar="SEED",
    help="Move the initial weights and float inputs by the rounding of the working precision, up or down at random: a "
    "run that shows `align diff --floor` what rounding does.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--strict", is_flag=True, help="Exit with 2 if anything went wrong while capturing.")
@click.option("--no-transfer", is_flag=True, help="With --device npu: do not redirect cuda calls to the NPU.")
@click.option("-m", "as_module", is_flag=True, help="SCRIPT is a module name, as with python -m.")
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def capture(ctx: click.Context, /, script: str, args: tuple[str, ...], **options: Any) -> None:
    """Run a training script and record what it computes.

    The script is run unchanged, as `python SCRIPT ARGS` would run it, and its results are the same bit for bit.
    """
    from align.hooks.capture import CaptureOptions, tell
    from align.hooks.capture import capture as run_capture

    transfer = not options.pop("no_transfer")
    lists: dict[str, Any] = {name: _words(options.pop(name)) for name in ("phases", "keep")}
    chosen = CaptureOptions(program=script, arguments=args, transfer=transfer, **lists, **options)
    ctx.exit(run_capture(chosen, tell))


@main.command("capture-now")
@click.argument("path", metavar="RUN.h5")
@click.option(
    "--steps", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
    help="How many steps to capture, 100,000 at most.",
)  # fmt: skip
def capture_now(path: str, steps: int) -> None:
    """Ask a run that is being captured to record its next steps too, whatever its --steps say.

    RUN.h5 is the file that it writes. The run looks for such requests a few times a second, when a step ends.
    """
    from align.requests import request_steps

    click.echo(request_steps(path, steps))


@main.command()
@click.argument("reference", metavar="REF.h5")
@click.argument("candidate", metavar="CAND.h5")
@reported
@click.option(
    "--rename",
    multiple=True,
    metavar="OLD=NEW",
    help="Pair reference name OLD with candidate name NEW; =NEW puts all names below NEW.",
)
@click.option(
    "--floor",
    multiple=True,
    metavar="RUN.h5",
    help="A run that shows what rounding does to the reference: captured with --perturb, or a known-good repeat; may "
    "be repeated.",
)
@click.option(
    "--map",
    "map_path",
    metavar="FILE",
    help="Pair names by rules, one a line: PATTERN -> REPLACEMENT, a regular expression for the begin of reference "
    "names; the first that matches counts.",
)
@click.option(
    "--limit",
    type=click.FloatRange(min=1.0, min_open=True),
    default=7.0,
    show_default=True,
    metavar="TIMES",
    help="A difference is real above so many times its floor. Lower it on devices whose healthy pairs stay below.",
)
@click.pass_context
def diff(
    ctx: click.Context, /, reference: str, candidate: str, rename: tuple[str, ...], floor: tuple[str, ...],
    map_path: str | None, limit: float, **wanted: Any,
) -> None:  # fmt: skip
    """Say where two captured runs first part, and why.

    REF.h5 is the run to trust (usually the GPU's), CAND.h5 the run in question.
    """
    from align.commands import diff_files
    from align.reports.output import EXIT_CODES, Wanted, show_diff

    report = Wanted(**wanted)
    result = diff_files(reference, candidate, rename, limit=limit, floors=floor, map_path=map_path)
    show_diff(result, report)
    ctx.exit(EXIT_CODES[result.verdict])


@main.command()
@click.argument("paths", metavar="RUN.h5", nargs=-1, required=True)
@reported
@click.pass_context
def inspect(ctx: click.Context, /, paths: tuple[str, ...], **wanted: Any) -> None:
    """Say what is wrong with one captured run: where NaN and Inf come from, why nothing is learned.

    RUN.h5 is one capture, or stands for RUN.rank0000.h5 and its sisters: all ranks of a job are read together.

    Exit codes: 0 healthy, 1 unhealthy, 2 could not tell.
    """
    from align.commands import inspect_files
    from align.reports.output import HEALTH_EXIT_CODES, Wanted, show_inspection

    if len(paths) > 1:
        raise UsageError(
            say(
                "Cannot inspect {} files at once: `align inspect {}` looks at one run, with all its ranks. To "
                "compare two runs: `align diff {} {}`.",
                len(paths),
                paths[0],
                paths[0],
                paths[1],
            )
        )
    report = Wanted(**wanted)
    result = inspect_files(paths[0])
    show_inspection(result, report)
    ctx.exit(HEALTH_EXIT_CODES[result.verdict])


@main.command()
@click.argument("reference", metavar="A")
@click.argument("candidate", metavar="B")
@click.option("--html", "html_path", metavar="FILE", help="Also write the report as one self-contained page.")
@click.option("--markdown", "markdown_path", metavar="FILE", help="Also write Markdown for issues; - prints it.")
@click.option("--junit", "junit_path", metavar="FILE", help="Also write JUnit XML, for build servers.")
@click.option("--json", "json_path", metavar="FILE", help="Also write the result as JSON; - prints it alone.")
@click.option("--all", "whole", is_flag=True, help="Print everything, with a line for each entry.")
@spoken
@click.option(
    "--strict", is_flag=True, help="Names, dtypes and layouts must be equal, too: exit code 1 where they are not."
)
@click.option("--allow-cast", is_flag=True, help="Numbers may be rounded to the dtype that the other file has.")
@click.pass_context
def checkpoint(
    ctx: click.Context, /, reference: str, candidate: str, *, strict: bool, allow_cast: bool, **wanted: Any
) -> None:
    """Say what the weights in B are to those in A: renamed, missing, transposed, in another order, cast, other values.

    A and B are .safetensors, .pt, .pth or .bin files, an index of shards, folders that hold one, or captures: then
    the weights that the run began with. torch is not needed, and no code in a file is run.

    Exit codes: 0 the same weights, 1 other weights, 2 could not tell.
    """
    from align.commands import checkpoint_files
    from align.reports.output import EXIT_CODES, Wanted, show_checkpoint

    report = Wanted(**wanted)
    result = checkpoint_files(reference, candidate, strict=strict, allow_cast=allow_cast)
    show_checkpoint(result, report)
    ctx.exit(EXIT_CODES[result.verdict])


@main.command(
    "replay",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@click.option(
    "--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True,
    help="Where the script runs by the captures: the reference device, or the CPU.",
)  # fmt: skip
@click.option(
    "--precision", type=click.Choice(["same", "fp32", "fp64"]), default="fp64", show_default=True,
    help="What the replays compute in; same: as the script says, which sees less.",
)  # fmt: skip
@click.option("--keep", metavar="FOLDER", help="Keep the replays, which are captures, in this folder.")
@reported
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="As for `align diff`.")
@click.option("--map", "map_path", metavar="FILE", help="As for `align diff`.")
@click.option("-m", "as_module", is_flag=True, help="SCRIPT is a module name, as with python -m.")
@click.argument("reference", metavar="REF.h5")
@click.argument("candidate", metavar="CAND.h5")
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def replay(ctx: click.Context, /, reference: str, candidate: str, script: str, **options: Any) -> None:
    """Find a fault that rounding hides: run SCRIPT by each capture and compare what it makes of the same inputs.

    Both captures are made with --detail tensors --steps 0:1. SCRIPT is run unchanged, twice, on this machine, and ends
    after the last captured step; whatever it writes it writes again.
    """
    from align.commands import replay_files
    from align.replay_children import Program
    from align.reports.output import EXIT_CODES, Wanted, show_diff

    words = {name: options.pop(name) for name in ("as_module", "device", "precision")}
    files = ("html_path", "markdown_path", "junit_path", "json_path")
    wanted = Wanted(**{name: options.pop(name) for name in (*files, "whole", "lang")})
    _check_script(script)
    program = Program(script, options.pop("args"), **words)
    result = replay_files(
        reference, candidate, program, _note, keep=options["keep"], renames=options["rename"],
        map_path=options["map_path"],
    )  # fmt: skip
    show_diff(result, wanted)
    ctx.exit(EXIT_CODES[result.verdict])


@main.command(
    "replay-one",
    hidden=True,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--capture", required=True)
@click.option("-o", "--output", required=True)
@click.option("--device", default="auto")
@click.option("--precision", default="same")
@click.option("--steps", type=int)
@click.option("--force", is_flag=True)
@click.option("-m", "as_module", is_flag=True)
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def replay_one(ctx: click.Context, /, script: str, args: tuple[str, ...], **options: Any) -> None:
    """Run a script once by a capture; `align replay` does so for each of its captures."""
    from align.hooks.capture import tell
    from align.hooks.replay_run import ReplayRun, run_replay

    ctx.exit(run_replay(ReplayRun(program=script, arguments=args, **options), tell))


@main.command()
@click.argument("path", metavar="RUN.h5")
@click.argument("names", nargs=-1, metavar="[NAME]...")
def show(path: str, names: tuple[str, ...]) -> None:
    """Show what a capture holds: the run's facts, or the tensors of modules whose name matches NAME."""
    from align.commands import show_file

    click.echo(show_file(path, names))


def _check_script(script: str) -> None:
    """Say where options belong that were written behind the captures."""
    if script.startswith("-") and not Path(script).exists():
        raise UsageError(
            say(
                "Cannot run the script '{}': the options of align replay stand before the first capture, what "
                "follows the script is the script's own.",
                script,
            )
        )


def _note(line: str) -> None:
    click.echo(language().said(line), err=True)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


main.add_command(accept)
main.add_command(report)

if __name__ == "__main__":
    sys.exit(main())
