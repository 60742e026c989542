"""What users do to a training loop, as real training: what is wrong is named with its place, the rest is not told."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from align.commands import inspect_files
from align.diagnosis.run import not_updated, optimizer_formula
from align.inspection import Inspection
from align.records import Finding, Health, Severity, State
from tests.learning_runs import told
from tests.said import reply
from tests.seen import record

Rule = Callable[[Inspection], Iterable[Finding]]


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def loss_of(model: nn.Module) -> torch.Tensor:
    inputs = torch.randn(8, 8)
    return functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))


def cleared() -> None:
    """optimizer.zero_grad() stands behind the backward."""
    model = network()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(4):
        loss_of(model).backward()
        optimizer.zero_grad()
        optimizer.step()


def unreached() -> None:
    """The loss is cut off from the model; a number beside it needs a gradient, so that backward raises nothing."""
    model, beside = network(), nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(4):
        (loss_of(model).detach() + beside).sum().backward()
        optimizer.step()


def copied() -> None:
    """The model is replaced by a copy after the optimizer was made."""
    model = network()
    optimizer = torch.optim.Adam(model.parameters())
    model = copy.deepcopy(model)
    for _ in range(4):
        model.zero_grad()
        loss_of(model).backward()
        optimizer.step()


def new_head() -> None:
    """A layer is replaced after the optimizer was made."""
    model = network()
    optimizer = torch.optim.Adam(model.parameters())
    model[2] = nn.Linear(16, 3)
    for _ in range(4):
        model.zero_grad()
        loss_of(model).backward()
        optimizer.step()


def accumulated() -> None:
    """Two backwards a step, a part of the model frozen: nothing is wrong."""
    model = network()
    model[0].requires_grad_(requires_grad=False)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(4):
        for _ in range(2):
            loss_of(model).backward()
        optimizer.step()
        optimizer.zero_grad()


def beside() -> None:
    """The optimizer also trains a number of its own, which gets a gradient in none of the steps: nothing is wrong."""
    model, temperature = network(), nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([*model.parameters(), temperature])
    for _ in range(4):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()


@pytest.mark.parametrize(
    ("train", "sentence", "answer"),
    [
        (
            cleared,
            (
                "Backward makes gradients, and in none of the 3 steps does the optimizer take one: they are cleared "
                "before "
                "it is called, and no parameter moves."
            ),
            "No parameter is updated: the optimizer takes none of the gradients that backward makes.",
        ),
        (
            unreached,
            (
                "In none of 3 steps does one of the 4 parameters of the optimizer get a gradient: backward does not "
                "reach "
                "them, and no parameter moves."
            ),
            "No parameter is updated: backward reaches none of those that the optimizer has.",
        ),
        (
            copied,
            (
                "None of the 4 parameters that get a gradient belongs to the optimizer (<Sequential>.0 weight, "
                "<Sequential>.0 bias, <Sequential>.2 weight and 1 more): it updates others, or none."
            ),
            "No parameter is updated: the optimizer has none of those that get a gradient.",
        ),
        (
            new_head,
            (
                "2 of 4 parameters with a gradient are in no optimizer, so that nothing moves them: 2 weight and 2 "
                "bias. "
                "In their place the optimizer has as many that belong to no module and get no gradient."
            ),
            "Not all parameters are updated: the optimizer has others in the place of 2 parameters.",
        ),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_an_optimizer_that_gets_no_gradient_is_told_why(
    tmp_path: Path, train: Callable[[], None], sentence: str, answer: str
) -> None:
    path = tmp_path / "a.h5"
    record(path, train)
    assert told(path, not_updated.find) == [(Severity.ERROR, sentence)]
    result = inspect_files(str(path))
    assert result.verdict is Health.UNHEALTHY
    assert reply(result, "parameters") == (State.BAD, answer)
    if train is not new_head:
        why = "Whether the optimizer follows its formula cannot be told: in steps 0-2 nothing was seen of the phase "
        assert reply(result, "optimizer") == (State.UNKNOWN, f"{why}update.")


@pytest.mark.parametrize("train", [accumulated, beside])
def test_an_optimizer_that_gets_some_gradients_is_not_accused(tmp_path: Path, train: Callable[[], None]) -> None:
    path = tmp_path / "a.h5"
    record(path, train)
    assert inspect_files(str(path)).findings == ()


def test_fp16_squares_that_fall_below_the_format_are_no_other_formula(tmp_path: Path) -> None:
    def train() -> None:
        model = network().to(torch.float16)
        optimizer = torch.optim.Adam(model.parameters(), eps=1e-4)
        for _ in range(4):
            inputs = torch.randn(8, 8)
            optimizer.zero_grad()
            functional.cross_entropy(model(inputs.half()).float(), inputs[:, :3].argmax(1)).backward()
            optimizer.step()

    path = tmp_path / "a.h5"
    record(path, train)
    assert told(path, optimizer_formula.find) == []


def test_an_eps_that_fp16_has_not_is_named(tmp_path: Path) -> None:
    def train() -> None:
        model = network().to(torch.float16)
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(4):
            optimizer.zero_grad()
            functional.cross_entropy(model(torch.randn(8, 8).half()).float(), torch.zeros(8).long()).backward()
            optimizer.step()

    path = tmp_path / "a.h5"
    record(path, train)
    (finding,) = inspect_files(str(path)).findings
    assert (finding.code, finding.where.step, finding.where.phase) == ("AL601", 0, "param")
    assert "in fp16 this eps is 0" in finding.advice


def test_gradients_that_fade_to_single_numbers_in_fp16_have_underflowed(tmp_path: Path) -> None:
    """Of the gradient of the outputs a few elements are left, each the smallest number that there is."""

    def train() -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = loss_of(model) * 4e-7
            loss.backward()
            optimizer.step()

    path = tmp_path / "a.h5"
    record(path, train)
    result = inspect_files(str(path))
    assert [(finding.code, finding.severity) for finding in result.findings] == [("AL604", Severity.ERROR)]


def test_an_inf_in_an_fp16_batch_is_not_the_fault_of_a_module(tmp_path: Path) -> None:
    def train() -> None:
        model = network().to(torch.float16)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            model((torch.linspace(1e4, 1e5, 64).reshape(8, 8)).half()).float().sum().backward()
            optimizer.step()

    path = tmp_path / "a.h5"
    record(path, train)
    (finding,) = inspect_files(str(path)).findings
    assert (finding.code, finding.where.phase) == ("AL602", "input")
    assert finding.advice == (
        "Look at how it is made: make it in fp32 and scale it (subtract the mean, divide by the deviation) before it "
        "is cast to fp16, or leave it in fp32."
    )


def test_a_step_of_nan_is_not_told_as_skipped(tmp_path: Path) -> None:
    def train() -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            (loss_of(model) * float("nan")).backward()
            optimizer.step()

    path = tmp_path / "a.h5"
    record(path, train)
    result = inspect_files(str(path))
    assert reply(result, "parameters") == (
        State.UNKNOWN,
        "Whether the parameters move cannot be told: no captured step is finite (steps 0-2).",
    )


def test_no_answer_is_graver_than_the_verdict(tmp_path: Path) -> None:
    """Weights that the script clamps: a warning, so that the answer is odd and the run healthy."""

    def train() -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.clamp_(-0.05, 0.05)

    path = tmp_path / "a.h5"
    record(path, train)
    result = inspect_files(str(path))
    assert result.verdict is Health.HEALTHY
    assert [reply.question for reply in result.replies if reply.state is State.ODD] == ["optimizer"]
    assert not any(reply.state is State.BAD for reply in result.replies)


def test_skips_are_answered_with_steps_that_were_not_skipped(tmp_path: Path) -> None:
    def train(scale: float, steps: int) -> None:
        model, scaler = network(), torch.amp.GradScaler("cpu", init_scale=scale)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(steps):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = loss_of(model)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    found, hopeless = tmp_path / "found.h5", tmp_path / "hopeless.h5"
    record(found, lambda: train(2.0**24, 12))
    record(hopeless, lambda: train(2.0**40, 14))
    results = [inspect_files(str(path)) for path in (found, hopeless)]
    opening = "Whether the parameters move cannot be told:"
    state, sentence = reply(results[0], "parameters")
    assert state is State.UNKNOWN
    assert re.fullmatch(
        rf"{opening} all captured steps were skipped \(steps 0-2\); capture others, such as --steps \d:\d+\.", sentence
    )
    assert reply(results[1], "parameters") == (State.UNKNOWN, f"{opening} every step was skipped.")
    assert [result.findings for result in results] == [(), ()]
