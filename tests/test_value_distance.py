"""Distances from kept values: what numpy says in float64, whatever the dtype, the layout and the size."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from align import metrics
from align.capture_file import Capture, CaptureWriter, open_capture
from align.equality import Answer, judge_equality
from align.errors import CaptureFileError
from align.hashing import hash_bytes
from align.pairing import Pair
from align.records import Phase, RunInfo, TensorKey, TensorRecord
from align.value_blocks import ELEMENTS, BlockReader, KeptPair, plain_cuts
from align.value_channels import ChannelSums, channel_sums, channels_of
from align.value_distance import ValueDistance, measure
from align.value_reader import ValueReader
from align.value_source import boxes
from align.value_types import BIT_FLOATS, as_numbers, file_type
from tests.builders import RESOLUTION, record_of
from tests.running import environment

Array = NDArray[Any]

KEY = TensorKey(0, Phase.FORWARD, "layers.0", "output.0")
PATH = "step0/forward/layers.0/output.0"
FLOATS = ("float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2")
OTHERS = ("int64", "int32", "uint8", "bool", "complex64", "complex128")
SPECIALS = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-30, 3e38, -3e38)


def write(path: Path, raw: Array, dtype: str, **more: Any) -> Path:
    """One kept tensor; bfloat16 and float8 as unsigned integers."""
    numbers = as_numbers(raw, dtype)
    made = record_of(KEY, numbers, has_values=True) if numbers.dtype.kind == "f" else None
    record = made or TensorRecord(KEY, 0, dtype, raw.shape, has_values=True, hash=hash_bytes(raw))
    writer = CaptureWriter(path, RunInfo(detail="tensors"))
    handles: dict[int, Any] = {0: writer.add_values(raw, dtype)}
    writer.commit(0, [replace(record, dtype=dtype, **more)], handles)
    handles.clear()
    writer.close(RunInfo(detail="tensors", outcome="finished"))
    return path


@contextmanager
def opened(*paths: Path) -> Iterator[tuple[Capture, Capture, Pair]]:
    with open_capture(paths[0]) as ours, open_capture(paths[1]) as theirs:
        yield ours, theirs, Pair(ours.records(0)[0], theirs.records(0)[0])


def kept_pair(ours: Capture, theirs: Capture, pair: Pair, scale: float = 1.0) -> KeptPair:
    return KeptPair(ours.value_source(pair.reference), theirs.value_source(pair.candidate), scale)


def distance_of(
    path: Path, arrays: Sequence[Array], dtypes: tuple[str, str], scale: float = 1.0, *, largest: bool = True
) -> ValueDistance:
    """The distance of two tensors of one file."""
    with kept_in_one_file(path, arrays, dtypes, scale) as pair:
        return measure(BlockReader(), pair, largest=largest)


@contextmanager
def kept_in_one_file(
    path: Path, arrays: Sequence[Array], dtypes: tuple[str, str], scale: float = 1.0
) -> Iterator[KeptPair]:
    writer = CaptureWriter(path, RunInfo(), force=True)
    records = [
        TensorRecord(replace(KEY, name=f"layers.{order}"), order, dtype, arrays[0].shape, has_values=True)
        for order, dtype in enumerate(dtypes)
    ]
    handles: dict[int, Any] = {order: writer.add_values(arrays[order], dtypes[order]) for order in (0, 1)}
    writer.commit(0, records, handles)
    handles.clear()
    writer.close(RunInfo())
    with open_capture(path) as capture:
        ours, theirs = (capture.value_source(record) for record in capture.records(0))
        yield KeptPair(ours, theirs, scale)


def by_numpy(ours: Array, theirs: Array, scale: float) -> ValueDistance:
    """The same from whole arrays in twice the precision."""
    kind = np.complex128 if ours.dtype.kind == "c" else np.float64
    left, right = ours.reshape(-1).astype(kind), theirs.reshape(-1).astype(kind)
    with np.errstate(all="ignore"):
        right = right * scale if scale != 1.0 else right
        difference = right - left
        equal = (left == right) | (np.isnan(left) & np.isnan(right))
    usable = np.isfinite(difference)
    sizes = np.abs(np.where(usable, difference, 0.0))
    differing = np.flatnonzero(~equal)
    peak = sizes.max(initial=0.0)
    return ValueDistance(
        left.size,
        math.fsum((np.square(sizes)).tolist()),
        float(peak),
        int(sizes.argmax()) if peak else None,
        int(differing[0]) if len(differing) else None,
        int(np.count_nonzero(~usable & ~equal)),
    )


def raw_of(dtype: str, shape: tuple[int, ...], rng: np.random.Generator, specials: list[tuple[int, float]]) -> Array:
    """Numbers of a dtype, with special ones at some places; bfloat16 and float8 as bits."""
    if dtype in BIT_FLOATS:
        codes = 1 << 8 * BIT_FLOATS[dtype].size
        if dtype == "bfloat16":
            numbers = with_specials(rng.standard_normal(shape).astype(np.float32), specials)
            return (numbers.view(np.uint32) >> 16).astype(np.uint16)
        return rng.integers(0, codes, shape, dtype=np.uint8)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        return rng.integers(0, 100, shape).astype(dtype)
    if dtype.startswith("complex"):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    with np.errstate(over="ignore"):
        return with_specials(rng.standard_normal(shape), specials).astype(dtype)


def with_specials(numbers: Array, specials: list[tuple[int, float]]) -> Array:
    flat = numbers.reshape(-1)
    for place, value in specials:
        if flat.size:
            flat[place % flat.size] = value
    return numbers


def agree(found: ValueDistance, expected: ValueDistance) -> None:
    assert (found.count, found.first_at, found.unmeasured) == (expected.count, expected.first_at, expected.unmeasured)
    assert found.largest == pytest.approx(expected.largest, rel=1e-6)
    assert found.square == pytest.approx(expected.square, rel=1e-5)
    assert (found.largest_at is None) == (expected.largest_at is None)


SPECIAL = st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from(SPECIALS)), max_size=4)
SHAPES = st.sampled_from([(), (0,), (1,), (7,), (3, 5), (2, 3, 4, 5), (1, 0, 3), (251,), (1009,)])


@settings(max_examples=50, deadline=None)
@given(
    st.tuples(st.sampled_from(FLOATS), st.sampled_from(FLOATS)), SHAPES, st.integers(0, 2**32 - 1), SPECIAL, SPECIAL,
    st.sampled_from([1.0, 1.0, 0.5, 2.0**-16, 65536.0, 1 / 3, 1000.0]),
)  # fmt: skip
def test_floats_of_any_dtype_are_as_far_apart_as_numpy_says(
    tmp_path_factory: pytest.TempPathFactory,
    dtypes: tuple[str, str],
    shape: tuple[int, ...],
    seed: int,
    ours: list[tuple[int, float]],
    theirs: list[tuple[int, float]],
    scale: float,
) -> None:
    rng = np.random.default_rng(seed)
    arrays = (raw_of(dtypes[0], shape, rng, ours), raw_of(dtypes[1], shape, rng, theirs))
    found = distance_of(tmp_path_factory.getbasetemp() / "pair.h5", arrays, dtypes, scale)
    left, right = (as_numbers(array, dtype) for array, dtype in zip(arrays, dtypes, strict=True))
    agree(found, by_numpy(left, right, scale))


@pytest.mark.parametrize("dtype", OTHERS)
def test_integers_truth_values_and_complex_numbers_too(tmp_path: Path, dtype: str) -> None:
    rng = np.random.default_rng(3)
    arrays = (raw_of(dtype, (40, 50), rng, []), raw_of(dtype, (40, 50), rng, []))
    found = distance_of(tmp_path / "pair.h5", arrays, (dtype, dtype))
    expected = by_numpy(*arrays, 1.0)
    agree(found, replace(expected, largest=found.largest))
    parts = [np.abs((arrays[1].astype(complex) - arrays[0].astype(complex)).view(float)).max()]
    assert found.largest == pytest.approx(parts[0], rel=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
@pytest.mark.parametrize("count", [ELEMENTS - 1, ELEMENTS, 2 * ELEMENTS + 77])
def test_blocks_join_without_a_seam(tmp_path: Path, dtype: str, count: int) -> None:
    rng = np.random.default_rng(count)
    arrays = [raw_of(dtype, (count,), rng, [])] * 2
    arrays[1] = arrays[0].copy()
    arrays[1][-40:] = raw_of(dtype, (40,), rng, [])
    arrays[1][ELEMENTS // 3] = raw_of(dtype, (1,), rng, [])[0]
    found = distance_of(tmp_path / "pair.h5", (arrays[0], arrays[1]), (dtype, dtype))
    left, right = (as_numbers(array, dtype) for array in arrays)
    expected = by_numpy(left, right, 1.0)
    agree(found, expected)
    assert found.largest_at == expected.largest_at


@pytest.mark.parametrize("size", [1e-30, 1e-20, 1e-12, 1e12, 1e20, 3e38])
def test_squares_that_float32_cannot_hold_are_counted(tmp_path: Path, size: float) -> None:
    rng = np.random.default_rng(0)
    ours = (rng.uniform(-1, 1, 300) * size).astype(np.float32)
    theirs = (ours * 1.001 + 1e-4 * size).astype(np.float32)
    theirs = np.where(np.isfinite(theirs), theirs, ours)
    found = distance_of(tmp_path / "pair.h5", (ours, theirs), ("float32", "float32"))
    assert found.square == pytest.approx(by_numpy(ours, theirs, 1.0).square, rel=1e-5)
    assert found.square > 0.0


def test_a_difference_too_small_for_its_square_is_no_equality(tmp_path: Path) -> None:
    ours = np.zeros(1000, dtype=np.float32)
    theirs = ours.copy()
    theirs[17] = 1e-30
    found = distance_of(tmp_path / "pair.h5", (ours, theirs), ("float32", "float32"))
    assert (found.first_at, found.largest_at) == (17, 17)
    assert found.square == pytest.approx(1e-60, rel=1e-5)


def test_nan_and_inf_on_one_side_are_told_and_not_measured(tmp_path: Path) -> None:
    ours = np.array([1.0, math.nan, math.inf, math.inf, 2.0, math.nan], dtype=np.float32)
    theirs = np.array([1.0, math.nan, math.inf, -math.inf, 2.5, 1.0], dtype=np.float32)
    found = distance_of(tmp_path / "pair.h5", (ours, theirs), ("float32", "float32"))
    assert found == ValueDistance(6, 0.25, 0.5, 4, 3, 2)


def test_the_largest_is_not_looked_for_where_nobody_asks(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = list(rng.standard_normal((2, 50)).astype(np.float32))
    found = distance_of(tmp_path / "pair.h5", arrays, ("float32", "float32"), largest=False)
    assert (found.largest, found.largest_at, found.first_at) == (None, None, 0)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 400), st.floats(1e-6, 3.0), st.integers(0, 1000))
def test_the_cosine_follows_from_norms(count: int, size: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ours = rng.standard_normal(count)
    theirs = ours + size * rng.standard_normal(count)
    norms = (float(np.linalg.norm(ours)), float(np.linalg.norm(theirs)))
    found = ValueDistance(count, float(((theirs - ours) ** 2).sum())).cosine(*norms)
    assert found == pytest.approx(float(ours @ theirs) / (norms[0] * norms[1]), abs=1e-12)


def test_no_direction_no_cosine() -> None:
    assert ValueDistance(3, 1.0).cosine(0.0, 1.0) is None
    assert ValueDistance(3, 1.0, unmeasured=1).cosine(1.0, 1.0) is None


def store_in_chunks(path: Path, dtype: str, chunks: tuple[int, ...]) -> None:
    """As a tool that compresses files leaves them."""
    with h5py.File(path, "r+", locking=False) as file:
        old = file[PATH].id
        raw = np.empty(old.shape, dtype=f"<u{BIT_FLOATS[dtype].size}" if dtype in BIT_FLOATS else old.dtype)
        old.read(h5py.h5s.ALL, h5py.h5s.ALL, raw, file_type(dtype, raw.dtype))
        del file[PATH]
        how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        how.set_chunk(chunks)
        how.set_shuffle()
        how.set_deflate(1)
        space = h5py.h5s.create_simple(raw.shape)
        made = h5py.h5d.create(file.id, PATH.encode(), file_type(dtype, raw.dtype), space, how)
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, raw, file_type(dtype, raw.dtype))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_a_repacked_file_says_the_same(tmp_path: Path, dtype: str) -> None:
    rng = np.random.default_rng(5)
    arrays = [raw_of(dtype, (3, 70, 1000), rng, []) for _ in "ab"]
    plain = [write(tmp_path / f"{side}.h5", array, dtype) for side, array in zip("ab", arrays, strict=True)]
    with opened(*plain) as (ours, theirs, pair):
        contiguous = kept_pair(ours, theirs, pair)
        assert contiguous.candidate.contiguous
        expected = measure(BlockReader(), contiguous)
    store_in_chunks(plain[1], dtype, (1, 11, 300))
    with opened(*plain) as (ours, theirs, pair):
        repacked = kept_pair(ours, theirs, pair)
        assert not repacked.candidate.contiguous
        assert measure(BlockReader(), repacked) == expected


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(1, 5), max_size=4), st.data())
def test_boxes_are_the_run_in_order(shape: list[int], data: st.DataObject) -> None:
    index = np.arange(math.prod(shape)).reshape(shape)
    start = data.draw(st.integers(0, index.size - 1))
    count = data.draw(st.integers(1, index.size - start))
    found = [
        index[tuple(slice(low, low + length) for low, length in zip(first, lengths, strict=True))].reshape(-1)
        for first, lengths in boxes(tuple(shape), start, count)
    ]
    assert np.concatenate(found).tolist() == list(range(start, start + count))


def pair_of_files(folder: Path, ours: Array, theirs: Array, dtype: str = "float32") -> tuple[Path, Path]:
    return write(folder / "reference.h5", ours, dtype), write(folder / "candidate.h5", theirs, dtype)


def test_a_comparison_has_the_exact_distance_where_values_are_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    left = rng.standard_normal((64, 300)).astype(np.float32)
    right = left + np.float32(1e-3) * rng.standard_normal(left.shape).astype(np.float32)
    exact = float(np.linalg.norm(right.astype(float) - left) / np.linalg.norm(left.astype(float)))
    with opened(*pair_of_files(tmp_path, left, right)) as (ours, theirs, pair):
        values = ValueReader(ours, theirs)
        assert values.possible
        assert metrics.relative_l2(pair, 1.0, values) == pytest.approx(exact, rel=1e-6)
        assert metrics.relative_l2(pair, 0.5, values) == pytest.approx(
            float(np.linalg.norm(0.5 * right.astype(float) - left) / np.linalg.norm(left.astype(float))), rel=1e-6
        )
        sketched = metrics.relative_l2(pair)
        assert sketched is not None
        assert sketched != pytest.approx(exact, rel=1e-6)
        assert sketched == pytest.approx(exact, rel=0.2)


def test_of_equal_tensors_nothing_is_read(tmp_path: Path) -> None:
    left = np.random.default_rng(1).standard_normal((20, 30)).astype(np.float32)
    with opened(*pair_of_files(tmp_path, left, left)) as (ours, theirs, pair):
        values = ValueReader(ours, theirs)
    # The files are closed: whatever is read now fails.
    assert metrics.relative_l2(pair, 1.0, values) == 0.0
    hashed = Pair(replace(pair.reference, hash=5, sketch=None), replace(pair.candidate, hash=5, sketch=None))
    assert metrics.relative_l2(hashed, 1.0, values) == 0.0
    other = Pair(replace(pair.reference, hash=5), replace(pair.candidate, hash=6))
    with pytest.raises(CaptureFileError, match=r"^Cannot read '.*reference\.h5': it is damaged \(.*\)\. Copy it again"):
        metrics.relative_l2(other, 1.0, values)


def test_without_values_on_both_sides_the_sketch_speaks(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    arrays = rng.standard_normal((2, 5000)).astype(np.float32)
    with opened(*pair_of_files(tmp_path, *arrays)) as (ours, theirs, pair):
        one_sided = Pair(pair.reference, replace(pair.candidate, has_values=False))
        values = ValueReader(ours, theirs)
        assert values.distance(one_sided) is None
        assert values.channels(one_sided) is None
        assert metrics.relative_l2(one_sided, 1.0, values) == metrics.relative_l2(pair)


@pytest.mark.parametrize(
    ("error", "near"), [(0.0, False), (0.49, False), (0.5, True), (1.0, True), (2.0, True), (2.01, False)]
)
def test_a_sketch_needs_help_within_a_factor_of_two_of_the_limit(error: float, near: bool) -> None:
    assert metrics.is_near(error * 7e-8, 7e-8) is near


def test_a_file_that_shrinks_while_it_is_read_is_said_to_be_damaged(tmp_path: Path) -> None:
    array = np.random.default_rng(0).standard_normal(3 * ELEMENTS).astype(np.float32)
    paths = pair_of_files(tmp_path, array, array + 1)
    with opened(*paths) as (ours, theirs, pair):
        kept = kept_pair(ours, theirs, pair)
        os.truncate(paths[1], paths[1].stat().st_size // 2)
        with pytest.raises(CaptureFileError) as caught:
            measure(BlockReader(), kept)
    assert str(caught.value) == (
        f"Cannot read '{paths[1]}': it is damaged (it ends before the values of {KEY} do). "
        "Copy it again from where it was written, or capture again."
    )


def test_values_of_another_shape_than_their_record_are_said_to_be_damaged(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", np.zeros((3, 4), dtype=np.float32), "float32")
    with open_capture(path) as capture:
        record = replace(capture.records(0)[0], shape=(4, 3))
        with pytest.raises(CaptureFileError) as caught:
            capture.value_source(record)
    assert str(caught.value) == (
        f"Cannot read '{path}': it is damaged (the values of '{KEY}' have the shape (3, 4), not (4, 3)). "
        "Copy it again from where it was written, or capture again."
    )


def test_values_that_were_not_kept_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "a.h5", np.zeros(4, dtype=np.float32), "float32")
    with open_capture(path) as capture:
        record = replace(capture.records(0)[0], has_values=False)
        with pytest.raises(CaptureFileError) as caught:
            capture.value_source(record)
    assert str(caught.value) == (
        f"Cannot read the values of '{KEY}' from '{path}': they were not kept. Capture again with --detail tensors."
    )


MEMORY = """
import sys
from align.capture_file import open_capture
from align.pairing import Pair
from align.value_reader import ValueReader

