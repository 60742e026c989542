"""Loss scales, made by a scaler or by hand, and clipping, as files hold them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

import align
from align.records import FactValue, Phase
from tests.running import BENIGN, capture_all
from tests.seen import facts, facts_of, record, records, values

FEATURES = 5
SCALER = "GradScaler"
BAD_STEP = 3


def batch(step: int) -> torch.Tensor:
    return torch.randn(6, FEATURES, generator=torch.Generator().manual_seed(100 + step))


def small_model() -> nn.Linear:
    torch.manual_seed(1)
    return nn.Linear(FEATURES, 2)


# ---- a scaler

Before = tuple[float, int, float, int]


def scaled_training(optimizer_of: Callable[[Any], torch.optim.Optimizer]) -> list[Before]:
    """Train five steps, of which one overflows; give back scale and growth count before and after each step."""
    model = small_model()
    optimizer = optimizer_of(model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_factor=4.0, growth_interval=2)
    seen = []
    for step in range(5):
        before = scaler.get_scale(), scaler._get_growth_tracker()
        optimizer.zero_grad()
        x = batch(step) * (math.inf if step == BAD_STEP else 1.0)
        scaler.scale(model(x).square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()
        seen.append((*before, scaler.get_scale(), scaler._get_growth_tracker()))
    return seen


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "unfused": lambda parameters: torch.optim.SGD(parameters, lr=0.01),
    "fused": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, fused=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_scale_is_known_before_and_after_each_step(tmp_path: Path, name: str) -> None:
    seen = record(tmp_path / "a.h5", lambda: scaled_training(OPTIMIZERS[name]), steps="0:")
    assert [scale for scale, *_ in seen] == [256.0, 256.0, 1024.0, 1024.0, 512.0]
    with align.open(tmp_path / "a.h5") as capture:
        for step, (scale, growth, scale_after, growth_after) in enumerate(seen):
            bad = step == BAD_STEP
            found = facts(capture, step, Phase.SCALER)
            assert found == {
                (SCALER, "scale"): scale,
                (SCALER, "growth_tracker"): growth,
                (SCALER, "growth_factor"): 4.0,
                (SCALER, "backoff_factor"): 0.5,
                (SCALER, "growth_interval"): 2,
                (SCALER, "init_scale"): 256.0,
                (SCALER, "found_inf"): float(bad),
                (SCALER, "skipped"): bad,
                (SCALER, "scale_after"): scale_after,
                (SCALER, "growth_tracker_after"): growth_after,
            }
        rows = capture.timeline
        assert [(row.loss_scale, row.loss_scale_after) for row in rows] == [(one[0], one[2]) for one in seen]
        assert [row.skipped for row in rows] == [step == BAD_STEP for step in range(5)]


def test_a_scale_that_the_script_sets_is_the_one_after(tmp_path: Path) -> None:
    def train() -> None:
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
        scaler.scale(model(batch(0)).sum()).backward()
        scaler.step(optimizer)
        scaler.update(2.0)

    record(tmp_path / "a.h5", train, steps="0")
    with align.open(tmp_path / "a.h5") as capture:
        found = facts_of(capture, 0, Phase.SCALER, SCALER)
        assert (found["scale"], found["scale_after"]) == (256.0, 2.0)
        assert capture.timeline[0].loss_scale_after == 2.0


def test_a_disabled_scaler_leaves_no_facts(tmp_path: Path) -> None:
    def train() -> None:
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        scaler = torch.amp.GradScaler("cpu", enabled=False)
        scaler.scale(model(batch(0)).sum()).backward()
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    record(tmp_path / "a.h5", train, steps="0")
    with align.open(tmp_path / "a.h5") as capture:
        assert facts(capture, 0, Phase.SCALER) == {}
        assert facts_of(capture, 0, Phase.OPTIMIZER, "clip")["scaled"] is None
        row = capture.timeline[0]
        assert (row.skipped, math.isnan(row.loss_scale), math.isnan(row.loss_scale_after)) == (False, True, True)


NPU_SCRIPT = """
import sys

import torch
import torch_npu
from torch import nn

settings = {"dynamic": {}, "static": {"dynamic": False}, "disabled": {"enabled": False}}[sys.argv[1]]
torch.manual_seed(1)
model = nn.Linear(5, 2).npu()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch_npu.npu.amp.GradScaler(init_scale=256.0, growth_interval=2, **settings)
for step in range(3):
    optimizer.zero_grad()
    x = torch.ones(4, 5).npu() * (float("inf") if step == 1 else 1.0)
    scaler.scale(model(x).square().mean()).backward()
    scaler.step(optimizer)
    scaler.update()
"""


@pytest.fixture(scope="module")
def npu_captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three trainings with torch_npu's scaler on the simulated NPU."""
    folder = tmp_path_factory.mktemp("npu")
    script = folder / "train.py"
    script.write_text(NPU_SCRIPT, encoding="utf-8")
    runs = [(folder / f"{name}.h5", [script, name]) for name in ("dynamic", "static", "disabled")]
    capture_all("npu", runs, BENIGN)
    return folder


