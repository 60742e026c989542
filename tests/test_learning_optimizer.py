"""AL702 in one run: every optimizer follows its settings, and what leaves them is explained."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import align
from align.diagnosis.run import optimizer_formula
from align.inspection import Inspection, RunView, learning_questions
from align.inspection.optimizer_check import clipping
from align.records import Severity, State
from tests.learning_runs import answer, found
from tests.seen import record

STEPS = 2
Made = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]


def model_of() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 12), nn.LayerNorm(12), nn.GELU(), nn.Linear(12, 40), nn.ReLU(), nn.Linear(40, 4))


def train(
    make: Made,
    *,
    dtype: torch.dtype = torch.float32,
    between: Callable[[nn.Module], None] | None = None,
    clip: float = 0.0,
) -> None:
    """Train with two groups, of which only one is decayed."""
    model = model_of().to(dtype)
    groups: list[dict[str, Any]] = [
        {"params": [p for p in model.parameters() if p.dim() > 1]},
        {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0},
    ]
    optimizer = make(groups)
    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        x, y = torch.randn(16, 6, generator=generator).to(dtype), torch.randint(4, (16,), generator=generator)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x).float(), y).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if between is not None:
            between(model)


def settings_of(kind: str, **settings: Any) -> Made:
    return lambda groups: getattr(torch.optim, kind)(groups, **settings)


RIGHT: dict[str, Made] = {
    "AdamW": settings_of("AdamW", lr=1e-2, weight_decay=0.1),
    "AdamW foreach": settings_of("AdamW", lr=1e-2, foreach=True),
    "AdamW fused": settings_of("AdamW", lr=1e-2, fused=True),
    "AdamW amsgrad": settings_of("AdamW", lr=1e-2, amsgrad=True),
    "AdamW maximize": settings_of("AdamW", lr=1e-2, maximize=True),
    "Adam": settings_of("Adam", lr=1e-2, weight_decay=0.1),
    "SGD": settings_of("SGD", lr=0.1),
    "SGD momentum": settings_of("SGD", lr=0.1, momentum=0.9, dampening=0.1),
    "SGD nesterov": settings_of("SGD", lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "SGD maximize": settings_of("SGD", lr=0.1, momentum=0.9, maximize=True),
    "RMSprop": settings_of("RMSprop", lr=1e-2, weight_decay=0.1),
    "RMSprop centered": settings_of("RMSprop", lr=1e-2, centered=True, momentum=0.9),
    "Adagrad": settings_of("Adagrad", lr=1e-2, lr_decay=0.1),
}


IN_BFLOAT16 = ("AdamW", "AdamW fused", "Adam", "SGD momentum", "RMSprop", "Adagrad")


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, torch.float32) for name in RIGHT), *((name, torch.bfloat16) for name in IN_BFLOAT16)],
    ids=str,
)
def test_an_optimizer_of_torch_follows_its_settings(tmp_path: Path, name: str, dtype: torch.dtype) -> None:
    path = tmp_path / "a.h5"
    record(path, lambda: train(RIGHT[name], dtype=dtype))
    with align.open(path) as capture:
        inspection = Inspection(RunView(capture))
        assert list(optimizer_formula.find(inspection)) == []
        check = inspection.optimizer_check
        assert check.steps == (0, 1)
        # Of updates that bf16 rounds away nothing can be told, so that fewer parameters are left.
        assert check.parameters >= (6 if dtype is torch.float32 else 2)
        assert check.nearest < 0.5
        assert learning_questions.optimizer(inspection).state is State.GOOD


def test_the_reply_says_what_was_replayed(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    record(path, lambda: train(RIGHT["AdamW"]))
    assert answer(path, learning_questions.optimizer).sentence == (
        "AdamW follows its formula and its settings in steps 0-1, in 8 parameters that could be replayed."
    )


HOMES = {"AdamW": "adam", "Adam": "adam", "SGD": "sgd", "RMSprop": "rmsprop"}
DECAYED = {"lr": 1e-2, "weight_decay": 0.1}
WRONG: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "rate": (
        "AdamW", {"lr": 1e-2}, {"lr": 1.1e-2},
        "All of it is explained by a learning rate 1.1 times the one that is set (0.01).",
    ),
    "epsilon": ("Adam", {"lr": 1e-2}, {"eps": 1e-3}, "All of it is explained by eps 0.001; the setting is 1e-08."),
    "beta": ("AdamW", {"lr": 1e-2}, {"beta1": 0.8}, "All of it is explained by betas.0 0.8; the setting is 0.9."),
    "momentum": (
        "SGD", {"lr": 0.1, "momentum": 0.9}, {"momentum": 0.5},
        "All of it is explained by momentum 0.5; the setting is 0.9.",
    ),
    "RMSprop": (
        "RMSprop", {"lr": 1e-2, "alpha": 0.99}, {"alpha": 0.9},
        "All of it is explained by alpha 0.9; the setting is 0.99.",
    ),
    "not tried": ("AdamW", {"lr": 1e-2}, {"beta1": 0.77}, "No other setting that was tried explains it."),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_leaves_its_settings_is_explained(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, settings, really, explained = WRONG[name]
    home = importlib.import_module(f"torch.optim.{HOMES[kind]}")
    update = getattr(home, HOMES[kind])
    monkeypatch.setattr(home, HOMES[kind], lambda *args, **kwargs: update(*args, **{**kwargs, **really}))
    path = tmp_path / "a.h5"
    record(path, lambda: train(settings_of(kind, **settings)))
    (finding,) = found(path, optimizer_formula.find)
    assert finding.severity is Severity.ERROR
    assert finding.summary.endswith(explained)
    assert finding.where.phase == "optimizer"


def test_a_script_that_changes_parameters_itself_is_not_accused(tmp_path: Path) -> None:
    """Weights that are clamped after each step: the first step is right, and no setting explains the second."""

    def clamp(model: nn.Module) -> None:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.clamp_(-0.05, 0.05)

    path = tmp_path / "a.h5"
    record(path, lambda: train(settings_of("SGD", lr=0.1), between=clamp))
    (finding,) = found(path, optimizer_formula.find)
    assert (finding.severity, finding.where.step) == (Severity.WARNING, 1)
    assert "Either the optimizer computes it otherwise, or the script changes parameters itself" in finding.summary
    assert finding.advice.startswith(
        "Nothing is wrong where the script changes parameters between the steps on purpose."
    )


def test_clipping_is_measured_beside_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    record(path, lambda: train(settings_of("SGD", lr=0.1), clip=0.01))
    with align.open(path) as capture:
        measured = clipping(RunView(capture), 0)
    assert measured is not None
    assert measured[0] == pytest.approx(measured[1], rel=1e-4)
    assert measured[0] < 0.1


@pytest.mark.parametrize(
    ("phases", "lacking"), [(["forward", "param"], "update and optimizer"), (["update", "optimizer"], "param")]
)
def test_without_a_phase_it_is_said_what_to_capture(tmp_path: Path, phases: list[str], lacking: str) -> None:
    path = tmp_path / "a.h5"
    record(path, lambda: train(settings_of("SGD", lr=0.1)), phases=phases)
    assert answer(path, learning_questions.optimizer).sentence == (
        f"Whether the optimizer follows its formula cannot be told: the capture has no phase {lacking}; capture with "
        "--phases all."
    )
