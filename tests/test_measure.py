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


def measure(x: torch.Tensor, *, with_sketch: bool = False, exponents: bool = False) -> Measured:
    measured = Measurements(with_sketch=with_sketch).measure(x, exponents=exponents)
    assert measured is not None
    return measured


def statistics(x: torch.Tensor) -> TensorStats:
    stats = measure(x).stats
    assert stats is not None
    return stats


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
    check(measure(x), x)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(3,), (251,), (512, 1004), (7, 300, 260), (4, 64, 33, 65)], ids=str)
def test_the_sketch_is_that_of_the_logical_order(shape: tuple[int, ...], dtype: torch.dtype, layout: str) -> None:
    x = LAYOUTS[layout](tensor(shape, dtype))
    measured = measure(x, with_sketch=True)
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
    check(measure(x, with_sketch=True), x)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_statistics_are_over_the_finite_elements(bad: float) -> None:
    x = tensor((1000, 300), torch.float32)
    x[5, 7] = bad
    measured = measure(x, with_sketch=True)
    check(measured, x)
    assert measured.sketch is not None
    assert int((~np.isfinite(measured.sketch)).sum()) == 1


def test_sums_beyond_float32_are_right() -> None:
    x = torch.full((1000,), torch.finfo(torch.float32).min)
    stats = statistics(x)
    assert stats.total == pytest.approx(-3.4028234663852886e41)
    assert stats.nonfinite == 0
    assert stats.rms == pytest.approx(3.4028234663852886e38)


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), ()])
def test_empty_and_scalar_tensors(shape: tuple[int, ...]) -> None:
    x = torch.ones(shape)
    measured = measure(x, with_sketch=True)
    assert measured.stats is not None
    assert measured.stats.count == x.numel()
    assert measured.sketch is not None
    assert measured.sketch.size == x.numel()


def test_complex_tensors_are_measured_by_their_parts() -> None:
    x = torch.tensor([1 + 2j, 0 - 3j])
    stats = statistics(x)
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


def exponents_of(x: torch.Tensor) -> list[int]:
    """The count of each exponent code, element by element."""
    integers, fraction_bits, codes = {
        torch.float16: (torch.int16, 10, 32),
        torch.bfloat16: (torch.int16, 7, 256),
        torch.float32: (torch.int32, 23, 256),
    }[x.dtype]
    counts = [0] * codes
    for bits in x.reshape(-1).view(integers).tolist():
        counts[(bits >> fraction_bits) % codes] += 1
    return counts


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("shape", [(7,), (300, 301), (1500, 999)], ids=str)
def test_exponents_are_counted_by_their_code(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = tensor(shape, dtype)
    x = x * torch.exp2(torch.arange(x.shape[-1]) % 200 - 150).to(dtype)
    x.view(-1)[:5] = torch.tensor([math.nan, -math.nan, math.inf, -math.inf, -0.0])
    measured = measure(x, with_sketch=True, exponents=True)
    assert measured.exponents is not None
    assert measured.exponents.dtype == np.int64
    assert measured.exponents.tolist() == exponents_of(x)
    check(measured, x)
    turned = measure(x.t() if x.dim() > 1 else x.flip(0), exponents=True).exponents
    assert turned is not None
    assert turned.tolist() == exponents_of(x)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-(2**15), 2**15 - 1), min_size=1, max_size=300), st.sampled_from(["float16", "bfloat16"]))
def test_any_bits_of_16_bit_floats_are_counted(bits: list[int], name: str) -> None:
    x = torch.tensor(bits, dtype=torch.int16).view(getattr(torch, name))
    measured = measure(x, exponents=True)
    assert measured.exponents is not None
    assert measured.exponents.tolist() == exponents_of(x)
    check(measured, x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32, torch.bool, torch.complex64], ids=str)
def test_other_dtypes_have_no_exponents(dtype: torch.dtype) -> None:
    assert measure(torch.ones(5, dtype=dtype), exponents=True).exponents is None
    assert measure(torch.ones(5)).exponents is None


def test_an_empty_tensor_has_no_element_of_any_exponent() -> None:
    exponents = measure(torch.ones(0, dtype=torch.float16), exponents=True).exponents
    assert exponents is not None
    assert exponents.tolist() == [0] * 32


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_extremes_of_one_sign_and_of_negative_zero(dtype: torch.dtype, sign: float) -> None:
    x = torch.tensor([3.0, 2.0, 5.0], dtype=dtype) * sign
    assert (statistics(x).minimum, statistics(x).maximum) == ((2.0, 5.0) if sign > 0 else (-5.0, -2.0))
    x[1] = -0.0
    found = statistics(x)
    assert (found.minimum, found.maximum, found.zeros) == ((0.0, 5.0, 1) if sign > 0 else (-5.0, 0.0, 1))
    assert [math.copysign(1.0, found.minimum), math.copysign(1.0, found.maximum)] == ([1, 1] if sign > 0 else [-1, 1])


