"""A perturbed run: what is moved, by exactly how much, and that nothing else of the run is touched."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

import align
from align import metrics
from align.capture_file import Capture, open_capture
from align.errors import UsageError
from align.hooks.perturb import sentence
from align.hooks.perturb_units import OWN, power, shortened, working_unit
from align.hooks.perturb_values import BITS, Signs, is_mask, move, moved, moved_copy
from align.pairing import Pair
from align.records import INIT_STEP, Phase, RunInfo, TensorRecord
from tests.running import WORKLOADS, capture_all
from tests.running import align as run_align

BF16, FP16, FP32 = 2.0**-8, 2.0**-11, 2.0**-24
SMALLEST_NORMAL = {torch.float64: 1e-300, torch.float32: 1e-30, torch.float16: 1e-4, torch.bfloat16: 1e-30}

# ---- the moving function


@st.composite
def floats(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Values of any bits in any of the dtypes, whether each grows, and a unit."""
    dtype = draw(st.sampled_from(list(BITS)))
    bits = torch.iinfo(BITS[dtype])
    patterns = draw(st.lists(st.integers(bits.min, bits.max), min_size=1, max_size=40))
    limits = torch.finfo(dtype)
    plain = [0.0, -0.0, 1.0, -1.0, limits.max, limits.min, limits.tiny, math.inf, math.nan]
    values = torch.cat([torch.tensor(patterns, dtype=BITS[dtype]).view(dtype), torch.tensor(plain, dtype=dtype)])
    grows = torch.tensor(draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))))
    return values, grows, draw(st.sampled_from([OWN[dtype].unit, FP16, BF16]))


@given(floats())
@settings(max_examples=100, deadline=None)
def test_every_finite_element_moves_and_zeros_stay(case: tuple[torch.Tensor, torch.Tensor, float]) -> None:
    values, grows, unit = case
    result = moved(values, grows, unit)
    assert (result.dtype, result.shape) == (values.dtype, values.shape)
    stays = (values == 0) | ~torch.isfinite(values)
    integer = BITS[values.dtype]
    assert torch.equal(result.view(integer)[stays], values.view(integer)[stays])
    assert bool((result != values)[~stays].all())
    assert bool((torch.isfinite(result) & (result != 0) & (result.sign() == values.sign()))[~stays].all())


@given(floats())
@settings(max_examples=100, deadline=None)
def test_an_element_moves_by_the_unit_or_by_one_step(case: tuple[torch.Tensor, torch.Tensor, float]) -> None:
    values, grows, unit = case
    own = OWN[values.dtype].unit
    usual = (values.abs() > SMALLEST_NORMAL[values.dtype]) & (values.abs() < torch.finfo(values.dtype).max / 2)
    before, after = values[usual].double(), moved(values, grows, unit)[usual].double()
    relative = (after - before) / before
    assert bool(((relative > 0) == grows[usual]).all())
    size = relative.abs()
    if unit > 4 * own:
        assert bool(((size - unit).abs() <= own).all())
    else:
        assert bool(((size >= own / 2) & (size <= 2 * max(unit, own) + own)).all())


@pytest.mark.parametrize("dtype", BITS, ids=str)
def test_by_its_own_unit_an_element_moves_one_step(dtype: torch.dtype) -> None:
    values = torch.randn(1000, generator=torch.Generator().manual_seed(0)).to(dtype)
    grows = Signs(1, "w").take(1000)
    steps = moved(values, grows, OWN[dtype].unit).view(BITS[dtype]).long() - values.view(BITS[dtype]).long()
    assert torch.equal(steps, torch.where(grows, 1, -1)[: len(steps)])


def test_the_rest_of_a_move_leads_to_the_same_place() -> None:
    values = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    grows = Signs(1, "w").take(1000)
    for first in (FP32, FP16):
        both = moved(moved(values, grows, first), grows, BF16, already=first)
        assert float(((both - moved(values, grows, BF16)) / values).abs().max()) <= 2 * BF16 * first + 2 * FP32


def test_signs_come_from_seed_and_name_alone() -> None:
    torch.manual_seed(0)
    taken = [Signs(seed, name).take(10_000) for seed, name in ((1, "a"), (1, "a"), (2, "a"), (1, "b"))]
    assert torch.equal(taken[0], taken[1])
    for one in taken[2:]:
        assert 4800 < int((taken[0] == one).sum()) < 5200
    assert all(4800 < int(one.sum()) < 5200 for one in taken)
    assert torch.initial_seed() == 0


