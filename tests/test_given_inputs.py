"""Batches of another run in scripts without a DataLoader, where models are given what the script makes."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import align
from align.hooks.same_start import SameStart
from align.records import Phase
from tests.running import diff


@pytest.fixture(autouse=True)
def _only_living_models() -> None:
    """A recorder finds optimizers that were made before it, those of other tests too."""
    gc.collect()


Losses = list[float]


def net(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 8), nn.Tanh(), nn.Linear(8, outputs))


def update(optimizer: torch.optim.Optimizer, loss: torch.Tensor, losses: Losses) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())


def adversaries(steps: int) -> Losses:
    """Noise and data of one shape; the noise is made in the step before the one that its update belongs to."""
    maker, judge = net(2, 2), net(2, 1)
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (maker, judge)]
    losses: Losses = []
    for _ in range(steps):
        real, noise = 5 + torch.randn(8, 2), torch.randn(8, 2)
        fake = maker(noise)
        update(optimizers[1], judge(fake.detach()).mean() - judge(real).mean(), losses)
        update(optimizers[0], -judge(fake).mean(), losses)
    return losses


def with_a_teacher(steps: int, *, first: bool, augmented: bool = False, same: bool = True) -> Losses:
    student = net(4, 1)
    teacher = copy.deepcopy(student).requires_grad_(requires_grad=False)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    losses: Losses = []

    def wanted(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            made: torch.Tensor = teacher(x + 0.1 * torch.randn_like(x) if augmented else x)
        return made

    for _ in range(steps):
        x = torch.randn(6, 4)
        given = x if same else x.clone()
        early = wanted(given) if first else None
        made = student(x)
        target = early if early is not None else wanted(given)
        update(optimizer, (made - target - 1).square().mean(), losses)
    return losses


class Parts(nn.Module):
    """Only its children are called."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.head = nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(8, 1)


def children(steps: int) -> Losses:
    model = Parts()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses: Losses = []
    for _ in range(steps):
        for _ in range(2):
            made = model.head(model.a(torch.randn(6, 4)) + model.b(torch.randn(6, 4)))
            made.square().mean().backward()
        update(optimizer, model.head(model.a(torch.randn(6, 4))).square().mean(), losses)
    return losses


