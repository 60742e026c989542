"""The work of `align capture`: prepare the device, run the script under a recorder, say what was captured."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from align.errors import CaptureError
from align.hooks.devices import prepare_device
from align.hooks.launch import Program, exit_code_of, find_module, find_script, run_program
from align.records import RunInfo

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
    steps: str = "0:3"
    stop: bool = False
    detail: str = "sketch"
    modules: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    force: bool = False
    strict: bool = False
    transfer: bool = True


def capture(options: CaptureOptions, say: Callable[[str], None]) -> int:
    """Capture one run and return the exit code: the script's own, or 2 where capturing failed first.

    Raises CaptureError or UsageError before the script has begun; `say` gets the lines for stderr.
    """
    program = _find_program(options)
    prepare_device(options.device, transfer=options.transfer)
    # Only now may torch be imported: the device decides how.
    from align.hooks.children import ChildWatch
    from align.hooks.recorder import Recorder
    from align.hooks.run_info import script_hash

    path = output_path(options)
    source = Path(program.file)
    run = RunInfo(
        command=(options.program, *options.arguments),
        script_hash=script_hash(source) if source.is_file() else "",
    )
    recorder = Recorder(
        path, steps=options.steps, detail=options.detail, modules=options.modules, phases=options.phases,
        stop=options.stop, force=options.force, run=run,
    )  # fmt: skip
    error: BaseException | None = None
    with ChildWatch() as children:
        recorder.__enter__()
        say(f"align: capturing steps {options.steps} of {options.program} into {path}")
        try:
            run_program(program, options.arguments)
        except BaseException as raised:  # noqa: BLE001  the script's own exception, reported below as Python would
            error = raised
        recorder.close(error)
    code = exit_code_of(error)
    say(last_line(recorder, options, children.sentence()))
    if options.strict and (recorder.troubles or not recorder.steps_written) and code == 0:
        return EXIT_TROUBLE
    return code


def _find_program(options: CaptureOptions) -> Program:
    return find_module(options.program) if options.as_module else find_script(options.program)


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
        raise CaptureError(f"Cannot write '{path}': it is a folder. Give a file name with -o, such as {path / 'run.h5'}.")
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


def last_line(recorder: Recorder, options: CaptureOptions, children: str) -> str:
    """One line (more only where there was trouble): what was captured, how much, where."""
    from align.hooks.steps import describe_steps

    written = recorder.steps_written
    parts = []
    if written:
        size = recorder.path.stat().st_size if recorder.path.exists() else 0
        what = f"step {written[0]}" if len(written) == 1 else f"{len(written)} steps ({describe_steps(written)})"
        parts.append(
            f"align: captured {what}, {recorder.trace.records_written:,} records, {readable_size(size)}: {recorder.path}"
        )
        beyond = recorder.clock.step - written[-1] - 1
        if beyond > 0:
            steps = "1 later step was" if beyond == 1 else f"{beyond:,} later steps were"
            parts.append(f"{steps} not captured")
    else:
        parts.append(_nothing_captured(recorder, options))
    where = recorder.run_info.parameters_on
    if where and options.device not in ("auto", where):
        parts.append(
            f"--device {options.device} was asked but the parameters were on {where}: pass the device to your script"
        )
    if recorder.compile_seen:
        parts.append("torch.compile was switched off so that modules can be seen")
    if children:
        parts.append(children)
    if recorder.troubles:
        count = sum(recorder.troubles.values())
        first = recorder.notes()[0]
        parts.append(f"{count:,} {'trouble' if count == 1 else 'troubles'} while capturing: {first}")
    return "; ".join(parts)


def _nothing_captured(recorder: Recorder, options: CaptureOptions) -> str:
    steps = recorder.clock.step
    if steps:
        return f"align: captured no step: the run had {steps} and --steps {options.steps} asks for none of them: {recorder.path}"
    return (
        "align: captured no step: no module was called in grad mode and followed by backward and an optimizer step"
        f": {recorder.path}"
    )


def readable_size(size: int) -> str:
    """`3.4 MB`."""
    if size < 1000:  # noqa: PLR2004
        return f"{size} bytes"
    amount = float(size)
    for unit in ("kB", "MB", "GB"):
        amount /= 1000
        if amount < 1000:  # noqa: PLR2004
            return f"{amount:.1f} {unit}"
    return f"{amount / 1000:.1f} TB"



def tell(line: str) -> None:
    """Write one line to stderr, where progress and notes go."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


__all__: Sequence[str] = ("CaptureOptions", "capture", "last_line", "output_path", "readable_size", "tell")