def test_a_tensor_of_any_layout_is_moved_in_place_in_logical_order() -> None:
    values = torch.randn(6, 5, 4, 3, generator=torch.Generator().manual_seed(0))
    expected = moved(values.reshape(-1), Signs(3, "w").take(values.numel()), BF16).view(values.shape)
    layouts = [values.clone(), values.clone(memory_format=torch.channels_last), values.transpose(0, 3).contiguous()]
    layouts[2] = layouts[2].transpose(0, 3)
    for tensor in layouts:
        version = tensor._version
        copy = moved_copy(tensor, Signs(3, "w"), BF16)
        assert torch.equal(tensor, values)
        move(tensor, Signs(3, "w"), BF16)
        assert torch.equal(tensor, expected)
        assert torch.equal(copy, expected)
        assert (tensor._version, copy.stride()) == (version, tensor.stride())


@pytest.mark.parametrize(
    ("values", "mask"),
    [
        ([0.0, 1.0, 1.0], True),
        ([0.0, torch.finfo(torch.float32).min], True),
        ([0.0, -math.inf, -1.0], True),
        ([0.0, 1.0, 0.5], False),
        ([0.0, 2.0], False),
        ([math.nan], False),
    ],
)
def test_masks_are_known(values: list[float], mask: bool) -> None:
    assert is_mask(torch.tensor(values)) is mask


NPU = RunInfo(device_type="npu")
CUDA = RunInfo(device_type="cuda", flags={"matmul_allow_tf32": False, "cudnn_allow_tf32": True})


@pytest.mark.parametrize(
    ("run", "products", "convolutions"),
    [
        (RunInfo(), "fp32", "fp32"),
        (RunInfo(flags={"float32_matmul_precision": "high"}), "TF32", "fp32"),
        (RunInfo(flags={"float32_matmul_precision": "medium"}), "bf16 products", "fp32"),
        (CUDA, "fp32", "TF32"),
        (RunInfo(device_type="cuda", flags={"matmul_allow_tf32": True, "cudnn_allow_tf32": False}), "TF32", "fp32"),
        (NPU, "fp32", "HF32"),
        (RunInfo(device_type="npu", flags={"npu_conv_allow_hf32": False}), "fp32", "fp32"),
        (RunInfo(device_type="npu", flags={"acl_precision_mode": "allow_fp32_to_fp16"}), "fp16", "fp16"),
    ],
)
def test_float32_counts_as_what_the_device_shortens_it_to(run: RunInfo, products: str, convolutions: str) -> None:
    found = [working_unit(torch.float32, run, None, conv=conv).by for conv in (False, True)]
    assert found == [products, convolutions]
    assert working_unit(torch.float64, run, None, conv=True).by == "fp64"
    assert shortened(NPU, conv=False) is None
    assert power(BF16) == "+-2^-8"


# ---- a recorded run


class Tied(nn.Module):
    """An embedding whose weight the head shares, a norm, a table, a mask and noise."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.norm = nn.BatchNorm1d(8)
        self.head = nn.Linear(8, 11)
        self.head.weight = self.embed.weight
        self.register_buffer("table", torch.linspace(0.1, 3.0, 8))

    def forward(self, ids: torch.Tensor, noise: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return one logit per word."""
        mixed = (self.embed(ids) + noise) * self.get_buffer("table") * mask
        out: torch.Tensor = self.head(self.norm(mixed))
        return out


def generator_states() -> tuple[str, str, bytes]:
    return repr(random.getstate()), repr(np.random.get_state()), torch.get_rng_state().numpy().tobytes()  # noqa: NPY002


def train(path: Path, steps: int = 2, autocast: bool = False, **options: Any) -> tuple[align.Recorder, Any]:
    """Record a few steps from a fixed seed; returns the recorder and the generator states at the end."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    model = Tied()
    nn.init.zeros_(model.head.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with align.Recorder(path, detail="tensors", force=True, **options) as recorder:
        for _ in range(steps):
            ids, noise = torch.randint(11, (16,)), torch.randn(16, 8)
            mask = (torch.rand(16, 1) < 0.8).float()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                loss = functional.cross_entropy(model(ids, noise, mask), ids)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return recorder, generator_states()


def values(capture: Capture, step: int, phase: Phase) -> dict[str, np.ndarray[Any, Any]]:
    """The values of all records of a phase by name and slot."""
    found = [record for record in capture.records(step) if record.key.phase is phase and record.has_values]
    return {f"{record.key.name}.{record.key.slot}": capture.values(record) for record in found}


def relative(before: np.ndarray[Any, Any], after: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The relative change of the elements that are not zero."""
    before, after = before.astype(np.float64), after.astype(np.float64)
    change: np.ndarray[Any, Any] = (after[before != 0] - before[before != 0]) / before[before != 0]
    return change


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Capture, Capture]]:
    """A run under bf16 autocast as it is, and perturbed."""
    folder = tmp_path_factory.mktemp("pair")
    plain, states = train(folder / "plain.h5", autocast=True)
    moving, same = train(folder / "moved.h5", autocast=True, perturb=7)
    assert same == states
    assert (plain.troubles, moving.troubles) == ({}, {})
    with open_capture(folder / "plain.h5") as ours, open_capture(folder / "moved.h5") as theirs:
        yield ours, theirs


