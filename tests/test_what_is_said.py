"""Sentences that have to fit what was done: loss scales, the smallest visible effect, advice not followed yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from align.commands import diff_files
from align.diagnosis import telling
from align.records import INIT_STEP, Phase, RunInfo, TensorKey
from tests.builders import record_of, walk_files, write_capture
from tests.seen import record


def scaled(initial: float, interval: int) -> Callable[[], None]:
    """Two attempts of fp16 training under a loss scale; one that is too high is halved."""

    def train() -> None:
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=initial, growth_interval=interval)
        for _ in range(2):
            with torch.autocast("cpu", torch.float16):
                loss = 10 * model(torch.ones(4, 8)).float().square().mean()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    return train


def test_an_overflow_under_another_loss_scale_names_both(tmp_path: Path) -> None:
    for name, run in (("ref.h5", scaled(2.0**24, 2)), ("cand.h5", scaled(1024.0, 1000))):
        record(tmp_path / name, run, steps="0:2")
    cause = diff_files(str(tmp_path / "ref.h5"), str(tmp_path / "cand.h5")).findings[0]
    assert cause.label == "overflow"
    assert cause.summary.endswith(
        " The loss scale is 16,777,216 (2^24) in the reference and 1,024 (2^10) in the candidate."
    )
    assert cause.advice == (
        "Start both runs from one loss scale, and let both change it or neither: one that is found by trying overflows "
        "in its first steps and skips them, one that stays does not."
    )


class WithSideTensor(nn.Module):
    """One module passes on a large tensor and two numbers in fp8."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(64, 64)
        self.same = nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.same(torch.ones(2, dtype=torch.float8_e4m3fn))
        found: torch.Tensor = self.same(self.fc(x))
        return found


def train_with_side_tensor() -> None:
    torch.manual_seed(1)
    model = WithSideTensor()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(16, 64)).square().mean().backward()
    optimizer.step()


def test_two_numbers_in_a_coarse_format_do_not_speak_for_the_model(tmp_path: Path) -> None:
    for name in ("ref.h5", "cand.h5"):
        record(tmp_path / name, train_with_side_tensor, steps="0")
    found = diff_files(str(tmp_path / "ref.h5"), str(tmp_path / "cand.h5"))
    assert found.summary == "Aligned: 21 tensors over step 0 are equal."
    assert found.resolution.precision == "fp32"
    assert found.resolution.smallest_visible_effect is not None
    assert found.resolution.smallest_visible_effect < 1e-5
    units = {(each.reference.dtype, each.unit) for each in found.comparisons if each.key.name == "same"}
    assert units == {("float8_e4m3fn", 2.0**-4), ("float32", 2.0**-24)}


TAKE = (
    "the reference with `align capture --keep init,batches`, the candidate with "
    "`align capture --init-from REF.h5 --batches-from REF.h5`"
)

BOTH = "both with `--no-dropout`"


@pytest.mark.parametrize(
    ("reference", "candidate", "ways"),
    [
        ({}, {}, f"{TAKE}, and {BOTH}"),
        ({"no_dropout": True}, {}, f"{TAKE}, and {BOTH}"),
        ({"no_dropout": True}, {"no_dropout": True}, TAKE.replace(", the cand", " and the cand")),
        ({}, {"init_from": "a.h5"}, f"{TAKE.replace('init,', '').replace('--init-from REF.h5 ', '')}, and {BOTH}"),
        ({}, {"init_from": "a.h5", "batches_from": "a.h5"}, "both with `align capture --no-dropout`"),
        ({"no_dropout": True}, {"no_dropout": True, "init_from": "a.h5", "batches_from": "a.h5"}, ""),
    ],
)  # fmt: skip
def test_advice_leaves_out_what_was_done(
    tmp_path: Path, reference: dict[str, Any], candidate: dict[str, Any], ways: str
) -> None:
    weight = record_of(TensorKey(INIT_STEP, Phase.INIT, "fc", "weight"), np.ones((2, 2), np.float32))
    output = record_of(TensorKey(0, Phase.FORWARD, "fc", "output.0"), np.ones((2, 2), np.float32))
    path = write_capture(tmp_path / "a.h5", {INIT_STEP: [weight], 0: [output]})
    walk = replace(
        walk_files(path, path), reference=RunInfo(same_start=reference), candidate=RunInfo(same_start=candidate)
    )
    wanted = f"To compare the scripts as they are, capture {ways}." if ways else ""
    assert telling.same_start_advice(walk) == wanted
