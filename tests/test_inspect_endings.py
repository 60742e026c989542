"""How a run ended stands in the first sentence of its inspection where it did not end by itself, and only there."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from align.capture_file import open_capture
from align.commands import inspect_files
from align.records import Health, RunInfo
from tests import numpy_run
from tests.builders import write_capture
from tests.report_samples import timeline
from tests.running import align

SCRIPT = """
import os, signal, sys, torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(16, 4)
for step in range(8):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    if step == 6 and sys.argv[1] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if step == 6 and sys.argv[1] == "raise":
        raise ValueError("no more data")
    if step == 6 and sys.argv[1] == "exit":
        sys.exit(3)
"""
KNOWN = "(the last captured step is 1, the last step of the timeline is {last})"
KILLED = f"The run did not end by itself: it was killed {KNOWN}. "
RAISED = f"The run did not end by itself: an exception ended it, ValueError in step 7 {KNOWN}. "
LEFT = f"The script ended with exit code 3 {KNOWN}. "


@pytest.mark.parametrize(
    ("way", "code", "ending"), [("kill", -9, KILLED), ("raise", 1, RAISED), ("exit", 3, LEFT), ("finish", 0, "")]
)
def test_a_real_run_says_first_how_it_ended(tmp_path: Path, way: str, code: int, ending: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    ran = align("capture", "--steps", "0:2", "-o", "run.h5", script, way, cwd=tmp_path, fresh=way == "kill")
    assert ran.code == code, ran.stderr
    # What a killed run wrote last of its timeline depends on when it last wrote.
    with open_capture(tmp_path / "run.h5") as capture:
        steps = len(capture.timeline)
    assert steps == {"finish": 8, "kill": steps}.get(way, 7)
    wrong = f"Nothing is wrong in what was captured ({steps} steps, of which 2 captured)."

    inspected = align("inspect", "run.h5", cwd=tmp_path)

    summary = inspect_files(str(tmp_path / "run.h5")).summary
    assert summary == ending.format(last=steps - 1) + wrong
    head, text = inspected.stdout.splitlines()[0], " ".join(inspected.stdout.split())
    assert head.startswith("HEALTHY  run.h5 on ")
    assert summary in text
    assert text.count("end by itself") == summary.count("end by itself")
    assert "note: The capture is unfinished" not in text
    assert "note: The run ended early" not in text
    assert inspected.code == 0


def test_a_run_that_was_stopped_on_purpose_ended_by_itself(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    align("capture", "--stop", "--steps", "0:2", "-o", "run.h5", script, "finish", cwd=tmp_path)

    summary = inspect_files(str(tmp_path / "run.h5")).summary

    assert summary == "Nothing is wrong in what was captured (2 steps, of which 2 captured)."


@pytest.mark.parametrize(
    ("run", "begin"),
    [
        (RunInfo(), "The run did not end by itself: it was killed or is still running (the last captured step is 1, "),
        (
            RunInfo(process_id=os.getpid(), host=socket.gethostname()),
            "The run is still running (the last captured step is 1, ",
        ),
        (
            RunInfo(outcome="exit code no data"),
            "The script ended with 'no data' (the last captured step is 1, ",
        ),
        (RunInfo(outcome="the capture ended in step 2, the run went on"), "Nothing is wrong in what was captured"),
    ],
)
def test_what_is_known_of_the_process_is_said(tmp_path: Path, run: RunInfo, begin: str) -> None:
    path = numpy_run.make(tmp_path / "run.h5", run=run)

    result = inspect_files(str(path))

    assert result.verdict is Health.HEALTHY
    assert result.summary.startswith(begin)


def test_of_a_job_the_rank_that_was_killed_is_named(tmp_path: Path) -> None:
    outcomes = ("finished", "exception: RuntimeError in step 2", "unfinished", "unfinished")
    for rank, outcome in enumerate(outcomes):
        run = RunInfo(outcome=outcome, rank=rank, world_size=4)
        numpy_run.make(tmp_path / f"job.rank000{rank}.h5", run=run)

    summary = inspect_files(str(tmp_path / "job.h5")).summary

    assert summary.startswith(
        "Rank 1: the run did not end by itself: an exception ended it, RuntimeError in step 2 (the last captured step "
        "is 1, the last step of the timeline is 1). 2 more ranks did not end by themselves. "
    )


def test_a_killed_run_without_tensors_says_so_before_what_to_capture(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "bare.h5", {}, run=RunInfo(steps_seen=4), timeline=timeline(4))

    assert inspect_files(str(path)).summary.startswith(
        "The run did not end by itself: it was killed or is still running (no step was captured, the last step of the "
        "timeline is 3). No step was captured (4 steps, of which 0 captured)."
    )
