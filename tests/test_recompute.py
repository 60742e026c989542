"""What activation checkpoints compute again belongs to the call that they repeat."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils.checkpoint import checkpoint

import align
from align.records import Phase
from tests.seen import record

WIDTH = 8
AGAIN = ".recomputed"
WAYS = [False, True]


class Block(nn.Module):
    def __init__(self, rate: float = 0.0) -> None:
        super().__init__()
        self.fc = nn.Linear(WIDTH, WIDTH)
        self.drop = nn.Dropout(rate)

    def forward(self, x: torch.Tensor) -> Any:
        return torch.tanh(self.drop(self.fc(x))) * 1.5


class Checkpointed(nn.Module):
    """Any parts, called by a function that checkpoints as it likes."""

    def __init__(self, parts: dict[str, nn.Module], run: Callable[[Any, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(parts)
        self._run = run

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._run(self.parts, x)


Key = tuple[str, str, int, int]
Seen = dict[Key, NDArray[Any]]


def recorded(path: Path, model: nn.Module, micros: int = 1) -> tuple[Seen, Seen]:
    """The values of the forward pass and of what was computed again, by name, slot, micro-step and call."""

    def train() -> None:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for micro in range(micros):
            x = torch.randn(5, WIDTH, generator=torch.Generator().manual_seed(micro))
            model(x.requires_grad_()).square().mean().backward()
        optimizer.step()

    torch.manual_seed(0)
    record(path, train, steps="0", detail="tensors")
    first: Seen = {}
    again: Seen = {}
    with align.open(path) as capture:
        for one in capture.records(0):
            key = one.key
            if key.phase is not Phase.FORWARD:
                continue
            assert one.recomputed == key.slot.endswith(AGAIN)
            table = again if one.recomputed else first
            place = (key.name, key.slot.removesuffix(AGAIN), key.micro, key.call)
            assert place not in table
            table[place] = capture.values(one)
    return first, again


def assert_repeated(first: Seen, again: Seen, names: set[str]) -> None:
    """Each of these was computed again, with the values of the very call that it is said to repeat."""
    assert {name for name, *_ in again} == names
    for place, array in again.items():
        assert np.array_equal(array, first[place]), place


@pytest.mark.parametrize("reentrant", WAYS)
def test_modules_of_a_checkpoint_are_repeated(tmp_path: Path, reentrant: bool) -> None:
    def run(parts: Any, x: torch.Tensor) -> Any:
        x = checkpoint(parts["a"], x, use_reentrant=reentrant)
        return checkpoint(parts["b"], x, use_reentrant=reentrant)

    torch.manual_seed(1)
    first, again = recorded(tmp_path / "a.h5", Checkpointed({"a": Block(0.5), "b": Block(0.5)}, run))
    inside = {"parts.a.fc", "parts.a.drop", "parts.b.fc", "parts.b.drop"}
    assert_repeated(first, again, inside | {"parts.a", "parts.b"} if reentrant else _outputs(again, inside))


def _outputs(again: Seen, inside: set[str]) -> set[str]:
    """Without reentry a repetition ends when all that the backward needs is there: the outermost output may be not."""
    return inside | {name for name, *_ in again if name in {"parts.a", "parts.b"}}


@pytest.mark.parametrize("reentrant", WAYS)
def test_each_micro_step_repeats_its_own(tmp_path: Path, reentrant: bool) -> None:
    def run(parts: Any, x: torch.Tensor) -> Any:
        return checkpoint(parts["a"], x, use_reentrant=reentrant)

    first, again = recorded(tmp_path / "a.h5", Checkpointed({"a": Block(0.5)}, run), micros=2)
    assert {micro for *_, micro, _ in again} == {0, 1}
    for place, array in again.items():
        assert np.array_equal(array, first[place]), place


@pytest.mark.parametrize("reentrant", WAYS)
def test_a_module_that_two_checkpoints_call_repeats_the_right_one(tmp_path: Path, reentrant: bool) -> None:
    def run(parts: Any, x: torch.Tensor) -> Any:
        for _ in range(3):
            x = checkpoint(parts["a"], x, use_reentrant=reentrant)
        return x

    first, again = recorded(tmp_path / "a.h5", Checkpointed({"a": Block(0.5)}, run))
    assert {call for *_, call in again} == {0, 1, 2}
    for place, array in again.items():
        assert np.array_equal(array, first[place]), place


class Loop(nn.Module):
    """Calls one block twice."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Block(0.5)

    def forward(self, x: torch.Tensor) -> Any:
        return self.block(self.block(x))