def peak():  # in MB; what getrusage says would be that of the parent process, if that is larger
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

with open_capture(sys.argv[1]) as ours, open_capture(sys.argv[2]) as theirs:
    pair = Pair(ours.records(0)[0], theirs.records(0)[0])
    before = peak()
    values = ValueReader(ours, theirs)
    found = values.distance(pair, 1.0, largest=True)
    values.channels(pair)
    taken = peak() - before
    ours.raw_values(pair.reference)
    print(taken, peak() - before, found.first_at)
"""


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("float32", (10_000, 1000)), ("float32", (2, 5_000_000)), ("bfloat16", (10_000_000,))],
)
def test_memory_does_not_grow_with_the_tensors(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    array: Array = np.zeros(shape, dtype=np.float32)  # 40 MB a side
    if dtype == "bfloat16":
        array = array.view(np.uint16)
    record = TensorRecord(KEY, 0, dtype, array.shape, has_values=True)
    paths = [tmp_path / f"{side}.h5" for side in range(2)]
    for side, path in enumerate(paths):
        array.reshape(-1)[-3] = side
        writer = CaptureWriter(path, RunInfo(detail="tensors"))
        handles: dict[int, Any] = {0: writer.add_values(array, dtype)}
        writer.commit(0, [record], handles)
        handles.clear()
        writer.close(RunInfo(detail="tensors", outcome="finished"))
    command = [sys.executable, "-c", MEMORY, *map(str, paths)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    taken, of_a_whole_tensor, first = done.stdout.split()
    assert float(taken) <= 32
    assert float(of_a_whole_tensor) > 32  # what holds one whole tensor is seen
    assert int(first) == array.size - 3


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([(), (0, 3), (5,), (4, 3), (2, 3, 4), (2, 3, 4, 5), (1, 2, 0, 3), (2, 3, 1, 1)]),
    st.sampled_from([1.0, 0.5, 3.0]), st.integers(0, 1000), SPECIAL,
)  # fmt: skip
def test_channels_are_summed_as_numpy_does(
    tmp_path_factory: pytest.TempPathFactory,
    shape: tuple[int, ...],
    scale: float,
    seed: int,
    specials: list[tuple[int, float]],
) -> None:
    rng = np.random.default_rng(seed)
    left = rng.standard_normal(shape).astype(np.float32)
    right = (left * 1.5 + rng.standard_normal(shape)).astype(np.float32)
    usual = [(place, value) for place, value in specials if abs(value) < 10 or not math.isfinite(value)]
    with_specials(right, usual)
    path = tmp_path_factory.getbasetemp() / "channels.h5"
    with kept_in_one_file(path, (left, right), ("float32", "float32"), scale) as pair:
        found = channel_sums(BlockReader(), pair)
    agree_on_channels(found, left, right, scale)


def agree_on_channels(found: ChannelSums, left: Array, right: Array, scale: float = 1.0) -> None:
    rows, channels, inner = channels_of(left.shape)
    ours = left.astype(float).reshape(rows, channels, inner)
    with np.errstate(invalid="ignore"):
        difference = right.astype(float).reshape(ours.shape) * scale - ours
    usable = np.isfinite(difference)
    ours, difference = np.where(usable, ours, 0.0), np.where(usable, difference, 0.0)
    assert found.count.tolist() == usable.sum(axis=(0, 2)).tolist()
    expected = (ours, difference, ours**2, ours * difference, difference**2)
    sums = (found.reference, found.difference, found.squares, found.products, found.difference_squares)
    for sum_of, terms in zip(sums, expected, strict=True):
        assert np.allclose(sum_of, terms.sum(axis=(0, 2)), rtol=1e-6, atol=1e-6 * float(np.abs(terms).sum() or 1.0))


@pytest.mark.parametrize(
    "shape", [(3, 140_000), (2, 2, 400, 400), (1, 3, 200, 300), (2, 5, 256, 256), (3, 7, 100, 101)]
)
def test_channels_larger_than_a_block(tmp_path: Path, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, *shape)).astype(np.float32)
    with kept_in_one_file(tmp_path / "pair.h5", (left, right), ("float32", "float32")) as pair:
        agree_on_channels(channel_sums(BlockReader(), pair), left, right)


def test_a_vector_and_a_tensor_of_very_many_channels_are_one_channel() -> None:
    assert channels_of((7,)) == (7, 1, 1)
    assert channels_of((3, 300_000)) == (900_000, 1, 1)
    assert channels_of((3, 7)) == (3, 7, 1)
    assert channels_of((2, 3, 4, 5)) == (2, 3, 20)


def test_one_channel_that_is_scaled_and_one_that_is_shifted_stand_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    left = rng.standard_normal((500, 6)).astype(np.float32)
    right = left + 1e-3 * rng.standard_normal(left.shape).astype(np.float32)
    right[:, 2] *= 1.01
    right[:, 4] += 0.01
    with opened(*pair_of_files(tmp_path, left, right)) as (ours, theirs, pair):
        found = ValueReader(ours, theirs).channels(pair)
    assert found is not None
    assert found.slopes[2] == pytest.approx(0.01, abs=5 * found.slope_errors[2])
    assert found.means[4] == pytest.approx(0.01, abs=5 * found.mean_errors[4])
    assert np.flatnonzero(np.abs(found.slopes) > 8 * found.slope_errors).tolist() == [2]
    assert np.flatnonzero(np.abs(found.means) > 8 * found.mean_errors).tolist() == [4]
    whole = found.whole
    assert whole.slopes[0] == pytest.approx(0.01 / 6, rel=0.15)


def test_cuts_hold_whole_units_and_miss_nothing() -> None:
    assert list(plain_cuts(2 * ELEMENTS + 5)) == [(0, ELEMENTS), (ELEMENTS, ELEMENTS), (2 * ELEMENTS, 5)]
    assert list(plain_cuts(0)) == []
    step = ELEMENTS // 1000 * 1000
    assert list(plain_cuts(step + 1000, 1000)) == [(0, step), (step, 1000)]
    assert list(plain_cuts(3 * ELEMENTS, 3 * ELEMENTS)) == [(0, 3 * ELEMENTS)]


def test_a_sketch_needs_help_near_its_own_resolution() -> None:
    array = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    pair = Pair(record_of(KEY, array), record_of(KEY, array))
    both = 2**0.5 * RESOLUTION
    assert metrics.is_coarse(pair, 1.9 * both)
    assert not metrics.is_coarse(pair, 2.1 * both)


@pytest.mark.parametrize(("ulps", "answer"), [(3.6, Answer.CLOSE), (4.4, Answer.UNEQUAL)])
def test_whether_weights_are_close_is_read_from_their_values(tmp_path: Path, ulps: float, answer: Answer) -> None:
    rng = np.random.default_rng(4)
    left = rng.uniform(0.5, 1.0, 4000).astype(np.float32)
    right = (left * (1 + ulps * 2.0**-24 * rng.choice([-1, 1], left.shape))).astype(np.float32)
    exact = float(np.linalg.norm(right.astype(float) - left) / np.linalg.norm(left.astype(float)))
    with opened(*pair_of_files(tmp_path, left, right)) as (ours, theirs, pair):
        found = judge_equality(pair, ValueReader(ours, theirs))
        assert found.answer is answer
        assert found.relative_l2 == pytest.approx(exact, rel=1e-6)
        assert judge_equality(pair).relative_l2 != pytest.approx(exact, rel=1e-6)


def test_a_system_without_preadv_reads_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = list(np.random.default_rng(0).standard_normal((2, 2 * ELEMENTS)).astype(np.float32))
    with kept_in_one_file(tmp_path / "pair.h5", arrays, ("float32", "float32")) as pair:
        expected = measure(BlockReader(), pair)
        monkeypatch.delattr(os, "preadv")
        assert measure(BlockReader(), pair) == expected
    assert expected.square > 0.0
