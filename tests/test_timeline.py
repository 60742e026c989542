"""The timeline has a true row for every step, captured or not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn
from torch.nn import functional

import align
from tests.seen import record

FEATURES = 5
STEPS = 6
OVERFLOWS = (3, 4)


class Row(NamedTuple):
    """What the script itself knows of a step."""

    loss: float
    rate: float
    scale: float
    scale_after: float
    norm: float
    limit: float
    skipped: bool


def train() -> list[Row]:
    """Two micro-steps each, a scaler that skips steps 3 and 4, clipping with a limit that falls, a schedule."""
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(FEATURES, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=2)
    rows = []
    for step in range(STEPS):
        optimizer.zero_grad()
        losses = []
        for micro in range(2):
            x = torch.randn(3, FEATURES, generator=torch.Generator().manual_seed(10 * step + micro))
            loss = functional.mse_loss(model(x), x[:, :1])
            loss = loss * math.inf if step in OVERFLOWS and micro else loss
            losses.append(loss.item())
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scale, limit, rate = scaler.get_scale(), 0.5 / (step + 1), optimizer.param_groups[0]["lr"]
        norm = nn.utils.clip_grad_norm_(model.parameters(), limit).item()
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        skipped = step in OVERFLOWS
        rows.append(Row(sum(losses) / 2, rate, scale, scaler.get_scale(), norm, limit, skipped))
    return rows


@pytest.mark.parametrize("steps", ["0", "0:", "4", "100"])
@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
def test_every_step_has_its_numbers_wherever_the_window_lies(tmp_path: Path, steps: str) -> None:
    rows = record(tmp_path / "a.h5", train, steps=steps)
    assert [row.scale for row in rows] == [64.0, 64.0, 128.0, 128.0, 64.0, 32.0]
    with align.open(tmp_path / "a.h5") as capture:
        found = capture.timeline
    assert [row.step for row in found] == list(range(STEPS))
    for row, known in zip(found, rows, strict=True):
        assert same(row.loss, known.loss), row
        assert row.learning_rate == known.rate
        assert (row.loss_scale, row.loss_scale_after) == (known.scale, known.scale_after)
        assert same(row.clip_norm, known.norm), row
        assert row.clip_limit == known.limit
        assert row.skipped == known.skipped
        assert row.nonfinite == known.skipped
        assert row.micros == 2
        assert row.optimizer == "AdamW"
        if not known.skipped:
            assert row.gradient_norm == pytest.approx(min(known.norm, known.limit), rel=1e-4)
    assert all(row.seconds > 0 for row in found[1:])


def same(found: float, expected: float) -> bool:
    return found == pytest.approx(expected, rel=1e-6, nan_ok=True)


def gan() -> list[tuple[float, float]]:
    """Two optimizers that take turns, each with a loss, a rate and a limit of its own."""
    torch.manual_seed(3)
    makes, judges = nn.Linear(FEATURES, FEATURES), nn.Linear(FEATURES, 1)
    first = torch.optim.SGD(makes.parameters(), lr=0.25)
    second = torch.optim.AdamW(judges.parameters(), lr=0.125)
    seen = []
    for turn in range(3):
        noise = torch.randn(4, FEATURES, generator=torch.Generator().manual_seed(turn))
        for optimizer, module in ((second, judges), (first, makes)):
            makes.zero_grad()
            judges.zero_grad()
            loss = judges(makes(noise)).square().mean()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(module.parameters(), 0.5)
            optimizer.step()
            seen.append((loss.item(), norm.item()))
    return seen


@pytest.mark.parametrize("steps", ["0", "0:"])
def test_optimizers_that_take_turns_have_rows_of_their_own(tmp_path: Path, steps: str) -> None:
    seen = record(tmp_path / "a.h5", gan, steps=steps)
    with align.open(tmp_path / "a.h5") as capture:
        found = capture.timeline
    assert [row.optimizer for row in found] == ["AdamW", "SGD"] * 3
    assert [row.learning_rate for row in found] == [0.125, 0.25] * 3
    assert [(row.loss, row.clip_norm) for row in found] == [pytest.approx(one, rel=1e-6) for one in seen]


@pytest.mark.parametrize("steps", ["0", "0:"])
def test_two_optimizers_of_one_loss_share_a_row(tmp_path: Path, steps: str) -> None:
    def both() -> list[Any]:
        torch.manual_seed(4)
        model = nn.Sequential(nn.Linear(FEATURES, 4), nn.Linear(4, 1))
        optimizers = [torch.optim.SGD(model[0].parameters(), lr=0.25), torch.optim.Adam(model[1].parameters())]
        losses = []
        for step in range(3):
            model.zero_grad()
            x = torch.randn(4, FEATURES, generator=torch.Generator().manual_seed(step))
            loss = model(x).square().mean()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            losses.append(loss.item())
        return losses

    losses = record(tmp_path / "a.h5", both, steps=steps)
    with align.open(tmp_path / "a.h5") as capture:
        assert [row.optimizer for row in capture.timeline] == ["SGD, Adam"] * 3
        assert [row.loss for row in capture.timeline] == pytest.approx(losses, rel=1e-6)
