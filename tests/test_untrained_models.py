"""Models that no optimizer trains, and what passes from one model to another outside of every module."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from align.alike import completed
from align.commands import diff_files
from align.records import DiffResult, ModuleInfo, Verdict
from tests.seen import record

FEATURES = 8


class Student(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(FEATURES, 64)
        self.fc2 = nn.Linear(64, FEATURES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.fc2(torch.tanh(self.fc1(x)))
        return found


def distil(*, first: int, scale: float = 1.0) -> Callable[[], None]:
    """Train with a teacher that is asked from step `first` on; its second layer is `scale` times the student's."""

    def train() -> None:
        torch.manual_seed(1)
        student = Student()
        teacher = copy.deepcopy(student).requires_grad_(False)
        with torch.no_grad():
            teacher.fc2.weight.mul_(scale)
        optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
        for step in range(3):
            x = torch.randn(32, FEATURES)
            loss = (student(x) - x).square().mean()
            if step >= first:
                with torch.no_grad():
                    wanted = teacher(x)
                loss = loss + (student(x) - wanted).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                for average, weight in zip(teacher.parameters(), student.parameters(), strict=True):
                    average.lerp_(weight, 0.5)

    return train


def compared(folder: Path, reference: Callable[[], None], candidate: Callable[[], None]) -> DiffResult:
    for name, run in (("ref.h5", reference), ("cand.h5", candidate)):
        record(folder / name, run, steps="0:3")
    return diff_files(str(folder / "ref.h5"), str(folder / "cand.h5"))


def test_other_weights_of_a_model_that_is_called_late_are_said_to_be_unknown(tmp_path: Path) -> None:
    found = compared(tmp_path, distil(first=1), distil(first=1, scale=1.5))
    [cause] = [finding for finding in found.findings if finding.severity == "error"]
    assert (cause.code, cause.where.name, cause.where.slot) == ("AL310", "<Student#2>.fc2", "output.0")
    assert cause.summary.startswith("Step 1, forward: <Student#2>.fc2 output.0 is the first tensor that differs: ")
    assert cause.summary.endswith(
        ". Its inputs agree; whether its weights do is not known, as <Student#2> was first called in step 1, after the "
        "initial weights had been captured."
    )
    assert cause.advice == (
        "Compare the weights of <Student#2> in both runs: build it from one seed (`align capture --seed 1`), or load "
        "one checkpoint into it in both. `--init-from` does not reach it. Where they are equal, compare the settings "
        "and the operators of <Student#2>.fc2."
    )


def test_equal_weights_of_a_model_that_is_called_late_are_said_to_be_unknown_too(tmp_path: Path) -> None:
    found = compared(tmp_path, distil(first=1), distil(first=1))
    assert found.verdict is Verdict.ALIGNED
    assert found.findings[0].advice == (
        "Whether the weights of <Student#2> are equal is not known: it was first called in step 1, after the initial "
        "weights had been captured."
    )


def test_other_weights_of_a_model_that_is_called_at_once_are_initial_weights(tmp_path: Path) -> None:
    found = compared(tmp_path, distil(first=0), distil(first=0, scale=1.5))
    assert found.summary == (
        "Initial weights are a multiple of those of the reference: 1 of 8 initial tensors (<Student#2>.fc2.weight). In "
        "the candidate <Student#2>.fc2.weight is 1.5 times the reference. No module was judged."
    )


def adversaries(noise: int) -> Callable[[], None]:
    """Train a maker against a judge on noise of one seed."""

    def train() -> None:
        torch.manual_seed(2)
        maker, judge = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, FEATURES)), Student()
        makes, judges = torch.optim.SGD(maker.parameters(), lr=0.1), torch.optim.SGD(judge.parameters(), lr=0.1)
        generator = torch.Generator().manual_seed(noise)
        made = maker(torch.randn(4, 2, generator=generator))
        loss = judge(torch.ones(4, FEATURES)).square().mean() - judge(made.detach()).square().mean()
        for optimizer in (judges, makes):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss = functional.softplus(judge(made)).mean()

    return train


def test_what_another_step_holds_is_named_as_the_maker_of_an_input(tmp_path: Path) -> None:
    found = compared(tmp_path, adversaries(1), adversaries(2))
    cause = found.findings[0]
    assert cause.summary.startswith("Step 0, forward: <Student> input.0, call 1 is the first tensor that differs: ")
    assert cause.summary.endswith(
        ". It is <Sequential> output.0, whose forward is recorded in step 1, with its backward."
    )
    assert cause.advice == (
        "Compare what <Sequential> was given in both runs (noise, batches) with `align show RUN.h5 '<Sequential>'`, "
        "and its settings."
    )


def script_code(factor: float) -> Callable[[], None]:
    """Two modules of one model with code of the script between them."""

    def train() -> None:
        torch.manual_seed(3)
        model = Student()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss = model.fc2(factor * torch.tanh(model.fc1(torch.ones(4, FEATURES)))).square().mean()
        loss.backward()
        optimizer.step()

    return train


def test_what_the_script_makes_between_modules_is_its_own(tmp_path: Path) -> None:
    found = compared(tmp_path, script_code(1.0), script_code(1.25))
    assert found.summary.endswith(
        "1.25 times the reference. All that modules were given and made before it agrees: the training script made "
        "it, of that or of something else (a batch, random numbers)."
    )


def test_modules_without_a_graph_compute_what_others_of_their_class_do() -> None:
    known = {
        "a": ModuleInfo("a", "Mixer", matmul=True, piecewise=True),
        "<T>.a": ModuleInfo("<T>.a", "Mixer"),
        "<T>.b": ModuleInfo("<T>.b", "Conv2d"),
        "<T>.c": ModuleInfo("<T>.c", "Linear"),
        "<T>.d": ModuleInfo("<T>.d", "GELU"),
        "<T>": ModuleInfo("<T>", "LinearProbe", leaf=False),
    }
    found = completed(known)
    assert [(each.matmul, each.conv, each.piecewise) for each in found.values()] == [
        (True, False, True), (True, False, True), (False, True, False), (True, False, False), (False, False, False),
        (False, False, False),
    ]  # fmt: skip
