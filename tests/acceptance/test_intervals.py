"""Logs with different intervals: means over several steps, single losses of every n-th step, NaN between rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from align.acceptance.pairing import pair_curves
from align.acceptance_records import Acceptance
from align.curve_records import Curves, Quantity
from tests.acceptance.runs import Values, judge, of, pair, run

MEANS = "Each loss of {} is a mean over {} rows of {}: it was compared with the mean of these rows."


def means(losses: Values, rows: int) -> Values:
    """The means over so many steps."""
    return np.asarray(losses[: len(losses) // rows * rows].reshape(-1, rows).mean(axis=1), dtype=np.float64)


def logs(rows: int, first: int, other: int = 1) -> tuple[Curves, Curves]:
    """A log of means over `other` steps against one of means over `rows`, which counts from 1."""
    ours, theirs = pair(1200)
    start = other if first else 0
    fine = run(means(ours, other), "gpu.csv", first=start, every=other)
    return fine, run(means(theirs, rows), "npu.csv", first=rows, every=rows)


@pytest.mark.parametrize(("rows", "first", "other"), [(10, 1, 1), (10, 0, 1), (10, 1, 5), (2, 1, 1)], ids=str)
def test_means_are_held_against_means(rows: int, first: int, other: int) -> None:
    fine, coarse = logs(rows, first, other)
    result = judge(fine, coarse)
    assert result.verdict is Acceptance.PASS
    assert MEANS.format("npu.csv", rows // other, "gpu.csv") in result.notes
    assert (of(result, "first-loss").measured or 0.0) < 0.002
    assert judge(coarse, fine).verdict is Acceptance.PASS


def test_a_log_of_means_that_ends_earlier() -> None:
    ours, theirs = pair(1200)
    pairs = pair_curves(run(ours, "gpu.csv"), run(means(theirs, 10)[:110], "npu.csv", first=10, every=10))
    assert MEANS.format("npu.csv", 10, "gpu.csv") in pairs.notes
    away = pairs.candidate.columns[Quantity.LOSS] / pairs.reference.columns[Quantity.LOSS] - 1
    assert np.abs(away).max() < 0.002


def test_single_losses_of_every_tenth_step_are_held_against_single_losses() -> None:
    ours, theirs = pair(1200)
    result = judge(run(ours), run(theirs[::10], "npu.csv", every=10))
    assert result.verdict is Acceptance.PASS
    assert result.notes == (
        "Of 1,200 steps in the log of the reference, 120 were compared: steps 0-1190 (120 of them).",
    )


@pytest.mark.parametrize("factor", [1.01, np.linspace(1.0, 1.03, 1200)], ids=["from the start", "late"])
def test_means_do_not_hide_a_fault(factor: float | Values) -> None:
    ours, theirs = pair(1200)
    result = judge(run(ours, first=1), run(means(theirs * factor, 10), "npu.csv", first=10, every=10))
    assert result.verdict is Acceptance.FAIL


def test_means_over_other_batches_are_other_data() -> None:
    result = judge(run(pair(1200)[0], first=1), run(means(pair(1200, seed=5)[0], 10), "npu.csv", first=10, every=10))
    assert result.verdict is Acceptance.FAIL


def test_nan_of_the_candidate_within_a_mean_is_one() -> None:
    ours, theirs = pair(1200)
    theirs[505] = np.nan
    result = judge(run(means(ours, 10), first=10, every=10), run(theirs, "npu.csv", first=1))
    assert of(result, "non-finite").measured == 1
    skipped = run(theirs, "npu.csv", first=1)
    skipped = replace(skipped, skipped=skipped.nonfinite)
    assert judge(run(means(ours, 10), first=10, every=10), skipped).verdict is Acceptance.PASS


def test_nan_where_the_reference_has_no_row_is_told() -> None:
    ours, theirs = pair(1200)
    theirs[505] = np.nan
    result = judge(run(ours[::10], every=10), run(theirs, "npu.csv"))
    (said,) = result.deviations
    assert said == (
        "The candidate's loss is NaN or Inf at 1 step that could not be compared, first at step 505: the reference's "
        "log does not have them."
    )
    assert judge(run(ours[:400]), run(theirs[:400], "npu.csv")).deviations == ()
    assert judge(run(ours), run(theirs, "npu.csv"), steps=(0, 500)).deviations == ()