def validated(steps: int) -> Losses:
    """A validation between the steps, with data of its own, and a closure that calls the model again and again."""
    model = net(4, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    losses: Losses = []
    for _ in range(steps):
        with torch.no_grad():
            model(torch.randn(3, 4))

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss: torch.Tensor = model(torch.randn(6, 4)).square().mean()
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
    return losses


WAYS: dict[str, tuple[Callable[[int], Losses], int]] = {
    "adversaries": (adversaries, 4),
    "a teacher that is called first": (lambda steps: with_a_teacher(steps, first=True), 2),
    "a teacher that is called last": (lambda steps: with_a_teacher(steps, first=False), 2),
    "a teacher with data of its own": (lambda steps: with_a_teacher(steps, first=True, augmented=True), 2),
    "children": (children, 10),
    "a validation and a closure": (validated, 6),
}


def run(path: Path, way: Callable[[int], Losses], seed: int, **options: Any) -> tuple[align.Recorder, Losses]:
    torch.manual_seed(seed)
    with align.Recorder(path, **options) as recorder:
        return recorder, way(2)


@pytest.mark.parametrize("name", WAYS)
def test_every_model_is_given_what_it_was_given(tmp_path: Path, name: str) -> None:
    way, batches = WAYS[name]
    path = tmp_path / "one.h5"
    _, losses = run(path, way, 1, keep=["init", "batches"], steps="0:")
    same = SameStart(init_from=str(path), batches_from=str(path))
    recorder, again = run(tmp_path / "two.h5", way, 2, same_start=same, steps="0:")
    assert dict(recorder.troubles) == {}
    assert again == losses
    start = recorder.run_info.same_start
    assert (start["batches_taken"], start["batches_as"], start.get("batches_missed")) == (batches, "inputs", None)
    assert str(diff(path, tmp_path / "two.h5").verdict) == "aligned"
    _, other = run(tmp_path / "three.h5", way, 2, same_start=SameStart(init_from=str(path)), steps="0:")
    assert other != losses


def test_the_steps_of_both_captures_need_not_be_the_same(tmp_path: Path) -> None:
    path = tmp_path / "one.h5"
    seen: list[float] = []

    def watched(steps: int) -> Losses:
        model = net(2, 1)
        model.register_forward_pre_hook(lambda _, args: seen.append(float(args[0].sum())))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses: Losses = []
        for _ in range(2 * steps):
            update(optimizer, model(torch.randn(3, 2)).mean(), losses)
        return losses

    run(path, watched, 1, keep=["batches"], steps="1:3")
    first, seen[:] = list(seen), []
    recorder, _ = run(tmp_path / "two.h5", watched, 2, same_start=SameStart(batches_from=str(path)), steps="2:4")
    assert [one == two for one, two in zip(first, seen, strict=True)] == [False, True, True, False]
    assert dict(recorder.troubles) == {}
    assert recorder.run_info.same_start == {
        "batches_from": str(path), "batches_taken": 1, "batches_missed": 1, "batches_as": "inputs",
        "batches_why_missed": "call 3 of <Sequential>: not in it",
    }  # fmt: skip


def test_what_a_teacher_has_already_worked_with_is_not_replaced_for_the_student_alone(tmp_path: Path) -> None:
    path = tmp_path / "one.h5"

    def way(steps: int) -> Losses:
        return with_a_teacher(steps, first=True)

    run(path, way, 1, keep=["batches"], phases=["input"])  # what the teacher is given is not in it
    recorder, _ = run(tmp_path / "two.h5", way, 2, same_start=SameStart(batches_from=str(path)))
    why = "<Sequential> was called with it before, and what that was given is not in it"
    assert recorder.notes() == (
        f"What call 1 of <Sequential> is given was not taken from '{path}': {why}",
        f"What call 3 of <Sequential> is given was not taken from '{path}': {why}",
        f"No batch was taken from '{path}': no batch of this run is in it",
    )
    assert recorder.run_info.same_start["batches_missed"] == 2


def test_a_model_that_looks_at_its_batch_before_it_trains_is_told(tmp_path: Path) -> None:
    path = tmp_path / "one.h5"

    def way(steps: int) -> Losses:
        model = net(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses: Losses = []
        for _ in range(steps):
            x = torch.randn(6, 4)
            with torch.no_grad():
                model(x)
            update(optimizer, model(x).mean(), losses)
        return losses

    run(path, way, 1, keep=["batches"])
    recorder, _ = run(tmp_path / "two.h5", way, 2, same_start=SameStart(batches_from=str(path)))
    assert recorder.notes() == (
        "<Sequential> was called without gradient with what was replaced only afterwards (2 times)",
    )
    assert recorder.run_info.same_start["batches_taken"] == 2


def test_the_file_says_which_call_an_input_was_for(tmp_path: Path) -> None:
    run(tmp_path / "run.h5", adversaries, 1, keep=["batches"], steps="2:4")
    with align.open(tmp_path / "run.h5") as capture:
        facts = {
            (step, fact.key.name, fact.key.call): fact.value
            for step in capture.steps
            for fact in capture.facts(step)
            if fact.key.slot == "forward"
        }
        inputs = {
            (step, record.within, record.within_call): record.has_values
            for step in capture.steps
            for record in capture.records(step)
            if record.key.phase is Phase.INPUT
        }
    assert facts == {
        (2, "<Sequential#2>", 0): "<Sequential#2> 3",
        (2, "<Sequential#2>", 1): "<Sequential#2> 4",
        (3, "<Sequential>", 0): "<Sequential> 1",
        (3, "<Sequential#2>", 0): "<Sequential#2> 5",
    }
    assert inputs == {(2, "<Sequential#2>", 1): True, (3, "<Sequential>", 0): True}


def test_a_capture_that_does_not_say_for_whom_is_refused(tmp_path: Path) -> None:
    def way(steps: int) -> Losses:
        model = net(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses: Losses = []
        for _ in range(steps):
            update(optimizer, functional.relu(model(torch.randn(6, 4))).mean(), losses)
        return losses

    run(tmp_path / "one.h5", way, 1, detail="tensors")
    asked = SameStart(batches_from=str(tmp_path / "one.h5"))
    with pytest.raises(align.errors.CaptureError) as refused:
        run(tmp_path / "two.h5", way, 2, same_start=asked)
    assert str(refused.value) == (
        f"Cannot take batches from '{tmp_path / 'one.h5'}': it does not say which call of which model they were for. "
        "Capture it again with --keep batches."
    )
