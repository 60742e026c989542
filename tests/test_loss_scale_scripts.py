"""Loss scales of real trainings with torch's scaler: what is healthy is not accused, what is not is named."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import align
from align.commands import inspect_files
from align.records import InspectResult
from tests.scale_samples import labels, replies
from tests.seen import record

OURS = frozenset(
    ("gradient-underflow", "denormal-flush", "loss-scale-collapse", "loss-scale-stuck", "loss-scale-unstable",
     "clip-before-unscale", "skipped-step-applied", "gradient-scaled")
)  # fmt: skip

FEATURES = 6


def batch(step: int) -> torch.Tensor:
    return torch.randn(16, FEATURES, generator=torch.Generator().manual_seed(step))


def small() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(FEATURES, 24), nn.GELU(), nn.Linear(24, 1))


def step_of(model: nn.Module, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler, x: torch.Tensor) -> None:
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.float16):
        prediction = model(x)
    scaler.scale(prediction.float().square().mean()).backward()
    scaler.step(optimizer)


def plain(steps: int = 6, *, bad: tuple[int, ...] = (), **settings: float | bool) -> None:
    model = small()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", **settings)  # type: ignore[arg-type]
    for step in range(steps):
        step_of(model, optimizer, scaler, batch(step) * (math.inf if step in bad else 1.0))
        scaler.update()


def fused_and_unfused(*, bad: int = 2) -> None:
    parts = [small(), small()]
    optimizers = [torch.optim.AdamW(parts[0].parameters(), fused=True), torch.optim.SGD(parts[1].parameters(), lr=0.1)]
    for part, optimizer in zip(parts, optimizers, strict=True):
        scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
        for step in range(4):
            step_of(part, optimizer, scaler, batch(step) * (math.inf if step == bad else 1.0))
            scaler.update()


def adversaries(*, scalers: int) -> None:
    parts = [small(), small()]
    optimizers = [torch.optim.Adam(part.parameters(), lr=1e-3) for part in parts]
    made = [torch.amp.GradScaler("cpu") for _ in range(scalers)]
    for step in range(8):
        for turn, (part, optimizer) in enumerate(zip(parts, optimizers, strict=True)):
            scaler = made[turn % scalers]
            step_of(part, optimizer, scaler, batch(step) * (math.inf if (step, turn) == (3, 1) else 1.0))
            scaler.update()


def clamped() -> None:
    """Weights are clamped after every update, and a step is skipped: they move in it all the same."""
    model = small()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    for step in range(4):
        step_of(model, optimizer, scaler, batch(step) * (math.inf if step == 2 else 1.0))
        scaler.update()
        with torch.no_grad():
            for weight in model.parameters():
                weight.clamp_(-0.2, 0.2)


def accumulated() -> None:
    model = small()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu")
    for step in range(4):
        for micro in range(3):
            with torch.autocast("cpu", torch.float16):
                prediction = model(batch(3 * step + micro))
            scaler.scale(prediction.float().square().mean() / 3).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def by_hand(*, clip_first: bool) -> None:
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for step in range(4):
        optimizer.zero_grad()
        (model(batch(step)).square().mean() * 1024).backward()
        if clip_first:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        for weight in model.parameters():
            assert weight.grad is not None
            weight.grad.div_(1024)
        if not clip_first:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()


def embedding() -> None:
    """Few rows of a table are used, half of the activations are dropped or cut off: most gradients are exactly 0."""
    torch.manual_seed(4)
    model = nn.Sequential(nn.Embedding(500, 16), nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu")
    for step in range(4):
        words = torch.randint(0, 500, (8, 4), generator=torch.Generator().manual_seed(step))
        step_of(model, optimizer, scaler, words)
        scaler.update()


class Adapted(nn.Module):
    """A linear layer with an adapter of rank 4 that begins with zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.base, self.down, self.up = nn.Linear(FEATURES, 24), nn.Linear(FEATURES, 4), nn.Linear(4, 24)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.base(x) + self.up(self.down(x))
        return result


