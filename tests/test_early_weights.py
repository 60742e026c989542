"""`--init-from` where the script works with the weights before it calls its model, or with models that come later."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import align
from align.hooks.initial_values import StartRefused
from align.hooks.same_start import SameStart
from tests.running import align as command
from tests.seen import initial_hashes

Losses = list[float]


@pytest.fixture(autouse=True)
def _only_living_models() -> None:
    """A recorder finds optimizers that were made before it, those of other tests too."""
    gc.collect()


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def penalty(model: nn.Module) -> torch.Tensor:
    return torch.stack([one.square().sum() for one in model.parameters()]).sum()


def penalised(*, before_the_optimizer: bool = False, changed: bool = False) -> Losses:
    """Two steps with a penalty that is computed before the model is called."""
    model = net()
    loss = penalty(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if changed:
        for one in model.parameters():
            one.data.fill_(0.5)
    losses = []
    for step in range(2):
        if step or not before_the_optimizer:
            loss = penalty(model)
        loss = loss + model(torch.ones(2, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def run(path: Path, way: Callable[[], Losses], seed: int, same: Path | None = None) -> tuple[align.Recorder, Losses]:
    torch.manual_seed(seed)
    start = SameStart(init_from=str(same)) if same is not None else None
    with align.Recorder(path, keep=["init"], same_start=start, steps="0:") as recorder:
        return recorder, way()


def test_a_penalty_before_the_first_forward_is_that_of_the_other_runs_weights(tmp_path: Path) -> None:
    _, losses = run(tmp_path / "one.h5", penalised, 1)
    recorder, again = run(tmp_path / "two.h5", penalised, 2, tmp_path / "one.h5")
    assert dict(recorder.troubles) == {}
    assert again == losses
    assert recorder.run_info.same_start["init_tensors"] == 4
    assert initial_hashes(tmp_path / "two.h5") == initial_hashes(tmp_path / "one.h5")


def test_weights_that_the_script_sets_after_its_optimizer_are_replaced_all_the_same(tmp_path: Path) -> None:
    run(tmp_path / "one.h5", penalised, 1)
    with pytest.raises(StartRefused):  # the penalty has 0.5 in its graph, the model shall not
        run(tmp_path / "two.h5", lambda: penalised(changed=True), 2, tmp_path / "one.h5")

    def changed() -> Losses:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for one in model.parameters():
            one.data.fill_(0.5)
        model(torch.ones(2, 4)).mean().backward()
        optimizer.step()
        return []

    recorder, _ = run(tmp_path / "three.h5", changed, 3, tmp_path / "one.h5")
    assert dict(recorder.troubles) == {}
    assert initial_hashes(tmp_path / "three.h5") == initial_hashes(tmp_path / "one.h5")


def test_weights_that_came_too_late_for_a_graph_end_the_run_with_a_sentence(tmp_path: Path) -> None:
    def way() -> Losses:
        return penalised(before_the_optimizer=True)

    run(tmp_path / "one.h5", way, 1)
    with pytest.raises(StartRefused) as refused:
        run(tmp_path / "two.h5", way, 2, tmp_path / "one.h5")
    assert refused.value.code == (
        f"Cannot take initial weights from '{tmp_path / 'one.h5'}': the script computed something from its own weights "
        "before it called the model (a penalty, for one), and its backward needs them. Compute that after the forward, "
        "or leave out --init-from."
    )


def test_a_fault_of_the_scripts_own_is_not_taken_for_ours(tmp_path: Path) -> None:
    def way() -> Losses:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        made = torch.sigmoid(model(torch.ones(2, 4)))
        made.add_(1)
        made.square().mean().backward()
        optimizer.step()
        return []

    run(tmp_path / "one.h5", penalised, 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        run(tmp_path / "two.h5", way, 2, tmp_path / "one.h5")


def adversaries() -> Losses:
    """Two models with weights of equal shapes: which of them an optimizer has is not known when it is made."""
    first, second = net(), net()
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (second, first)]
    losses = []
    for model, optimizer in zip((first, second), optimizers, strict=True):
        loss = model(torch.ones(2, 4)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_several_models_are_told_apart(tmp_path: Path) -> None:
    _, losses = run(tmp_path / "one.h5", adversaries, 1)
    recorder, again = run(tmp_path / "two.h5", adversaries, 2, tmp_path / "one.h5")
    assert dict(recorder.troubles) == {}
    assert again == losses


def copied(*, after_the_optimizer: bool) -> Losses:
    """A teacher that is a copy of the model, first called in step 1."""
    model = net()
    teacher = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if after_the_optimizer:
        teacher = copy.deepcopy(model)
    losses = []
    for step in range(3):
        loss = model(torch.ones(2, 4)).square().mean()
        if step:
            with torch.no_grad():
                wanted = teacher(torch.ones(2, 4))
            loss = loss + (loss - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("after", [False, True])
def test_a_model_that_is_first_called_in_step_1_is_told(tmp_path: Path, after: bool) -> None:
    def way() -> Losses:
        return copied(after_the_optimizer=after)

    _, losses = run(tmp_path / "one.h5", way, 1)
    recorder, again = run(tmp_path / "two.h5", way, 2, tmp_path / "one.h5")
    assert recorder.notes() == (
        (f"<Sequential#2> was first seen in step 1: its weights are its own, not those of '{tmp_path / 'one.h5'}'"),
    )
    assert again[0] == losses[0]
    assert (again == losses) is after  # a copy of what had been loaded already


NORMED = """
import torch
from torch import nn
model = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 8)), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.ones(2, 4)).mean().backward()
    optimizer.step()
"""


def test_a_parametrization_is_no_model_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(NORMED)
    for name, options in (("one.h5", ()), ("two.h5", ("--init-from", "one.h5"))):
        done = command("capture", "--keep", "init", *options, "-o", name, "train.py", cwd=tmp_path)
        assert done.code == 0, done.stderr
    assert done.last_line.endswith("same start: 6 initial tensors from one.h5")
    first = initial_hashes(tmp_path / "one.h5")
    assert sorted(first) == [
        "0.bias", "0.parametrizations.weight.0._u", "0.parametrizations.weight.0._v",
        "0.parametrizations.weight.original", "1.bias", "1.weight",
    ]  # fmt: skip
    assert initial_hashes(tmp_path / "two.h5") == first
