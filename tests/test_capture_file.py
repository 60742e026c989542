"""A capture file gives back what was put into it, to us and to plain h5py, and says what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from align.capture_file import FORMAT_VERSION, CaptureWriter, find_ranks, open_capture
from align.capture_format import (
    HISTORY,
    INDEX_DTYPE,
    MODULE_FIELDS,
    RUN_FIELDS,
    TIMELINE_FIELDS,
    value_path,
)
from align.cli import main
from align.commands import diff_files
from align.errors import CaptureFileError
from align.format_page import format_page
from align.records import (
    INIT_STEP,
    Fact,
    ModuleInfo,
    Phase,
    RunInfo,
    TensorKey,
    TensorRecord,
    TensorStats,
    TimelineRow,
    Verdict,
)
from align.sketch import SIGN_TABLE_ID, sketch_array

RUN = RunInfo(align_version="0.1", detail="tensors")
VERSION_1, VERSION_2 = (Path(__file__).parent / "data" / f"version{number}.h5" for number in (1, 2))
TEXT = st.text(max_size=8) | st.sampled_from(
    ["a/b", "100%", "%2F", "a@1#2", "\u7f51\u7edc.\u5c42", ".", "..", "\0", "\udc80"]
)


def record(order: int, slot: str = "output.0", **changes: Any) -> TensorRecord:
    """A record of `layers.3.mlp.fc2` in step 0."""
    plain = TensorRecord(TensorKey(0, Phase.FORWARD, "layers.3.mlp.fc2", slot), order, "float32", (2, 3))
    return replace(plain, **changes)


def keep(writer: CaptureWriter, array: NDArray[Any], dtype: str) -> Any:
    """Keep values; there is room for them."""
    handle = writer.add_values(array, dtype)
    assert handle is not None
    return handle


def write(
    path: Path,
    records: Sequence[TensorRecord],
    values: Mapping[int, tuple[NDArray[Any], str]] | None = None,
    step: int = 0,
) -> None:
    writer = CaptureWriter(path, RUN, force=True)
    handles = {order: keep(writer, *value) for order, value in (values or {}).items()}
    writer.commit(step, records, handles)
    writer.close(replace(RUN, outcome="finished"))


def assert_same(found: TensorRecord, expected: TensorRecord) -> None:
    for field in fields(TensorRecord):
        ours, theirs = getattr(found, field.name), getattr(expected, field.name)
        if field.name in {"sketch", "row_hashes", "exponents"} and theirs is not None:
            assert (ours.dtype, ours.tobytes()) == (theirs.dtype, theirs.tobytes()), field.name
        else:
            assert repr(ours) == repr(theirs), field.name


STATS = st.builds(
    TensorStats,
    st.integers(0, 2**62),
    *[st.floats(allow_nan=False)] * 4,
    *[st.integers(0, 2**40)] * 5,
)


@st.composite
def records_of_a_step(draw: st.DrawFn) -> list[TensorRecord]:
    records = []
    for order in range(draw(st.integers(0, 6))):
        shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
        numel = int(np.prod(shape))
        sketch = hnp.arrays(np.float32, min(numel, 251), elements=st.floats(width=32))
        hashes = hnp.arrays(np.uint64, shape[0] if shape else 0)
        counts = hnp.arrays(np.int64, draw(st.sampled_from([32, 256])), elements=st.integers(0, 2**62))
        records.append(
            TensorRecord(
                TensorKey(3, draw(st.sampled_from(Phase)), draw(TEXT), draw(TEXT), draw(st.integers(0, 9)), order),
                order * 2,
                draw(st.sampled_from(["float32", "bfloat16", "int64", "float8_e4m3fn"])),
                shape,
                draw(st.none() | STATS),
                draw(st.none() | st.integers(0, 2**64 - 1)),
                draw(st.none() | sketch),
                draw(st.floats(0, 1)),
                None,
                draw(TEXT),
                draw(st.integers(0, 9)),
                draw(st.booleans()),
                recomputed=draw(st.booleans()),
                layout=draw(TEXT),
                row_hashes=draw(st.none() | hashes),
                exponents=draw(st.none() | counts),
            )
        )
    return records


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records_of_a_step())
def test_every_record_comes_back(tmp_path: Path, records: list[TensorRecord]) -> None:
    path = tmp_path / "a.h5"
    write(path, records, step=3)
    with open_capture(path) as capture:
        assert capture.steps == [3]
        found = capture.records(3)
        assert len(found) == len(records)
        for ours, theirs in zip(found, records, strict=True):
            assert_same(ours, theirs)


EXACT = 2**53
"""Integers up to here are kept exactly as the float64 numbers that facts are."""

FACTS = st.lists(
    st.builds(
        Fact,
        st.builds(TensorKey, st.just(3), st.sampled_from(Phase), TEXT, TEXT, st.integers(0, 9), st.integers(0, 9)),
        st.none() | st.booleans() | st.integers(-EXACT, EXACT) | st.floats() | TEXT,
    ),
    max_size=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FACTS)
def test_every_fact_comes_back(tmp_path: Path, noted: list[Fact]) -> None:
    writer = CaptureWriter(tmp_path / "a.h5", RUN, force=True)
    writer.commit(3, [], {}, noted)
    writer.commit(4, [], {})
    writer.close(RUN)
    with open_capture(tmp_path / "a.h5") as capture:
        assert repr(capture.facts(3)) == repr(noted)  # the same types too: 1, 1.0 and True are three facts
        assert capture.facts(4) == []
        assert capture.records(3) == []


def test_what_was_measured_of_a_shared_tensor_is_stored_once(tmp_path: Path) -> None:
    rows, counts = np.arange(2, dtype=np.uint64), np.arange(256, dtype=np.int64)
    first = record(0, row_hashes=rows, exponents=counts, layout="strided")
    later = record(1, "input.0", same_as=0, recomputed=True)
    write(tmp_path / "a.h5", [first, later])
    with open_capture(tmp_path / "a.h5") as capture:
        found = capture.records(0)
        assert [one.row_hashes.tolist() for one in found if one.row_hashes is not None] == [rows.tolist()] * 2
        assert [one.exponents.tolist() for one in found if one.exponents is not None] == [counts.tolist()] * 2
        assert [(one.layout, one.recomputed) for one in found] == [("strided", False), ("", True)]
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["step0/row_hashes"][...].tolist() == rows.tolist()
        assert file["step0/exponents"][...].tolist() == counts.tolist()


SETTING = st.none() | st.booleans() | st.integers(-EXACT, EXACT) | st.floats(allow_nan=False) | st.text(max_size=5)
CONFIGURATIONS = st.dictionaries(st.text(max_size=5), SETTING | st.lists(SETTING, max_size=3), max_size=4)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(TEXT, CONFIGURATIONS, max_size=4))
def test_the_configuration_of_every_module_comes_back(tmp_path: Path, found: dict[str, dict[str, Any]]) -> None:
    modules = {name: ModuleInfo(name, "Linear", config=dict(sorted(config.items()))) for name, config in found.items()}
    writer = CaptureWriter(tmp_path / "a.h5", RUN, force=True)
    writer.append_modules(list(modules.values()))
    writer.close(RUN)
    with open_capture(tmp_path / "a.h5") as capture:
        assert repr(capture.modules) == repr(modules)


# ---- an older file


def test_a_file_of_version_1_opens_with_defaults_for_what_it_lacks() -> None:
    with open_capture(VERSION_1) as capture:
        assert (capture.run.format_version, capture.run.outcome, capture.steps) == (1, "finished", [0])
        assert (capture.run.kept, capture.run.loaders, capture.run.same_start) == ((), (), {})
        assert capture.facts(0) == []
        found = [*capture.records(INIT_STEP), *capture.records(0)]
        assert len(found) == 33
        assert {(one.recomputed, one.layout, one.row_hashes, one.exponents) for one in found} == {
            (False, "", None, None)
        }
        assert any(one.sketch is not None for one in found)
        assert {str(module.config) for module in capture.modules.values()} == {"{}"}
        assert [row.learning_rate for row in capture.timeline] == [0.1, 0.1]
        assert all(np.isnan([row.loss_scale_after, row.clip_norm, row.clip_limit]).all() for row in capture.timeline)
        assert not any(row.overflow for row in capture.timeline)


def test_a_file_of_version_1_is_shown_and_compared_with_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(VERSION_1)], standalone_mode=False) is None
    shown = capsys.readouterr().out
    assert shown.startswith(f"{VERSION_1}: finished, align 0.1.0, format 1\n")
    assert "learning rate" in shown
    main(["show", str(VERSION_1), "0"], standalone_mode=False)
    assert "output.0" in capsys.readouterr().out
    result = diff_files(str(VERSION_1), str(VERSION_1))
    assert (result.verdict, result.first_divergence) == (Verdict.ALIGNED, None)
    assert result.summary == "Aligned: 33 tensors over step 0 are equal."


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TEXT, TEXT, st.integers(0, 2), st.integers(0, 2)), unique=True, max_size=8))
def test_values_of_every_name_come_back(tmp_path: Path, keys: list[tuple[str, str, int, int]]) -> None:
    records = [TensorRecord(TensorKey(0, Phase.FORWARD, *key), order, "int64", ()) for order, key in enumerate(keys)]
    write(tmp_path / "a.h5", records, {order: (np.array(order), "int64") for order in range(len(keys))})
    with open_capture(tmp_path / "a.h5") as capture:
        assert [int(capture.values(found)) for found in capture.records(0)] == list(range(len(keys)))


NUMPY_DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(NUMPY_DTYPES), hnp.array_shapes(min_dims=0, min_side=0, max_dims=4), st.data())
def test_values_of_every_numpy_dtype_come_back(
    tmp_path: Path, dtype: str, shape: tuple[int, ...], data: st.DataObject
) -> None:
    array = data.draw(hnp.arrays(dtype, shape))
    write(tmp_path / "a.h5", [record(0, dtype=dtype, shape=shape)], {0: (array, dtype)})
    with open_capture(tmp_path / "a.h5") as capture:
        found = capture.values(capture.records(0)[0])
    assert (found.shape, found.dtype, found.tobytes()) == (array.shape, array.dtype, array.tobytes())


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_every_code_of_a_small_float_comes_back_as_torch_reads_it(tmp_path: Path, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    codes: NDArray[Any] = np.arange(65536, dtype=np.uint16) if dtype == "bfloat16" else np.arange(256, dtype=np.uint8)
    write(tmp_path / "a.h5", [record(0, dtype=dtype, shape=codes.shape)], {0: (codes, dtype)})
    numbers = torch.from_numpy(codes).view(getattr(torch, dtype)).float().numpy()
    with open_capture(tmp_path / "a.h5") as capture:
        found = capture.records(0)[0]
        assert np.array_equal(capture.raw_values(found), codes)
        assert capture.values(found).dtype == np.float32
        assert np.array_equal(capture.values(found), numbers, equal_nan=True)
        assert np.array_equal(np.signbit(capture.values(found)), np.signbit(numbers)) or "nan" in repr(numbers)


def test_bits_of_the_wrong_width_are_refused(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "a.h5", RUN)
    with pytest.raises(ValueError, match=r"^Cannot keep float32 as bfloat16: give its bits as uint16\.$"):
        writer.add_values(np.zeros(3, dtype=np.float32), "bfloat16")
    writer.close(RUN)


def test_any_layout_in_memory_is_written_in_logical_order(tmp_path: Path) -> None:
    array = np.arange(24, dtype=">f4").reshape(4, 6)[::-1, ::2].T
    write(tmp_path / "a.h5", [record(0, shape=array.shape)], {0: (array, "float32")})
    with open_capture(tmp_path / "a.h5") as capture:
        assert np.array_equal(capture.values(capture.records(0)[0]), array)


def test_plain_h5py_reads_values_by_their_path(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    bits = (array.view(np.uint32) >> 16).astype(np.uint16)
    records = [
        record(0),
        record(1, "output.1", dtype="bfloat16"),
        record(2, "mask", dtype="bool"),
        TensorRecord(TensorKey(0, Phase.BACKWARD, "a/b%", "grad_output.0", 1, 2), 3, "float32", (2, 3)),
    ]
    values: dict[int, tuple[NDArray[Any], str]] = {
        0: (array, "float32"),
        1: (bits, "bfloat16"),
        2: (array > 2, "bool"),
        3: (array, "float32"),
    }
    write(tmp_path / "a.h5", records, values)
    with h5py.File(tmp_path / "a.h5") as file:
        assert file.attrs["align_format"] == FORMAT_VERSION
        assert file.attrs["sign_table"] == SIGN_TABLE_ID
        assert np.array_equal(file["step0/forward/layers.3.mlp.fc2/output.0"][...], array)
        assert file["step0/forward/layers.3.mlp.fc2/output.1"].dtype == np.float32
        assert np.array_equal(file["step0/forward/layers.3.mlp.fc2/output.1"][...], array)
        assert file["step0/forward/layers.3.mlp.fc2/mask"][...].dtype == np.bool_
        assert np.array_equal(file["step0/backward/a%2Fb%25/grad_output.0@1#2"][...], array)
        assert file["step0/index"].dtype == INDEX_DTYPE
        assert h5py.check_enum_dtype(file["step0/index"].dtype["phase"])["forward"] == 2
        assert json.loads(file["run"][()])["detail"] == "tensors"
        assert file["names"].asstr()[:3].tolist() == ["layers.3.mlp.fc2", "output.0", ""]


def test_the_file_is_of_the_earliest_kind(tmp_path: Path) -> None:
    write(tmp_path / "a.h5", [record(0)])
    assert (tmp_path / "a.h5").read_bytes()[:9] == b"\x89HDF\r\n\x1a\n\x00"


def test_initial_values_have_a_group_of_their_own(tmp_path: Path) -> None:
    key = TensorKey(INIT_STEP, Phase.INIT, "fc", "weight")
    write(tmp_path / "a.h5", [TensorRecord(key, 0, "float32", (2,))], {0: (np.ones(2), "float64")}, INIT_STEP)
    with open_capture(tmp_path / "a.h5") as capture:
        assert capture.has_init
        assert capture.steps == []
        assert capture.records(INIT_STEP)[0].key == key
        assert capture.values(capture.records(INIT_STEP)[0]).tolist() == [1.0, 1.0]
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["init/fc/weight"][...].tolist() == [1.0, 1.0]


def test_a_shared_tensor_is_stored_once(tmp_path: Path) -> None:
    array = np.random.default_rng(0).standard_normal((500, 400)).astype(np.float32)
    stats = TensorStats(array.size, total_squares=3.0)
    first = record(0, shape=array.shape, stats=stats, sketch=sketch_array(array), resolution=1e-8, hash=7)
    records = [first, record(1, "input.0", shape=array.shape, same_as=0), record(5, "x", shape=array.shape, same_as=1)]
    write(tmp_path / "a.h5", records, {0: (array, "float32")})
    with open_capture(tmp_path / "a.h5") as capture:
        for found, expected in zip(capture.records(0), records, strict=True):
            assert (found.key, found.same_as, found.has_values) == (expected.key, expected.same_as, True)
            assert (found.stats, found.hash, found.resolution) == (stats, 7, 1e-8)
            assert_same(replace(found, key=first.key, order=0, same_as=None), replace(first, has_values=True))
            assert np.array_equal(capture.values(found), array)
    with h5py.File(tmp_path / "a.h5") as file:
        group = file["step0/forward/layers.3.mlp.fc2"]
        assert group["output.0"] == group["input.0"] == group["x"]
        assert file["step0/sketches"].shape == (251,)
    assert (tmp_path / "a.h5").stat().st_size < 1.5 * array.nbytes


def test_a_whole_sketch_of_a_small_tensor_is_trimmed(tmp_path: Path) -> None:
    whole = np.zeros(251, dtype=np.float32)
    whole[:6] = range(6)
    write(tmp_path / "a.h5", [record(0, sketch=whole)])
    with open_capture(tmp_path / "a.h5") as capture:
        assert capture.records(0)[0].sketch.tolist() == [0, 1, 2, 3, 4, 5]  # type: ignore[union-attr]


def test_run_modules_and_timeline_come_back(tmp_path: Path) -> None:
    run = RunInfo(
        align_version="0.1",
        device_type="npu",
        phases=("forward", "loss"),
        versions=MappingProxyType({"torch": "2.1"}),
        flags={"tf32": True, "path": Path("x")},
        command=("train.py", "--lr", "\u5b66"),
        autocast="bfloat16",
        notes=("one",),
    )
    modules = [
        ModuleInfo("fc", "Linear", matmul=True, compute_dtype="bfloat16"),
        ModuleInfo("act", "ReLU", piecewise=True),
    ]
    rows = [
        TimelineRow(0, 1.5, 0.1, float("nan"), 2.0, 0.5, skipped=False, nonfinite=False, micros=1, optimizer="AdamW"),
        TimelineRow(1, float("nan"), 0.1, 65536.0, 2.0, 0.5, skipped=True, nonfinite=True, micros=2, optimizer="SGD"),
    ]
    writer = CaptureWriter(tmp_path / "a.h5", run)
    writer.append_modules(modules)
    writer.append_modules([replace(modules[0], compute_dtype=None, conv=True)])
    writer.append_timeline(rows[:1])
    writer.append_timeline(rows[1:])
    writer.close(replace(run, outcome="finished", ended="now"))
    with open_capture(tmp_path / "a.h5") as capture:
        assert capture.run == replace(
            run,
            versions={"torch": "2.1"},
            flags={"tf32": True, "path": "x"},
            outcome="finished",
            ended="now",
            format_version=FORMAT_VERSION,
        )
        assert not capture.unfinished
        assert capture.modules == {"fc": ModuleInfo("fc", "Linear", matmul=True, conv=True), "act": modules[1]}
        assert repr(capture.timeline) == repr(rows)


def test_facts_of_the_run_may_outgrow_their_place(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "a.h5", RUN)
    writer.update_run(replace(RUN, notes=("x" * 100_000,)))
    with open_capture(tmp_path / "a.h5") as capture:
        assert capture.run.notes == ("x" * 100_000,)
    writer.close(replace(RUN, notes=("y" * 300_000,)))
    with open_capture(tmp_path / "a.h5") as capture:
        assert capture.run.notes == ("y" * 300_000,)


def test_a_running_capture_is_read(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "a.h5", RUN)
    with open_capture(tmp_path / "a.h5") as capture:
        assert capture.unfinished
        assert (capture.steps, capture.timeline, capture.modules) == ([], [], {})
    for step in range(3):
        first = record(0, stats=TensorStats(6, total=float(step)))
        first = replace(first, key=replace(first.key, step=step, name=f"layer{step}"))
        writer.commit(step, [first], {0: keep(writer, np.full((2, 3), step), "int64")})
        with open_capture(tmp_path / "a.h5") as capture:
            assert capture.unfinished
            assert capture.steps == list(range(step + 1))
            assert_same(capture.records(step)[0], replace(first, has_values=True))
            assert capture.values(capture.records(0)[0]).tolist() == [[0, 0, 0], [0, 0, 0]]
    writer.append_timeline([TimelineRow(3, 1.0, 1.0, 1.0, 1.0, 1.0, False, False, 1, "SGD")])
    writer.flush()
    with open_capture(tmp_path / "a.h5") as capture:
        assert [row.step for row in capture.timeline] == [3]
    writer.close(RUN)


def test_values_that_are_dropped_give_their_space_back(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "a.h5", RUN)
    for _ in range(20):
        handle = writer.add_values(np.zeros(100_000), "float64")
        del handle
    writer.commit(0, [record(0)], {})
    writer.close(RUN)
    assert writer.bytes_written > 16_000_000
    assert (tmp_path / "a.h5").stat().st_size < 1_000_000


def test_flushing_waits_for_the_step_while_values_have_no_name(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "a.h5", RUN)
    handle = keep(writer, np.zeros((2, 3)), "float64")
    writer.append_timeline([TimelineRow(0, 1.0, 1.0, 1.0, 1.0, 1.0, False, False, 1, "SGD")])
    writer.flush()
    with open_capture(tmp_path / "a.h5") as capture:
        assert capture.timeline == []
    writer.commit(0, [record(0, dtype="float64")], {0: handle})
    with open_capture(tmp_path / "a.h5") as capture:
        assert len(capture.timeline) == 1
    writer.close(RUN)


def test_equal_captures_are_equal_files(tmp_path: Path) -> None:
    for name in ("a.h5", "b.h5"):
        write(tmp_path / name, [record(0, sketch=np.ones(6, dtype=np.float32))], {0: (np.ones((2, 3)), "float64")})
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_a_step_is_committed_once(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "a.h5", RUN)
    writer.commit(0, [record(0)], {})
    with pytest.raises(CaptureFileError) as raised:
        writer.commit(0, [record(0)], {})
    assert str(raised.value) == (
        f"Cannot write step 0 to '{tmp_path / 'a.h5'}': it is already there. Commit every step once."
    )
    writer.close(RUN)
    writer.close(RUN)


def test_two_values_of_one_key_are_refused(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "a.h5", RUN)
    handles = {order: keep(writer, np.zeros((2, 3)), "float64") for order in range(2)}
    with pytest.raises(CaptureFileError) as raised:
        writer.commit(0, [record(0), record(1)], handles)
    assert str(raised.value) == (
        f"Cannot write '{tmp_path / 'a.h5'}': two records are both step 0, forward: layers.3.mlp.fc2 output.0. "
        "Give each its own call or slot."
    )
    writer.close(RUN)


def test_the_files_of_all_ranks_are_found(tmp_path: Path) -> None:
    names = ["npu[1].rank0000.h5", "npu[1].rank0001.h5", "npu[1].rank0010.h5"]
    for name in [*names, "npu[1].h5", "npu1.rank0000.h5", "npu[1].rank1.h5", "npu[1].rank0000.h5.bak"]:
        (tmp_path / name).touch()
    assert find_ranks(tmp_path / "npu[1].h5") == [tmp_path / name for name in names]
    assert find_ranks(tmp_path / "gpu.h5") == []


@settings(deadline=None)
@given(st.lists(st.tuples(TEXT, TEXT, st.integers(0, 2), st.integers(0, 2)), unique=True, min_size=2))
def test_different_keys_have_different_paths(keys: list[tuple[str, str, int, int]]) -> None:
    paths = {value_path(TensorKey(0, Phase.FORWARD, *key)) for key in keys}
    assert len(paths) == len(keys)
    assert not any("/" in level or "\0" in level or level in {"", "."} for path in paths for level in path)


def test_the_literal_describes_what_the_records_hold() -> None:
    assert [field.name for field in RUN_FIELDS] == [*(field.name for field in fields(RunInfo)), "checksum"]
    assert [field.name for field in MODULE_FIELDS] == [*(field.name for field in fields(ModuleInfo)), "checksum"]
    assert [field.name for field in TIMELINE_FIELDS] == [*(field.name for field in fields(TimelineRow)), "checksum"]
    assert max(HISTORY) == FORMAT_VERSION


def test_the_page_of_the_docs_is_made_from_the_literal() -> None:
    page = Path(__file__).parents[1] / "docs" / "file-format.md"
    assert page.read_text(encoding="utf-8") == format_page()


def test_a_file_of_version_2_opens_with_defaults_for_what_it_lacks() -> None:
    with open_capture(VERSION_2) as capture:
        assert (capture.run.format_version, capture.run.outcome, capture.steps) == (2, "finished", [0])
        assert capture.run.perturbed == {}
        assert {module.chooses for module in capture.modules.values()} == {False}
        assert any(module.config for module in capture.modules.values())
    assert diff_files(str(VERSION_2), str(VERSION_2)).verdict is Verdict.ALIGNED
