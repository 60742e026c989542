"""Trainings that do not go the common way: each is recorded as what it is, against what the script itself knows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

import align
from align.capture_file import Capture
from align.records import Phase
from tests.seen import record, values

FEATURES = 6


def blocks(count: int = 3) -> nn.Sequential:
    torch.manual_seed(5)
    return nn.Sequential(*(nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.Tanh()) for _ in range(count)))


def batch(step: int) -> torch.Tensor:
    return torch.randn(4, FEATURES, generator=torch.Generator().manual_seed(step))


def counted(capture: Capture, step: int) -> dict[str, int]:
    """The records of the forward by module, and of what was computed again with a star."""
    found = Counter(
        one.key.name + ("*" if one.recomputed else "")
        for one in capture.records(step)
        if one.key.phase is Phase.FORWARD and one.key.slot.startswith("output")
    )
    return dict(found)


# ---- checkpoints that the script itself calls, outside any module

Run = Callable[[nn.Sequential, torch.Tensor], torch.Tensor]


def one_by_one(model: nn.Sequential, x: torch.Tensor) -> torch.Tensor:
    for block in model:
        x = checkpoint(block, x, use_reentrant=True)
    return x


CALLED_BY_THE_SCRIPT: dict[str, tuple[Run, set[str]]] = {
    "one by one": (one_by_one, {"0", "1", "2"}),
    "in segments": (lambda model, x: checkpoint_sequential(model, 2, x, use_reentrant=True), {"0", "1", "2"}),
    "one block in both ways": (
        lambda model, x: checkpoint(model[0], x, use_reentrant=False) + checkpoint(model[0], 2 * x, use_reentrant=True),
        {"0"},
    ),
}


@pytest.mark.parametrize("name", CALLED_BY_THE_SCRIPT)
def test_a_checkpoint_that_the_script_calls_is_a_forward_and_its_repetition(tmp_path: Path, name: str) -> None:
    run, names = CALLED_BY_THE_SCRIPT[name]

    def train() -> None:
        model = blocks()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(2):
            optimizer.zero_grad()
            run(model, batch(step).requires_grad_()).square().mean().backward()
            optimizer.step()

    record(tmp_path / "a.h5", train)
    with align.open(tmp_path / "a.h5") as capture:
        assert capture.steps == [0, 1]
        for step in capture.steps:
            records = capture.records(step)
            assert {one.key.name for one in records if one.key.phase is Phase.RNG} == {"python", "numpy", "torch"}
            found = counted(capture, step)
            assert names <= set(found)
            # Of the last segment nothing is computed again.
            assert all(found[f"{one}*"] <= found[one] for one in names if f"{one}*" in found)
            first = {(one.key.name, one.key.slot, one.key.call): one for one in records if not one.recomputed}
            again = [one for one in records if one.recomputed]
            assert again
            for one in again:
                answer = first[one.key.name, one.key.slot.removesuffix(".recomputed"), one.key.call]
                assert one.stats == answer.stats, one.key


# ---- no backward, or one that fails


def test_updates_without_any_backward_are_steps(tmp_path: Path) -> None:
    def train() -> list[float]:
        model = blocks(1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        norms = []
        for step in range(3):
            with torch.no_grad():
                model(batch(step))
            for parameter in model.parameters():
                parameter.grad = torch.full_like(parameter, float(step + 1))
            norms.append(math.sqrt(sum(p.numel() for p in model.parameters())) * (step + 1))
            optimizer.step()
        return norms

    norms = record(tmp_path / "a.h5", train, steps="0:")
    with align.open(tmp_path / "a.h5") as capture:
        assert capture.steps == [0, 1, 2]
        assert [row.gradient_norm for row in capture.timeline] == pytest.approx(norms)
        assert (capture.run.parameters_on, "torch" in capture.run.seeds) == ("cpu", True)


class Failing(torch.autograd.Function):
    @staticmethod
    def forward(_: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(_: Any, *__: Any) -> Any:
        message = "out of memory"
        raise RuntimeError(message)


def test_a_backward_that_failed_and_was_tried_again_counts_once(tmp_path: Path) -> None:
    def train() -> float:
        model = blocks(1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with pytest.raises(RuntimeError, match="out of memory"):
            (Failing.apply(model(batch(0))).square().mean() * 100).backward()  # type: ignore[no-untyped-call]
        loss = model(batch(0)).square().mean()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    loss = record(tmp_path / "a.h5", train, detail="tensors")
    with align.open(tmp_path / "a.h5") as capture:
        assert [row.loss for row in capture.timeline] == pytest.approx([loss])
        assert [row.micros for row in capture.timeline] == [1]
        assert values(capture, 0, Phase.LOSS)["loss", "value"] == pytest.approx(loss)


# ---- optimizers and scalers


def test_update_is_what_the_optimizer_takes_after_hooks_of_its_own(tmp_path: Path) -> None:
    def train() -> float:
        model = blocks(1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def smaller(*_: Any) -> None:
            for parameter in model.parameters():
                assert parameter.grad is not None
                parameter.grad.mul_(0.1)

        optimizer.register_step_pre_hook(smaller)
        model(batch(0)).square().mean().backward()
        optimizer.step()
        assert list(optimizer._optimizer_step_pre_hooks.values()) == [smaller]
        return math.sqrt(sum(float(p.grad.square().sum()) for p in model.parameters() if p.grad is not None))

    norm = record(tmp_path / "a.h5", train)
    with align.open(tmp_path / "a.h5") as capture:
        assert capture.timeline[0].gradient_norm == pytest.approx(norm)


def test_losses_that_are_scaled_as_a_list_are_recorded_before_the_scale(tmp_path: Path) -> None:
    def train() -> float:
        model = blocks(1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        loss = model(batch(0)).square().mean()
        scaled = scaler.scale([loss, 2 * loss])
        scaled[0].backward()
        scaler.step(optimizer)
        scaler.update()
        return float(loss.detach())

    loss = record(tmp_path / "a.h5", train)
    with align.open(tmp_path / "a.h5") as capture:
        assert capture.timeline[0].loss == pytest.approx(loss)


def test_parameters_without_a_module_have_generators_and_a_device(tmp_path: Path) -> None:
    def train() -> None:
        weight = nn.Parameter(torch.ones(FEATURES))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for step in range(2):
            optimizer.zero_grad()
            nn.functional.dropout(batch(step) * weight).sum().backward()
            optimizer.step()

    record(tmp_path / "a.h5", train)
    with align.open(tmp_path / "a.h5") as capture:
        assert capture.run.parameters_on == "cpu"
        for step in capture.steps:
            found = [one.key.name for one in capture.records(step) if one.key.phase is Phase.RNG]
            assert found == ["python", "numpy", "torch"]


def test_what_functorch_transforms_is_left_alone(tmp_path: Path) -> None:
    def train() -> None:
        model = blocks(1)
        names = [name for name, _ in model.named_parameters()]

        def loss_of(parameters: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
            loss: torch.Tensor = torch.func.functional_call(model, parameters, (x,)).square().mean()
            return loss

        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(2):
            gradients = torch.func.grad(loss_of)(dict(model.named_parameters()), batch(step))
            for name in names:
                model.get_parameter(name).grad = gradients[name]
            optimizer.step()

    record(tmp_path / "a.h5", train)
    with align.open(tmp_path / "a.h5") as capture:
        assert capture.steps == [0, 1]
        assert {one.key.phase for one in capture.records(0)} == {Phase.RNG, Phase.GRADIENT, Phase.UPDATE, Phase.PARAM}