def test_weights_move_by_the_working_unit_and_tied_ones_once(pair: tuple[Capture, Capture]) -> None:
    before, after = (values(capture, INIT_STEP, Phase.INIT) for capture in pair)
    assert before.keys() == after.keys()
    for name in ("embed.weight", "norm.weight"):
        assert np.abs(np.abs(relative(before[name], after[name])) - BF16).max() < 2 * FP32
    share = (relative(before["embed.weight"], after["embed.weight"]) > 0).mean()
    assert 0.3 < share < 0.7
    for name in ("head.bias", "norm.bias", "norm.running_mean", "norm.running_var", "<Tied>.table"):
        assert np.array_equal(before[name], after[name])
    assert "head.weight" not in after


def test_float_inputs_move_and_integers_and_masks_stay(pair: tuple[Capture, Capture]) -> None:
    for step in (0, 1):
        before, after = (values(capture, step, Phase.INPUT) for capture in pair)
        assert np.array_equal(before["ids.value"], after["ids.value"])
        assert np.array_equal(before["mask.value"], after["mask.value"])
        assert np.abs(np.abs(relative(before["noise.value"], after["noise.value"])) - BF16).max() < 2 * FP32


def test_the_generators_are_those_of_the_run_as_it_is(pair: tuple[Capture, Capture]) -> None:
    for step in (0, 1):
        states = [[one.hash for one in capture.records(step) if one.key.phase is Phase.RNG] for capture in pair]
        assert len(states[0]) >= 3
        assert states[0] == states[1]


def test_the_run_says_what_was_moved(pair: tuple[Capture, Capture]) -> None:
    assert pair[0].run.perturbed == {}
    assert pair[1].run.perturbed == {
        "seed": 7, "unit": BF16, "by": "+-2^-8 (bf16 autocast)", "weights": 4, "inputs": 2, "integers": 2, "masks": 2,
    }  # fmt: skip
    assert sentence(pair[1].run.perturbed) == (
        "perturbed with seed 7: 4 weights and 2 inputs moved by +-2^-8 (bf16 autocast); integer batches were not "
        "moved; 2 masks of 0 and 1 were not moved"
    )
    assert sentence(pair[0].run.perturbed) == ""


def test_without_autocast_a_weight_moves_one_step_of_its_own_dtype(tmp_path: Path) -> None:
    train(tmp_path / "plain.h5", steps=1)
    train(tmp_path / "moved.h5", steps=1, perturb=7)
    with open_capture(tmp_path / "plain.h5") as ours, open_capture(tmp_path / "moved.h5") as theirs:
        before, after = (values(capture, INIT_STEP, Phase.INIT)["embed.weight"] for capture in (ours, theirs))
        assert theirs.run.perturbed["by"] == "+-2^-24 (fp32)"
    assert set(np.abs(after.view(np.int32) - before.view(np.int32)).ravel()) == {1}


class Inside(nn.Module):
    """Enters autocast itself, after it has used a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.rand(8) + 0.5)
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return [batch, 8]."""
        x = x * self.gain
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out: torch.Tensor = self.layer(x) * self.gain
        return out


def test_autocast_entered_inside_the_forward_moves_by_the_rest(tmp_path: Path) -> None:
    records = {}
    for name, seed in (("plain", None), ("moved", 3)):
        torch.manual_seed(0)
        model = Inside()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        entering = torch.amp.autocast_mode.autocast.__enter__
        with align.Recorder(tmp_path / f"{name}.h5", detail="tensors", perturb=seed) as recorder:
            for _ in range(2):
                optimizer.zero_grad()
                model(torch.randn(4, 8)).square().mean().backward()
                optimizer.step()
        assert recorder.troubles == {}
        assert torch.amp.autocast_mode.autocast.__enter__ is entering
        with open_capture(tmp_path / f"{name}.h5") as capture:
            records[name] = [values(capture, INIT_STEP, Phase.INIT), values(capture, 1, Phase.INPUT)]
            facts = capture.run.perturbed
    assert facts["by"] == "+-2^-8 (bf16 autocast)"
    for before, after in zip(records["plain"], records["moved"], strict=True):
        for name in before:
            assert np.abs(np.abs(relative(before[name], after[name])) - BF16).max() < 4 * FP32, name


