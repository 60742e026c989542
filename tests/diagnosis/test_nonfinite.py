"""AL601 and AL602: where NaN and Inf are born."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from align.records import DiffResult, Phase, Severity, TensorKey, TimelineRow
from tests.builders import Array, diff_files, record_of, write_capture
from tests.numpy_run import make

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")


def test_a_nan_in_the_forward_pass_names_its_module(tmp_path: Path) -> None:
    faults = {(0, "forward blocks.1.mlp.act"): lambda a: np.where(a == a.max(), np.nan, a)}
    result = diff_files(make(tmp_path / "a.h5", steps=1), make(tmp_path / "b.h5", steps=1, faults=faults))
    finding = result.findings[0]
    later = finding.evidence["carried_on"]
    assert (finding.code, finding.severity, finding.where.name) == ("AL601", Severity.ERROR, "blocks.1.mlp.act")
    assert finding.summary == (
        "Step 0, forward: blocks.1.mlp.act output.0 is the first tensor with NaN, in the candidate; what it is made "
        f"from is finite. {later} later tensors only carry it on."
    )


def test_a_nan_loss_says_that_every_output_is_finite(tmp_path: Path) -> None:
    faults = {(1, "loss"): lambda loss: loss * math.nan}
    result = diff_files(make(tmp_path / "a.h5"), make(tmp_path / "b.h5", faults=faults))
    assert result.findings[0].label == "nan-origin"
    assert result.summary == "Every module output of step 1 is finite; the loss is NaN in the candidate."


def test_a_nan_of_the_reference_is_said_to_be_there(tmp_path: Path) -> None:
    faults = {(0, "forward head"): lambda a: a * math.nan}
    result = diff_files(make(tmp_path / "a.h5", steps=1, faults=faults), make(tmp_path / "b.h5", steps=1))
    assert "is the first tensor with NaN, in the reference; what it is made from is finite." in result.summary


def _half(tmp_path: Path, theirs: Array, *, phase: Phase = Phase.FORWARD, scale: float = math.nan) -> DiffResult:
    slot = "output.0" if phase is Phase.FORWARD else "grad_output.0"
    paths = []
    for name, array in (("a", np.full(600, 65000.0, np.float16)), ("b", theirs)):
        records = [
            record_of(TensorKey(0, Phase.FORWARD, "up", "input.0"), np.ones(600, np.float16)),
            record_of(TensorKey(0, phase, "up", slot), array),
        ]
        row = TimelineRow(0, 1.0, 1e-3, scale, math.nan, 0.1, False, False, 1, "Adam")
        paths.append(write_capture(tmp_path / f"{name}.h5", {0: records}, timeline=[row]))
    return diff_files(*paths)


def test_inf_in_half_precision_is_an_overflow(tmp_path: Path) -> None:
    result = _half(tmp_path, np.where(np.arange(600) < 2, np.inf, 1.0).astype(np.float16))
    assert [finding.code for finding in result.findings] == ["AL602"]
    assert result.summary == (
        "Step 0, forward: up output.0 is the first tensor with Inf, in the candidate: 2 elements beyond 65,504, the "
        "greatest fp16 number; the other run reaches 64,992."
    )


def test_nan_in_half_precision_is_no_overflow(tmp_path: Path) -> None:
    result = _half(tmp_path, np.full(600, np.nan, np.float16))
    assert [finding.code for finding in result.findings] == ["AL601"]


def test_inf_far_below_the_limit_of_float32_is_no_overflow(tmp_path: Path) -> None:
    faults = {(0, "forward head"): lambda a: np.where(a == a.max(), np.inf, a)}
    result = diff_files(make(tmp_path / "a.h5", steps=1), make(tmp_path / "b.h5", steps=1, faults=faults))
    assert [finding.code for finding in result.findings] == ["AL601"]


def test_overflow_that_the_loss_scaler_explains_is_a_note(tmp_path: Path) -> None:
    result = _half(tmp_path, np.full(600, np.inf, np.float16), phase=Phase.BACKWARD, scale=65536.0)
    assert [(finding.code, finding.severity) for finding in result.findings] == [
        ("AL602", Severity.NOTE),
        ("AL406", Severity.NOTE),
    ]
    assert result.findings[0].summary == (
        "In step 0 scaled gradients overflow on one side only, first in up grad_output.0: the loss scaler is finding "
        "its scale, or the other run is within 5 % of the greatest number."
    )


@pytest.mark.parametrize(
    ("point", "name", "owner", "made"),
    [
        (
            "between blocks.0.attn",
            "blocks.0.attn.o input.0",
            "blocks.0.attn",
            "the code of blocks.0.attn between blocks.0.attn.v and blocks.0.attn.o",
        ),
        ("forward blocks.0", "blocks.0 output.0", "blocks.0", "the code of blocks.0 after blocks.0.mlp"),
        ("backward loss", "<Net> grad_output.0", "", "the backward of the training script (loss)"),
    ],
)
def test_a_nan_between_modules_is_laid_on_the_code_that_makes_it(
    tmp_path: Path, point: str, name: str, owner: str, made: str
) -> None:
    faults = {(0, point): lambda a: np.where(a == a.max(), np.nan, a)}
    result = diff_files(make(tmp_path / "a.h5", steps=1), make(tmp_path / "b.h5", steps=1, faults=faults))
    finding = result.findings[0]
    phase = "backward" if "grad" in name else "forward"
    assert (finding.code, finding.where.name) == ("AL601", owner)
    assert result.summary == (
        f"Step 0, {phase}: {name} is the first tensor with NaN, in the candidate; what it is made from is finite: "
        f"{made} "
        f"made it. {finding.evidence['carried_on']} later tensors only carry it on."
    )
    assert made.removeprefix("the backward of ") in finding.advice


def test_an_overflow_between_modules_is_laid_on_the_code_that_makes_it(tmp_path: Path) -> None:
    paths = []
    for name, mixed in (("a", np.full(600, 6e4, np.float16)), ("b", np.full(600, np.inf, np.float16))):
        records = [
            record_of(TensorKey(0, Phase.FORWARD, "attn", "input.0"), np.ones(600, np.float16)),
            record_of(TensorKey(0, Phase.FORWARD, "attn.v", "input.0"), np.ones(600, np.float16), within="attn"),
            record_of(TensorKey(0, Phase.FORWARD, "attn.v", "output.0"), np.ones(600, np.float16), within="attn"),
            record_of(TensorKey(0, Phase.FORWARD, "attn.o", "input.0"), mixed, within="attn"),
        ]
        paths.append(write_capture(tmp_path / f"{name}.h5", {0: records}))
    finding = diff_files(*paths).findings[0]
    assert (finding.code, finding.where.name) == ("AL602", "attn")
    assert finding.summary == (
        "Step 0, forward: attn.o input.0 is the first tensor with Inf, in the candidate: 600 elements beyond 65,504, "
        "the greatest fp16 number; the other run reaches 60,000. The code of attn between attn.v and attn.o made it."
    )
    assert finding.advice == (
        "Compare the scale of what enters the code of attn between attn.v and attn.o in both runs; run it in bf16 or "
        "fp32, whose range is wider."
    )
