"""Tensors that the script taps: inside a module, outside of it, in other steps, and where nobody records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import align
from align.records import Phase, TensorRecord
from tests.running import python
from tests.seen import record, records, values

WIDTH = 6


class Attention(nn.Module):
    """Taps its scores and its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.seen: dict[str, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> Any:
        scores = align.tap("scores", self.proj(x) @ x.t())
        weights = align.tap("weights", torch.softmax(scores, -1))
        if weights.requires_grad:
            weights.register_hook(lambda gradient: self.seen.update(gradient=gradient.detach().clone()))
        self.seen = {"scores": scores.detach().clone(), "weights": weights.detach().clone()}
        return weights @ x


class Net(nn.Module):
    def __init__(self, *, checkpointed: bool = False) -> None:
        super().__init__()
        self.attention = Attention()
        self.checkpointed = checkpointed

    def forward(self, x: torch.Tensor) -> Any:
        return checkpoint(self.attention, x, use_reentrant=False) if self.checkpointed else self.attention(x)


def train(model: nn.Module, steps: int = 1) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.linspace(-1, 1, 4 * WIDTH).view(4, WIDTH)).square().mean().backward()
        optimizer.step()


def tapped(path: Path, step: int = 0) -> list[TensorRecord]:
    with align.open(path) as capture:
        return [one for one in capture.records(step) if one.key.name in {"scores", "weights"}]


def test_a_tapped_tensor_is_the_output_of_a_module_of_that_name(tmp_path: Path) -> None:
    model = Net()
    record(tmp_path / "a.h5", lambda: train(model), steps="0", detail="tensors")
    with align.open(tmp_path / "a.h5") as capture:
        forward, backward = values(capture, 0, Phase.FORWARD), values(capture, 0, Phase.BACKWARD)
        for name in ("scores", "weights"):
            assert np.array_equal(forward[name, "output.0"], model.attention.seen[name].numpy())
            assert records(capture, 0, Phase.FORWARD)[name, "output.0"].within == "attention"
        assert np.array_equal(backward["weights", "grad_output.0"], model.attention.seen["gradient"].numpy())
        assert ("scores", "grad_output.0") in backward
        order = [
            one.key.name for one in capture.records(0) if one.key.phase is Phase.FORWARD and one.key.slot == "output.0"
        ]
    assert order == ["attention.proj", "scores", "weights", "attention", "<Net>"]


def test_the_tapped_tensor_is_given_back_and_training_is_the_same(tmp_path: Path) -> None:
    def weights(*, watched: bool) -> torch.Tensor:
        torch.manual_seed(0)
        model = Net()
        if watched:
            record(tmp_path / "a.h5", lambda: train(model, 3), steps="0:3")
        else:
            train(model, 3)
        return model.attention.proj.weight.detach()

    assert torch.equal(weights(watched=True), weights(watched=False))


def test_a_name_that_is_tapped_twice_has_two_calls(tmp_path: Path) -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.proj = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: torch.Tensor) -> Any:
            for _ in range(2):
                x = align.tap("scores", self.proj(x))
            return x

    record(tmp_path / "a.h5", lambda: train(Twice()), steps="0")
    found = tapped(tmp_path / "a.h5")
    assert [(one.key.slot, one.key.call) for one in found] == [
        ("output.0", 0),
        ("output.0", 1),
        ("grad_output.0", 1),
        ("grad_output.0", 0),
    ]


def test_outside_the_captured_steps_nothing_is_recorded(tmp_path: Path) -> None:
    record(tmp_path / "a.h5", lambda: train(Net(), 3), steps="1")
    with align.open(tmp_path / "a.h5") as capture:
        assert capture.steps == [1]
    assert len([one for one in tapped(tmp_path / "a.h5", 1) if one.key.phase is Phase.FORWARD]) == 2


def test_outside_a_module_nothing_is_recorded(tmp_path: Path) -> None:
    def train_and_tap() -> None:
        model = nn.Linear(WIDTH, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = align.tap("scores", torch.ones(3, WIDTH))
        loss = align.tap("weights", model(x).square().mean())
        loss.backward()
        optimizer.step()

    record(tmp_path / "a.h5", train_and_tap, steps="0")
    assert tapped(tmp_path / "a.h5") == []


def test_modules_that_are_chosen_choose_taps_too(tmp_path: Path) -> None:
    record(tmp_path / "a.h5", lambda: train(Net()), steps="0", modules=("weights",))
    assert {one.key.name for one in tapped(tmp_path / "a.h5")} == {"weights"}


def test_what_is_no_tensor_is_given_back(tmp_path: Path) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.proj = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: torch.Tensor) -> Any:
            assert align.tap("scores", None) is None
            assert align.tap("scores", "text") == "text"
            return self.proj(x)

    record(tmp_path / "a.h5", lambda: train(Odd()), steps="0")
    assert tapped(tmp_path / "a.h5") == []


def test_a_tap_that_a_checkpoint_repeats_is_marked(tmp_path: Path) -> None:
    record(tmp_path / "a.h5", lambda: train(Net(checkpointed=True)), steps="0")
    found = [one for one in tapped(tmp_path / "a.h5") if one.key.name == "scores" and one.key.phase is Phase.FORWARD]
    assert [(one.key.slot, one.key.call, one.recomputed) for one in found] == [
        ("output.0", 0, False),
        ("output.0.recomputed", 0, True),
    ]


def test_the_tap_of_a_validation_is_dropped(tmp_path: Path) -> None:
    def train_and_validate() -> None:
        model = Net()
        with torch.no_grad():
            model(torch.ones(4, WIDTH))
        train(model)

    record(tmp_path / "a.h5", train_and_validate, steps="0")
    assert len([one for one in tapped(tmp_path / "a.h5") if one.key.phase is Phase.FORWARD]) == 2


def test_without_a_recorder_a_tap_imports_nothing() -> None:
    program = (
        "import sys, align\n"
        "thing = object()\n"
        "assert align.tap('scores', thing) is thing\n"
        "print(sorted({'torch', 'numpy', 'h5py', 'align.hooks'} & set(sys.modules)))\n"
    )
    done = python("-c", program, fresh=True)
    assert (done.code, done.stdout) == (0, "[]\n"), done.stderr


def test_after_a_recorder_is_closed_a_tap_gives_back(tmp_path: Path) -> None:
    record(tmp_path / "a.h5", lambda: train(Net()), steps="0")
    tensor = torch.ones(2)
    assert align.tap("scores", tensor) is tensor