@pytest.mark.parametrize("value", [1e-25, 1e-19, 3e-20, 1e-40])
def test_squares_below_float32_are_not_lost(value: float) -> None:
    x = torch.full((300_000,), value)
    assert statistics(x).rms == pytest.approx(float(x[0]), rel=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(-140, 120), st.sampled_from([10, 1000, 300_000]))
def test_the_norm_is_right_at_any_magnitude(exponent: int, numel: int) -> None:
    x = tensor((numel,), torch.float32) * 2.0**exponent
    assert statistics(x).norm == pytest.approx(float(x.double().norm()), rel=1e-5)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("with_sketch", [False, True])
@pytest.mark.parametrize("bad", [0.0, math.nan, -math.inf])
def test_a_tensor_is_known_again_until_one_element_changes(
    dtype: torch.dtype, bad: float, *, with_sketch: bool
) -> None:
    x = tensor((700, 500), dtype)
    x[3, 4] = bad
    measurements = Measurements(with_sketch=with_sketch)
    measured = measurements.measure(x)
    assert measured is not None
    assert measurements.still_has(x, measured)
    assert measurements.still_has(x.clone(), measured)
    x[3, 6] += 1
    assert not measurements.still_has(x, measured)


def test_the_user_may_have_told_numpy_to_raise() -> None:
    x = torch.tensor([math.nan, math.inf, -math.inf, 3e38, 1e-45] * 300)
    with np.errstate(all="raise"):
        measured = measure(x, with_sketch=True, exponents=True)
        check(measured, x)
        measure(x.double() * 1e300, with_sketch=True)


def test_more_elements_than_32_bits_count() -> None:
    x = torch.full((1, 1 << 17), 2.0).expand((1 << 14) + 3, -1)
    found = statistics(x)
    count = (1 << 31) + 3 * (1 << 17)
    assert (found.count, found.total, found.total_squares) == (count, 2.0 * count, 4.0 * count)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "uint16", "uint32", "uint64")
        if hasattr(torch, name)
    ],
)
def test_dtypes_that_few_operators_know(name: str) -> None:
    x = torch.tensor([0.0, 1.0, 4.0, 2.0]).to(getattr(torch, name))
    assert statistics(x) == TensorStats(4, 0.0, 4.0, 7.0, 21.0, zeros=1)


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
        waiting = measurements.measure(x.to("npu"), exponents=True)
        measurements.measure(x.to("npu").transpose(0, -1))
        assert waiting.stats is None, "the numbers wait on the device"
        measurements.fetch()
        host = Measurements(with_sketch=True).measure(x, exponents=True)
        assert (waiting.exponents == host.exponents).all()
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

for magnitude in (1e-30, 1e-22, 1.0, 1e22, 3e38):
    x = torch.randn(5000).clamp(-1, 1) * magnitude
    measurements = Measurements(with_sketch=False)
    waiting = measurements.measure(x.to("npu"))
    measurements.fetch()
    assert np.isclose(waiting.stats.norm, x.double().norm(), rtol=1e-6), (magnitude, waiting.stats)
    assert np.isclose(waiting.stats.total, x.double().sum(), atol=1e-6 * waiting.stats.norm), (magnitude, waiting.stats)
print("ok")
"""


def test_a_device_without_float64_gives_the_same_numbers_in_one_fetch() -> None:
    done = python("-c", DEVICE_PROGRAM, simulator={})
    assert done.stdout == "ok\n", done.stderr


SMALL_PROGRAM = """
import numpy as np, torch, torch_npu
from align.hooks.measure import Measurements
from align.hooks.measure_device import TREE_RESOLUTION

torch.manual_seed(0)
measurements = Measurements(with_sketch=True)
pairs = []
for index in range(360):
    shape = [(), (1,), (7, 36), (251,), (252,), (251, 3), (3, 1004), (8, 1004), (31999,), (2, 3, 4, 5)][index % 10]
    dtype = (torch.float32, torch.float16, torch.bfloat16)[index % 3]
    x = (torch.randn(shape) * 4.0 ** (index % 11 - 8)).to(dtype)
    if index % 7 == 0:
        x.view(-1)[:2] = float("-inf"); x.view(-1)[:1] = float("nan")
    if index % 13 == 0:
        x.view(-1)[-1:] = 0
    exponents = index % 2 == 0
    with torch.inference_mode(index % 4 == 0):
        on_device = x.to("npu")
        if index % 5 == 0 and x.dim() == 2:
            x, on_device = x.t(), on_device.t()
        pairs.append((measurements.measure(on_device, exponents=exponents), x, exponents))
        on_device.zero_()
