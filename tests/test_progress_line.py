"""The line that says how far a command is: on terminals only, gone at the end, and Ctrl-C ends with a sentence."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from align import watching
from align.commands import checkpoint_files, diff_files, inspect_files
from align.records import Verdict
from align.reports.progress_line import ProgressLine, Work, duration, how_far, is_wanted, size
from align.reports.progress_phrases import CHINESE, ENGLISH, PHRASES
from align.watching import Stage
from tests import numpy_run
from tests.running import environment

SIGNS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
INTERRUPTED = "align: interrupted before it was done; no file was left half written."
TENSORS, BYTES = 100, 1 << 32
NARROWED = 4
"""Signs to which rich narrows the bar where a line is long."""


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of 429 GB that takes no space: it is one hole, and reading it takes minutes anywhere."""
    path = tmp_path_factory.mktemp("endless") / "big.safetensors"
    write_zeros(path, TENSORS, BYTES)
    return path


def write_zeros(path: Path, tensors: int, each: int) -> None:
    header = {
        f"layers.{number}.weight": {
            "dtype": "F32", "shape": [each // 4], "data_offsets": [number * each, (number + 1) * each],
        }
        for number in range(tensors)
    }  # fmt: skip
    text = json.dumps(header).encode()
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        stream.truncate(8 + len(text) + tensors * each)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "align", *arguments]


def surroundings(**variables: str) -> dict[str, str]:
    said = {name: value for name, value in environment().items() if name != "ALIGN_PROGRESS"}
    return {**said, "TERM": "xterm", "COLUMNS": "80", "LANG": "C.UTF-8", "PYTHONIOENCODING": "utf-8", **variables}


