"""What was settled can be read at every moment, whatever stops the writer and wherever it stops."""

from __future__ import annotations

import bisect
import os
import resource
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from align import steady_file
from align.capture_file import CaptureWriter, open_capture
from align.errors import CaptureError, CaptureFileError
from align.records import ModuleInfo, Phase, RunInfo, TensorKey, TensorRecord, TensorStats, TimelineRow
from align.steady_file import SteadyFile
from tests.every_write import WatchedFile, open_plainly

RUN = RunInfo(align_version="0.1")


def commit(writer: CaptureWriter, step: int, *, tensors: int = 6) -> None:
    """Write a step whose values, statistics and sketches tell its number."""
    records, values = [], {}
    for order in range(tensors):
        key = TensorKey(step, Phase.FORWARD, f"layer{order}.{step // 2}", "output.0")
        number = float(step * 1000 + order)
        sketch = np.full(50, number, dtype=np.float32)
        records.append(TensorRecord(key, order, "float32", (50,), TensorStats(50, total=number), sketch=sketch))
        values[order] = writer.add_values(sketch, "float32")
    writer.commit(step, records, values)


def timeline(writer: CaptureWriter, step: int) -> None:
    row = TimelineRow(step, 1.0, 1.0, 1.0, 1.0, 1.0, False, False, 1, f"optimizer{step // 5}")
    writer.append_timeline([row])


def commit_until_it_fails(writer: CaptureWriter, finished: list[int]) -> None:
    """Write steps without end, noting each that was finished."""
    for step in count():
        commit(writer, step)
        finished.append(step)


def check(path: Path, finished: int, *, every: int = 1) -> int:
    """Assert that all finished steps are there and right; returns how many steps there are."""
    with open_capture(path) as capture:
        assert capture.steps[:finished] == list(range(finished))
        for row in capture.timeline:
            assert (row.loss, row.optimizer) == (1.0, f"optimizer{row.step // 5}")
        for step in {*capture.steps[::every], *capture.steps[-2:]}:
            for record in capture.records(step)[-1:]:
                number = float(step * 1000 + record.order)
                assert record.stats is not None
                assert record.sketch is not None
                assert (record.stats.total, record.sketch[0]) == (number, number)
                assert np.array_equal(capture.values(record), np.full(50, number))
        return len(capture.steps)


@pytest.mark.parametrize("other_process", [True, False], ids=["put down by another process", "put down here"])
def test_the_file_can_be_read_after_every_single_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other_process: bool
) -> None:
    watched = WatchedFile(monkeypatch, other_process=other_process)
    writer = CaptureWriter(tmp_path / "a.h5", RUN)
    ends = []
    for step in range(6):
        if step % 4 == 0:
            waiting = writer.add_values(np.zeros(50), "float64")
            timeline(writer, step)
            writer.flush()
            del waiting
        commit(writer, step, tensors=6 if step % 3 else 12)
        ends.append(len(watched.changes))
        writer.append_modules([ModuleInfo(f"layer{step}", "Linear")])
        timeline(writer, step)
        if step % 2:
            writer.flush()
    writer.close(RUN)

    assert watched.put_down == (10 if other_process else 0)
    path, image = tmp_path / "b.h5", b""
    for number, image in watched.states(ends[0]):
        path.write_bytes(image)
        finished = bisect.bisect_right(ends, number)
        check(path, finished, every=9)
        if other_process:
            open_plainly(path, finished)
    assert image == (tmp_path / "a.h5").read_bytes()


# Importing what a capture needs costs a second, so all writers are children of one process.
KILLED = """
import os, random, signal, sys, time
sys.path.insert(0, sys.argv[1])
from tests.test_steady_file import CaptureWriter, RUN, commit, timeline

for seed, path in enumerate(sys.argv[2:]):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(writing, 1)
        writer = CaptureWriter(path, RUN)
        for step in range(200):
            commit(writer, step)
            timeline(writer, step)
            writer.flush()
            print(step + 1, flush=True)
        print("done", flush=True)
        signal.pause()
    os.close(writing)
    with os.fdopen(reading) as lines:
        words = [lines.readline()]
        time.sleep(random.Random(seed).uniform(0, 0.25))
        os.kill(child, signal.SIGKILL)
        words += lines.read().split()
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    # The first line was read above; a last line may be cut short.
    print(max([1, *(int(word) for word in words[1:-1] if word.isdigit())]), flush=True)
"""
KILLS = 12


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, int]]:
    """The files of processes that were killed while they wrote, and how many steps each had finished by then."""
    folder = tmp_path_factory.mktemp("killed")
    paths = [folder / f"{seed}.h5" for seed in range(KILLS)]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(Path(__file__).parents[1]), *map(str, paths)],
        capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(path, int(line)) for path, line in zip(paths, done.stdout.splitlines(), strict=True)]


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_killed_process_leaves_all_finished_steps(killed: list[tuple[Path, int]], seed: int) -> None:
    path, finished = killed[seed]
    assert check(path, finished, every=20) >= finished
    with open_capture(path) as capture:
        assert capture.unfinished