assert sum(waiting.stats is None for waiting, *_ in pairs) == len(pairs), "the numbers wait on the device"
measurements.fetch()
for waiting, x, exponents in pairs:
    host = Measurements(with_sketch=True).measure(x, exponents=exponents)
    stats, expected = waiting.stats, host.stats
    for name in ("count", "minimum", "maximum", "zeros", "nans", "positive_infs", "negative_infs", "subnormals"):
        assert getattr(stats, name) == getattr(expected, name), (name, stats, expected)
    assert np.isclose(stats.total_squares, expected.total_squares, rtol=1e-5), (stats, expected)
    assert np.isclose(stats.total, expected.total, atol=1e-5 * expected.norm * x.numel() ** 0.5), (stats, expected)
    assert (waiting.exponents is None) == (host.exponents is None)
    assert not exponents or (waiting.exponents == host.exponents).all(), (waiting.exponents, host.exponents)
    ours, theirs = waiting.sketch, host.sketch
    finite = np.isfinite(theirs)
    assert len(ours) == len(theirs) and (np.isfinite(ours) == finite).all()
    assert np.linalg.norm((ours - theirs)[finite].astype(np.float64)) <= 2 * TREE_RESOLUTION * stats.norm
print("ok")
"""


def test_small_tensors_are_measured_together_as_they_were_at_their_moment() -> None:
    done = python("-c", SMALL_PROGRAM, simulator={})
    assert done.stdout == "ok\n", done.stderr


FORMATS = """
import torch, torch_npu
from align.hooks.measure import Measurements
from torch.utils._python_dispatch import TorchDispatchMode

class Fetched(TorchDispatchMode):
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        result = op(*args, **(kwargs or {}))
        if args and isinstance(args[0], torch.Tensor) and args[0].device.type == "npu" and result.device.type == "cpu":
            print(result.dtype)
        return result

measurements = Measurements(with_sketch=True)
wide = measurements.measure(torch.arange(300, dtype=torch.float64).to("npu"))
measurements.measure(torch.arange(300.0).to("npu"))
with Fetched():
    measurements.fetch()
print(wide.stats.maximum, wide.stats.total)
"""


def test_numbers_of_float64_wait_in_the_format_that_the_device_knows() -> None:
    done = python("-c", FORMATS, simulator={})
    assert done.stdout == "torch.float32\n299.0 44850.0\n", done.stderr


LAUNCHED = """
import torch, torch_npu
from align.hooks.measure import Measurements
from torch.utils._python_dispatch import TorchDispatchMode

class Kernels(TorchDispatchMode):
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if not op.is_view:
            launched.append(op)
        return op(*args, **(kwargs or {}))

launched = []
measurements = Measurements(with_sketch=True)
tensors = [torch.randn(40, 50, device="npu") for _ in range(100)]
measurements.measure(tensors[0])
with Kernels():
    for tensor in tensors:
        measurements.measure(tensor)
    print(len(launched))
    measurements.fetch()
    print(len(launched) < 300)
"""


def test_a_small_tensor_costs_two_kernels_until_the_fetch() -> None:
    done = python("-c", LAUNCHED, simulator={})
    assert done.stdout == "200\nTrue\n", done.stderr


WAITING = """
import torch, torch_npu
from align.hooks.measure import Measurements
from torch.utils._python_dispatch import TorchDispatchMode

class Copies(TorchDispatchMode):
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        result = op(*args, **(kwargs or {}))
        ins = [value for value in args if isinstance(value, torch.Tensor)]
        leaves = any(value.device.type == "npu" for value in ins)
        stays = not isinstance(result, torch.Tensor) or result.device.type == "npu"
        if leaves and not (stays and isinstance(result, torch.Tensor)):
            copies.append(str(op))
        return result

copies = []
measurements = Measurements(with_sketch=True)
tensors = [torch.randn(300, 400, device="npu").to(dtype) for dtype in (torch.float32, torch.bfloat16, torch.float16)]
tensors += [torch.arange(1000, device="npu"), torch.randn(400, 300, device="npu").t(), torch.zeros(3, device="npu")]
with Copies():
    for tensor in tensors:
        measurements.measure(tensor, exponents=True)
    print(copies)
    measurements.fetch()
    print(copies)
"""


def test_nothing_waits_for_a_device_before_the_one_copy_of_the_fetch() -> None:
    done = python("-c", WAITING, simulator={})
    assert done.stdout == "[]\n['aten._to_copy.default']\n", done.stderr
