"""Unit roundoffs, limits and the precision that switches lead to."""

from __future__ import annotations

import math
from typing import Any

import pytest

from align import tolerance
from align.records import ModuleInfo, RunInfo
from align.tolerance import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    HF32,
    PRECISIONS,
    TF32,
    Precision,
    coarsest,
    conv_precision,
    flip_floor,
    limit,
    matmul_precision,
    module_precision,
)


@pytest.mark.parametrize(
    ("dtype", "unit"),
    [
        ("float64", 2.0**-53),
        ("float32", 2.0**-24),
        ("float16", 2.0**-11),
        ("bfloat16", 2.0**-8),
        ("float8_e4m3fn", 2.0**-4),
        ("float8_e5m2", 2.0**-3),
    ],
)
def test_the_unit_roundoff_of_each_dtype(dtype: str, unit: float) -> None:
    assert PRECISIONS[dtype].unit == unit


@pytest.mark.parametrize(
    ("numel", "expected"), [(1, 70 / 3), (10, 70 / 3), (11, 56 / 3), (500, 56 / 3), (501, 7.0), (10**9, 7.0)]
)
def test_the_limit_is_wider_for_few_elements(numel: int, expected: float) -> None:
    assert limit(numel) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("device", "flags", "matmul", "conv"),
    [
        ("cpu", {}, FLOAT32, FLOAT32),
        ("cpu", {"cudnn_allow_tf32": True, "matmul_allow_tf32": True}, FLOAT32, FLOAT32),
        ("cpu", {"float32_matmul_precision": "high"}, TF32, FLOAT32),
        ("cpu", {"float32_matmul_precision": "medium"}, BFLOAT16, FLOAT32),
        ("cuda", {}, FLOAT32, TF32),
        ("cuda", {"cudnn_allow_tf32": False}, FLOAT32, FLOAT32),
        ("cuda", {"matmul_allow_tf32": True, "cudnn_allow_tf32": True}, TF32, TF32),
        ("cuda", {"float32_matmul_precision": "high", "cudnn_allow_tf32": False}, TF32, FLOAT32),
        ("npu", {}, FLOAT32, HF32),
        ("npu", {"npu_matmul_allow_hf32": True, "npu_conv_allow_hf32": False}, HF32, FLOAT32),
        ("npu", {"acl_precision_mode": "allow_fp32_to_fp16"}, FLOAT16, FLOAT16),
        ("npu", {"cudnn_allow_tf32": True, "matmul_allow_tf32": True}, FLOAT32, HF32),
    ],
)
def test_what_switches_make_of_float32(device: str, flags: dict[str, Any], matmul: Precision, conv: Precision) -> None:
    run = RunInfo(device_type=device, flags=flags)
    assert (matmul_precision(run), conv_precision(run)) == (matmul, conv)


@pytest.mark.parametrize(
    ("module", "dtypes", "expected"),
    [
        (None, ["float32"], FLOAT32),
        (None, ["int64"], None),
        (ModuleInfo("fc", "Linear", matmul=True), ["float32"], TF32),
        (ModuleInfo("norm", "LayerNorm"), ["float32"], FLOAT32),
        (ModuleInfo("fc", "Linear", compute_dtype="bfloat16", matmul=True), ["float32"], BFLOAT16),
        (ModuleInfo("fc", "Linear", compute_dtype="float64", matmul=True), ["float64"], FLOAT64),
        (ModuleInfo("conv", "Conv2d", conv=True), ["float32"], TF32),
        (ModuleInfo("conv", "Conv2d", conv=True), ["float16"], FLOAT16),
    ],
)
def test_the_precision_of_a_module(module: ModuleInfo | None, dtypes: list[str], expected: Precision | None) -> None:
    run = RunInfo(device_type="cuda", flags={"matmul_allow_tf32": True})
    assert module_precision(run, module, dtypes) == expected


def test_without_a_recorded_dtype_autocast_tells_what_products_are_made_in() -> None:
    run = RunInfo(autocast="bfloat16")
    assert module_precision(run, ModuleInfo("fc", "Linear", matmul=True), ["float32"]) == BFLOAT16
    assert module_precision(run, ModuleInfo("norm", "LayerNorm"), ["float32"]) == FLOAT32


def test_of_equal_units_the_one_with_the_narrower_range_is_coarser() -> None:
    assert coarsest([TF32, FLOAT16]) == FLOAT16
    assert coarsest([]) is None


def test_flips_widen_the_floor_only_where_they_are_dense() -> None:
    assert flip_floor(4096, 1e-7) == 0.0
    assert flip_floor(1_000_000, 0.01) == pytest.approx(0.04)


def test_a_long_sum_of_float32_widens_the_floor() -> None:
    assert tolerance.summation_error(4096, FLOAT32.unit) == pytest.approx(0.3 * 64 * FLOAT32.unit)
    assert tolerance.summation_error(4096, BFLOAT16.unit) < BFLOAT16.unit
    assert tolerance.summation_error(4096, FLOAT64.unit) == pytest.approx(0.3 * 64 * FLOAT64.unit)
    assert math.isclose(tolerance.summation_error(0, FLOAT32.unit), 0.0)
