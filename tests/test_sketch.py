"""Sketches: their definition, what they recover exactly, and how well they estimate."""

from __future__ import annotations

import math
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from align.records import Phase, TensorKey, TensorRecord, TensorStats
from align.sketch import (
    PERIOD,
    ROWS,
    SIGN_TABLE_ID,
    ScaleFactor,
    Sketch,
    bucket_count,
    distance,
    identical,
    inner_product,
    median_distance,
    recovered,
    scale_factor,
    signs,
    sketch_array,
    sketch_of,
)


def sketched(array: NDArray[np.float64], resolution: float = 0.0) -> Sketch:
    finite = array[np.isfinite(array)]
    return Sketch(sketch_array(array), array.size, math.sqrt(float((finite**2).sum())), resolution)


def by_definition(array: NDArray[np.float64]) -> NDArray[np.float64]:
    buckets = bucket_count(array.shape)
    sums = [0.0] * buckets
    for index, value in enumerate(array.reshape(-1).tolist()):
        sums[index % buckets] += value * (1.0 if sign_by_definition(index % PERIOD) else -1.0)
    return np.array(sums[: array.size])


def sign_by_definition(index: int) -> int:
    mask = 0xFFFFFFFF
    mixed = index * 0x9E3779B1 & mask
    mixed = (mixed ^ mixed >> 15) * 0x85EBCA77 & mask
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE3D & mask
    return (mixed ^ mixed >> 16) & 1


def noisy(seed: int, shape: tuple[int, ...], relative: float) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    rng = np.random.default_rng(seed)
    reference = rng.standard_normal(shape)
    candidate = reference + relative * rng.standard_normal(shape)
    return reference, candidate, float(np.linalg.norm(candidate - reference) / np.linalg.norm(reference))


def test_the_sign_table_has_its_id() -> None:
    assert zlib.crc32(signs()[:PERIOD].astype(np.int8).tobytes()) == SIGN_TABLE_ID


def test_the_signs_follow_the_integer_hash() -> None:
    for index in (0, 1, 2, 1000, PERIOD - 1):
        assert signs()[index] == (1.0 if sign_by_definition(index) else -1.0)


def test_the_sign_table_repeats_for_one_block() -> None:
    assert len(signs()) == PERIOD + ROWS * 269
    assert np.array_equal(signs()[PERIOD:], signs()[: ROWS * 269])


@pytest.mark.parametrize(
    ("shape", "buckets"),
    [
        ((), 251),
        ((0,), 251),
        ((7,), 251),
        ((251,), 251),
        ((512, 1004), 257),
        ((8, 251), 257),
        ((4, 251, 3), 257),
        ((4, 3, 251, 1), 257),
        ((2, 251 * 257), 263),
        ((2, 251, 257, 263), 269),
        ((2, 251, 257, 263, 269), 269),
        ((4, 512, 4096), 251),
    ],
    ids=str,
)
def test_the_bucket_count_divides_no_stride(shape: tuple[int, ...], buckets: int) -> None:
    assert bucket_count(shape) == buckets


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (251,), (252,), (3, 251), (40, 30)], ids=str)
def test_a_sketch_is_its_definition(shape: tuple[int, ...]) -> None:
    array = np.asarray(np.random.default_rng(1).standard_normal(shape))
    np.testing.assert_allclose(sketch_array(array), by_definition(array), rtol=2e-6, atol=1e-6)


def test_blocks_and_the_period_join_without_a_seam() -> None:
    array = np.random.default_rng(2).standard_normal(PERIOD + 300_000)
    table = np.tile(signs()[:PERIOD], 2)[: array.size].astype(np.float64)
    padded = np.zeros(-(-array.size // 251) * 251)
    padded[: array.size] = array * table
    np.testing.assert_allclose(sketch_array(array), padded.reshape(-1, 251).sum(0), rtol=1e-6)


def test_the_layout_in_memory_does_not_enter() -> None:
    array = np.random.default_rng(3).standard_normal((30, 40, 5)).astype(np.float32)
    transposed = np.ascontiguousarray(array.transpose(2, 0, 1)).transpose(1, 2, 0)
    assert transposed.strides != array.strides
    assert np.array_equal(sketch_array(array), sketch_array(transposed))


@given(hnp.arrays(np.float32, st.integers(0, 251), elements=st.floats(width=32, allow_nan=False)))
def test_at_most_k_elements_are_recovered_exactly(array: NDArray[np.float32]) -> None:
    found = recovered(sketch_array(array), array.size)
    assert found is not None
    assert np.array_equal(found, array)


def test_more_than_k_elements_are_not_recovered() -> None:
    assert recovered(sketch_array(np.ones(252)), 252) is None


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3000), st.floats(-8, 8))
def test_a_sketch_is_linear(seed: int, size: int, factor: float) -> None:
    first, second = np.random.default_rng(seed).standard_normal((2, size))
    together = sketch_array(first + factor * second).astype(np.float64)
    apart = sketch_array(first).astype(np.float64) + factor * sketch_array(second).astype(np.float64)
    np.testing.assert_allclose(together, apart, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(512, 1004), (300, 251), (100_000,), (16, 64, 56, 56), (2048, 257)], ids=str)
