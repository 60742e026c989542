"""A damaged capture is refused in a sentence: no traceback, and no module accused of what a disk did."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from align.capture_file import open_capture
from align.errors import AlignError, CaptureFileError
from align.records import Verdict
from tests.builders import diff_files
from tests.numpy_run import make
from tests.running import environment

FLIPS = 160

# A damaged structure may upset the HDF5 library itself, so the flips are tried in a process of its own.
PROGRAM = """
import json, sys
from pathlib import Path
from align.commands import diff_files
from align.errors import AlignError

reference, damaged, flips = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
whole = Path(reference).read_bytes()
for place, mask in flips:
    data = bytearray(whole)
    data[place] ^= mask
    damaged.write_bytes(data)
    try:
        outcome = str(diff_files(reference, str(damaged)).verdict)
    except AlignError as error:
        outcome = f"sentence {error}"
    print(json.dumps([place, mask, outcome]), flush=True)
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("whole") / "a.h5", steps=2)


def test_flipped_bytes_are_no_difference_between_runs(tmp_path: Path) -> None:
    whole = make(tmp_path / "a.h5", steps=1)
    size = whole.stat().st_size
    random_numbers = random.Random(0)
    # The head of the file and the tables are small beside the sketches, and break in more ways.
    flips = [(random_numbers.randrange(size), 1 << random_numbers.randrange(8)) for _ in range(FLIPS // 2)]
    flips += [
        (random_numbers.randrange(min(size, 60_000)), random_numbers.randrange(1, 256)) for _ in range(FLIPS // 2)
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(whole), str(tmp_path / "b.h5"), json.dumps(flips)],
        capture_output=True, text=True, check=False, env=environment(), timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(outcomes) == len(flips)
    accused = [outcome for outcome in outcomes if outcome[2] != "aligned" and "Cannot" not in outcome[2]]
    assert not accused


def _damaged(whole: Path, path: Path, change: Callable[[h5py.File], None]) -> Path:
    path.write_bytes(whole.read_bytes())
    with h5py.File(path, "r+", locking=False) as file:
        change(file)
    return path


def _read_all(path: Path) -> None:
    with open_capture(path) as capture:
        assert capture.modules
        assert capture.timeline
        assert all(capture.records(step) for step in capture.steps)


def _one_statistic(file: h5py.File) -> None:
    index = file["step1/index"]
    rows = index[...]
    rows["total_squares"][40] *= 4.0
    index[...] = rows


def _one_bucket(file: h5py.File) -> None:
    file["step0/sketches"][7] += 1.0


def _one_name(file: h5py.File) -> None:
    file["name_bytes"][3] ^= 1


def _one_class(file: h5py.File) -> None:
    rows = file["modules"][...]
    rows["matmul"][1] = True
    file["modules"][...] = rows


def _one_loss(file: h5py.File) -> None:
    rows = file["timeline"][...]
    rows["learning_rate"][0] = 3.0
    file["timeline"][...] = rows


def _one_fact(file: h5py.File) -> None:
    file["run"][()] = file["run"][()].replace(b'"cpu"', b'"npu"')


def _one_group(file: h5py.File) -> None:
    file.move("step1", "stop1")


def _steps_exchanged(file: h5py.File) -> None:
    file.move("step0", "step7")


@pytest.mark.parametrize(
    ("change", "damage"),
    [
        (_one_statistic, "step1 does not fit its checksum"),
        (_one_bucket, "step0 does not fit its checksum"),
        (_steps_exchanged, "step7 does not fit its checksum"),
        (_one_name, "the table 'names' does not fit its checksums"),
        (_one_class, "the table 'modules' does not fit its checksums"),
        (_one_loss, "the table 'timeline' does not fit its checksums"),
        (_one_fact, "the facts of the run do not fit their checksum"),
        (_one_group, "it holds 'stop1', which no capture has"),
    ],
)
def test_a_damaged_part_is_named(whole: Path, tmp_path: Path, change: Callable[[h5py.File], None], damage: str) -> None:
    path = _damaged(whole, tmp_path / "b.h5", change)
    with pytest.raises(CaptureFileError) as caught:
        _read_all(path)
    assert str(caught.value) == (
        f"Cannot read '{path}': it is damaged ({damage}). Copy it again from where it was written, or capture again."
    )


def test_a_comparison_with_a_damaged_file_is_refused(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(AlignError, match="is damaged"):
        diff_files(whole, _damaged(whole, tmp_path / "b.h5", _one_bucket))
    assert diff_files(whole, whole).verdict is Verdict.ALIGNED


def test_a_file_without_steps_or_rows_is_whole(tmp_path: Path) -> None:
    path = make(tmp_path / "a.h5", steps=0)
    with open_capture(path) as capture:
        assert capture.timeline == []
        assert np.array_equal(capture.steps, [])
