"""Run the script once for each capture, in processes of their own, and leave the replays in a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from align.errors import ReplayError
from align.sentences import say

TOLD = 3
"""How many lines of what a script said last are told when it failed."""

EXIT_REFUSED = 2


@dataclass(frozen=True, slots=True)
class Program:
    """What is run, where and how: the script or module, its arguments, the device and the precision."""

    script: str
    arguments: tuple[str, ...] = ()
    as_module: bool = False
    device: str = "auto"
    precision: str = "fp64"


def replay(capture: Path, replay_file: Path, program: Program, steps: int, tell: Callable[[str], None]) -> None:
    """Write the replay of a capture; raises ReplayError with what the script said last where that failed."""
    tell(say("align: replaying {} in {}", capture, _precision(program)))
    command = [
        sys.executable, "-m", "align", "replay-one", "--capture", str(capture), "-o", str(replay_file), "--force",
        "--steps", str(steps), "--device", program.device, "--precision", program.precision,
        *(["-m"] if program.as_module else []), program.script, *program.arguments,
    ]  # fmt: skip
    # What it says last is read here.
    english = {**os.environ, "ALIGN_LANG": "en"}
    done = subprocess.run(  # noqa: S603 - the user's own script, as the user wrote it
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False, env=english
    )
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    refused = lines[-1].removeprefix("align: ") if lines and done.returncode == EXIT_REFUSED else ""
    if refused.startswith("Cannot take"):
        raise ReplayError(say("{} Give the script and arguments that '{}' is of.", refused, capture))
    if refused.startswith("Cannot"):
        raise ReplayError(refused)
    if done.returncode or not replay_file.exists():
        raise ReplayError(_failed(capture, program, done.returncode, lines))


@contextmanager
def keep_folder(path: str) -> Iterator[Path]:
    """The folder in which replays are kept, made where it is missing; raises ReplayError where it cannot be."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReplayError(say("Cannot keep replays in '{}': {}. Name another folder.", path, error.strerror)) from error
    yield folder


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is deleted at the end."""
    with TemporaryDirectory(prefix="align-replay-") as folder:
        yield Path(folder)


def _precision(program: Program) -> str:
    return say("the precision of the script") if program.precision == "same" else program.precision


def _failed(capture: Path, program: Program, code: int, lines: Sequence[str]) -> str:
    said = [line for line in lines if not line.startswith("align: captur")][-TOLD:]
    last = say(" It said last: {}", " | ".join(line.strip() for line in said)) if said else ""
    if not code:
        return say("Cannot replay '{}': {} trained no step.{}", capture, program.script, last)
    again = "" if program.precision == "same" else say(" If it does not take that precision, try --precision same.")
    return say(
        "Cannot replay '{}': {} ended with exit code {} before its first step was captured.{}{}",
        capture,
        program.script,
        code,
        again,
        last,
    )