def test_torch_npus_scaler_is_followed(npu_captures: Path) -> None:
    with align.open(npu_captures / "dynamic.h5") as capture:
        assert facts_of(capture, 1, Phase.SCALER, SCALER) == {
            "scale": 256.0,
            "growth_tracker": 1,
            "growth_factor": 2.0,
            "backoff_factor": 0.5,
            "growth_interval": 2,
            "dynamic": True,
            "init_scale": 256.0,
            "found_inf": 2.0,  # torch_npu adds one to the flag of an overflow
            "skipped": True,
            "scale_after": 128.0,
            "growth_tracker_after": 0,
        }
        assert [row.loss_scale for row in capture.timeline] == [256.0, 256.0, 128.0]
        assert [row.skipped for row in capture.timeline] == [False, True, False]


def test_torch_npus_static_scale_is_told(npu_captures: Path) -> None:
    with align.open(npu_captures / "static.h5") as capture:
        found = facts_of(capture, 1, Phase.SCALER, SCALER)
        assert found["dynamic"] is False
        assert (found["scale"], found["scale_after"], found["skipped"]) == (256.0, 256.0, False)
        assert [row.skipped for row in capture.timeline] == [False] * 3


def test_torch_npus_disabled_scaler_leaves_no_facts(npu_captures: Path) -> None:
    with align.open(npu_captures / "disabled.h5") as capture:
        assert facts(capture, 1, Phase.SCALER) == {}


def test_each_optimizer_of_one_scaler_is_told_whether_it_was_skipped(tmp_path: Path) -> None:
    def train() -> None:
        model = nn.ModuleList([nn.Linear(FEATURES, 2), nn.Linear(FEATURES, 2)])
        optimizers = [torch.optim.SGD(part.parameters(), lr=0.01) for part in model]
        scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
        scaler.scale(model[0](batch(0) * math.inf).sum() + model[1](batch(0)).sum()).backward()
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update()

    record(tmp_path / "a.h5", train, steps="0")
    with align.open(tmp_path / "a.h5") as capture:
        assert capture.timeline[0].skipped
        found = [one.value for one in capture.facts(0) if one.key.slot == "skipped"]
    assert found == [True, False]


# ---- a scale that is made by hand

WEIGHT = torch.tensor(1024.0)
SCALED: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], float | None]] = {
    "none": (lambda loss: loss, None),
    "times a number": (lambda loss: loss * 1024, 1024.0),
    "a number times it": (lambda loss: 1024 * loss, 1024.0),
    "times a tensor": (lambda loss: loss * WEIGHT, 1024.0),
    "a tensor times it": (lambda loss: WEIGHT * loss, 1024.0),
    "divided": (lambda loss: loss / 4, 0.25),
    "divided by a tensor": (lambda loss: loss / torch.tensor([4.0]), 0.25),
    "both": (lambda loss: (loss / 4) * 1024, 256.0),
    "negated": (lambda loss: loss * -1.0, -1.0),
    "in float16": (lambda loss: loss.half() * 512, 512.0),
    "its own square": (lambda loss: loss * loss, None),
    "a sum": (lambda loss: loss * 3 + loss, None),
}


@pytest.mark.parametrize(
    ("name", "with_scaler"),
    [*((name, False) for name in SCALED), *((name, True) for name in ("none", "times a number", "both", "divided"))],
)
def test_a_factor_made_by_hand_is_known(tmp_path: Path, name: str, with_scaler: bool) -> None:
    scaled, factor = SCALED[name]

    def train() -> float:
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0, enabled=with_scaler)
        loss = scaled(model(batch(0)).square().mean())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.item()

    loss = record(tmp_path / "a.h5", train, steps="0", detail="tensors")
    with align.open(tmp_path / "a.h5") as capture:
        found = facts_of(capture, 0, Phase.LOSS, "loss")
        assert found == ({} if factor is None else {"factor": factor})
        assert values(capture, 0, Phase.LOSS)["loss", "value"] == loss
        # A power of two from 8 on is a loss scale, unless a scaler is in use.
        scale = factor if factor is not None and factor >= 8 and not with_scaler else 1.0
        assert capture.timeline[0].loss == pytest.approx(loss / scale)
        if not with_scaler:
            assert capture.timeline[0].loss_scale == (pytest.approx(math.nan, nan_ok=True) if scale == 1.0 else scale)


def test_a_scaled_loss_that_is_divided_is_recorded_before_its_scale(tmp_path: Path) -> None:
    def train() -> float:
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        loss = model(batch(0)).square().mean()
        (scaler.scale(loss) / 4).backward()
        scaler.step(optimizer)
        scaler.update()
        return float(loss.detach())

    loss = record(tmp_path / "a.h5", train, steps="0")
    with align.open(tmp_path / "a.h5") as capture:
        assert capture.timeline[0].loss == pytest.approx(loss / 4)  # as for scaler.scale(loss / 4)


# ---- clipping