def low_rank() -> None:
    """A branch that begins with zeros: the gradient of its first matrix is exactly 0 in the first step."""
    torch.manual_seed(5)
    adapted = Adapted()
    optimizer = torch.optim.AdamW(adapted.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu")
    for step in range(3):
        step_of(adapted, optimizer, scaler, batch(step))
        scaler.update()


def optimizer_instead_of_scaler() -> None:
    """The gradients are unscaled, and then the optimizer is called itself: nothing skips the step that overflows."""
    model = small()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    for step in range(3):
        optimizer.zero_grad()
        scaler.scale(model(batch(step) * (math.inf if step == 2 else 1.0)).square().mean()).backward()
        scaler.unscale_(optimizer)
        optimizer.step()
        scaler.update()


def scale_set_lower() -> None:
    """The same in steps that do not overflow, with a scale that the script chooses."""
    model = small()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    for step in range(3):
        optimizer.zero_grad()
        scaler.scale(model(batch(step)).square().mean()).backward()
        scaler.unscale_(optimizer)
        optimizer.step()
        scaler.update(128.0 / 2**step)


def one_scaler_a_step() -> None:
    model = small()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(6):
        scaler = torch.amp.GradScaler("cpu")
        step_of(model, optimizer, scaler, batch(step))
        scaler.update()


def inspected(path: Path, train: Callable[[], None], steps: str = "0:") -> InspectResult:
    record(path, train, steps=steps)
    return inspect_files(str(path))


HEALTHY: dict[str, Callable[[], None]] = {
    "a scaler": plain,
    "one skip": lambda: plain(bad=(3,)),
    "a disabled scaler": lambda: plain(enabled=False),
    "resumed at a low scale": lambda: plain(init_scale=128.0, growth_interval=2),
    "fused and unfused optimizers skip": fused_and_unfused,
    "a scaler for each of two optimizers": lambda: adversaries(scalers=2),
    "one scaler for two optimizers": lambda: adversaries(scalers=1),
    "clamped weights": clamped,
    "accumulation, clipped after unscaling": accumulated,
    "by hand, clipped after it": lambda: by_hand(clip_first=False),
    "embedding, ReLU and dropout": embedding,
    "a branch that begins with zeros": low_rank,
    "a scale that the script lowers": scale_set_lower,
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_training_is_not_accused(tmp_path: Path, name: str) -> None:
    result = inspected(tmp_path / "a.h5", HEALTHY[name])
    assert [finding.summary for finding in result.findings if finding.label in OURS] == []
    assert {replies(result)[question][0] for question in ("fp16 range", "loss scale", "clipping", "skipped steps")} <= {
        "good",
        "absent",
    }


FAULTY: dict[str, tuple[Callable[[], None], tuple[str, str]]] = {
    "by hand, clipped before it": (lambda: by_hand(clip_first=True), ("clip-before-unscale", "error")),
    "a new scaler in every step": (one_scaler_a_step, ("loss-scale-stuck", "warning")),
    "the optimizer is called instead of the scaler": (optimizer_instead_of_scaler, ("skipped-step-applied", "error")),
    "a scale that is far too small": (lambda: plain(init_scale=2.0**-22), ("gradient-underflow", "error")),
    "a scale that overflows in every step": (
        lambda: plain(18, bad=tuple(range(18))),
        ("loss-scale-collapse", "error"),
    ),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_is_named(tmp_path: Path, name: str) -> None:
    train, expected = FAULTY[name]
    result = inspected(tmp_path / "a.h5", train)
    assert labels(finding for finding in result.findings if finding.label in OURS) == [expected]


def test_skips_that_were_not_captured_say_how_to_see_them(tmp_path: Path) -> None:
    result = inspected(tmp_path / "a.h5", lambda: plain(bad=(3,)), steps="0")
    assert replies(result)["skipped steps"][1] == (
        "Step 3 was skipped and not captured: what overflowed cannot be told. Capture them: `align capture --steps 3 "
        "...` in a run of the same seed, or `align capture-now RUN.h5` while it is happening."
    )


def test_every_update_of_a_step_is_kept_with_its_scale(tmp_path: Path) -> None:
    def train() -> None:
        model = small()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
        step_of(model, optimizer, scaler, batch(0))
        scaler.update()
        for scale in (64.0, 5e-23):
            scaler.update(scale)

    result = inspected(tmp_path / "a.h5", train)
    (finding,) = [finding for finding in result.findings if finding.label in OURS]
    assert finding.summary == (
        "The loss scale goes from 65,536 (2^16) to 5.000e-23 in step 0, which was not skipped (scaler.update was "
        "called 3 times): that is 90 halvings, and a scaler makes one. Nothing of a gradient in fp16 is left at such a "
        "scale."
    )
    with align.open(tmp_path / "a.h5") as capture:
        seen = [fact.value for fact in capture.facts(0) if fact.key.slot == "scale_after"]
    assert seen == [65536.0, 64.0, pytest.approx(5e-23)]
