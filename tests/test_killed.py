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
from tests.running import environment
from tests.test_capture_command import script

KILLS = 20

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


@pytest.mark.parametrize("detail", ["sketch", "tensors"])
def test_sigkill_loses_no_finished_step(tmp_path: Path, detail: str) -> None:
    # Each step prints after the optimizer has stepped, hence before the step closes at the next forward.
    path = script(tmp_path, TRAINING)
    chance = random.Random(f"{detail}")
    outputs = [tmp_path / f"run{number}.h5" for number in range(KILLS)]
    options = ["--device", "cpu", "--steps", "0:", "--detail", detail]
    runs = [
        (["capture", *options, "-o", str(output), str(path), "100000"], chance.randrange(3, 12), chance.random() * 0.02)
        for output in [tmp_path / "first.h5", *outputs]
    ]
    done = subprocess.run(
        [sys.executable, "-c", KILLER],
        input=json.dumps(runs), capture_output=True, text=True, check=True, env=environment(), timeout=300,
    )  # fmt: skip
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
