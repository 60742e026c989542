"""A run that is killed at any moment leaves every finished step in a file that plain h5py opens."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from align.capture_file import open_capture
from tests.every_write import open_plainly
from tests.running import environment, run_python
from tests.test_capture_command import script
from tests.test_steady_file import check as steady_file_check

KILLS = 12
AIMED_KILLS = 16
"""Where the process that is killed puts down its changes itself, a quarter of the files do not open afterwards."""

# Weights and activations of both kinds: large values have a thread of their own, small ones wait in memory.
TRAINING = """
import sys, torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 300), nn.ReLU(), nn.Linear(300, 100), nn.Linear(100, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
x = torch.randn(128, 4)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    print(step, flush=True)
"""

# Importing what a capture needs costs seconds, so all runs are children of one process that has made one.
KILLER = """
import json, os, signal, sys, time
from align.cli import main

first, *runs = json.loads(sys.stdin.read())
main([*first[0][:-1], "2"], prog_name="align", standalone_mode=False)
for arguments, target, delay in runs:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(writing, 1)
        main(arguments, prog_name="align", standalone_mode=False)
        os._exit(1)
    os.close(writing)
    printed = -1
    with os.fdopen(reading) as lines:
        while printed < target:
            printed = int(lines.readline())
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        rest = lines.read().split("\\n")
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    print(json.dumps([printed, *map(int, filter(None, rest[:-1]))][-1]))
"""

# Facts of 1 MB in the middle of the changed places make it last long to put them down. Each run holds a lock on its
# open file, and so does the process that puts down for it.
AIMED = """
import fcntl, os, signal, sys, time
from pathlib import Path
import numpy as np
from align.capture_file import CaptureWriter
from align.records import RunInfo
from tests.test_steady_file import commit

facts = RunInfo(notes=("x" * 1_000_000,))
for number in range(int(sys.argv[2])):
    path = Path(sys.argv[1]) / f"{number}.h5"
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        signal.alarm(300)
        writer = CaptureWriter(path, facts)
        fcntl.flock(writer._steady._descriptor, fcntl.LOCK_EX)
        for step in range(100_000):
            waiting = writer.add_values(np.zeros(1), "float64")
            writer.update_run(facts)
            commit(writer, step, tensors=1)
            del waiting
            os.write(writing, step.to_bytes(4, "little"))
    os.close(writing)
    with open(reading, "rb") as finished:
        while int.from_bytes(finished.read(4), "little") < number % 5:
            pass
        file = path.open("rb")
        # Its journal has come, so now it is put down.
        size = 0
        while size == (size := os.fstat(file.fileno()).st_size) or os.pread(file.fileno(), 8, size - 24) != b"ALIGNJRN":
            pass
        os.kill(child, signal.SIGKILL)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        fcntl.flock(file, fcntl.LOCK_EX)
        file.close()
        rest = finished.read()
    print(number % 5 + len(rest) // 4 + 1)
"""


def test_a_kill_in_the_moment_when_changes_are_put_down_leaves_a_file_that_opens(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AIMED, str(tmp_path), str(AIMED_KILLS)],
        capture_output=True, text=True, check=False, env=environment(), timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    finished = [int(line) for line in done.stdout.split()]
    assert len(finished) == AIMED_KILLS
    for number, steps in enumerate(finished):
        open_plainly(tmp_path / f"{number}.h5", steps)
        assert steady_file_check(tmp_path / f"{number}.h5", steps) >= steps


@pytest.mark.parametrize("detail", ["sketch", "tensors"])
def test_sigkill_loses_no_finished_step(tmp_path: Path, detail: str) -> None:
    # Each step prints after the optimizer has stepped, hence before the step closes at the next forward.
    path = script(tmp_path, TRAINING)
    chance = random.Random(f"{detail}")
    outputs = [tmp_path / f"run{number}.h5" for number in range(KILLS)]
    options = ["--device", "cpu", "--steps", "0:", "--detail", detail]
    runs = [
        (["capture", *options, "-o", str(output), str(path), "100000"], chance.randrange(3, 8), chance.random() * 0.02)
        for output in [tmp_path / "first.h5", *outputs]
    ]
    done = run_python("-c", KILLER, given=json.dumps(runs))
    assert done.returncode == 0, done.stderr
    printed = [json.loads(line) for line in done.stdout.splitlines()[-KILLS:]]
    assert len(printed) == KILLS
    for output, last in zip(outputs, printed, strict=True):
        check(output, last, with_values=detail == "tensors")


def check(path: Path, finished: int, *, with_values: bool) -> None:
    """Assert that all finished steps are there, with the values that their statistics were taken of."""
    with h5py.File(path, "r", locking=False) as file:
        steps = {name for name in file if name.startswith("step")}
        assert {f"step{step}" for step in range(finished)} <= steps
        assert all("index" in file[name] for name in steps)
    with open_capture(path) as capture:
        assert capture.unfinished
        assert capture.run.outcome == "unfinished"
        assert set(range(finished)) <= set(capture.steps)
        for step in capture.steps:
            records = capture.records(step)
            assert records
            if not with_values:
                continue
            kept = [record for record in records if record.has_values and record.stats is not None]
            assert {record.numel * 4 >= 1 << 16 for record in kept} == {True, False}
            for record in kept:
                assert record.stats is not None
                total = capture.values(record).astype(np.float64).sum()
                scale = (record.stats.total_squares * record.numel) ** 0.5
                assert abs(total - record.stats.total) <= 1e-5 * scale + 1e-30, record.key
