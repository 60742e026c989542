"""AL703: the runs learn at different rates."""

from __future__ import annotations

from pathlib import Path

from align.records import Phase, Severity, Status, Verdict
from tests.builders import diff_files
from tests.numpy_run import make
from tests.said import told


def test_another_learning_rate_parts_the_runs_after_the_step(tmp_path: Path) -> None:
    reference, candidate = make(tmp_path / "a.h5"), make(tmp_path / "b.h5", learning_rate=0.0011)
    result = diff_files(reference, candidate)
    first = result.first_divergence
    assert first is not None
    assert (first.step, first.phase, str(first.kind), str(first.origin)) == (0, Phase.PARAM, "equality", "optimizer")
    assert told(result) == [("learning-rate-differs", Severity.ERROR)]
    assert result.summary == (
        "The learning rate of step 0 is 0.001 in the reference and 0.0011 in the candidate. All gradients agree; the "
        "parameters part here."
    )
    assert sum(comparison.status is Status.ORIGIN for comparison in result.comparisons) == 1


def test_a_fault_before_the_update_comes_first(tmp_path: Path) -> None:
    faults = {(0, "forward head"): lambda array: array * 1.5}
    candidate = make(tmp_path / "b.h5", learning_rate=0.01, faults=faults)
    result = diff_files(make(tmp_path / "a.h5"), candidate)
    assert told(result) == [
        ("origin-module", Severity.ERROR),
        ("learning-rate-differs", Severity.WARNING),
    ]


def test_rates_that_differ_in_the_last_digit_are_one_rate(tmp_path: Path) -> None:
    reference = make(tmp_path / "a.h5", steps=1, learning_rate=0.1)
    result = diff_files(reference, make(tmp_path / "b.h5", steps=1, learning_rate=0.1 * (1 + 1e-12)))
    assert result.verdict is Verdict.ALIGNED
    assert [finding.label for finding in result.findings] == ["within-noise"]


def test_without_parameters_another_rate_parts_the_runs_by_itself(tmp_path: Path) -> None:
    drop = frozenset({Phase.PARAM})
    reference = make(tmp_path / "a.h5", steps=1, drop=drop)
    result = diff_files(reference, make(tmp_path / "b.h5", steps=1, drop=drop, learning_rate=0.1))
    assert told(result) == [
        ("learning-rate-differs", Severity.ERROR),
        ("within-noise", Severity.NOTE),
    ]