@pytest.mark.parametrize("relative", [1e-6, 1e-2])
def test_the_distance_is_estimated_within_a_fifth(shape: tuple[int, ...], relative: float) -> None:
    reference, candidate, true = noisy(4, shape, relative)
    estimate = distance(sketched(reference), sketched(candidate))
    assert estimate is not None
    assert 0.8 < estimate / true < 1.25


def test_the_distance_of_one_channel_is_seen_where_its_stride_is_a_bucket_count() -> None:
    reference = np.random.default_rng(5).standard_normal((512, 1004))
    candidate = reference.copy()
    candidate[:, 17] *= 1.5
    true = float(np.linalg.norm(candidate - reference) / np.linalg.norm(reference))
    estimate = distance(sketched(reference), sketched(candidate))
    assert estimate is not None
    assert 0.8 < estimate / true < 1.25


@pytest.mark.parametrize("size", [1, 8, 120, 251])
def test_the_distance_of_a_small_tensor_is_exact(size: int) -> None:
    reference, candidate, _ = noisy(6, (size,), 1e-3)
    reference, candidate = reference.astype(np.float32), candidate.astype(np.float32)
    difference = candidate.astype(np.float64) - reference
    true = float(np.linalg.norm(difference) / np.linalg.norm(reference.astype(np.float64)))
    noisy_sketches = sketched(reference, resolution=0.5), sketched(candidate, resolution=0.5)
    assert distance(*noisy_sketches) == pytest.approx(true, rel=1e-12)


@pytest.mark.parametrize("bad", [1, 20, 100, 300])
def test_buckets_that_are_not_finite_are_left_out(bad: int) -> None:
    reference, candidate, true = noisy(7, (500_000,), 0.01)
    candidate[np.random.default_rng(8).permutation(candidate.size)[:bad]] = np.inf
    estimate = distance(sketched(reference), sketched(candidate))
    assert estimate is not None
    assert 0.7 < estimate / true < 1.35


def test_too_few_finite_buckets_give_no_distance() -> None:
    reference, candidate, _ = noisy(9, (5000,), 0.01)
    candidate[: 251 - 29] = np.nan
    first, second = sketched(reference), sketched(candidate)
    assert distance(first, second) is None
    assert median_distance(first, second, 1.0) is None
    assert inner_product(first, second) is None
    assert scale_factor(first, second) is None


def test_finite_elements_of_a_small_tensor_are_compared_exactly() -> None:
    reference = np.array([1.0, 2.0, np.nan, 4.0])
    candidate = np.array([1.0, 2.0, 3.0, 5.0])
    assert distance(sketched(reference), sketched(candidate)) == pytest.approx(1 / math.sqrt(21))


def test_sketches_of_other_sizes_give_no_distance() -> None:
    assert distance(sketched(np.ones(300)), sketched(np.ones(301))) is None
    assert distance(sketched(np.ones(30)), sketched(np.ones(31))) is None


def test_a_loss_scale_is_undone() -> None:
    reference, candidate, true = noisy(10, (30_000,), 1e-3)
    plain = distance(sketched(reference), sketched(candidate))
    scaled = distance(sketched(reference * 1024), sketched(candidate * 65536), scale=1024 / 65536)
    assert plain is not None
    assert scaled == pytest.approx(plain, rel=1e-6)
    assert 0.8 < plain / true < 1.25


def test_the_resolutions_are_subtracted_in_quadrature() -> None:
    reference, candidate, _ = noisy(11, (30_000,), 1e-3)
    plain = distance(sketched(reference), sketched(candidate))
    assert plain is not None
    less = distance(sketched(reference, 3e-4), sketched(candidate, 4e-4))
    assert less == pytest.approx(math.sqrt(plain**2 - 25e-8), rel=1e-4)
    assert distance(sketched(reference, 1e-2), sketched(candidate, 1e-2)) == 0.0


