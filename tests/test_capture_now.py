"""`align capture-now`: asking a run that goes on for its next steps, and every way it can be refused."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import align
from align.capture_file import CaptureWriter
from align.capture_request import Requests, leave_request, request_path, take_request
from align.hooks.steps import parse_steps
from align.records import RunInfo
from tests.running import align as command
from tests.running import environment
from tests.warm import WaitingProcess

WAITING = """
import os, sys, time
from pathlib import Path
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

Path("process").write_text(str(os.getpid()))
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = iter(DataLoader(TensorDataset(torch.randn(800, 4)), batch_size=1))
for step in range(400):
    Path("step").write_text(str(step))
    batch, = next(batches)
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    while step == 2 and not Path("go").exists():
        time.sleep(0.01)
    time.sleep(0.005)
    if Path("end").exists():
        break
"""


@dataclass(frozen=True)
class Running:
    """A process, and what it will have printed when it has ended."""

    pid: int
    done: Future[subprocess.CompletedProcess[str]]

    def code(self) -> int:
        """Its exit code, once it has ended."""
        return self.done.result(timeout=60).returncode


@pytest.fixture(scope="module")
def beside() -> Iterator[WaitingProcess]:
    """Starts programs while others are started too."""
    waiting = WaitingProcess(environment())
    yield waiting
    waiting.close()


@pytest.fixture
def running(beside: WaitingProcess, tmp_path: Path) -> Iterator[Running]:
    """A captured script that waits in its third step, after the update."""
    (tmp_path / "train.py").write_text(WAITING)
    arguments = ["-m", "align", "capture", "--steps", "0:2", "-o", "run.h5", "train.py"]
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(beside.run, arguments, environment(), tmp_path, "", 300)
        wait_for(tmp_path / "step", "2")
        process = Running(int((tmp_path / "process").read_text()), done)
        time.sleep(0.3)
        try:
            yield process
        finally:
            if not done.done():
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)


def wait_for(path: Path, text: str) -> None:
    for _ in range(6000):
        with suppress(OSError):
            if path.read_text() == text:
                return
        time.sleep(0.01)
    pytest.fail(f"{path} never said {text}")


def test_the_next_steps_of_a_living_run_are_captured(running: Running, tmp_path: Path) -> None:
    asked = command("capture-now", "run.h5", "--steps", "2", cwd=tmp_path)
    assert asked.code == 0, asked.stderr
    assert asked.stdout == (
        "The next 2 steps are captured into run.h5 once the step of now is over; the run goes on as it is.\n"
    )
    (tmp_path / "go").touch()
    for _ in range(6000):
        if not request_path(tmp_path / "run.h5").exists():
            break
        time.sleep(0.01)
    time.sleep(0.5)
    (tmp_path / "end").touch()
    assert running.code() == 0
    with align.open(tmp_path / "run.h5") as capture:
        assert capture.steps[:2] == [0, 1]
        assert len(capture.steps) == 4
        first, second = capture.steps[2:]
        assert second == first + 1
        keys = [{(record.key.name, record.key.slot) for record in capture.records(step)} for step in (1, first, second)]
        assert keys[2] == keys[0]
        assert keys[1] - keys[0] == set()
        assert keys[0] - keys[1] <= {("<DataLoader>", "0")}
    assert not request_path(tmp_path / "run.h5").exists()
    refused = command("capture-now", "run.h5", cwd=tmp_path)
    assert (refused.code, refused.stdout) == (2, "")
    assert refused.stderr == (
        "align: Cannot capture a step of 'run.h5' now: its run has ended (finished). Capture it again with --steps.\n"
    )


def test_a_run_that_was_killed_is_refused(running: Running, tmp_path: Path) -> None:
    os.kill(running.pid, signal.SIGKILL)
    killed = f"its process {running.pid} is gone, the run was killed. Capture it again with --steps.\n"
    for _ in range(500):
        refused = command("capture-now", "run.h5", cwd=tmp_path)
        if refused.code:
            break
    assert refused.stderr == f"align: Cannot capture a step of 'run.h5' now: {killed}"
    assert running.code() == -signal.SIGKILL
    assert command("capture-now", "run.h5", cwd=tmp_path).stderr == refused.stderr


def unfinished(path: Path, run: RunInfo) -> None:
    """A file as a process that is still there has it open."""
    writer = CaptureWriter(path, run)
    writer.commit(0, [], {})
    writer.close(replace(run, outcome="unfinished"))


def test_every_rank_is_asked(tmp_path: Path) -> None:
    for rank in range(2):
        unfinished(tmp_path / f"run.rank{rank:04d}.h5", RunInfo(process_id=os.getpid(), host="elsewhere", rank=rank))
    asked = command("capture-now", "run.h5", cwd=tmp_path)
    assert asked.stdout == (
        "The next step is captured into the files of all 2 ranks, run.rank0000.h5 ... once the step of now is over; "
        "the run goes on as it is.\n"
    )
    assert [take_request(tmp_path / f"run.rank{rank:04d}.h5") for rank in range(2)] == [1, 1]


def test_a_process_on_another_machine_is_not_looked_for(tmp_path: Path) -> None:
    unfinished(tmp_path / "run.h5", RunInfo(process_id=2**22 + 1, host="elsewhere"))
    assert command("capture-now", "run.h5", cwd=tmp_path).code == 0


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    refused = command("capture-now", "no.h5", cwd=tmp_path)
    assert refused.code == 2
    assert refused.stderr == (
        "align: Cannot read 'no.h5': there is no such file. Check the path, or make it with 'align capture -o no.h5'.\n"
    )


def test_a_running_capture_looks_for_requests_now_and_then_only(tmp_path: Path) -> None:
    requests = Requests(tmp_path / "run.h5")
    assert requests.take() == 0
    leave_request(tmp_path / "run.h5", 3)
    assert [requests.take() for _ in range(3)] == [0, 0, 0]
    time.sleep(0.3)
    assert requests.take() == 3
    assert not request_path(tmp_path / "run.h5").exists()


@pytest.mark.parametrize(("text", "steps"), [("many", 0), ("-1", 0), ("9" * 5000, 0), ("100000", 100_000), ("7", 7)])
def test_a_request_that_cannot_be_read_is_none(tmp_path: Path, text: str, steps: int) -> None:
    request_path(tmp_path / "run.h5").write_text(text)
    assert take_request(tmp_path / "run.h5") == steps
    assert not request_path(tmp_path / "run.h5").exists()


def test_more_steps_than_a_request_may_ask_for_are_refused(tmp_path: Path) -> None:
    refused = command("capture-now", "run.h5", "--steps", str(10**21), cwd=tmp_path)
    assert (refused.code, refused.stdout) == (2, "")
    assert refused.stderr == (
        f"align: Cannot capture the next {10**21} steps of 'run.h5': one request asks for 100,000 at most. Ask for "
        "fewer, or capture the run again with --steps 0: for all of them.\n"
    )


def test_requested_steps_are_all_captured_whatever_every_says() -> None:
    choice = parse_steps("0:", 10).with_range(13, 100_013)
    assert [step for step in range(20) if step in choice] == [0, 10, 13, 14, 15, 16, 17, 18, 19]
    assert 100_012 in choice
    assert [step for step in range(100_013, 100_030) if step in choice] == [100_020]
    assert len(choice.whole) == 1
    assert choice.with_range(200_000, 200_002).whole == ((200_000, 200_002),)
    over = parse_steps("0:3").with_range(7, 9)
    assert [step for step in range(10) if over.over_after(step)] == [8, 9]