def clipped_training(clip: Callable[[nn.Module], Any], *, scale: float | None = None, unscale: bool = False) -> Any:
    """One step; give back what `clip` returns."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale or 1.0, enabled=scale is not None)
    scaler.scale(model(batch(0)).square().mean()).backward()
    if unscale:
        scaler.unscale_(optimizer)
    result = clip(model)
    scaler.step(optimizer)
    scaler.update()
    return result


def clip_facts(path: Path, *, call: int = 0) -> dict[str, FactValue]:
    with align.open(path) as capture:
        return facts_of(capture, 0, Phase.OPTIMIZER, "clip", call=call)


def joint_norm(path: Path, phase: Phase, order: float = 2.0) -> float:
    """The norm of all gradients of one phase, from their values."""
    with align.open(path) as capture:
        arrays = [torch.from_numpy(array).flatten().double() for array in values(capture, 0, phase).values()]
    return float(torch.linalg.vector_norm(torch.cat(arrays), order))


# clip_grad_norm_ was imported by name before any recorder was open, as models' own code does.
@pytest.mark.parametrize(("order", "limit"), [(2.0, 0.125), (2.0, 1000.0), (1.0, 0.125), (math.inf, 0.125)])
def test_clipping_is_told_with_the_norm_that_was_found(tmp_path: Path, order: float, limit: float) -> None:
    path = tmp_path / "a.h5"

    def clip(model: nn.Module) -> torch.Tensor:
        return clip_grad_norm_(model.parameters(), limit, norm_type=order)

    norm = record(path, lambda: clipped_training(clip), steps="0", detail="tensors")
    assert clip_facts(path) == {"norm": norm.item(), "limit": limit, "norm_type": order, "scaled": None}
    assert joint_norm(path, Phase.GRADIENT, order) == pytest.approx(norm.item(), rel=1e-6)
    assert joint_norm(path, Phase.UPDATE, order) == pytest.approx(min(norm.item(), limit), rel=1e-5)
    with align.open(path) as capture:
        row = capture.timeline[0]
        assert (row.clip_norm, row.clip_limit) == (norm.item(), limit)


@pytest.mark.parametrize("unscale", [False, True])
def test_clipping_tells_whether_the_gradients_were_scaled(tmp_path: Path, unscale: bool) -> None:
    path = tmp_path / "a.h5"

    def clip(model: nn.Module) -> torch.Tensor:
        return clip_grad_norm_(model.parameters(), 0.5)

    record(path, lambda: clipped_training(clip, scale=4096.0, unscale=unscale), steps="0", detail="tensors")
    assert clip_facts(path)["scaled"] is not unscale
    # Clipped while scaled, the gradients end 4096 times too small.
    assert joint_norm(path, Phase.UPDATE) == pytest.approx(0.5 if unscale else 0.5 / 4096, rel=1e-4)


@pytest.mark.parametrize("unscale", [False, True])
def test_clipping_by_value_is_told(tmp_path: Path, unscale: bool) -> None:
    path = tmp_path / "a.h5"

    def clip(model: nn.Module) -> None:
        nn.utils.clip_grad_value_(model.parameters(), 0.0625)

    record(path, lambda: clipped_training(clip, scale=16.0, unscale=unscale), steps="0", detail="tensors")
    assert clip_facts(path) == {"value_limit": 0.0625, "scaled": not unscale}
    with align.open(path) as capture:
        greatest = max(abs(array).max() for array in values(capture, 0, Phase.UPDATE).values())
        assert greatest == (0.0625 if unscale else 0.0625 / 16)


def test_each_clipping_of_a_step_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"

    def clip(model: nn.Module) -> list[float]:
        found = [clip_grad_norm_([parameter], 0.5).item() for parameter in model.parameters()]
        nn.utils.clip_grad_value_(model.parameters(), 0.125)
        return found

    norms = record(path, lambda: clipped_training(clip), steps="0")
    for call, norm in enumerate(norms):
        assert clip_facts(path, call=call) == {"norm": norm, "limit": 0.5, "norm_type": 2.0, "scaled": None}
    assert clip_facts(path, call=2) == {"value_limit": 0.125, "scaled": None}


@pytest.mark.skipif(not hasattr(nn.utils, "clip_grads_with_norm_"), reason="torch 2.6 and later offer the two halves")
def test_clipping_in_two_halves_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"

    def clip(model: nn.Module) -> float:
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        nn.utils.clip_grads_with_norm_(model.parameters(), 0.5, norm)
        return norm.item()

    norm = record(path, lambda: clipped_training(clip), steps="0")
    assert clip_facts(path) == {"norm": norm, "limit": 0.5, "norm_type": 2.0, "scaled": None}


def test_what_is_not_clipped_has_no_facts(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    record(path, lambda: clipped_training(lambda _: None), steps="0")
    assert clip_facts(path) == {}
    with align.open(path) as capture:
        assert math.isnan(capture.timeline[0].clip_norm)
        assert ("<Linear>", "weight") in records(capture, 0, Phase.UPDATE)
