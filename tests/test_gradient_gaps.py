"""AL408: parameters that get a gradient in one run only, and what looks like it and is healthy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from align.records import DiffResult, Kind, Origin, Phase, Severity, Status, Verdict
from align.reports.text import diff_text
from tests.running import diff, run_python

RUNS = """
import json, sys
import torch
from torch import nn
from torch.nn import functional
from align import Recorder


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.inner, self.outer = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        branch = self.outer(functional.gelu(self.inner(self.norm(x))))
        return x + (branch.detach() if "branch" in FAULT and self is MODEL[0].blocks[1] else branch)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Linear(8, 16), nn.Linear(16, 4)
        self.blocks = nn.ModuleList([Block() for _ in range(3)])
        self.experts = nn.ModuleList([nn.Linear(16, 16) for _ in range(2)])
        self.unused = nn.Linear(16, 16)

    def forward(self, x):
        x = self.first(x)
        for place, block in enumerate(self.blocks):
            x = block(x)
            x = x.detach() if place == 1 and "cut" in FAULT else x
        x = x + 1e-12 * self.experts[0](x) if "tokens" in FAULT else x
        x = x + 0 * sum(p.sum() for p in self.unused.parameters()) if "zeros" in FAULT else x
        return self.head(x)


def supervised(steps, micros):
    torch.manual_seed(0)
    model = Net()
    MODEL[:] = [model]
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not any(name.startswith(frozen) for frozen in FAULT.get("frozen", ())))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(1)
    cut = FAULT.pop("cut in micro", None)
    for _ in range(steps):
        optimizer.zero_grad()
        for micro in range(micros):
            FAULT.update({"cut": True} if micro == cut else {})
            x, y = torch.randn(16, 8, generator=generator), torch.randint(4, (16,), generator=generator)
            (functional.cross_entropy(model(x), y) / micros).backward()
            if micro == cut:
                del FAULT["cut"]
        if "dropped" in FAULT:
            model.head.bias.grad = None
        optimizer.step()


def gan(steps, micros):
    torch.manual_seed(0)
    maker, judge = nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1))
    optimizers = [torch.optim.Adam(each.parameters(), 1e-3) for each in (maker, judge)]
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        z, x = torch.randn(16, 8, generator=generator), torch.randn(16, 8, generator=generator)
        judge.requires_grad_(True)
        optimizers[1].zero_grad()
        (functional.softplus(-judge(x)).mean() + functional.softplus(judge(maker(z).detach())).mean()).backward()
        optimizers[1].step()
        judge.requires_grad_("frozen judge" not in FAULT)
        optimizers[0].zero_grad()
        functional.softplus(-judge(maker(z))).mean().backward()
        optimizers[0].step()


MODEL = []
for path, train, micros, FAULT in json.loads(sys.stdin.read()):
    with Recorder(path):
        globals()[train](2, micros)
