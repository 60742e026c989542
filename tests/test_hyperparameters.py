"""AL106 and AL703: settings of optimizers must be equal for every parameter, whatever groups it stands in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from align.hyperparameters import compare_settings
from align.records import DiffResult, FactValue, Kind, Origin, Phase, Severity, Verdict
from tests.running import diff, run_python

RUNS = """
import json, sys
import torch
from torch import nn
from align import Recorder


class Own(torch.optim.AdamW):
    pass


def train(path, kind="AdamW", settings=None, biases=None, reverse=False, single=False, tensor=False, later=None):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))
    if single:
        groups = [{"params": [p], "weight_decay": 0.1 if p.dim() > 1 else 0.0} for p in model.parameters()]
    else:
        groups = [
            {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0, **(biases or {})},
        ]
    settings = {"lr": 1e-3, **(settings or {})}
    settings["lr"] = torch.tensor(settings["lr"]) if tensor else settings["lr"]
    optimizer = getattr(torch.optim, kind, Own)(groups[:: -1 if reverse else 1], **settings)
    generator = torch.Generator().manual_seed(1)
    with Recorder(path):
        for step in range(2):
            x, y = torch.randn(16, 8, generator=generator), torch.randint(4, (16,), generator=generator)
            for group in optimizer.param_groups:
                group.update((later or {}) if step == 1 else {})
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


for run in json.loads(sys.stdin.read()):
    train(**run)
"""

MOMENTUM = {"lr": 0.1, "momentum": 0.9}
RUNS_OF: dict[str, dict[str, Any]] = {
    "AdamW": {},
    "SGD": {"kind": "SGD", "settings": MOMENTUM},
    "rate of biases": {"biases": {"lr": 1.1e-3}},
    "rate": {"settings": {"lr": 1.1e-3}},
    "beta2": {"settings": {"betas": [0.9, 0.99]}},
    "amsgrad and eps": {"settings": {"amsgrad": True, "eps": 1e-4}},
    "decay later": {"later": {"weight_decay": 0.2}},
    "no momentum": {"kind": "SGD", "settings": {"lr": 0.1}},
    "own class": {"kind": "Own", "settings": {"eps": 1e-7}},
    "reversed": {"reverse": True},
    "single": {"single": True},
    "last digit": {"settings": {"lr": 1e-3 * (1 + 1e-9)}},
    "tensor": {"tensor": True},
    "fused": {"settings": {"fused": True}},
    "same own class": {"kind": "Own"},
}
HEALTHY = ("reversed", "single", "last digit", "tensor", "fused", "same own class")
END = "All gradients of the step agree: the runs part in the optimizer."
TOLD = {
    "rate of biases": (
        "The optimizers are set differently in step 0: lr is 0.001 in the reference and 0.0011 in the candidate for 4 "
        f"of 6 parameters (first 0 bias). {END}"
    ),
    "rate": (
        "The learning rate of step 0 is 0.001 in the reference and 0.0011 in the candidate. All gradients agree; the "
        "parameters part here."
    ),
    "beta2": (
        "The optimizers are set differently in step 0: betas.1 is 0.999 in the reference and 0.99 in the candidate for "
        f"6 of 6 parameters (first 0 weight). {END}"
    ),
    "amsgrad and eps": (
        "The optimizers are set differently in step 0: eps is 1e-08 in the reference and 0.0001 in the candidate for 6 "
        "of 6 parameters (first 0 weight); amsgrad is False in the reference and True in the candidate for 6 of 6 "
        f"parameters (first 0 weight). {END}"
    ),
    "decay later": (
        "The optimizers are set differently in step 1: weight_decay is 0.1 in the reference and 0.2 in the candidate "
        f"for 6 of 6 parameters (first 0 weight). {END}"
    ),
    "no momentum": (
        "The optimizers are set differently in step 0: momentum is 0.9 in the reference and 0 in the candidate for 6 "
        f"of 6 parameters (first 0 weight). {END}"
    ),
    "own class": (
        "The optimizers are set differently in step 0: eps is 1e-08 in the reference and 1e-07 in the candidate for "
        f"6 of 6 parameters (first 0 weight). {END}"
    ),
}
FIRST = {"rate of biases": (0, "0", "bias"), "decay later": (1, "0", "weight")}


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("settings")
    runs = [{"path": str(folder / f"{name}.h5"), **run} for name, run in RUNS_OF.items()]
    done = run_python("-c", RUNS, given=json.dumps(runs))
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def _diff(captures: Path, name: str) -> DiffResult:
    reference = "SGD" if name == "no momentum" else "AdamW"
    return diff(captures / f"{reference}.h5", captures / f"{name}.h5")


@pytest.mark.parametrize("name", TOLD)
def test_a_setting_that_differs_parts_the_runs_in_the_optimizer(captures: Path, name: str) -> None:
    result = _diff(captures, name)
    first = result.first_divergence
    assert result.verdict is Verdict.DIVERGED
    assert first is not None
    assert (first.phase, first.kind, first.origin) == (Phase.PARAM, Kind.EQUALITY, Origin.OPTIMIZER)
    assert (first.step, first.name, first.slot) == FIRST.get(name, (0, "0", "weight"))
    assert result.summary == TOLD[name]
    label = "learning-rate-differs" if name == "rate" else "hyperparameters-differ"
    assert [each.label for each in result.findings if each.severity is Severity.ERROR] == [label]


@pytest.mark.parametrize("name", HEALTHY)
def test_the_same_settings_in_other_clothes_are_the_same(captures: Path, name: str) -> None:
    result = _diff(captures, name)
    assert result.verdict is Verdict.ALIGNED, result.summary
    assert {each.severity for each in result.findings} == {Severity.NOTE}


def _settings(**group: FactValue) -> dict[str, dict[str, FactValue]]:
    return {"net": {"weight.group": "group0"}, "group0": group}


@pytest.mark.parametrize(
    ("ours", "theirs", "names"),
    [
        pytest.param({"lr": 0.0, "initial_lr": 0.1}, {"lr": 3e-18, "initial_lr": 0.1}, (), id="the end of a schedule"),
        pytest.param({"lr": 0.0}, {"lr": 3e-18}, ("lr",), id="rates of nothing known"),
        pytest.param({"eps": None}, {"eps": 1e-8}, (), id="not known"),
        pytest.param({"foreach": True}, {"foreach": False}, (), id="how it is carried out"),
        pytest.param({"nesterov": True}, {"nesterov": False}, ("nesterov",), id="a switch"),
        pytest.param({"nesterov": True}, {}, (), id="in one run only"),
        pytest.param({"weight_decay": 0.1}, {"weight_decay": 0.1000001}, (), id="rounded"),
        pytest.param({"initial_lr": 0.1}, {"initial_lr": 0.2}, (), id="what a scheduler keeps"),
    ],
)
def test_what_counts_as_another_setting(
    ours: dict[str, FactValue], theirs: dict[str, FactValue], names: tuple[str, ...]
) -> None:
    owner = ("net", "weight")
    found = compare_settings(0, _settings(**ours), _settings(**theirs), {owner: owner})
    assert tuple(each.name for each in found.differences) == names
