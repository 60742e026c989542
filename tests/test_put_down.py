"""A process of its own puts a journal down; wherever it fails, the capture is the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from align import put_down
from align.capture_file import CaptureWriter
from align.put_down import PutDownProcess
from align.put_down_process import RUN
from align.steady_file import SteadyFile
from tests.test_steady_file import RUN as FACTS
from tests.test_steady_file import check, commit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Other systems put down their journals themselves.")

ROOT = Path(__file__).parents[1]
FIRST, CHANGED = b"a" * 9000, b"b" * 100
MOST_MEMORY = 15_000
"""KiB that the process may hold; an interpreter without packages takes 9,500."""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SteadyFile]:
    """A file with something in it that is settled."""
    file = SteadyFile.create(tmp_path / "a", overwrite=False)
    file.write(memoryview(FIRST))
    file.settle()
    yield file
    file.close()


def change(file: SteadyFile, start: int) -> None:
    """Change something that is settled, and settle that."""
    file.seek(start)
    file.write(memoryview(CHANGED))
    file.settle()


def number_of(file: SteadyFile) -> int:
    """Of the process that has put something down."""
    assert file._process._connection is not None
    return file._process._number


def is_there(number: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what must happen, however slow the machine is."""
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()


def run(program: str, *arguments: str) -> str:
    """What a program prints; it must say nothing else and end well."""
    head = "import os, signal, sys\nsys.path.insert(0, sys.argv[1])\nfrom tests.test_put_down import *\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", head + program, str(ROOT), *arguments],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_process_is_small_belongs_to_nobody_and_leaves(file: SteadyFile, tmp_path: Path) -> None:
    change(file, 1000)
    number = number_of(file)
    status = Path(f"/proc/{number}/status").read_text(encoding="utf-8")
    assert int(status.split("VmHWM:")[1].split()[0]) < MOST_MEMORY
    assert int(status.split("PPid:")[1].split()[0]) != os.getpid()
    assert os.getsid(number) != os.getsid(0)
    opened = {link.readlink().as_posix() for link in Path(f"/proc/{number}/fd").iterdir()}
    assert {name for name in opened if not name.startswith("socket:")} == {"/dev/null", str(tmp_path / "a")}
    change(file, 5000)
    assert number_of(file) == number
    file.close()
    wait_until(lambda: not is_there(number))
    expected = bytearray(FIRST)
    expected[1000:1100] = expected[5000:5100] = CHANGED
    assert (tmp_path / "a").read_bytes() == expected
    file._descriptor = os.open(tmp_path / "a", os.O_RDONLY)


def test_a_script_has_no_more_children_and_hands_down_no_more_files(tmp_path: Path) -> None:
    printed = run(
        """
writer = CaptureWriter(sys.argv[2], FACTS)
before = set(os.listdir("/proc/self/fd"))
commit(writer, 0)
commit(writer, 1)
try:
    print(os.wait())
except ChildProcessError:
    print("no children")
subprocess.run(["ls", "/proc/self/fd"], close_fds=False, check=True)
""",
        str(tmp_path / "a.h5"),
    )
    assert printed == "no children\n0\n1\n2\n3\n"


@pytest.mark.parametrize("ending", ["os._exit(0)", "os.execv('/bin/true', ['true'])", "sys.exit(0)"])
def test_the_process_leaves_with_its_training_also_when_a_forked_child_stays(tmp_path: Path, ending: str) -> None:
    printed = run(
        f"""
import time
writer = CaptureWriter(sys.argv[2], FACTS)
commit(writer, 0)
commit(writer, 1)
child = os.fork()
if not child:
    os.close(1), os.close(2)
    time.sleep(100)
os.write(1, f"{{child}} {{number_of(writer._steady)}}".encode())
{ending}
""",
        str(tmp_path / "a.h5"),
    )
    child, number = map(int, printed.split())
    try:
        wait_until(lambda: not is_there(number))
        assert is_there(child)
    finally:
        os.kill(child, signal.SIGKILL)
    assert check(tmp_path / "a.h5", 2) == 2