def test_a_model_that_comes_after_the_first_step_is_told(tmp_path: Path) -> None:
    torch.manual_seed(0)
    first, second = nn.Linear(3, 3), nn.Bilinear(3, 3, 3)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (first, second)]
    x = torch.randn(4, 3)
    second.weight.requires_grad_(False)  # so that the first optimizer's step does not adopt it as trained beside it
    second.bias.requires_grad_(False)
    with align.Recorder(tmp_path / "run.h5", perturb=1) as recorder:
        first(x).sum().backward()
        optimizers[0].step()
        second.weight.requires_grad_(True)
        second.bias.requires_grad_(True)
        second(x, x).sum().backward()
        optimizers[1].step()
    assert list(recorder.troubles) == ["<Bilinear> was first seen in step 1: its weights were not moved"]


def test_what_cannot_be_moved_is_counted(tmp_path: Path) -> None:
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with align.Recorder(tmp_path / "run.h5", perturb=1, steps="0:1") as recorder:
        model(torch.randn(4, 3, requires_grad=True)).sum().backward()
        optimizer.step()
    assert sentence(recorder.run_info.perturbed) == (
        "perturbed with seed 1: 2 weights moved by +-2^-24 (fp32); 1 tensor was not moved (sharded, lazy, of another "
        "format, or in need of a gradient)"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"perturb": -1}, "Cannot perturb with the seed -1: choose a whole number from 0 to 4,294,967,295."),
        (
            {"perturb": 1, "detail": "stats"},
            (
                "Cannot perturb at detail 'stats': statistics do not tell how much a tensor differs. Choose sketch or "
                "tensors."
            ),
        ),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        align.Recorder(tmp_path / "run.h5", **options)
    assert str(refused.value) == message


# ---- real training scripts

SCRIPTS = {
    "gpt2-fp32": ("gpt2.py", "--layers", "1", "--accumulate", "2", "--checkpointing"),
    "gpt2-bf16": ("gpt2.py", "--layers", "1", "--precision", "bf16"),
    "cnn-fp16": ("digits_cnn.py", "--precision", "fp16"),
}
UNITS = {"gpt2-fp32": FP32, "gpt2-bf16": BF16, "cnn-fp16": FP16}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every script as it is and perturbed."""
    folder = tmp_path_factory.mktemp("scripts")
    captures: list[tuple[Path, Sequence[str | Path]]] = []
    for name, (script, *options) in SCRIPTS.items():
        words: list[str | Path] = [WORKLOADS / script, *options, "--device", "cpu", "--steps", "1"]
        captures += [(folder / f"{name}.h5", words), (folder / f"{name}.moved.h5", ["--perturb", "1", *words])]
    capture_all("cpu", captures)
    return folder


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_outputs_of_a_training_differ_by_a_few_units(folder: Path, name: str) -> None:
    with open_capture(folder / f"{name}.h5") as ours, open_capture(folder / f"{name}.moved.h5") as theirs:
        other = {record.key: record for record in theirs.records(0)}
        found: dict[Phase, list[float]] = {}
        for record in ours.records(0):
            pair = Pair(record, other[record.key])
            if record.key.phase is Phase.RNG:
                assert record.hash == pair.candidate.hash
            if metrics.is_float_pair(pair) and (error := _error(pair, record)) is not None:
                found.setdefault(record.key.phase, []).append(error / UNITS[name])
        for phase in (Phase.FORWARD, Phase.BACKWARD, Phase.GRADIENT):
            assert 0.5 < float(np.median(found[phase])) < 60, phase
        assert ours.run.perturbed == {}
        assert theirs.run.perturbed["unit"] == UNITS[name]


def _error(pair: Pair, record: TensorRecord) -> float | None:
    return metrics.relative_l2(pair) if record.stats is not None and record.stats.absolute_maximum < 1e30 else None


def test_the_command_says_it_in_its_last_line(tmp_path: Path) -> None:
    script = WORKLOADS / "steps" / "weight_sharing.py"
    done = run_align(
        "capture", "--device", "cpu", "--steps", "0:1", "--perturb", "5", "-o", "run.h5", script, cwd=tmp_path
    )
    assert done.code == 0, done.stderr
    assert done.last_line.split(": run.h5; ")[1] == (
        "3 later steps were not captured; perturbed with seed 5: 3 weights moved by +-2^-24 (fp32); integer batches "
        "were not moved"
    )
