"""Code that leaves a small rest of large terms: two devices differ there by more than rounding, and are not accused.

Each case is computed in float32 twice, in two orders of operations as two devices do it. The same code with a fault
of a few per cent must still be found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from align.records import INIT_STEP, ModuleInfo, Phase, TensorKey, TensorRecord
from tests.builders import Array, record_of, walk_files, write_capture

FLOAT = np.float32
Records = list[TensorRecord]


@dataclass(frozen=True)
class Device:
    """How a device rounds: in one order or in another; `fault` multiplies what the case is about."""

    other: bool = False
    fault: float = 1.0

    def rounded(self, exact: Array) -> Array:
        """Round to float32; the other device is up to one unit in the last place off."""
        values = exact.astype(FLOAT)
        if not self.other:
            return values
        off = np.random.default_rng(7).integers(-1, 2, values.shape).astype(FLOAT)
        return np.asarray(values + off * np.spacing(values), FLOAT)


@dataclass(frozen=True)
class Case:
    """One piece of a run: its modules, its records on a device, and where a fault in it is found."""

    modules: Sequence[ModuleInfo]
    records: Callable[[Device], Records]
    place: tuple[str, str, str]
    initial: Callable[[], Records] = list
    fault: float = 1.05


def _record(phase: Phase, name: str, slot: str, array: Array, within: str = "") -> TensorRecord:
    return record_of(TensorKey(0, phase, name, slot), array, within=within)


def _normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(FLOAT)


def _batch_norm(device: Device, *, with_gradients: bool = True) -> Records:
    """Channels around +-10: each channel's own mean is taken out, the mean of the whole tensor is about 0."""
    means = FLOAT(10) * np.tile(np.array([1, -1], FLOAT), 8)[None, :, None, None]
    x = (_normal(1, 4, 16, 8, 8) * FLOAT(0.6) + means).astype(FLOAT)
    axes = (0, 2, 3)
    mean = x.mean(axes, keepdims=True, dtype=np.float64).astype(FLOAT)
    if device.other:
        # In one pass, as fused kernels do: the square of the mean is subtracted from the mean of the squares.
        variance = (x * x).mean(axes, keepdims=True, dtype=FLOAT) - mean * mean
    else:
        variance = x.var(axes, keepdims=True, dtype=np.float64).astype(FLOAT)
    y = ((x - mean) / np.sqrt(variance + FLOAT(1e-5)) * FLOAT(device.fault)).astype(FLOAT)
    forward = [
        _record(Phase.FORWARD, "norm", "input.0", x),
        _record(Phase.FORWARD, "norm", "output.0", y),
    ]
    if not with_gradients:
        return forward
    gradient = _normal(2, *x.shape)
    back = (gradient / FLOAT(0.6)).astype(FLOAT)
    return [
        *forward,
        _record(Phase.BACKWARD, "norm", "grad_output.0", gradient),
        _record(Phase.BACKWARD, "norm", "grad_input.0", back),
    ]


def _saturated_tanh(device: Device) -> Records:
    """1 - y^2 of y near 1 is the rounding of y."""
    x = (_normal(3, 64, 64) * FLOAT(8)).astype(FLOAT)
    y = device.rounded(np.tanh(x.astype(np.float64)))
    gradient = _normal(4, *x.shape)
    back = (gradient * (1 - y * y) * FLOAT(device.fault)).astype(FLOAT)
    return [
        _record(Phase.FORWARD, "act", "input.0", x),
        _record(Phase.FORWARD, "act", "output.0", y),
        _record(Phase.BACKWARD, "act", "grad_output.0", gradient),
        _record(Phase.BACKWARD, "act", "grad_input.0", back),
    ]