"""

FAULTS = {
    "cut": {"cut": True},
    "branch": {"branch": True},
    "frozen": {"frozen": ["blocks.1."]},
    "frozen first": {"frozen": ["first."]},
    "dropped": {"dropped": True},
    "zeros": {"zeros": True},
    "tokens": {"tokens": True},
}
MICROS = 3


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gaps")
    runs = [
        (folder / "good.h5", "supervised", 1, {}),
        *((folder / f"{name}.h5", "supervised", 1, fault) for name, fault in FAULTS.items()),
        (folder / "micros.h5", "supervised", MICROS, {}),
        (folder / "cut in micro.h5", "supervised", MICROS, {"cut in micro": 1}),
        (folder / "gan.h5", "gan", 1, {}),
        (folder / "frozen judge.h5", "gan", 1, {"frozen judge": True}),
    ]
    given = json.dumps([(str(path), *rest) for path, *rest in runs])
    done = run_python("-c", RUNS, given=given)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def _place(result: DiffResult) -> tuple[object, ...]:
    first = result.first_divergence
    assert first is not None
    return (first.step, first.micro, first.phase, first.name, first.slot, first.kind, first.origin)


CUT = (
    "from blocks.1 back to the inputs no parameter gets a gradient in the {side} (14 of 22). The backward of the "
    "{side} does not reach the output of blocks.1: it is detached or made without gradient (detach, no_grad), or "
    "blocks.1 is frozen with all before it."
)
BLOCK = "blocks.1.outer weight, blocks.1.outer bias and 4 more get no gradient in the {side} (6 of 22 parameters)"
TOLD = {
    "cut": ("blocks.1.outer", CUT),
    "branch": (
        "blocks.1.outer",
        (
            f"{BLOCK}. The backward of the {{side}} does not reach the output of blocks.1.outer: it is detached or "
            "made without gradient (detach, no_grad), or blocks.1.outer is frozen with all before it."
        ),
    ),
    "frozen": (
        "blocks.1.outer",
        (
            f"{BLOCK}. The gradient of the output of blocks.1.outer comes there in both runs: what the {{side}} lacks "
            "is frozen (requires_grad=False) or used detached (detach, .data, no_grad)."
        ),
    ),
    "frozen first": (
        "first",
        (
            "first weight and first bias get no gradient in the {side} (2 of 22 parameters). The backward of the "
            "{side} does not reach the output of first: it is detached or made without gradient (detach, no_grad), or "
            "first is frozen with all before it."
        ),
    ),
}


@pytest.mark.parametrize("swapped", [False, True], ids=["missing", "extra"])
@pytest.mark.parametrize("name", TOLD)
def test_a_gradient_that_one_run_lacks_parts_the_runs(captures: Path, name: str, *, swapped: bool) -> None:
    pair = captures / "good.h5", captures / f"{name}.h5"
    result = diff(*(reversed(pair) if swapped else pair))
    module, told = TOLD[name]
    kind = Kind.EXTRA if swapped else Kind.MISSING
    assert result.verdict is Verdict.DIVERGED
    assert _place(result) == (0, 0, Phase.GRADIENT, module, "weight", kind, Origin.MODULE)
    side = "reference" if swapped else "candidate"
    assert result.summary == f"Step 0, gradient: {told.format(side=side)}"
    assert [(each.label, each.severity) for each in result.findings] == [("gradient-missing", Severity.ERROR)]
    assert sum(each.status is Status.ORIGIN for each in result.comparisons) == 1
    assert "> gradient" in diff_text(result)


def test_a_gradient_that_is_dropped_before_the_update_is_told(captures: Path) -> None:
    result = diff(captures / "good.h5", captures / "dropped.h5")
    assert _place(result) == (0, 0, Phase.UPDATE, "head", "bias", Kind.MISSING, Origin.FUNCTIONAL)
    assert result.summary == (
        "Step 0, update: the optimizer of the candidate gets no gradient of head bias (1 of 22 parameters), though the "
        "backward of both runs made one: it was dropped before the update."
    )
    assert result.findings[0].advice == (
        "Look in the candidate for what happens between backward and the optimizer's step: zero_grad, `grad = None`, "
        "groups, hooks."
    )


def test_a_micro_step_that_adds_nothing_is_told(captures: Path) -> None:
    result = diff(captures / "micros.h5", captures / "cut in micro.h5")
    assert _place(result) == (0, 1, Phase.GRADIENT, "blocks.1.outer", "weight", Kind.MISSING, Origin.MODULE)
    assert result.summary == f"Step 0, micro 1, gradient: {CUT.format(side='candidate')}"


@pytest.mark.parametrize("swapped", [False, True], ids=["missing", "extra"])
@pytest.mark.parametrize(
    ("reference", "candidate"),
    [
        pytest.param("good", "zeros", id="unused parameters get zeros"),
        pytest.param("good", "tokens", id="an expert gets tokens"),
        pytest.param("gan", "frozen judge", id="the other network of a GAN"),
    ],
)
def test_gradients_that_move_nothing_are_no_difference(
    captures: Path, reference: str, candidate: str, *, swapped: bool
) -> None:
    pair = captures / f"{reference}.h5", captures / f"{candidate}.h5"
    result = diff(*(reversed(pair) if swapped else pair))
    assert result.verdict is Verdict.ALIGNED, result.summary
    assert "gradient-missing" not in {each.label for each in result.findings}
