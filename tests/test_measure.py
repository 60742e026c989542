"""Statistics and sketches of tensors, against numpy in float64, for every dtype and layout."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from align.hooks.measure import Measurements
from align.hooks.measure_host import CHAIN_RESOLUTION
from align.hooks.measured import Measured
from align.hooks.pieces import pieces
from align.records import TensorStats
from align.sketch import sketch_array
from tests.running import python

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
OTHERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, -1),
    "channels last": lambda x: x[None].contiguous(memory_format=torch.channels_last)[0] if x.dim() == 3 else x,
    "strided": lambda x: x[..., ::2],
    "offset": lambda x: x.reshape(-1)[3:],
    "expanded": lambda x: x[:1].expand(5, *x.shape[1:]),
}


def tensor(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(shape, generator=generator, dtype=torch.float64) * 3
    values[values.abs() < 0.5] = 0
    return values.to(dtype)


def reference(x: torch.Tensor) -> TensorStats:
    values = x.double().numpy()
    finite = values[np.isfinite(values)]
    subnormal = 0
    if x.dtype in (torch.float16, torch.bfloat16):
        subnormal = int(((abs(finite) < torch.finfo(x.dtype).tiny) & (finite != 0)).sum())
    return TensorStats(
        count=values.size,
        minimum=finite.min() if finite.size else 0.0,
        maximum=finite.max() if finite.size else 0.0,
        total=finite.sum(),
        total_squares=(finite**2).sum(),
        zeros=int((finite == 0).sum()),
        nans=int(np.isnan(values).sum()),
        positive_infs=int(np.isposinf(values).sum()),
        negative_infs=int(np.isneginf(values).sum()),
        subnormals=subnormal,
    )


def check(measured: Measured, x: torch.Tensor) -> None:
    found, expected = measured.stats, reference(x)
    assert found is not None
    for name in ("count", "zeros", "nans", "positive_infs", "negative_infs", "subnormals"):
        assert getattr(found, name) == getattr(expected, name), name
    assert found.minimum == pytest.approx(expected.minimum, rel=1e-6)
    assert found.maximum == pytest.approx(expected.maximum, rel=1e-6)
    scale = math.sqrt(expected.total_squares * max(expected.count, 1)) or 1.0
    assert found.total == pytest.approx(expected.total, abs=1e-5 * scale)
    assert found.total_squares == pytest.approx(expected.total_squares, rel=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [*FLOATS, *OTHERS], ids=str)
def test_statistics_do_not_depend_on_the_layout(dtype: torch.dtype, layout: str) -> None:
    x = LAYOUTS[layout](tensor((6, 40, 70), dtype))
    check(Measurements(with_sketch=False).measure(x), x)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(3,), (251,), (512, 1004), (7, 300, 260), (4, 64, 33, 65)], ids=str)
def test_the_sketch_is_that_of_the_logical_order(shape: tuple[int, ...], dtype: torch.dtype, layout: str) -> None:
    x = LAYOUTS[layout](tensor(shape, dtype))
    measured = Measurements(with_sketch=True).measure(x)
    expected = sketch_array(x.double().numpy())
    assert measured.sketch is not None
    assert measured.sketch.shape == expected.shape
    norm = float(x.double().norm())
    error = np.linalg.norm(measured.sketch.astype(np.float64) - expected)
    assert error <= CHAIN_RESOLUTION * norm
    check(measured, x)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(width=32), min_size=1, max_size=400))
def test_any_float32_values_are_counted(values: list[float]) -> None:
    x = torch.tensor(values, dtype=torch.float32)
    check(Measurements(with_sketch=True).measure(x), x)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_statistics_are_over_the_finite_elements(bad: float) -> None:
    x = tensor((1000, 300), torch.float32)
    x[5, 7] = bad
    measured = Measurements(with_sketch=True).measure(x)
    check(measured, x)
    assert measured.sketch is not None
    assert int((~np.isfinite(measured.sketch)).sum()) == 1


def test_sums_beyond_float32_are_right() -> None:
    x = torch.full((1000,), torch.finfo(torch.float32).min)
    stats = Measurements(with_sketch=False).measure(x).stats
    assert stats is not None
    assert stats.total == pytest.approx(-3.4028234663852886e41)
    assert stats.nonfinite == 0
    assert stats.rms == pytest.approx(3.4028234663852886e38)


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), ()])
def test_empty_and_scalar_tensors(shape: tuple[int, ...]) -> None:
    x = torch.ones(shape)
    measured = Measurements(with_sketch=True).measure(x)
    assert measured.stats is not None
    assert measured.stats.count == x.numel()
    assert measured.sketch is not None
    assert measured.sketch.size == x.numel()


def test_complex_tensors_are_measured_by_their_parts() -> None:
    x = torch.tensor([1 + 2j, 0 - 3j])
    stats = Measurements(with_sketch=False).measure(x).stats
    assert stats is not None
    assert (stats.count, stats.minimum, stats.maximum, stats.zeros) == (4, -3.0, 2.0, 1)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(1, 40),
    st.permutations(range(4)),
)
def test_pieces_cover_every_element_once_in_logical_order(shape: list[int], block: int, order: list[int]) -> None:
    x = torch.arange(math.prod(shape)).reshape(shape)
    x = x.permute([axis for axis in order if axis < x.dim()])
    seen: list[int] = []
    for view, offset in pieces(x, block):
        assert offset == len(seen)
        seen.extend(view.reshape(-1).tolist())
    assert seen == x.reshape(-1).tolist()


def test_measuring_writes_nothing_into_the_tensor_and_draws_no_random_number() -> None:
    x = tensor((500, 400), torch.float32)
    before, state = x.clone(), torch.get_rng_state()
    Measurements(with_sketch=True).measure(x.t())
    assert torch.equal(x, before)
    assert torch.equal(torch.get_rng_state(), state)


DEVICE_PROGRAM = """
import numpy as np, torch, torch_npu
from align.hooks.measure import Measurements
from align.hooks.measure_device import TREE_RESOLUTION
from align.sketch import sketch_array

torch.manual_seed(0)
for shape in [(3,), (512, 1004), (3000, 900), (2, 64, 33, 65)]:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.randn(shape).to(dtype)
        x.view(-1)[0] = 0
        if shape == (3000, 900):
            x[1, 2] = float("nan"); x[3, 4] = float("inf")
        measurements = Measurements(with_sketch=True)
        waiting = measurements.measure(x.to("npu"))
        measurements.measure(x.to("npu").transpose(0, -1))
        assert waiting.stats is None, "the numbers wait on the device"
        measurements.fetch()
        host = Measurements(with_sketch=True).measure(x)
        stats, expected = waiting.stats, host.stats
        for name in ("count", "zeros", "nans", "positive_infs", "negative_infs", "subnormals"):
            assert getattr(stats, name) == getattr(expected, name), (name, stats, expected)
        for name in ("minimum", "maximum", "total_squares"):
            assert np.isclose(getattr(stats, name), getattr(expected, name), rtol=1e-5), (name, stats, expected)
        sketch = waiting.sketch
        finite = np.isfinite(sketch) & np.isfinite(host.sketch)
        assert (np.isfinite(sketch) == np.isfinite(host.sketch)).all()
        error = np.linalg.norm((sketch - host.sketch)[finite].astype(np.float64))
        assert error <= 2 * TREE_RESOLUTION * stats.norm, (shape, dtype, error / stats.norm)
print("ok")
"""


def test_a_device_without_float64_gives_the_same_numbers_in_one_fetch() -> None:
    done = python("-c", DEVICE_PROGRAM, simulator={})
    assert done.stdout == "ok\n", done.stderr
