"""Capture trainings through the real command line, all in one process: importing torch takes longer than they do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.nan_origins.case import Case

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = Path(__file__).with_name("train.py")

PROCESS = """
import json, sys
from align.cli import main

for arguments in json.loads(sys.stdin.read()):
    if main(arguments, prog_name="align", standalone_mode=False):
        sys.exit(f"the capture {arguments} failed")
"""


def trained(case: Case) -> tuple[str, ...]:
    """The options of a capture of this training, its script and the arguments of that."""
    return (*case.capture, str(SCRIPT), case.name)


def capture_cases(cases: Sequence[Case], folder: Path) -> Mapping[str, Path]:
    """The captures by the names of the trainings."""
    files = {case.name: folder / f"{case.name}.h5" for case in cases}
    commands = [["capture", "--device", "cpu", "-o", str(files[case.name]), *trained(case)] for case in cases]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", PROCESS],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    troubles = [line for line in done.stderr.splitlines() if "trouble" in line]
    if done.returncode or troubles:
        sys.exit(f"Cannot capture: {troubles or done.stderr[-2000:]}")
    return files
