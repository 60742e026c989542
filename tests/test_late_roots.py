"""Initial values of models that are first called after step 0, and of models that nobody trains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import align
from align.hashing import hash_bytes
from align.records import INIT_STEP, Phase
from tests.seen import Values, assert_same, initial, record, values

FEATURES = 4


class Maker(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(FEATURES, FEATURES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.fc(x))


class Judge(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(FEATURES)
        self.fc = nn.Linear(FEATURES, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.fc(self.norm(x))
        return found


def state_of(model: nn.Module, prefix: str = "") -> Values:
    """Parameters and buffers of a model by the names that a capture gives them."""
    found: Values = {}
    for path, tensor in model.state_dict().items():
        owner, _, local = path.rpartition(".")
        found[f"{prefix}.{owner}" if prefix and owner else prefix or owner, local] = tensor.numpy().copy()
    return found


def attempt(optimizer: torch.optim.Optimizer, loss: Callable[[], torch.Tensor]) -> None:
    optimizer.zero_grad()
    loss().backward()
    optimizer.step()


def initial_values(path: Path) -> Values:
    with align.open(path) as capture:
        return values(capture, INIT_STEP, Phase.INIT)


def test_a_model_that_is_first_called_in_step_1_has_initial_values(tmp_path: Path) -> None:
    def train() -> Values:
        torch.manual_seed(1)
        maker, judge = Maker(), Judge()
        known = state_of(maker) | state_of(judge, "<Judge>")
        makes, judges = torch.optim.SGD(maker.parameters(), lr=0.1), torch.optim.SGD(judge.parameters(), lr=0.1)
        for _ in range(2):
            x = torch.randn(3, FEATURES)
            attempt(makes, lambda: maker(x).square().sum())  # noqa: B023
            attempt(judges, lambda: judge(x).square().sum())  # noqa: B023
        return known

    known = record(tmp_path / "a.h5", train, steps="0:4", detail="tensors")
    assert_same(initial_values(tmp_path / "a.h5"), known)
    with align.open(tmp_path / "a.h5") as capture:
        assert {one.key.name for one in capture.records(1) if one.key.phase is Phase.FORWARD} == {
            "<Judge>", "<Judge>.norm", "<Judge>.fc",
        }  # fmt: skip
        for one in initial(capture).values():
            assert one.hash == hash_bytes(capture.values(one))


def test_a_model_whose_first_call_comes_after_the_window_has_initial_values(tmp_path: Path) -> None:
    def train() -> Values:
        torch.manual_seed(2)
        maker, judge = Maker(), Judge()
        known = state_of(maker) | state_of(judge, "<Judge>")
        makes, judges = torch.optim.SGD(maker.parameters(), lr=0.1), torch.optim.SGD(judge.parameters(), lr=0.1)
        for _ in range(3):
            attempt(makes, lambda: maker(torch.ones(3, FEATURES)).square().sum())
        attempt(judges, lambda: judge(torch.ones(3, FEATURES)).square().sum())
        return known

    known = record(tmp_path / "a.h5", train, steps="0", detail="tensors")
    assert_same(initial_values(tmp_path / "a.h5"), known)


def test_the_second_of_two_models_of_one_optimizer_has_initial_values(tmp_path: Path) -> None:
    def train() -> Values:
        torch.manual_seed(3)
        maker, judge = Maker(), Judge()
        known = state_of(maker) | state_of(judge, "<Judge>")
        optimizer = torch.optim.SGD([*maker.parameters(), *judge.parameters()], lr=0.1)
        attempt(optimizer, lambda: maker(torch.ones(3, FEATURES)).square().sum())
        attempt(optimizer, lambda: judge(maker(torch.ones(3, FEATURES))).square().sum())
        return known

    known = record(tmp_path / "a.h5", train, steps="0:2", detail="tensors")
    assert_same(initial_values(tmp_path / "a.h5"), known)


def distil(path: Path, call: Callable[[nn.Module, torch.Tensor], torch.Tensor]) -> Values:
    """Train a student of a teacher that `call` asks; give back what both began with."""

    def train() -> Values:
        torch.manual_seed(4)
        student, teacher = Maker(), Judge().eval().requires_grad_(False)
        known = state_of(student) | state_of(teacher, "<Judge>")
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        for _ in range(2):
            x = torch.randn(3, FEATURES)
            attempt(optimizer, lambda: (student(x) - call(teacher, x)).square().sum())  # noqa: B023
        return known

    found: Values = record(path, train, steps="0:2", detail="tensors")
    return found


def without_gradient(teacher: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = teacher(x)
    return found


def in_inference_mode(teacher: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        found: torch.Tensor = teacher(x)
    return found.clone()


@pytest.mark.parametrize("call", [without_gradient, in_inference_mode])
def test_a_teacher_has_initial_values(tmp_path: Path, call: Callable[[nn.Module, torch.Tensor], torch.Tensor]) -> None:
    known = distil(tmp_path / "a.h5", call)
    assert_same(initial_values(tmp_path / "a.h5"), known)


def test_a_frozen_model_that_gradients_pass_has_initial_values(tmp_path: Path) -> None:
    def train() -> Values:
        torch.manual_seed(5)
        maker, judge = Maker(), Judge().eval().requires_grad_(False)
        known = state_of(maker) | state_of(judge, "<Judge>")
        optimizer = torch.optim.SGD(maker.parameters(), lr=0.1)
        attempt(optimizer, lambda: judge(maker(torch.ones(3, FEATURES))).square().sum())
        return known

    known = record(tmp_path / "a.h5", train, steps="0", detail="tensors")
    assert_same(initial_values(tmp_path / "a.h5"), known)


def test_a_model_that_only_evaluates_before_training_has_none(tmp_path: Path) -> None:
    def train() -> Values:
        torch.manual_seed(6)
        other, student = Judge().eval(), Maker()
        known = state_of(student)
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        for step in range(2):
            if step:
                without_gradient(other, torch.ones(3, FEATURES))
            attempt(optimizer, lambda: student(torch.ones(3, FEATURES)).sum())
        return known

    known = record(tmp_path / "a.h5", train, steps="0", detail="tensors")
    assert_same(initial_values(tmp_path / "a.h5"), known)


def test_weights_that_are_equal_have_equal_hashes(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(7, FEATURES)
            self.head = nn.Linear(FEATURES, 7, bias=False)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.head(self.embed(tokens))
            return found

    def train() -> None:
        model = Tied()
        with torch.no_grad():
            model.head.weight.copy_(model.embed.weight)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        attempt(optimizer, lambda: model(torch.arange(7)).sum())

    record(tmp_path / "a.h5", train, steps="0")
    with align.open(tmp_path / "a.h5") as capture:
        found = initial(capture)
        assert found["head", "weight"].hash == found["embed", "weight"].hash is not None
