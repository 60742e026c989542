"""What cannot be written or read is told in one sentence that holds the path and says what to do next."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from align.capture_checks import seal
from align.capture_file import FORMAT_VERSION, CaptureWriter, open_capture
from align.errors import CaptureError, CaptureFileError, NewerCaptureFile, NotACaptureFile, TruncatedCaptureFile
from align.records import Phase, RunInfo, TensorKey, TensorRecord

RUN = RunInfo(align_version="0.1")
RECORD = TensorRecord(TensorKey(0, Phase.FORWARD, "fc", "output.0"), 0, "float64", (200, 300))


def write(path: Path, *, values: bool = False) -> None:
    writer = CaptureWriter(path, RUN)
    writer.commit(0, [RECORD], {0: writer.add_values(np.zeros((200, 300)), "float64")} if values else {})
    writer.close(RUN)


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root may read everything, so be nobody for a while."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_an_existing_file_is_overwritten_by_force_only(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    path.write_text("precious")
    with pytest.raises(CaptureError) as raised:
        CaptureWriter(path, RUN)
    assert (
        str(raised.value)
        == f"Cannot write '{path}': it exists. Name another file, or replace it with --force (in Python, force=True)."
    )
    assert path.read_text() == "precious"
    CaptureWriter(path, RUN, force=True).close(RUN)
    with open_capture(path) as capture:
        assert capture.steps == []


@pytest.mark.parametrize("force", [False, True])
def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path, force: bool) -> None:
    for path, reason in (
        (tmp_path, f"it is a folder. Name a file in it, as in '{tmp_path / 'run.h5'}'."),
        (tmp_path / "no" / "a.h5", f"there is no folder '{tmp_path / 'no'}'. Create it first."),
        (tmp_path / ("a" * 300), "file name too long. Choose another place with -o."),
    ):
        with pytest.raises(CaptureError) as raised:
            CaptureWriter(path, RUN, force=force)
        assert str(raised.value) == f"Cannot write '{path}': {reason}"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_capture_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("hello")
    empty = tmp_path / "empty.h5"
    empty.touch()
    foreign = tmp_path / "foreign.h5"
    with h5py.File(foreign, "w") as file:
        file["x"] = 1
    missing = tmp_path / "no.h5"
    named = "Name a file that 'align capture' wrote."
    for path, reason in (
        (missing, f"there is no such file. Check the path, or make it with 'align capture -o {missing}'."),
        (tmp_path, "it is a folder. Name a capture file in it."),
        (text, f"it is not an HDF5 file. {named}"),
        (empty, "it is empty, its capture ended before it began. Capture again."),
        (foreign, f"it is an HDF5 file, but not a capture. {named}"),
    ):
        with pytest.raises(NotACaptureFile) as raised:
            open_capture(path)
        assert str(raised.value) == f"Cannot read '{path}': {reason}"


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write(path, values=True)
    size = path.stat().st_size
    again = "Copy it again from where it was written, or capture again."
    for length in (size - 1, size // 2, 5000):
        os.truncate(path, length)
        with pytest.raises(TruncatedCaptureFile) as raised:
            open_capture(path)
        assert (
            str(raised.value) == f"Cannot read '{path}': it is truncated: {length} of {size} bytes are there. {again}"
        )
    os.truncate(path, 20)
    with pytest.raises(TruncatedCaptureFile) as raised:
        open_capture(path)
    assert str(raised.value) == f"Cannot read '{path}': its HDF5 structure is damaged. {again}"


def test_a_damaged_index_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write(path)
    with h5py.File(path, "r+") as file:
        del file["step0/index"]
    with open_capture(path) as capture, pytest.raises(TruncatedCaptureFile) as raised:
        capture.records(0)
    assert re.fullmatch(
        rf"Cannot read '{re.escape(str(path))}': it is damaged \(.*doesn't exist.*\)\. "
        r"Copy it again from where it was written, or capture again\.",
        str(raised.value),
    )


def test_a_newer_file_is_refused_naming_both_versions(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    CaptureWriter(path, replace(RUN, align_version="9.1")).close(replace(RUN, align_version="9.1"))
    with h5py.File(path, "r+") as file:
        file.attrs["align_format"] = FORMAT_VERSION + 1
    with pytest.raises(NewerCaptureFile) as raised:
        open_capture(path)
    assert str(raised.value) == (
        f"Cannot read '{path}': it has capture format {FORMAT_VERSION + 1}, written by align 9.1, and this align "
        f"reads formats up to {FORMAT_VERSION}. Update it with 'pip install -U torch-align'."
    )


def test_an_unknown_fact_is_left_out_and_a_missing_one_takes_its_default(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write(path)
    with h5py.File(path, "r+") as file:
        size = file["run"].dtype.itemsize
        file["run"][()] = seal(json.dumps({"device_type": "npu", "of_tomorrow": 1}).encode()).ljust(size)
    with open_capture(path) as capture:
        assert capture.run == RunInfo(device_type="npu", format_version=FORMAT_VERSION, steps_seen=1)


def test_a_step_or_value_that_was_not_captured_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write(path)
    with open_capture(path) as capture:
        with pytest.raises(CaptureFileError) as raised:
            capture.records(7)
        assert str(raised.value) == f"Cannot read step 7 from '{path}': it was not captured. Captured steps: 0."
        with pytest.raises(CaptureFileError) as raised:
            capture.values(capture.records(0)[0])
        assert str(raised.value) == (
            f"Cannot read the values of 'step 0, forward: fc output.0' from '{path}': they were not "
            "kept. Capture again with --detail tensors."
        )


def test_a_file_that_may_not_be_read_or_written_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write(path)
    path.chmod(0)
    with without_privileges(), pytest.raises(CaptureFileError) as raised:
        open_capture(path)
    assert str(raised.value) == (
        f"Cannot read '{path}': permission denied. Check who owns it and what its permissions are."
    )
    with without_privileges(), pytest.raises(CaptureError) as refused:
        CaptureWriter(path, RUN, force=True)
    assert str(refused.value) == f"Cannot write '{path}': permission denied. Choose another place with -o."
