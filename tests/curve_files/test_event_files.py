"""TensorBoard event files, written by tensorboardX and by hand."""

from __future__ import annotations

import hashlib
import math
import struct
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align.curve_files import read_curves
from align.curve_files.crc32c import masked_crc, masked_crcs
from align.curve_files.event_values import scalars_of
from align.curve_records import CurveKind, Curves, Quantity
from align.errors import CurveError
from tests.curve_files.reading import REPEATED, read, steps, values, where


def write(folder: Path, suffix: str, losses: dict[int, float], **others: float) -> Path:
    """An event file with `train/loss` at these steps, other scalars at the last, and a histogram."""
    writer: Any = import_module("tensorboardX").SummaryWriter(str(folder), filename_suffix=suffix)
    for step, loss in losses.items():
        writer.add_scalar("train/loss", loss, step)
    for name, value in others.items():
        writer.add_scalar(name.replace("__", "/"), value, max(losses))
    writer.add_text("arguments", "x" * 100_000)
    writer.close()
    return next(file for file in folder.iterdir() if file.name.endswith(suffix))


def test_folder_of_event_files(tmp_path: Path) -> None:
    first = write(tmp_path, ".a", {0: 2.5, 1: 2.25, 2: math.nan, 3: 2.0}, train__learning_rate=0.5, eval__loss=7.0)
    content = first.read_bytes()
    curves = read_curves(str(tmp_path))
    assert curves.kind is CurveKind.TENSORBOARD
    assert steps(curves) == [0, 1, 2, 3]
    assert values(curves) == [2.5, 2.25, None, 2.0]
    assert where(curves, curves.nonfinite) == [2]
    assert values(curves, Quantity.LEARNING_RATE) == [None, None, None, 0.5]
    assert curves.taken == {Quantity.LOSS: "train/loss", Quantity.LEARNING_RATE: "train/learning_rate"}
    assert curves.sha256 == hashlib.sha256(content).hexdigest()
    assert curves.notes == ()


def test_resumed_run_of_two_files(tmp_path: Path) -> None:
    first = write(tmp_path, ".a", {0: 2.5, 1: 2.25, 2: 2.125})
    second = write(tmp_path, ".b", {2: 1.5, 3: 1.25})
    (first, second) = (
        first.rename(tmp_path / "events.out.tfevents.1.host"),
        second.rename(tmp_path / "events.out.tfevents.2.host"),
    )
    curves = read_curves(str(tmp_path))
    assert values(curves) == [2.5, 2.25, 1.5, 1.25]
    assert curves.sha256 == hashlib.sha256(first.read_bytes() + second.read_bytes()).hexdigest()
    assert curves.notes == (REPEATED.format(1, 2, 2),)


def test_mean_that_a_trainer_writes_at_the_end_is_not_the_loss(tmp_path: Path) -> None:
    write(
        tmp_path / "runs" / "Jan01_host", ".a", {10: 2.5, 20: 2.25}, train__train_runtime=9.0, train__train_loss=2.375
    )
    curves = read_curves(str(tmp_path))
    assert values(curves) == [2.5, 2.25]
    assert curves.taken == {Quantity.LOSS: "train/loss"}


def test_several_runs_below_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "run1", ".a", {0: 2.5})
    write(tmp_path / "run2", ".a", {0: 2.5})
    with pytest.raises(CurveError) as caught:
        read_curves(str(tmp_path))
    assert str(caught.value) == (
        f"Cannot tell which run in the folder '{tmp_path}' is meant: there are curves in 'run1', 'run2'. Name one of "
        "these folders."
    )


