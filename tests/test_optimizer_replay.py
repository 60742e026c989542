"""AL702 within one run: an optimizer that does not do what its own settings say, in any precision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from align.records import DiffResult, Phase, Verdict
from tests.running import diff, run_python

RUNS = """
import importlib, json, sys
import torch
from torch import nn
from align import Recorder

HOMES = {"AdamW": "adam", "Adam": "adam", "SGD": "sgd"}


def train(path, kind, settings, really, bf16):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(16, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)
    )
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1]},
        {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0},
    ]
    optimizer = getattr(torch.optim, kind)(groups, **settings)
    generator = torch.Generator().manual_seed(1)
    home = importlib.import_module(f"torch.optim.{HOMES[kind]}")
    update = getattr(home, HOMES[kind])
    setattr(home, HOMES[kind], lambda *args, **kwargs: update(*args, **{**kwargs, **really}))
    try:
        with Recorder(path):
            for _ in range(3):
                x, y = torch.randn(32, 16, generator=generator), torch.randint(4, (32,), generator=generator)
                with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
                    loss = nn.functional.cross_entropy(model(x).float(), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    finally:
        setattr(home, HOMES[kind], update)


for run in json.loads(sys.stdin.read()):
    train(**run)
"""

ADAM: dict[str, Any] = {"lr": 1e-3, "weight_decay": 0.1}
SGD: dict[str, Any] = {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-3}

WRONG = {
    "AdamW lr": ("AdamW", ADAM, {"lr": 1.01e-3}),
    "AdamW eps": ("AdamW", ADAM, {"eps": 1e-5}),
    "AdamW beta1": ("AdamW", ADAM, {"beta1": 0.89}),
    "AdamW beta2": ("AdamW", ADAM, {"beta2": 0.99}),
    "AdamW decay": ("AdamW", ADAM, {"weight_decay": 0.5}),
    "Adam lr": ("Adam", ADAM, {"lr": 1.01e-3}),
    "SGD lr": ("SGD", SGD, {"lr": 0.101}),
    "SGD momentum": ("SGD", SGD, {"momentum": 0.8}),
}
TOLD = {
    "AdamW lr": (
        "Step 0: the optimizer of the candidate does not do what its own settings say, in 5 of 8 parameters that could "
        "be replayed; first the update of 0 bias: relative L2 0.010, 1.01 times what the settings give. All of it is "
        "explained by a learning rate 1.01 times the one that is set (0.001). No module is to blame."
    ),
    "AdamW beta1": (
        "Step 0: the optimizer of the candidate does not do what its own settings say, in 8 of 8 parameters that could "
        "be replayed; first the state exp_avg of 0 weight: relative L2 0.10, 1.1 times what the settings give. All of "
        "it is explained by betas.0 0.89; the setting is 0.9. No module is to blame."
    ),
}


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("optimizers")
    runs = []
    for bf16 in (False, True):
        for name, (kind, settings, really) in WRONG.items():
            right = folder / f"{kind}-{bf16}.h5"
            for path, wrong in ((right, {}), (folder / f"{name}-{bf16}.h5", really)):
                runs.append({"path": str(path), "kind": kind, "settings": settings, "really": wrong, "bf16": bf16})
    runs = list({run["path"]: run for run in runs}.values())
    done = run_python("-c", RUNS, given=json.dumps(runs))
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def _diff(captures: Path, name: str, *, bf16: bool, swapped: bool = False) -> DiffResult:
    pair = captures / f"{WRONG[name][0]}-{bf16}.h5", captures / f"{name}-{bf16}.h5"
    return diff(*(reversed(pair) if swapped else pair))


@pytest.mark.parametrize("bf16", [False, True], ids=["fp32", "bf16"])
@pytest.mark.parametrize("name", WRONG)
def test_an_optimizer_that_leaves_its_settings_is_found(captures: Path, name: str, bf16: bool) -> None:
    result = _diff(captures, name, bf16=bf16)
    first = result.first_divergence
    assert first is not None
    assert (first.phase, str(first.origin)) == (Phase.PARAM, "optimizer")
    assert first.step == (1 if name == "SGD momentum" else 0)
    assert result.findings[0].label == "optimizer-formula-differs"
    if name in TOLD:
        assert result.summary == TOLD[name]


def test_the_side_that_leaves_its_settings_is_named(captures: Path) -> None:
    swapped = _diff(captures, "AdamW lr", bf16=True, swapped=True)
    assert swapped.findings[0].evidence["side"] == "reference"


@pytest.mark.parametrize("kind", ["AdamW", "Adam", "SGD"])
def test_a_right_one_is_aligned_with_itself(captures: Path, kind: str) -> None:
    assert diff(captures / f"{kind}-True.h5", captures / f"{kind}-True.h5").verdict is Verdict.ALIGNED
