"""AL106 and AL702: other optimizers, and updates that do not fit the gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from align.records import DiffResult, Phase, RunInfo, Severity, Verdict
from align.updates import UpdateCheck
from tests.builders import Array, diff_files, walk_files
from tests.numpy_run import Model, Setup, make
from tests.said import told


class Other(Model):
    """A run whose optimizer is called or computes something else."""

    def __init__(self, name: str = "Adam", factor: float = 1.0, decay: float = 0.0, **options: Any) -> None:
        super().__init__(Setup(**options))
        self.optimizer, self.factor, self.decay = name, factor, decay

    def _adam(self, name: str, gradient: Array) -> None:
        before = self.parameters[name]
        super()._adam(name, gradient)
        change = (self.parameters[name] - before) * self.factor - self.setup.learning_rate * self.decay * before
        self.parameters[name] = (before + change).astype(before.dtype)


def _diff(tmp_path: Path, candidate: Other) -> DiffResult:
    return diff_files(make(tmp_path / "a.h5"), candidate.write(tmp_path / "b.h5"))


def test_another_optimizer_parts_the_runs_after_the_step(tmp_path: Path) -> None:
    result = _diff(tmp_path, Other("SGD", factor=0.3, pieces=4))
    first = result.first_divergence
    assert first is not None
    assert (first.step, first.phase, str(first.kind), str(first.origin)) == (0, Phase.PARAM, "equality", "optimizer")
    assert told(result) == [("hyperparameters-differ", Severity.ERROR)]
    assert result.summary == (
        "The optimizer of step 0 is Adam in the reference and SGD in the candidate. All gradients agree; the "
        "parameters "
        "part here."
    )


def test_a_fused_class_may_be_the_same_optimizer(tmp_path: Path) -> None:
    result = _diff(tmp_path, Other("NpuFusedAdam", pieces=4))
    assert result.verdict is Verdict.ALIGNED
    assert told(result) == [
        ("hyperparameters-differ", Severity.NOTE),
        ("within-noise", Severity.NOTE),
    ]
    assert result.findings[0].summary == (
        "The optimizer of step 0 is Adam in the reference and NpuFusedAdam in the candidate. Both may compute one "
        "formula; the updates were compared where they were captured."
    )


def test_an_update_of_another_size_is_told(tmp_path: Path) -> None:
    result = _diff(tmp_path, Other(factor=1.5, pieces=4))
    first = result.first_divergence
    assert first is not None
    assert (first.step, first.phase, str(first.kind), str(first.origin)) == (0, Phase.PARAM, "equality", "optimizer")
    assert told(result) == [("optimizer-formula-differs", Severity.ERROR)]
    evidence = result.findings[0].evidence
    assert evidence["ratio"] == pytest.approx(1.5, rel=0.01)
    assert result.summary == (
        "Step 0: the gradients agree, the learning rates are equal, but the parameters move differently: over the "
        "whole "
        "model the update of the candidate is 1.5 times as large as that of the reference (relative L2 "
        f"{evidence['relative_l2']:.2f}). No module is to blame."
    )


def test_an_update_in_the_other_direction_is_told(tmp_path: Path) -> None:
    result = _diff(tmp_path, Other(factor=-1.0))
    assert [finding.label for finding in result.findings] == ["optimizer-formula-differs"]
    assert result.findings[0].evidence["ratio"] == pytest.approx(1.0, rel=0.01)
    assert result.findings[0].evidence["relative_l2"] == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize(
    ("decay", "told"),
    [(0.5, "more, as a weight decay does that is larger"), (-0.5, "less, as a weight decay does that is smaller")],
)
def test_another_weight_decay_is_told(tmp_path: Path, decay: float, told: str) -> None:
    result = _diff(tmp_path, Other(decay=decay, pieces=4))
    assert [finding.label for finding in result.findings] == ["optimizer-formula-differs"]
    evidence = result.findings[0].evidence
    assert evidence["decay"] == pytest.approx(decay, rel=0.1)
    assert evidence["decay_deviations"] > 8
    assert result.summary == (
        "Step 0: the gradients agree, the learning rates are equal, but the parameters move differently: the candidate "
        f"draws them to 0 {told} by about {abs(evidence['decay']):.2f}. No module is to blame."
    )


def test_a_frozen_candidate_is_told(tmp_path: Path) -> None:
    assert [finding.label for finding in _diff(tmp_path, Other(factor=0.0)).findings] == ["optimizer-formula-differs"]


@pytest.mark.parametrize("bfloat16", [False, True])
def test_the_update_of_a_healthy_pair_is_the_same(tmp_path: Path, bfloat16: bool) -> None:
    reference = make(tmp_path / "a.h5", steps=3, bfloat16=bfloat16)
    walk = walk_files(reference, make(tmp_path / "b.h5", steps=3, bfloat16=bfloat16, pieces=4))
    assert [check.step for check in walk.update_checks] == [0, 1, 2]
    assert all(check.elements > 1000 for check in walk.update_checks)
    assert not any(check.differs for check in walk.update_checks)
    assert max(abs(check.ratio - 1.0) for check in walk.update_checks) < 0.02
    assert max(check.relative_l2 for check in walk.update_checks) < 0.5


def test_without_gradients_or_initial_weights_no_update_is_judged(tmp_path: Path) -> None:
    drop = frozenset({Phase.GRADIENT, Phase.UPDATE})
    reference = make(tmp_path / "a.h5", steps=1, drop=drop)
    walk = walk_files(reference, Other(factor=1.5, steps=1, drop=drop).write(tmp_path / "b.h5"))
    assert walk.update_checks == ()
    assert walk.first is None


@pytest.mark.parametrize(
    ("check", "differs"),
    [
        (UpdateCheck(0, 1.09, 0.7, 1000, 0.0), False),
        (UpdateCheck(0, 1.11, 0.2, 1000, 0.0), True),
        (UpdateCheck(0, 0.89, 0.2, 1000, 0.0), True),
        (UpdateCheck(0, 1.11, 0.2, 999, 0.0), False),
        (UpdateCheck(0, 1.11, 0.2, 1000, 0.02), False),
        (UpdateCheck(0, 1.0, 1.1, 1000, 0.0), True),
    ],
)
def test_the_limits_of_an_update(check: UpdateCheck, differs: bool) -> None:
    assert check.differs is differs


def test_settings_that_differ_are_told(tmp_path: Path) -> None:
    ours, theirs = "AdamW(betas=(0.9, 0.999), eps=1e-08)", "AdamW(betas=(0.5, 0.99), eps=1e-08)"
    reference = make(tmp_path / "a.h5", steps=1, run=RunInfo(optimizers=(ours,)))
    candidate = make(tmp_path / "b.h5", steps=1, run=RunInfo(optimizers=(theirs,)))
    result = diff_files(reference, candidate)
    found = next(finding for finding in result.findings if finding.label == "hyperparameters-differ")
    assert found.severity is Severity.WARNING
    assert found.summary == (
        f"The settings of the optimizers differ: {ours} in the reference, {theirs} in the candidate."
    )
    again = diff_files(reference, make(tmp_path / "c.h5", steps=1, run=RunInfo(optimizers=(ours,))))
    assert [finding.label for finding in again.findings] == ["within-noise"]
