"""The work of `align capture`: prepare the device, run the script under a recorder, say what was captured."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from align.errors import CaptureError, UsageError
from align.hooks.devices import prepare_device
from align.hooks.launch import Program, ProgramNotFound, exit_code_of, find_module, find_script, run_program
from align.hooks.replay_options import ReplayOptions
from align.records import RunInfo
from align.sentences import say

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder

EXIT_TROUBLE = 2


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """The options of `align capture`."""

    program: str
    arguments: tuple[str, ...] = ()
    as_module: bool = False
    device: str = "auto"
    output: str | None = None
    steps: str | None = None
    every: int = 1
    stop: bool = False
    detail: str = "sketch"
    modules: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    exponents: bool = False
    max_size: str | None = None
    seed: int | None = None
    deterministic: bool = False
    no_dropout: bool = False
    init_from: str | None = None
    batches_from: str | None = None
    perturb: int | None = None
    replay: ReplayOptions | None = None
    force: bool = False
    strict: bool = False
    transfer: bool = True


def capture(options: CaptureOptions, say: Callable[[str], None]) -> int:
    """Capture one run and return the exit code: the script's own, or 2 where capturing failed first.

    Raises CaptureError or UsageError before the script has begun; `say` gets the lines for stderr.
    """
    try:
        program = _find_program(options)
    except (SyntaxError, ValueError) as broken:
        return exit_code_of(broken)  # as Python does with a script that it cannot compile
    prepare_device(options.device, transfer=options.transfer, deterministic=options.deterministic)
    # Only now may torch be imported: the device decides how.
    from align.hooks.children import ChildWatch
    from align.hooks.initial_values import StartRefused
    from align.hooks.last_line import last_line

    recorder = make_recorder(options, program, say)
    path = recorder.path
    error: BaseException | None = None
    process = os.getpid()
    with ChildWatch() as children:
        recorder.__enter__()
        say(f"align: capturing steps {recorder.options.steps} of {options.program} into {path}")
        try:
            run_program(program, options.arguments)
        except ProgramNotFound:
            recorder.close()
            path.unlink()
            raise
        except BaseException as raised:  # noqa: BLE001  the script's own exception, reported below as Python would
            error = raised
        recorder.close(error)
    if os.getpid() != process:
        return exit_code_of(error)  # a forked child that came to the script's end: the capture is its parent's
    if recorder.empty:
        path.unlink(missing_ok=True)
    if isinstance(error, StartRefused):
        say(f"align: {error.code}")
        return EXIT_TROUBLE
    code = exit_code_of(error)
    say(last_line(recorder, options.device, children.sentence()))
    if options.strict and (recorder.troubles or not recorder.steps_written) and code == 0:
        return EXIT_TROUBLE
    return code


def make_recorder(options: CaptureOptions, program: Program, say: Callable[[str], None]) -> Recorder:
    """The recorder that does what the options say; raises CaptureError or UsageError where they cannot be."""
    from align.hooks.recorder import Recorder
    from align.hooks.run_info import script_hash
    from align.hooks.same_start import SameStart

    source = Path(program.file)
    run = RunInfo(
        command=(options.program, *options.arguments),
        script_hash=script_hash(source) if source.is_file() else "",
    )
    same_start = SameStart(
        seed=options.seed, deterministic=options.deterministic, no_dropout=options.no_dropout,
        init_from=options.init_from, batches_from=options.batches_from,
    )  # fmt: skip
    return Recorder(
        output_path(options), steps=options.steps, every=options.every, detail=options.detail, modules=options.modules,
        phases=options.phases, keep=options.keep, exponents=options.exponents, max_size=options.max_size,
        stop=options.stop, force=options.force, run=run, same_start=same_start, perturb=options.perturb,
        replay=options.replay, say=say,
    )  # fmt: skip


def _find_program(options: CaptureOptions) -> Program:
    if options.as_module:
        return find_module(options.program)
    if options.program.startswith("-") and not Path(options.program).exists():
        raise UsageError(
            say(
                "No such option: '{}'. See align capture --help; the options of align stand before the script, "
                "what follows the script is the script's own.",
                options.program.split("=")[0],
            )
        )
    return find_script(options.program)


def output_path(options: CaptureOptions) -> Path:
    """The file to write: named after script and device by default, with the rank where there are several.

    An elastic restart appends `.restart1` and does not replace what the attempt before it captured.
    """
    chosen = options.output
    if chosen is None:
        device = options.device if options.device != "auto" else _present_device()
        chosen = f"{Path(options.program).stem}.{device}.h5"
    path = Path(chosen)
    if path.is_dir():
        raise CaptureError(
            say("Cannot write '{}': it is a folder. Give a file name with -o, such as {}.", path, path / "run.h5")
        )
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        path = path.with_suffix(f".rank{int(os.environ.get('RANK', '0')):04d}{path.suffix}")
    restart = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    return path.with_suffix(f".restart{restart}{path.suffix}") if restart else path


def _present_device() -> str:
    import torch

    if torch.cuda.is_available():
        return "cuda"
    npu = getattr(torch, "npu", None)
    return "npu" if npu is not None and npu.is_available() else "cpu"


def tell(line: str) -> None:
    """Write one line to stderr, where progress and notes go; nowhere if the script has closed it."""
    with suppress(OSError, ValueError):
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
