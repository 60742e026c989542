"""A run that is killed at any moment leaves every finished step in a file that plain h5py opens."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import pytest

from align.capture_file import open_capture
from tests.running import environment
from tests.test_capture_command import TRAINING, script

KILLS = 8


@pytest.mark.parametrize("detail", ["sketch", "tensors"])
def test_sigkill_loses_no_finished_step(tmp_path: Path, detail: str) -> None:
    # Each step prints after the optimizer has stepped, hence before the step closes at the next forward.
    path = script(tmp_path, TRAINING)
    chance = random.Random(f"{detail}")
    for number in range(KILLS):
        output = tmp_path / f"run{number}.h5"
        command = [sys.executable, "-m", "align", "capture", "--steps", "0:", "--detail", detail, "-o", output, path]
        process = subprocess.Popen(
            [*map(str, command), "100000"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(), text=True,
        )  # fmt: skip
        assert process.stdout is not None
        target = chance.randrange(5, 60)
        printed = -1
        while printed < target:
            printed = int(process.stdout.readline())
        time.sleep(chance.random() * 0.01)
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0].split()
        printed = int(rest[-1]) if rest else printed
        with h5py.File(output, "r", locking=False) as file:
            steps = {name for name in file if name.startswith("step")}
            assert {f"step{step}" for step in range(printed)} <= steps
            assert all("index" in file[name] for name in steps)
        with open_capture(output) as capture:
            assert capture.unfinished
            assert capture.run.outcome == "unfinished"
            assert set(range(printed)) <= set(capture.steps)
            assert all(capture.records(step) for step in capture.steps)