def _angles(device: Device, positions: Array, width: int) -> Array:
    frequencies = device.rounded(10000.0 ** (-np.arange(width // 2) / (width // 2)))
    angles = (positions.astype(FLOAT)[:, None] * frequencies).astype(FLOAT)
    return np.asarray(np.concatenate([np.sin(angles), np.cos(angles)], -1) * FLOAT(device.fault), FLOAT)


def _timesteps(device: Device) -> Records:
    """The frequencies are 1 unit off; a position up to 1000 multiplies that before the sine is taken."""
    steps = np.random.default_rng(5).integers(0, 1000, 32)
    return [
        _record(Phase.FORWARD, "time", "input.0", steps),
        _record(Phase.FORWARD, "time.proj", "input.0", _angles(device, steps, 64), "time"),
    ]


def _rotary(device: Device) -> Records:
    """The table is made in the code of the root from nothing: its length is all that is known."""
    words = np.random.default_rng(6).integers(0, 50, (2, 512))
    return [
        _record(Phase.FORWARD, "<Net>", "input.0", words),
        _record(Phase.FORWARD, "embed", "input.0", words, "<Net>"),
        _record(Phase.FORWARD, "embed", "output.0", _normal(8, 2, 512, 32), "<Net>"),
        _record(Phase.FORWARD, "block", "input.1", _angles(device, np.arange(512), 64), "<Net>"),
    ]


def _loss_near_zero(device: Device) -> Records:
    """Student and teacher agree but for 1e-4: the gradient of the loss is the rounding of both."""
    student = _normal(9, 32, 64)
    teacher = (student + FLOAT(1e-4) * _normal(10, 32, 64)).astype(FLOAT)
    ours = [device.rounded(np.exp(logits.astype(np.float64))) for logits in (student, teacher)]
    shares = [(part / part.sum(-1, keepdims=True, dtype=FLOAT)).astype(FLOAT) for part in ours]
    gradient = ((shares[0] - shares[1]) * FLOAT(device.fault)).astype(FLOAT)
    return [
        _record(Phase.FORWARD, "head", "input.0", _normal(11, 32, 16)),
        _record(Phase.FORWARD, "head", "output.0", student),
        _record(Phase.LOSS, "loss", "value", np.array(5e-9, FLOAT)),
        _record(Phase.BACKWARD, "head", "grad_output.0", gradient),
    ]


def _linear_that_cancels(device: Device) -> Records:
    """Features around 100, of which a row of weights without a mean leaves little."""
    x = (FLOAT(100) + _normal(12, 512, 64)).astype(FLOAT)
    weight = _weight()
    pieces = np.array_split(np.arange(64), 4 if device.other else 1)
    y = np.zeros((512, 8), FLOAT)
    for piece in pieces:
        y = (y + (x[:, piece] @ weight.T[piece]).astype(FLOAT)).astype(FLOAT)
    return [
        _record(Phase.FORWARD, "fc", "input.0", x),
        _record(Phase.FORWARD, "fc", "output.0", y * FLOAT(device.fault)),
    ]


def _weight() -> Array:
    weight = _normal(13, 8, 64)
    return np.asarray(weight - weight.mean(-1, keepdims=True), FLOAT)


def _twins(device: Device) -> Records:
    """f(x) - f(y) of two inputs that are nearly the same."""
    first = _normal(14, 64, 64)
    second = (first + FLOAT(0.02) * _normal(15, 64, 64)).astype(FLOAT)
    ours = device.rounded(first.astype(np.float64))
    difference = (ours - second) * FLOAT(device.fault)
    records = [
        _record(Phase.FORWARD, "<Net>", "input.0", _normal(16, 64, 64)),
        _record(Phase.FORWARD, "f", "output.0", ours, "<Net>"),
        _record(Phase.FORWARD, "g", "output.0", second, "<Net>"),
        _record(Phase.FORWARD, "head", "input.0", difference.astype(FLOAT), "<Net>"),
    ]
    gradient = _normal(17, 64, 64)
    return [
        *records,
        _record(Phase.BACKWARD, "head", "grad_input.0", gradient, "<Net>"),
        _record(Phase.BACKWARD, "g", "grad_output.0", -gradient, "<Net>"),
        _record(Phase.BACKWARD, "f", "grad_output.0", gradient, "<Net>"),
    ]


NET = ModuleInfo("<Net>", "Net", leaf=False)
HEAD = ModuleInfo("head", "Linear", matmul=True)

CASES = {
    "batch norm over channels with means": Case(
        [ModuleInfo("norm", "BatchNorm2d")], _batch_norm, ("forward", "norm", "output.0")
    ),
    "saturated tanh": Case([ModuleInfo("act", "Tanh")], _saturated_tanh, ("backward", "act", "grad_input.0")),
    "timesteps": Case(
        [ModuleInfo("time", "Time", leaf=False), ModuleInfo("time.proj", "Linear", matmul=True)],
        _timesteps,
        ("forward", "time.proj", "input.0"),
    ),
    "rotary table": Case(
        [NET, ModuleInfo("embed", "Embedding"), ModuleInfo("block", "Block", leaf=False)],
        _rotary,
        ("forward", "block", "input.1"),
    ),
    "linear that cancels": Case(
        [ModuleInfo("fc", "Linear", matmul=True)],
        _linear_that_cancels,
        ("forward", "fc", "output.0"),
        lambda: [record_of(TensorKey(INIT_STEP, Phase.INIT, "fc", "weight"), _weight())],
    ),
    "difference of twins": Case(
        [NET, ModuleInfo("f", "Linear"), ModuleInfo("g", "Linear"), HEAD], _twins, ("forward", "head", "input.0")
    ),
}


def _write(path: Path, case: Case, device: Device) -> Path:
    initial = case.initial()
    steps = {INIT_STEP: initial} if initial else {}
    return write_capture(path, {**steps, 0: case.records(device)}, modules=case.modules)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_two_devices_are_not_accused_of_cancellation(tmp_path: Path, case: Case) -> None:
    reference = _write(tmp_path / "gpu.h5", case, Device())
    candidate = _write(tmp_path / "npu.h5", case, Device(other=True))
    walk = walk_files(reference, candidate)
    worst = max(comparison.relative_l2 or 0.0 for comparison in walk.comparisons)
    assert worst > 7 * 2.0**-24, "the case would be within a floor that knows no cancellation"
    assert walk.first is None


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_fault_is_still_found_there(tmp_path: Path, case: Case) -> None:
    reference = _write(tmp_path / "gpu.h5", case, Device())
    candidate = _write(tmp_path / "npu.h5", case, Device(other=True, fault=case.fault))
    first = walk_files(reference, candidate).divergence
    assert first is not None
    assert (str(first.phase), first.name, first.slot) == case.place


def test_the_gradient_of_a_loss_near_zero_is_not_judged(tmp_path: Path) -> None:
    case = Case([HEAD], _loss_near_zero, ("backward", "head", "grad_output.0"))
    reference = _write(tmp_path / "gpu.h5", case, Device())
    walk = walk_files(reference, _write(tmp_path / "npu.h5", case, Device(other=True)))
    gradient = walk.comparisons[-1]
    assert gradient.relative_l2 is not None
    assert gradient.relative_l2 > 1e-5
    assert walk.first is None


def test_a_norm_over_channels_without_gradients_gets_a_wide_floor(tmp_path: Path) -> None:
    modules = [ModuleInfo("norm", "BatchNorm2d")]
    reference = write_capture(tmp_path / "gpu.h5", {0: _batch_norm(Device(), with_gradients=False)}, modules=modules)
    floors = {}
    for name, kind in (("channels", "BatchNorm2d"), ("rows", "LayerNorm")):
        infos = [ModuleInfo("norm", kind)]
        path = write_capture(tmp_path / f"{name}.h5", {0: _batch_norm(Device(), with_gradients=False)}, modules=infos)
        floors[name] = walk_files(path, reference).comparisons[-1].floor
    assert floors["channels"] > 7 * floors["rows"]


@pytest.mark.parametrize(("ours", "theirs", "judged"), [(0.0, 1.5e-4, False), (1.5e-4, 0.0, False), (2.0, 0.0, True)])
def test_a_loss_that_cancels_to_zero_is_not_judged(tmp_path: Path, ours: float, theirs: float, judged: bool) -> None:
    """2 - 2 cos of two vectors that agree is 0 in a short format."""
    output = np.asarray(_normal(18, 32, 64) * FLOAT(0.2), FLOAT)

    def write(name: str, loss: float) -> Path:
        records = [
            _record(Phase.FORWARD, "head", "input.0", _normal(19, 32, 16)),
            record_of(TensorKey(0, Phase.FORWARD, "head", "output.0"), output, dtype="bfloat16"),
            record_of(TensorKey(0, Phase.LOSS, "loss", "value"), np.array(loss, FLOAT), dtype="bfloat16"),
        ]
        return write_capture(tmp_path / name, {0: records}, modules=[HEAD])

    first = walk_files(write("gpu.h5", ours), write("npu.h5", theirs)).first
    assert (first is not None) is judged