def test_a_forked_child_that_ends_leaves_the_file_alone(tmp_path: Path) -> None:
    program = """
import os, sys
sys.path.insert(0, sys.argv[1])
from tests.test_steady_file import CaptureWriter, RUN, commit, timeline, np
writer = CaptureWriter(sys.argv[2], RUN)
commit(writer, 0)
waiting = writer.add_values(np.ones(100000), "float64")
for number, deed in enumerate((lambda: None, lambda: commit(writer, 99), lambda: writer.close(RUN), writer.flush)):
    child = os.fork()
    if not child:
        deed()
        sys.exit(7)
    assert os.waitpid(child, 0)[1] >> 8 == 7
    commit(writer, number + 1)
timeline(writer, 0)
writer.close(RUN)
"""
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(root), str(tmp_path / "a.h5")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert check(tmp_path / "a.h5", 5) == 5


@pytest.mark.parametrize("ending", ["sys.exit(3)", "raise SystemExit(3)", "os._exit(3)"])
def test_a_process_that_ends_without_closing_leaves_the_finished_steps(tmp_path: Path, ending: str) -> None:
    program = f"""
import os, sys
sys.path.insert(0, sys.argv[1])
from tests.test_steady_file import CaptureWriter, RUN, commit, timeline
writer = CaptureWriter(sys.argv[2], RUN)
commit(writer, 0)
timeline(writer, 0)
{ending}
"""
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", program, str(root), str(tmp_path / "a.h5")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (3, "")
    assert check(tmp_path / "a.h5", 1) == 1


@pytest.mark.parametrize("limit", [30_000, 60_000, 61_000, 62_500, 70_000, 90_000, 131_072])
def test_a_full_disk_leaves_the_finished_steps_and_the_facts(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "a.h5"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    writer = CaptureWriter(path, RUN)
    finished: list[int] = []
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(CaptureFileError) as raised:
            commit_until_it_fails(writer, finished)
        with pytest.raises(CaptureFileError):
            writer.flush()
        writer.close(RunInfo(outcome="finished", notes=("The disk was full.",)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert str(raised.value) == (
        f"Cannot write '{path}': file too large. The steps that were finished before are in the file."
    )
    assert writer.failed
    assert check(path, len(finished)) == len(finished)
    with open_capture(path) as capture:
        assert capture.run.notes == ("The disk was full.",)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="This system has no /dev/full.")
def test_a_file_that_cannot_be_begun_is_told() -> None:
    with pytest.raises(CaptureError) as raised:
        CaptureWriter("/dev/full", RUN, force=True)
    assert str(raised.value) == "Cannot write '/dev/full': no space left on device. Choose another place with -o."


def test_a_disk_that_is_full_from_the_start_is_left_without_a_file(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with pytest.raises(CaptureError) as raised:
            CaptureWriter(tmp_path / "a.h5", RUN)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert str(raised.value) == (f"Cannot write '{tmp_path / 'a.h5'}': file too large. Choose another place with -o.")
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_during_a_write_is_raised_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really_write = steady_file._write
    calls = []

    def write(descriptor: int, data: memoryview, start: int) -> None:
        calls.append(start)
        if len(calls) == 40:
            signal.raise_signal(signal.SIGINT)
        really_write(descriptor, data, start)

    monkeypatch.setattr(steady_file, "_write", write)
    writer = CaptureWriter(tmp_path / "a.h5", RUN)
    finished: list[int] = []
    # A shell that starts a command in the background lets it ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            commit_until_it_fails(writer, finished)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not writer.failed
    writer.close(RUN)
    check(tmp_path / "a.h5", len(finished))


def test_reading_sees_what_is_held(tmp_path: Path) -> None:
    file = SteadyFile.create(tmp_path / "a", overwrite=False)
    file.write(memoryview(bytes(range(256)) * 64))
    file.settle()
    rng = np.random.default_rng(0)
    expected = bytearray((tmp_path / "a").read_bytes())
    for _ in range(100):
        start, size = int(rng.integers(0, 16_000)), int(rng.integers(1, 6000))
        data = rng.bytes(size)
        file.seek(start)
        assert file.write(memoryview(data)) == size
        expected[start : start + size] = data
        file.seek(int(rng.integers(0, 16_000)))
        place = file.tell()
        assert file.read(3000) == bytes(expected[place : place + 3000]).ljust(3000, b"\0")
    assert file.seek(0, os.SEEK_END) == len(expected)
    assert (tmp_path / "a").read_bytes()[:16384] == bytes(range(256)) * 64
    file.settle()
    file.close()
    assert (tmp_path / "a").read_bytes() == bytes(expected)


def test_a_journal_that_is_damaged_or_cut_is_not_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    file = SteadyFile.create(path, overwrite=False)
    file.write(memoryview(bytes(10_000)))
    file.settle()
    file.seek(5000)
    file.write(memoryview(b"changed"))
    monkeypatch.setattr(steady_file, "_resize", lambda _descriptor, _size: None)
    monkeypatch.setattr(sys, "executable", "")
    file.settle()
    file.close()
    whole = path.read_bytes()
    path.write_bytes(bytes(10_000) + whole[10_000:])
    found = SteadyFile.open(path)
    assert found.recovered
    assert found.seek(0, os.SEEK_END) == 10_000
    found.seek(5000)
    assert found.read(7) == b"changed"
    found.close()
    for damaged in (whole[:-1], whole[:10_100] + b"x" + whole[10_101:], whole[-24:], b""):
        path.write_bytes(damaged)
        found = SteadyFile.open(path)
        assert not found.recovered
        found.close()
