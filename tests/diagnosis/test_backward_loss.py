"""AL504: a loss of equal outputs and targets that is averaged otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from align.records import DiffResult, Fact, FactValue, Phase, Severity, TensorKey
from tests.builders import diff_files
from tests.numpy_run import Fault, make, times
from tests.said import told

NORMALIZATION = [("loss-normalization", Severity.ERROR)]
FUNCTIONAL = [("origin-functional", Severity.ERROR)]
TARGETS = 64


def averaged(loss: float, gradient: float) -> dict[tuple[int, str], Fault]:
    return {(0, "loss"): times(loss), (0, "backward loss"): times(gradient)}


def facts(**values: FactValue) -> dict[int, Sequence[Fact]]:
    return {0: [Fact(TensorKey(0, Phase.LOSS, "loss", slot), value) for slot, value in values.items()]}


def diff(
    folder: Path,
    faults: dict[tuple[int, str], Fault],
    ours: dict[int, Sequence[Fact]] | None = None,
    theirs: dict[int, Sequence[Fact]] | None = None,
) -> DiffResult:
    reference = make(folder / "a.h5", steps=1, facts=ours or {})
    return diff_files(reference, make(folder / "b.h5", steps=1, pieces=3, faults=faults, facts=theirs or {}))


@pytest.mark.parametrize(
    ("factor", "meaning"),
    [
        (TARGETS, "64 times the reference's (targets), and"),
        (1 / TARGETS, "0.01562 times the reference's (1/targets), and"),
        (4.0, "4 times the reference's (samples of the batch), and"),
        (1.37, "1.37 times the reference's, and"),
    ],
)
def test_a_loss_and_its_gradients_have_one_factor(tmp_path: Path, factor: float, meaning: str) -> None:
    result = diff(tmp_path, averaged(factor, factor))
    assert told(result) == NORMALIZATION
    assert meaning in result.summary
    assert result.summary.endswith(
        "and so are the gradients of the outputs, which agree: the same loss, averaged otherwise."
    )


@pytest.mark.parametrize(("loss", "gradient"), [(4.0, 1.0), (4.0, 2.0), (4.0, 3.9), (1.0005, 1.0005)])
def test_where_the_gradients_do_not_follow_nothing_is_said_of_the_mean(
    tmp_path: Path, loss: float, gradient: float
) -> None:
    assert told(diff(tmp_path, averaged(loss, gradient))) == FUNCTIONAL


def test_a_loss_of_another_form_is_not_averaged_otherwise(tmp_path: Path) -> None:
    ramp = np.linspace(1.0, 7.0, 50, dtype=np.float32)
    faults: dict[tuple[int, str], Fault] = {(0, "loss"): times(4.0), (0, "backward loss"): lambda array: array * ramp}
    assert told(diff(tmp_path, faults)) == FUNCTIONAL


def test_without_the_phase_backward_the_gradients_of_parameters_tell(tmp_path: Path) -> None:
    drop = frozenset({Phase.BACKWARD})
    reference = make(tmp_path / "a.h5", steps=1, drop=drop)
    candidate = make(tmp_path / "b.h5", steps=1, pieces=3, drop=drop, faults=averaged(4.0, 4.0))
    assert told(diff_files(reference, candidate)) == NORMALIZATION


def test_the_numbers_of_both_scripts_are_told(tmp_path: Path) -> None:
    result = diff(tmp_path, averaged(8.0, 8.0), facts(factor=0.125), facts(factor=1.0))
    assert told(result) == NORMALIZATION
    assert result.summary.endswith(
        "The reference multiplies it by 0.125 at the end, the candidate does not multiply it."
    )


def test_numbers_that_do_not_make_the_factor_are_not_told(tmp_path: Path) -> None:
    result = diff(tmp_path, averaged(8.0, 8.0), facts(factor=0.5), facts(factor=1.0))
    assert told(result) == NORMALIZATION
    assert "at the end" not in result.summary


def test_padding_that_counts_in_one_run_is_told(tmp_path: Path) -> None:
    ours, theirs = facts(ignore_index=0, valid_targets=40), facts(ignore_index=-100, valid_targets=64)
    result = diff(tmp_path, averaged(0.7, 0.9), ours, theirs)
    assert told(result) == NORMALIZATION
    assert result.summary.endswith(
        "Outputs and targets agree, but 40 targets count in the reference and 64 in the candidate, whose losses leave "
        "out the targets that are 0 and -100."
    )


def test_another_index_that_leaves_out_nothing_is_no_cause(tmp_path: Path) -> None:
    ours, theirs = facts(ignore_index=0, valid_targets=64), facts(ignore_index=-100, valid_targets=64)
    assert told(diff(tmp_path, averaged(0.7, 0.9), ours, theirs)) == FUNCTIONAL


def test_a_loss_that_agrees_is_no_finding(tmp_path: Path) -> None:
    ours, theirs = facts(ignore_index=0, valid_targets=40), facts(ignore_index=-100, valid_targets=64)
    result = diff(tmp_path, {}, ours, theirs)
    assert [finding.label for finding in result.findings] == ["within-noise"]