@pytest.mark.parametrize(
    "interpreter", ["", "/nowhere/python", "/bin/true", "/bin/false", "{folder}/waits"], ids=lambda name: name or "none"
)
def test_where_no_process_can_be_had_the_capture_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interpreter: str
) -> None:
    waits = tmp_path / "waits"
    waits.write_text("#!/bin/sh\nexec sleep 100\n", encoding="utf-8")
    waits.chmod(0o755)
    for name in ("a.h5", "b.h5"):
        if name == "b.h5":
            monkeypatch.setattr(sys, "executable", interpreter.format(folder=tmp_path))
            monkeypatch.setattr(put_down, "_PATIENCE", 0.1)
        writer = CaptureWriter(tmp_path / name, FACTS)
        for step in range(3):
            commit(writer, step)
        assert (writer._steady._process._connection is None) == (name == "b.h5")
        writer.close(FACTS)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_is_gone_or_hangs_is_done_without(
    file: SteadyFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blow: signal.Signals
) -> None:
    monkeypatch.setattr(put_down, "_PATIENCE", 1.0)
    change(file, 1000)
    number = number_of(file)
    os.kill(number, blow)
    if blow == signal.SIGKILL:
        wait_until(lambda: not is_there(number))
    change(file, 5000)
    assert (file.error, file.interruption, file._process._connection) == (None, None, None)
    wait_until(lambda: not is_there(number))
    change(file, 8950)
    expected = bytearray(FIRST)
    expected[1000:1100] = expected[5000:5100] = CHANGED
    expected[8950:] = CHANGED
    assert (tmp_path / "a").read_bytes() == expected


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"])
def test_signals_to_all_processes_of_a_job_do_not_end_it(file: SteadyFile, name: str) -> None:
    change(file, 1000)
    number = number_of(file)
    os.kill(number, getattr(signal, name))
    change(file, 5000)
    assert number_of(file) == number


def test_what_a_signal_handler_raises_while_the_process_works_comes_afterwards(
    file: SteadyFile, tmp_path: Path
) -> None:
    change(file, 1000)
    number = number_of(file)

    def handler(*_: object) -> None:
        os.kill(number, signal.SIGCONT)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    os.kill(number, signal.SIGSTOP)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        change(file, 5000)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert isinstance(file.interruption, KeyboardInterrupt)
    assert (file.error, number_of(file)) == (None, number)
    expected = bytearray(FIRST)
    expected[1000:1100] = expected[5000:5100] = CHANGED
    assert (tmp_path / "a").read_bytes() == expected


def test_a_script_that_dies_of_broken_pipes_does_not_die_of_this_one(tmp_path: Path) -> None:
    printed = run(
        """
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
writer = CaptureWriter(sys.argv[2], FACTS)
commit(writer, 0)
commit(writer, 1)
number = number_of(writer._steady)
os.kill(number, signal.SIGKILL)
wait_until(lambda: not is_there(number))
commit(writer, 2)
writer.close(FACTS)
print("went on")
""",
        str(tmp_path / "a.h5"),
    )
    assert printed == "went on\n"
    assert check(tmp_path / "a.h5", 3) == 3


def test_a_journal_that_is_not_whole_is_not_put_down(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(FIRST + RUN.pack(0, 100) + CHANGED)
    descriptor = os.open(path, os.O_RDWR)
    process = PutDownProcess(descriptor)
    assert not process.put_down(len(FIRST), RUN.size + 101, len(FIRST))
    assert path.read_bytes() == FIRST + RUN.pack(0, 100) + CHANGED
    process = PutDownProcess(descriptor)
    assert process.put_down(len(FIRST), RUN.size + 100, len(FIRST))
    assert path.read_bytes() == CHANGED + FIRST[100:]
    process.stop()
    os.close(descriptor)
