"""Run captures through the real command line, on the CPU and on the simulated NPU.

Importing torch costs seconds, so programs are forks of a process that has done it (`tests.warm`) unless they look at
their own start, and captures of one device and one configuration may share a process; each of them goes through
`align.cli.main` as a command of its own all the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from align.commands import diff_files
from align.records import DiffResult
from tests import warm

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "fixtures" / "cases"
WORKLOADS = ROOT / "fixtures" / "workloads"
STEPS = WORKLOADS / "steps"
SIMULATOR = ROOT / "fixtures" / "npu_sim"

BENIGN: dict[str, Any] = {"numerics": "benign"}

SHARED_PROCESS = """
import gc, json, sys
from align.cli import main

for arguments in json.loads(sys.stdin.read()):
    code = main(arguments, prog_name="align", standalone_mode=False)
    gc.collect()
    gc.freeze()  # what one run imported is not looked through for the next
    print(f"<exit code {code or 0}>", flush=True)
"""


@dataclass(frozen=True)
class Outcome:
    """What a command printed and how it ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def last_line(self) -> str:
        """The last line on stderr, where capture says what it did."""
        return self.stderr.strip().splitlines()[-1] if self.stderr.strip() else ""


def environment(simulator: Mapping[str, Any] | None = None, **variables: str) -> dict[str, str]:
    """The environment of a subprocess: this tree, one thread, and the simulated NPU where it is wanted."""
    paths = [str(ROOT)]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "RANK"))}
    settings = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "HF_HUB_OFFLINE": "1"}
    if simulator is not None:
        paths.append(str(SIMULATOR))
        settings["ALIGN_NPU_SIM"] = json.dumps(simulator)
    return {**inherited, **settings, "PYTHONPATH": os.pathsep.join(paths), **variables}


def run_python(
    *arguments: str | Path,
    simulator: Mapping[str, Any] | None = None,
    cwd: Path | None = None,
    given: str = "",
    fresh: bool = False,
    timeout: float = 300,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """A Python program in a process of its own, with `given` as its input.

    A fresh one starts as Python does; else it is a fork of a process that has imported torch, and loads the simulator.
    What torch reads from the environment while it is imported is there only in a fresh one.
    """
    words = [str(argument) for argument in arguments]
    variables = environment(simulator, **variables)
    if not fresh:
        return warm.run(words, variables, waiting_in=environment(), folder=cwd, given=given, timeout=timeout)
    return subprocess.run(
        [sys.executable, *words],
        input=given, capture_output=True, text=True, check=False, cwd=cwd, env=variables, timeout=timeout,
    )  # fmt: skip


def align(*arguments: str | Path, **options: Any) -> Outcome:
    """One command in a process of its own; the options are those of `run_python`."""
    return python("-m", "align", *arguments, **options)


def python(*arguments: str | Path, **options: Any) -> Outcome:
    """A Python program in a process of its own; the options are those of `run_python`."""
    done = run_python(*arguments, **options)
    return Outcome(done.returncode, done.stdout, done.stderr)


def capture_all(
    device: str, captures: Sequence[tuple[Path, Sequence[str | Path]]], simulator: Mapping[str, Any] | None = None
) -> None:
    """Capture several runs, given as (file, script and its arguments), in one process; all must succeed."""
    commands = [["capture", "--device", device, "-o", str(path), *map(str, script)] for path, script in captures]
    done = run_python("-c", SHARED_PROCESS, simulator=simulator, given=json.dumps(commands), timeout=600)
    codes = [line for line in done.stdout.splitlines() if line.startswith("<exit code")]
    assert codes == ["<exit code 0>"] * len(commands), f"{codes}\n{done.stderr[-3000:]}"
    troubles = [line for line in done.stderr.splitlines() if "trouble" in line]
    assert not troubles, troubles


def diff(reference: Path, candidate: Path) -> DiffResult:
    """Compare two captures as `align diff` does."""
    return diff_files(str(reference), str(candidate))