@contextmanager
def on_terminal(*arguments: str, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A command whose output goes to a terminal, and the other end of that."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(*arguments), cwd=folder, env=surroundings(), stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_until(end: int, text: str) -> str:
    """What is written up to a text, or to the end where it does not come."""
    data = b""
    while not text or text not in data.decode(errors="ignore"):
        try:
            more = os.read(end, 65536)
        except OSError:  # the terminal was left
            break
        if not more:
            break
        data += more
    return data.decode(errors="ignore")


@pytest.mark.parametrize(
    ("code", "said", "interrupted"),
    [
        ("en", r"comparing checkpoints .* [\d.]+ [kMG]B of 859\.0 GB, [\d.]+ [kMG]?B/s, [\d:]+ left", INTERRUPTED),
        (
            "zh",
            r"正在比对 checkpoint .* [\d.]+ [kMG]B / 859\.0 GB\uff0c[\d.]+ [kMG]?B/s\uff0c剩余 [\d:]+",
            "align: 未完成即被中断\uff1b没有留下写到一半的文件。",
        ),
    ],
)
def test_a_terminal_sees_how_far_it_is_and_ctrl_c_ends_it(
    endless: Path, tmp_path: Path, code: str, said: str, interrupted: str
) -> None:
    files = ("--html", "page.html", "--json", "result.json", "--lang", code)
    with on_terminal("checkpoint", str(endless), str(endless), *files, folder=tmp_path) as (process, end):
        seen = read_until(end, "B/s")
        seen += read_until(end, "\r\x1b[2K")
        os.killpg(process.pid, signal.SIGINT)
        rest = read_until(end, "")
        status = process.wait()
    assert re.search(said, SIGNS.sub("", seen))
    # The line is erased, and the sentence stands in its place.
    assert rest.endswith(f"\x1b[2K{interrupted}\r\n")
    assert status == 130
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_sees_it_where_the_environment_asks_for_it(endless: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        command("checkpoint", str(endless), str(endless)), cwd=tmp_path, env=surroundings(ALIGN_PROGRESS="1"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    seen = read_until(process.stderr.fileno(), "comparing checkpoints")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate()
    assert "comparing checkpoints" in seen
    assert stderr.decode().endswith(f"{INTERRUPTED}\n")
    assert (stdout, process.returncode) == (b"", 130)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="it is looked for what the process has open")
def test_a_pipe_sees_nothing_else(endless: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        command("checkpoint", str(endless), str(endless)), cwd=tmp_path, env=surroundings(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    files = Path(f"/proc/{process.pid}/fd")
    while process.poll() is None and not any(file.resolve() == endless for file in files.iterdir()):
        time.sleep(0.05)
    time.sleep(1.5)  # it would be there by now
    process.send_signal(signal.SIGINT)
    assert process.communicate() == ("", f"{INTERRUPTED}\n")
    assert process.returncode == 130


@pytest.mark.parametrize(
    ("said", "terminals", "expected"),
    [
        (None, (True, True), True),
        (None, (False, True), False),
        (None, (True, False), False),
        ("", (True, True), True),
        ("0", (True, True), False),
        ("1", (False, False), True),
        (" 1 ", (False, False), True),
        ("yes", (False, True), False),
    ],
)
def test_it_is_shown_where_both_streams_are_terminals(
    said: str | None, terminals: tuple[bool, bool], expected: bool
) -> None:
    ends = [*pty.openpty(), *os.pipe()]
    with os.fdopen(os.dup(ends[1]), "w") as terminal, os.fdopen(os.dup(ends[3]), "w") as pipe:
        streams = [terminal if each else pipe for each in terminals]
        assert is_wanted({} if said is None else {"ALIGN_PROGRESS": said}, *streams) is expected
    for end in ends:
        os.close(end)


def test_what_ends_soon_writes_nothing() -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        line = ProgressLine(stream, lambda: "en")
        with watching.watched_by(line):
            watching.begin(Stage.READING, 3)
            watching.advance()
            watching.end()
            watching.end()
        stream.write(".")
    assert read_until(ours, ".") == "."
    os.close(ours)


def test_the_line_is_gone_before_anything_is_printed() -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream, watching.watched_by(ProgressLine(stream, lambda: "en")):
        watching.begin(Stage.COMPARING, 2000, parts=4)
        watching.enter(3)
        watching.advance(1200)
        seen = read_until(ours, "2,000")
        watching.end()
        stream.write("result")
        stream.flush()
        seen += read_until(ours, "result")
    os.close(ours)
    assert re.search(r"0:0\d comparing step 3 of 4 \S+ 1,200 of 2,000", SIGNS.sub("", seen))
    assert seen.endswith("\x1b[2Kresult")


class Diary:
    """A watcher that notes what it is told: of each stage its total, its parts, the last part and the units done."""

    def __init__(self) -> None:
        self.stages: list[tuple[Stage, int, int]] = []
        self.parts: list[int] = []
        self.done: list[int] = []

    def begin(self, stage: Stage, total: int, parts: int) -> None:
        self.stages.append((stage, total, parts))
        self.parts.append(0)
        self.done.append(0)

    def enter(self, part: int) -> None:
        self.parts[-1] = part

    def advance(self, count: int) -> None:
        self.done[-1] += count

    def reach(self, start: int, stop: int) -> None:
        self.done[-1] = start
        self.parts[-1] = stop

    def end(self) -> None:
        pass


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of three steps."""
    return numpy_run.make(tmp_path_factory.mktemp("run") / "run.h5", steps=3)


def test_a_comparison_tells_of_each_step_and_pair(run: Path) -> None:
    diary = Diary()
    with watching.watched_by(diary):
        result = diff_files(str(run), str(run))
    assert result.verdict is Verdict.ALIGNED
    initial = sum(each.key.step < 0 for each in result.comparisons)
    judged = len(result.comparisons) - initial
    assert diary.stages == [
        (Stage.READING, 0, 0),
        (Stage.READING, 6, 0),
        (Stage.INITIAL, initial, 0),
        (Stage.COMPARING, judged, 3),
        (Stage.EXPLAINING, 0, 0),
    ]
    assert diary.done == [0, 6, initial, judged, 0]
    assert diary.parts == [0, 0, 0, 3, 0]
    assert initial
    assert judged


def test_nobody_is_told_after_the_block(run: Path) -> None:
    diary = Diary()
    with watching.watched_by(diary):
        pass
    inspect_files(str(run))
    assert diary.stages == []


def test_an_inspection_tells_of_each_step(run: Path) -> None:
    diary = Diary()
    with watching.watched_by(diary):
        inspect_files(str(run))
    assert diary.stages == [(Stage.READING, 3, 0), (Stage.INSPECTING, 0, 0)]
    assert diary.done == [3, 0]


def test_checkpoints_tell_of_each_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_zeros(path, 3, 1 << 21)
    diary = Diary()
    with watching.watched_by(diary):
        checkpoint_files(str(path), str(path))
    total = 2 * 3 * (1 << 21)
    assert diary.stages == [(Stage.PAIRING, 0, 0), (Stage.BYTES, total, 0), (Stage.EXPLAINING, 0, 0)]
    assert (diary.done[1], diary.parts[1]) == (total, total)


def test_a_report_on_a_pipe_says_what_it_wrote_and_no_more(run: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        command("diff", str(run), str(run), "--json", "result.json"), cwd=tmp_path, env=surroundings(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "align: wrote result.json\n")


@pytest.mark.parametrize(
    ("done", "seconds", "expected"),
    [
        (0, 9.0, "0 B of 4.0 GB"),
        (10**9, 0.1, "1.0 GB of 4.0 GB"),
        (10**9, 2.0, "1.0 GB of 4.0 GB, 500.0 MB/s, 0:06 left"),
        (4 * 10**9, 2.0, "4.0 GB of 4.0 GB, 2.0 GB/s, 0:00 left"),
    ],
)
def test_bytes_are_told_with_their_rate_and_the_time_left(done: int, seconds: float, expected: str) -> None:
    assert how_far(Work(Stage.BYTES, 4 * 10**9, 0, 0.0), done, seconds, ENGLISH) == expected


def test_units_are_told_without_a_rate() -> None:
    assert how_far(Work(Stage.READING, 12000, 0, 0.0), 1200, 9.0, ENGLISH) == "1,200 of 12,000"
    assert how_far(Work(Stage.EXPLAINING, 0, 0, 0.0), 0, 9.0, ENGLISH) == ""


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (4.1e9, "4.1 GB"), (2.1e12, "2.1 TB"), (3e15, "3000.0 TB")],
)
def test_sizes_are_read_as_people_say_them(count: float, expected: str) -> None:
    assert size(count) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(0.4, "0:00"), (67, "1:07"), (3727, "1:02:07")])
def test_durations_are_minutes_and_seconds(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


@pytest.mark.parametrize("code", sorted(PHRASES))
def test_each_language_has_a_phrase_for_each_stage(code: str) -> None:
    assert set(PHRASES[code]) == set(ENGLISH) == set(CHINESE) == {*map(str, Stage), "far", "rate"}


def test_the_longest_line_fits_into_80_signs() -> None:
    far = how_far(Work(Stage.BYTES, 999 * 10**9, 0, 0.0), 500 * 10**9, 1000.0, ENGLISH)
    line = " ".join(("-", "16:40", ENGLISH["bytes"], "x" * NARROWED, far))
    assert len(line) <= 80