@pytest.mark.parametrize("reentrant", WAYS)
def test_a_module_that_one_checkpoint_calls_twice_repeats_both_calls(tmp_path: Path, reentrant: bool) -> None:
    def run(parts: Any, x: torch.Tensor) -> Any:
        return checkpoint(parts["a"], x, use_reentrant=reentrant)

    first, again = recorded(tmp_path / "a.h5", Checkpointed({"a": Loop()}, run))
    assert {call for name, *_, call in again if name == "parts.a.block.fc"} == {0, 1}
    for place, array in again.items():
        assert np.array_equal(array, first[place]), place


@pytest.mark.parametrize("reentrant", WAYS)
def test_a_module_that_a_checkpointed_function_calls_twice_repeats_both_calls(tmp_path: Path, reentrant: bool) -> None:
    def run(parts: Any, x: torch.Tensor) -> Any:
        return checkpoint(lambda y: parts["a"](parts["a"](y)), x, use_reentrant=reentrant)

    first, again = recorded(tmp_path / "a.h5", Checkpointed({"a": Block(0.5)}, run))
    assert {call for name, *_, call in again if name == "parts.a.fc"} == {0, 1}
    for place, array in again.items():
        assert np.array_equal(array, first[place]), place


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("reentrant", WAYS)
def test_checkpoints_inside_checkpoints_repeat_the_right_calls(tmp_path: Path, reentrant: bool) -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before = nn.Linear(WIDTH, WIDTH)
            self.inner = Block(0.5)

        def forward(self, x: torch.Tensor) -> Any:
            y = checkpoint(self.inner, torch.tanh(self.before(x)), use_reentrant=reentrant)
            return torch.tanh(y)

    def run(parts: Any, x: torch.Tensor) -> Any:
        for name in ("a", "b"):
            x = checkpoint(parts[name], x, use_reentrant=reentrant)
        return x

    first, again = recorded(tmp_path / "a.h5", Checkpointed({"a": Outer(), "b": Outer()}, run))
    assert {name for name, *_ in again} >= {"parts.a.before", "parts.b.before", "parts.a.inner.fc", "parts.b.inner.fc"}
    for place, array in again.items():
        assert np.array_equal(array, first[place]), place


@pytest.mark.parametrize("reentrant", WAYS)
def test_dropout_that_is_drawn_anew_differs_from_its_first_call(tmp_path: Path, reentrant: bool) -> None:
    def run(parts: Any, x: torch.Tensor) -> Any:
        for name in ("a", "b"):
            x = checkpoint(parts[name], x, use_reentrant=reentrant, preserve_rng_state=False)
        return x

    first, again = recorded(tmp_path / "a.h5", Checkpointed({"a": Block(0.5), "b": Block(0.5)}, run))
    assert {name for name, *_ in again} >= {"parts.a.fc", "parts.a.drop", "parts.b.fc", "parts.b.drop"}
    for place, array in again.items():
        equal = np.array_equal(array, first[place])
        assert equal == place[0].endswith(".fc"), place
        if place[0].endswith(".drop"):
            assert not np.array_equal(array == 0.0, first[place] == 0.0)


def test_without_checkpoints_nothing_is_repeated(tmp_path: Path) -> None:
    def run(parts: Any, x: torch.Tensor) -> Any:
        return parts["a"](x)

    first, again = recorded(tmp_path / "a.h5", Checkpointed({"a": Block()}, run))
    assert again == {}
    assert ("parts.a", "output.0", 0, 0) in first