def test_folder_without_curves(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(CurveError) as caught:
        read_curves(str(tmp_path))
    assert str(caught.value) == (
        f"Cannot find curves in the folder '{tmp_path}': there is no event file of TensorBoard, and none of "
        "'trainer_state.json', 'trainer_log.jsonl', 'metrics.csv'. Name a file."
    )


def test_event_file_that_ends_in_the_middle(tmp_path: Path) -> None:
    content = write(tmp_path, ".a", dict.fromkeys(range(20), 2.5)).read_bytes()
    curves = read(tmp_path, content[:500], "events.cut")
    assert 3 < len(curves.steps) < 20
    assert curves.notes == ("The file 'events.cut' ends in the middle: it was read up to there.",)


def frame(data: bytes) -> bytes:
    """One record of a TFRecord file."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def field(number: int, kind: int, data: bytes) -> bytes:
    """One field of a message."""
    return bytes([number << 3 | kind]) + (bytes([len(data)]) if kind == 2 else b"") + data


def event(step: bytes, value: bytes, tag: str = "loss") -> bytes:
    """An event with one value; `step` is a varint, `value` the fields of the value without its tag."""
    return field(2, 0, step) + field(5, 2, field(1, 2, field(1, 2, tag.encode()) + value))


def simple(number: float) -> bytes:
    """A value as older writers keep it."""
    return field(2, 5, struct.pack("<f", number))


def tensor(dtype: int, fields: bytes) -> bytes:
    """A value as newer writers keep it."""
    return field(8, 2, field(1, 0, bytes([dtype])) + fields)


def of(tmp_path: Path, *events: bytes) -> Curves:
    """The curves of an event file with these events."""
    begin = field(1, 1, struct.pack("<d", 1.7e9)) + field(3, 2, b"brain.Event:2")
    return read(tmp_path, b"".join(map(frame, (begin, *events))), "events")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (simple(1.5), 1.5),
        (tensor(1, field(5, 2, struct.pack("<f", 1.5))), 1.5),
        (tensor(1, field(5, 5, struct.pack("<f", 1.5))), 1.5),
        (tensor(1, field(4, 2, struct.pack("<f", 1.5))), 1.5),
        (tensor(2, field(6, 2, struct.pack("<d", 1.5))), 1.5),
        (tensor(2, field(4, 2, struct.pack("<d", 1.5))), 1.5),
        (tensor(9, field(10, 2, b"\x96\x01")), 150.0),
        (tensor(3, field(7, 0, b"\x96\x01")), 150.0),
        (tensor(19, field(13, 2, b"\x80\x7c")), 1.5),
        (tensor(14, field(13, 2, b"\xc0\x7f")), 1.5),
        (tensor(14, field(4, 2, b"\xc0\x3f")), 1.5),
        (tensor(19, field(4, 2, struct.pack("<e", 1.5))), 1.5),
    ],
)
def test_values_of_each_form(value: bytes, expected: float, tmp_path: Path) -> None:
    assert values(of(tmp_path, event(b"\x01", value))) == [expected]


def test_values_that_are_no_scalars(tmp_path: Path) -> None:
    vector = tensor(1, field(4, 2, struct.pack("<2f", 1.5, 2.5)))
    text = tensor(7, field(8, 2, b"hello"))
    curves = of(tmp_path, event(b"\x01", simple(2.5)), event(b"\x02", vector), event(b"\x03", text))
    assert steps(curves) == [1]


def test_steps_of_many_bytes_and_below_zero(tmp_path: Path) -> None:
    below = event(b"\xff" * 9 + b"\x01", simple(2.5))
    curves = of(tmp_path, below, event(b"\x80\x80\x80\x80\x10", simple(2.25)))
    assert steps(curves) == [-1, 2**32]


def test_monitor_of_deepspeed_counts_samples(tmp_path: Path) -> None:
    curves = of(tmp_path, event(b"\x20", simple(2.5), "Train/Samples/train_loss"))
    assert steps(curves) == [32]
    assert curves.notes == ("The steps of the file count samples.",)


def test_damaged_record_is_left_out(tmp_path: Path) -> None:
    events = [event(bytes([step]), simple(2.5)) for step in range(20)]
    frames = [frame(data) for data in events]
    frames[4] = frames[4][:14] + b"\x55" + frames[4][15:]
    curves = read(tmp_path, b"".join(frames), "events")
    assert steps(curves) == [step for step in range(20) if step != 4]
    assert curves.notes == ("Records of the event file 'events' that are damaged: 1. They were left out.",)


def test_damaged_length_ends_the_file(tmp_path: Path) -> None:
    frames = [frame(event(bytes([step]), simple(2.5))) for step in range(20)]
    frames[4] = b"\x01" + frames[4][1:]
    curves = read(tmp_path, b"".join(frames), "events")
    assert steps(curves) == [0, 1, 2, 3]
    assert curves.notes == ("The event file 'events' is damaged: it was read up to there.",)


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\xff\x01", b"\x0f\x01", b"\xff" * 30, b"\x2a\x05\x0a\x7f"])
def test_record_that_is_no_event(data: bytes, tmp_path: Path) -> None:
    assert values(of(tmp_path, data, event(b"\x01", simple(2.5)))) == [2.5]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_an_event_or_raise_what_is_caught(data: bytes) -> None:
    with suppress(ValueError, IndexError, struct.error):
        scalars_of(data)
    with suppress(ValueError, IndexError, struct.error):
        scalars_of(field(5, 2, field(1, 2, data)))
    with suppress(ValueError, IndexError, struct.error):
        scalars_of(field(5, 2, field(1, 2, field(8, 2, data))))


def test_long_record_over_several_blocks_is_passed_over(tmp_path: Path) -> None:
    image = field(3, 2, b"v") + bytes(600_000)
    curves = of(tmp_path, event(b"\x01", simple(2.5)), image, event(b"\x02", simple(2.25)))
    assert values(curves) == [2.5, 2.25]
    assert curves.notes == ()


def test_checksum_is_the_published_one() -> None:
    # RFC 3720, appendix B.4: 32 bytes of zeros give 8a9136aa, of ones 62a8ab43, rising ones 46dd794e.
    vectors = {bytes(32): 0x8A9136AA, b"\xff" * 32: 0x62A8AB43, bytes(range(32)): 0x46DD794E}
    for data, crc in vectors.items():
        expected = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        assert masked_crc(data) == expected
        assert masked_crcs([data] * 20 + [data[:3]]).tolist() == [expected] * 20 + [masked_crc(data[:3])]