def test_the_distance_from_zero_is_infinite_unless_both_are_zero() -> None:
    zeros, ones = sketched(np.zeros(1000)), sketched(np.ones(1000))
    assert distance(zeros, ones) == math.inf
    assert distance(zeros, zeros) == 0.0
    assert distance(ones, zeros) == pytest.approx(1.0, abs=0.2)


def test_the_distance_of_an_empty_tensor_is_zero() -> None:
    empty = sketched(np.zeros(0))
    assert distance(empty, empty) == 0.0


def test_flipped_elements_do_not_move_the_median_distance() -> None:
    reference, candidate, true = noisy(12, (30_000,), 1e-4)
    candidate[[5, 4000]] += 3.0
    first, second = sketched(reference), sketched(candidate)
    plain = distance(first, second)
    robust = median_distance(first, second, forward_error=1e-7)
    assert plain is not None
    assert plain > 50 * true
    assert robust is not None
    assert 0.7 < robust / true < 1.3


def test_more_flips_than_the_forward_error_explains_have_no_median_distance() -> None:
    reference, candidate, _ = noisy(13, (30_000,), 1e-4)
    candidate[:20] += 3.0
    first, second = sketched(reference), sketched(candidate)
    assert median_distance(first, second, forward_error=1e-7) is None
    assert median_distance(first, second, forward_error=1e-3) is not None


def test_a_tensor_of_few_elements_a_bucket_has_no_median_distance() -> None:
    reference, candidate, _ = noisy(14, (8 * 251 - 1,), 1e-4)
    assert median_distance(sketched(reference), sketched(candidate), 1.0) is None


def test_the_inner_product_is_estimated() -> None:
    reference, candidate, _ = noisy(15, (50_000,), 0.5)
    true = float(reference @ candidate)
    bound = 4 * float(np.linalg.norm(reference) * np.linalg.norm(candidate)) / math.sqrt(251)
    assert inner_product(sketched(reference), sketched(candidate)) == pytest.approx(true, abs=bound)
    small = np.arange(5.0)
    assert inner_product(sketched(small), sketched(small + 1), scale=2.0) == pytest.approx(2 * 40.0)


@pytest.mark.parametrize("factor", [2.0, -1.0, 0.125, 1.0001])
@pytest.mark.parametrize("size", [40, 50_000])
def test_the_scale_factor_is_found(factor: float, size: int) -> None:
    reference = np.random.default_rng(16).standard_normal(size)
    found = scale_factor(sketched(reference), sketched(factor * reference))
    assert found is not None
    assert found.factor == pytest.approx(factor, rel=1e-6)
    assert found.residual < 1e-6


def test_unrelated_tensors_leave_a_residual() -> None:
    first, second = np.random.default_rng(17).standard_normal((2, 50_000))
    found = scale_factor(sketched(first), sketched(second))
    assert found is not None
    assert found.residual > 1.0
    assert scale_factor(sketched(np.zeros(9)), sketched(np.ones(9))) is None
    assert scale_factor(sketched(np.ones(9)), sketched(np.ones(9))) == ScaleFactor(1.0, 0.0)


def test_only_the_same_bits_are_identical() -> None:
    array = np.random.default_rng(18).standard_normal(1000)
    moved = array.copy()
    moved[3] = np.nextafter(np.float32(array[3]), np.float32(9))
    assert identical(sketched(array), sketched(array))
    assert not identical(sketched(array), sketched(moved + 1e-3))
    assert not identical(sketched(array), sketched(array, resolution=1e-8))


def test_a_record_without_sketch_or_statistics_has_no_sketch() -> None:
    key = TensorKey(0, Phase.FORWARD, "fc", "output.0")
    values = np.ones(3, dtype=np.float32)
    stats = TensorStats(3, total_squares=3.0)
    full = TensorRecord(key, 0, "float32", (3,), stats, sketch=values, resolution=0.5)
    assert sketch_of(full) == Sketch(values, 3, math.sqrt(3), 0.5)
    assert sketch_of(TensorRecord(key, 0, "float32", (3,), stats)) is None
    assert sketch_of(TensorRecord(key, 0, "float32", (3,), sketch=values)) is None
