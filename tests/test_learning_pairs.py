"""AL803, AL804, AL805 between two runs: curves that part long after the captured steps."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from align.capture_file import open_capture
from align.curves import compare_curves
from align.records import INIT_STEP, DiffResult, Kind, Origin, Severity, TimelineRow, Verdict
from tests.builders import diff_files, write_capture
from tests.learning_runs import curve, falling
from tests.numpy_run import make
from tests.running import align

Curve = NDArray[np.float64]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two healthy runs of one step each, on two devices."""
    folder = tmp_path_factory.mktemp("pair")
    return make(folder / "a.h5", steps=1), make(folder / "b.h5", steps=1, pieces=2)


def with_timeline(path: Path, rows: Sequence[TimelineRow], to: Path) -> Path:
    """A capture with another timeline."""
    with open_capture(path) as capture:
        steps = {step: list(capture.records(step)) for step in (INIT_STEP, *capture.steps)}
        return write_capture(to, steps, modules=list(capture.modules.values()), run=capture.run, timeline=rows)


def compared(
    pair: tuple[Path, Path], tmp_path: Path, ours: Sequence[TimelineRow], theirs: Sequence[TimelineRow]
) -> DiffResult:
    paths = [
        with_timeline(path, rows, tmp_path / f"{number}.h5")
        for number, (path, rows) in enumerate(zip(pair, (ours, theirs), strict=True))
    ]
    return diff_files(*paths)


def curves_told(result: DiffResult) -> list[tuple[str, Severity, str]]:
    return [(one.label, one.severity, one.summary) for one in result.findings if one.code.startswith("AL8")]


def noise(steps: int, size: float, seed: int = 5) -> Curve:
    return 1.0 + size * np.random.default_rng(seed).standard_normal(steps)


REFERENCE = falling(400)


def test_losses_that_part_for_good_are_told_with_the_steps_to_capture(pair: tuple[Path, Path], tmp_path: Path) -> None:
    theirs = REFERENCE * noise(400, 0.002) * np.where(np.arange(400) >= 250, 1.2, 1.0)
    result = compared(pair, tmp_path, curve(REFERENCE), curve(theirs))
    assert curves_told(result) == [
        (
            "loss-diverges",
            Severity.WARNING,
            (
                "What was captured agrees (step 0), but from step 236 on the loss of the candidate stays above that of "
                "the reference, at the end by 20.0 %."
            ),
        )
    ]
    advice = next(one.advice for one in result.findings if one.code == "AL804")
    assert advice.startswith(
        "Capture both runs there with `align capture --steps 216:237 --every 5` and compare again."
    )


def test_a_constant_share_is_a_bias(pair: tuple[Path, Path], tmp_path: Path) -> None:
    result = compared(pair, tmp_path, curve(REFERENCE), curve(REFERENCE * noise(400, 0.002) * 1.01))
    assert curves_told(result) == [
        (
            "loss-bias",
            Severity.WARNING,
            (
                "What was captured agrees (step 0), but over the last quarter of 400 steps the loss of the candidate "
                "is 1.0 % higher than that of the reference on average."
            ),
        )
    ]


@pytest.mark.parametrize(
    "theirs",
    [
        pytest.param(REFERENCE, id="equal"),
        pytest.param(REFERENCE * noise(400, 0.05), id="other masks"),
        pytest.param(REFERENCE * noise(400, 0.002) * 1.002, id="a bias that no one minds"),
        pytest.param(REFERENCE * np.where(np.abs(np.arange(400) - 200) < 30, 1.3, 1.0), id="apart for a while"),
        pytest.param(np.concatenate([REFERENCE[:50] * 1.5]), id="too few steps"),
    ],
)
def test_other_differences_are_no_finding(pair: tuple[Path, Path], tmp_path: Path, theirs: Curve) -> None:
    assert curves_told(compared(pair, tmp_path, curve(REFERENCE), curve(theirs))) == []


def test_near_zero_losses_may_differ(pair: tuple[Path, Path], tmp_path: Path) -> None:
    ours = falling(400, end=0.01)
    assert curves_told(compared(pair, tmp_path, curve(ours), curve(ours * noise(400, 0.3) * 1.05))) == []


def test_where_a_tensor_differs_the_curves_say_nothing(tmp_path: Path) -> None:
    other = {(0, "forward blocks.1.mlp.fc"): lambda value: value * 1.5}
    both = make(tmp_path / "a.h5", steps=1), make(tmp_path / "b.h5", steps=1, faults=other)
    result = compared(both, tmp_path, curve(REFERENCE), curve(REFERENCE * 1.3))
    assert result.first_divergence is not None
    assert curves_told(result) == []


