"""The benchmark of capturing runs, at a size at which its numbers mean nothing, and prints all that it promises."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec

import pytest

torch = pytest.importorskip("torch")
if find_spec("transformers") is None:  # only the benchmark imports it: it takes seconds
    pytest.skip("transformers is not installed", allow_module_level=True)

from benchmarks.capture_overhead import TARGETS, Target, note_on_noise, rotated  # noqa: E402  needs torch
from benchmarks.peer_msprobe import PeerError, find_msprobe  # noqa: E402
from benchmarks.training import Seconds  # noqa: E402
from tests.running import ROOT, python  # noqa: E402

SIZE = {"vocabulary": 50, "width": 32, "layers": 1, "heads": 2, "batch": 2, "length": 8}
TINY = [f"--{name}={number}" for name, number in {**SIZE, "rounds": 1, "steps": 1, "repeats": 1}.items()]
WAYS = [
    "plain", "align, outside the window", "align, stats", "align, sketch", "plain, again", "align, tensors",
    "naive hooks",
]  # fmt: skip
NOWHERE = "/nowhere/python"
VERSION = torch.__version__.split("+")[0]
ADVICE = (
    "To measure it too, install it into an environment of its own (python -m venv peer; peer/bin/pip install "
    f"mindstudio-probe torch=={VERSION} transformers) and give --peer-python peer/bin/python."
)


@pytest.fixture(scope="module")
def printed() -> list[str]:
    """The lines of a whole run, without a peer."""
    done = python("benchmarks/capture_overhead.py", *TINY, "--peer-python", NOWHERE, cwd=ROOT)
    assert (done.code, done.stderr) == (0, "round 1 of 1\n")
    return [line for line in done.stdout.splitlines() if not line.startswith("The two medians")]


def test_each_way_of_running_a_step_has_a_line_with_its_target(printed: list[str]) -> None:
    assert re.sub(" +", " ", printed[0]) == "a step median wall cpu steps target reached"
    for name, line in zip(WAYS, printed[1:8], strict=True):
        numbers = r" +\d+ ms +\d+\.\d{3}x +\d+\.\d{3}x +1"
        target = TARGETS.get(name)
        promise = rf"  {target.limit:.2f}x   (yes|no)" if target else ""
        if target and target.aim:
            promise += rf", aim of {target.aim:.2f}x: (yes|no)"
        assert re.fullmatch(re.escape(name) + numbers + promise, line), line


def test_a_peer_that_is_not_there_is_said_and_the_rest_is_measured(printed: list[str]) -> None:
    missing = f"[Errno 2] No such file or directory: '{NOWHERE}'"
    assert printed[8] == f"msprobe is not measured: cannot run '{NOWHERE}': {missing}. {ADVICE}"


def test_peaks_of_memory_stand_beside_what_is_allowed(printed: list[str]) -> None:
    assert printed[9] == ""
    assert re.sub(" +", " ", printed[10]) == "peak memory, detail sketch plain captured allowed reached (1 each)"
    for name, line in zip(("host, without checkpointing", "host, with checkpointing"), printed[11:], strict=True):
        found = re.fullmatch(rf"{name} +(\d+) MB +(\d+) MB +(\d+) MB  (yes|no)", line)
        assert found, line
        plain, captured, allowed = map(int, found.groups()[:3])
        assert abs(plain * 1.05 + 64 - allowed) < 2
        assert plain > 100, "a process with torch in it holds more than 100 MB"
        assert found[4] == ("yes" if captured <= allowed else "no")


@pytest.mark.parametrize(
    ("target", "ratio", "words"),
    [
        pytest.param(Target(1.02), 1.02, "yes", id="at-the-limit"),
        pytest.param(Target(1.02), 1.021, "no", id="over"),
        pytest.param(Target(1.15, aim=1.10), 1.12, "yes, aim of 1.10x: no", id="between"),
        pytest.param(Target(1.15, aim=1.10), 1.09, "yes, aim of 1.10x: yes", id="below-the-aim"),
    ],
)
def test_a_ratio_is_held_against_its_target(target: Target, ratio: float, words: str) -> None:
    assert target.reached(ratio) == words


def plain_steps(again: float) -> dict[str, list[Seconds]]:
    return {"plain": [Seconds(1.0, 1.0)] * 3, "plain, again": [Seconds(wall, 1.0) for wall in (again, again, 9.0)]}


def test_noise_is_said_where_it_exceeds_the_tightest_target() -> None:
    assert note_on_noise(plain_steps(1.015)) == ""
    assert note_on_noise(plain_steps(0.8)) == (
        "The two medians of plain steps are 25.0% apart: the machine was too busy for the targets, which are for wall "
        "time. Run this again when it is quiet, or with more --rounds; cpu is disturbed less."
    )


def test_rounds_begin_elsewhere_and_leave_nothing_out() -> None:
    assert rotated(["a", "b", "c"], 4) == ["b", "c", "a"]


@pytest.mark.skipif(find_spec("msprobe") is not None, reason="msprobe is installed here")
def test_an_interpreter_without_msprobe_is_told_how_to_get_it() -> None:
    with pytest.raises(PeerError) as raised:
        find_msprobe(sys.executable)
    assert str(raised.value) == (f"msprobe is not measured: '{sys.executable}' has no mindstudio-probe. {ADVICE}")
