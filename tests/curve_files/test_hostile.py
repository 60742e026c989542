"""What is no curve, or half of one, or made to harm: a sentence or a note, and no crash."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from align.curve_files import read_curves
from align.curve_files.line_numbers import numbers_in
from align.curve_records import Quantity
from align.errors import AlignError, CurveError
from tests.curve_files.reading import SAMPLES, read, steps, values

NEITHER = (
    "it is neither text, nor a capture, nor an event file of TensorBoard. Name a file that holds a loss for each step, "
    "such as a log, a CSV file or trainer_state.json."
)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty. Name a file that a training has written to."),
        (bytes(100), "it begins with zeros or blanks only. Copy it again."),
        (b" \n \n", "it begins with zeros or blanks only. Copy it again."),
        (b"PK\x03\x04" + bytes(30), NEITHER),
        (bytes(range(256)) * 8, NEITHER),
        (b"\x1f\x8b\x08broken", "it is an empty or damaged gzip file. Copy it again."),
        (gzip.compress(b"", mtime=0), "it is an empty or damaged gzip file. Copy it again."),
    ],
)
def test_files_without_curves(content: bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(CurveError) as caught:
        read(tmp_path, content)
    assert str(caught.value) == f"Cannot read '{tmp_path / 'run.log'}': {reason}"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("step,loss\n", "it has no rows. Name another file."),
        ("[]", "it has no rows. Name another file."),
        ('{"log_history": []}', "it has no rows. Name another file."),
    ],
)
def test_files_without_rows(content: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(CurveError) as caught:
        read(tmp_path, content)
    assert str(caught.value) == f"Cannot find a loss in '{tmp_path / 'run.log'}': {reason}"


def test_object_without_numbers(tmp_path: Path) -> None:
    with pytest.raises(CurveError) as caught:
        read(tmp_path, '{"name": "run"}')
    assert str(caught.value) == f"Cannot find a loss in '{tmp_path / 'run.log'}'. It has no columns with numbers."


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CurveError) as caught:
        read_curves(str(tmp_path / "run.csv"))
    assert str(caught.value) == f"Cannot read '{tmp_path / 'run.csv'}': there is no such file. Check the path."


def test_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(CurveError) as caught:
        read_curves(str(path))
    assert str(caught.value) == (
        f"Cannot read '{path}': it is a pipe or a device, not a file. Save what it gives into a file."
    )


def test_path_that_no_file_can_have() -> None:
    with pytest.raises(CurveError) as caught:
        read_curves("a\0b")
    assert str(caught.value) == "Cannot read 'a\\x00b': no file can have this name. Check the path."
    with pytest.raises(CurveError) as caught:
        read_curves("a" * 5000)
    assert (
        str(caught.value)
        == f"Cannot read '{'a' * 5000}': file name too long. Check who owns it and what its permissions are."
    )


def test_names_that_are_html_long_and_hold_control_characters(tmp_path: Path) -> None:
    names = ["<script>alert(1)</script>loss", "loss\x07bell", "x" * 10_000 + "loss"]
    with pytest.raises(CurveError) as caught:
        read(tmp_path, f"step,{','.join(names)}\n0,1,2,3\n1,4,5,6\n")
    assert str(caught.value) == (
        f"Cannot tell which column of '{tmp_path / 'run.log'}' is the loss: it may be '<script>alert(1)</script>loss', "
        '\'loss\\x07bell\'. Choose with --column "loss=<script>alert(1)</script>loss" or --column "loss=loss\\x07bell".'
    )
    columns = {Quantity.LOSS: "y" * 10_000}
    with pytest.raises(CurveError) as caught:
        read(tmp_path, "step,loss\n0,1\n", columns=columns)
    assert str(caught.value) == (
        f"Cannot find the column '{'y' * 77}...' in '{tmp_path / 'run.log'}'. Its columns are 'step', 'loss': choose "
        "one with --column loss=NAME."
    )


def test_zero_bytes_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    curves = read(
        tmp_path, b"step 1 lo\0ss 2.5\n\xff\xfe\xfa step 2 loss 2.25 \x80\n" + bytes(2000) + b"step 3 loss 2\n"
    )
    assert values(curves) == [2.5, 2.25, 2.0]


def test_text_in_another_encoding(tmp_path: Path) -> None:
    text = "\u7b2c 3 \u6b65 step 3 loss 2.5 \u635f\u5931\u4e0b\u964d\n\u6b65 step 4 loss 2.25\n"
    assert steps(read(tmp_path, text.encode("gbk"))) == [3, 4]


def test_line_without_an_end(tmp_path: Path) -> None:
    text = "step 1 loss 2.5\n" + "loss " * 500_000 + "\nstep 2 loss 2.25\n"
    curves = read(tmp_path, text)
    assert values(curves) == [2.5, 2.25]
    assert curves.notes == ("Lines that could not be read: 1, the first is line 2. They were left out.",)


@pytest.mark.parametrize("line", ["1," * 40_000, "loss" * 20_000, "(" * 80_000, "-+.e" * 20_000, "nan " * 20_000,
                                  "loss=" * 20_000, "1" * 80_000, " " * 80_000 + "1", "1e" * 40_000])  # fmt: skip
def test_long_lines_are_read_in_time_that_grows_with_them(line: str) -> None:
    # The test would not end if a pattern went back over what it has read.
    numbers_in(line)


def test_number_that_is_too_large(tmp_path: Path) -> None:
    curves = read(tmp_path, "step 1 loss 2.5\nstep 2 loss 1e999\n")
    assert curves.columns[Quantity.LOSS].tolist() == [2.5, float("inf")]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    with path.open("w") as stream:
        for number in range(100):
            stream.write(f"step {number} loss {number}\n" + "Nothing to see here, move along. " * 4000 + "\n")
    tracemalloc.start()
    curves = read_curves(str(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(curves.steps) == 100
    assert peak < path.stat().st_size / 3


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_end_in_a_sentence_or_in_curves(data: st.DataObject, tmp_path: Path) -> None:
    sample = data.draw(st.sampled_from(sorted(SAMPLES.iterdir())))
    content = bytearray(sample.read_bytes())
    for _ in range(data.draw(st.integers(0, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]
    try:
        curves = read(tmp_path, bytes(content), sample.name)
    except AlignError:
        return
    assert (curves.steps[1:] > curves.steps[:-1]).all()
    assert {len(column) for column in curves.columns.values()} == {len(curves.steps)}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.text(st.sampled_from("lossteplr:=,|{}[]'\"0123456789.-+e\n\t <nan>"), max_size=120)
    | st.text(max_size=80)
)
def test_any_text_ends_in_a_sentence_or_in_curves(content: str, tmp_path: Path) -> None:
    try:
        curves = read(tmp_path, content.encode("utf-8", "surrogatepass"))
    except AlignError:
        return
    assert len(curves.steps) == len(curves.columns[Quantity.LOSS]) > 0


def test_json_that_is_deep(tmp_path: Path) -> None:
    curves = read(tmp_path, json.dumps([{"loss": 1, "step": 1}])[:-1] + "," + "[" * 50_000)
    assert values(curves) == [1.0]