def test_steps_of_one_run_that_grow_slow_are_noted(pair: tuple[Path, Path], tmp_path: Path) -> None:
    slow = [0.1 if step < 250 else 0.5 for step in range(400)]
    result = compared(pair, tmp_path, curve(REFERENCE), curve(REFERENCE, seconds=slow))
    assert curves_told(result) == [
        (
            "step-time-cliff",
            Severity.NOTE,
            (
                "From step 250 on a step of the candidate takes 0.5 seconds, 0.1 before: 5 times as long. Those of the "
                "other run do not change."
            ),
        )
    ]
    again = tmp_path / "again"
    again.mkdir()
    both = compared(pair, again, curve(REFERENCE, seconds=slow), curve(REFERENCE, seconds=slow))
    assert curves_told(both) == []


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.9, 1.1), st.integers(-3, 3))
def test_a_comparison_says_the_same_in_another_unit(seed: int, factor: float, power: int) -> None:
    ours = falling(120, seed=seed)
    theirs = ours * factor
    one = compare_curves(curve(ours), curve(theirs))
    other = compare_curves(curve(ours * 2.0**power), curve(theirs * 2.0**power))
    assert one == other
    assert one is not None
    assert one.largest <= abs(factor - 1.0) + 1e-12


@pytest.mark.parametrize("lost", ["candidate", "reference"])
def test_runs_part_where_one_loss_is_lost_later(pair: tuple[Path, Path], tmp_path: Path, lost: str) -> None:
    finite = curve(falling(24))
    losing = [replace(row, loss=math.nan, nonfinite=True) if row.step >= 6 else row for row in finite]
    ours, theirs = (finite, losing) if lost == "candidate" else (losing, finite)

    result = compared(pair, tmp_path, ours, theirs)

    path, other = result.candidate_path, "reference"
    if lost == "reference":
        path, other = result.reference_path, "candidate"
    summary = (
        f"What was captured agrees (step 0), but the loss of the {lost} is not finite in step 6, where that of the "
        f"{other} is {finite[6].loss:.4f}."
    )
    first = result.first_divergence
    assert first is not None
    assert (str(first.key), first.kind) == ("step 6, loss: loss value", Kind.NONFINITE)
    assert (result.verdict, result.summary) == (Verdict.DIVERGED, summary)
    assert curves_told(result) == [("loss-diverges", Severity.ERROR, summary)]
    assert result.findings[0].advice == (
        f"`align inspect {path}` tells what it knows of the NaN or Inf. Capture both runs with "
        "`align capture --steps 5:7` and compare again."
    )


@pytest.mark.parametrize("change", [{"skipped": True, "nonfinite": True, "loss": math.inf}, {"loss": math.nan}])
def test_a_skipped_step_and_a_loss_not_recorded_are_not_lost(
    pair: tuple[Path, Path], tmp_path: Path, change: dict[str, Any]
) -> None:
    ours = curve(falling(24))
    theirs = [replace(row, **change) if row.step == 6 else row for row in ours]

    result = compared(pair, tmp_path, ours, theirs)

    assert curves_told(result) == []
    assert result.summary.startswith("Aligned: ")


def with_rate(rows: Sequence[TimelineRow], rate: float, begin: int = 0) -> list[TimelineRow]:
    return [replace(row, learning_rate=rate) if row.step >= begin else row for row in rows]


def test_runs_part_where_a_rate_changes_later(pair: tuple[Path, Path], tmp_path: Path) -> None:
    ours = with_rate(curve(falling(24)), 1e-3)

    result = compared(pair, tmp_path, ours, with_rate(ours, 1e-2, begin=8))

    first = result.first_divergence
    assert first is not None
    assert (str(first.key), first.kind, first.origin) == (
        "step 8, optimizer: optimizer lr",
        Kind.EQUALITY,
        Origin.OPTIMIZER,
    )
    assert (result.verdict, result.findings[0].label) == (Verdict.DIVERGED, "learning-rate-differs")
    assert result.summary == (
        "What was captured agrees (step 0), but the learning rate of step 8 is 0.001 in the reference and 0.01 in the "
        "candidate."
    )


@pytest.mark.parametrize(
    ("rate", "expected"), [(4, "learning-rate-differs"), (6, "loss-diverges"), (8, "loss-diverges")]
)
def test_of_a_lost_loss_and_another_rate_the_first_is_the_error(
    pair: tuple[Path, Path], tmp_path: Path, rate: int, expected: str
) -> None:
    ours = with_rate(curve(falling(24)), 1e-3)
    losing = [replace(row, loss=math.nan, nonfinite=True) if row.step >= 6 else row for row in ours]

    result = compared(pair, tmp_path, ours, with_rate(losing, 1e-2, begin=rate))

    told = {one.label: one.severity for one in result.findings if one.label != "within-noise"}
    assert told.pop(expected) is Severity.ERROR
    assert list(told.values()) == [Severity.WARNING]
    assert result.findings[0].label == expected


def test_a_first_group_of_another_rate_where_no_parameter_has_one(tmp_path: Path) -> None:
    program = """
    import sys, torch
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    groups = [{"params": [model.weight], "lr": 0.1}, {"params": [model.bias], "lr": 0.2}]
    optimizer = torch.optim.SGD(groups if sys.argv[1] == "a" else groups[::-1])
    for _ in range(4):
        model(torch.ones(2, 4)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    """
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(program))
    for name in "ab":
        done = align("capture", "--steps", "0:2", "-o", tmp_path / f"{name}.h5", script, name)
        assert done.code == 0, done.stderr
    result = diff_files(tmp_path / "a.h5", tmp_path / "b.h5")
    assert result.verdict is Verdict.ALIGNED
    assert [one.label for one in result.findings] == ["within-noise"]
