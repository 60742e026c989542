"""AL201: the runs draw different random numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from align.records import RunInfo, Severity, Verdict
from tests.builders import diff_files
from tests.numpy_run import make
from tests.said import told


def test_weights_of_another_seed_are_told_first(tmp_path: Path) -> None:
    result = diff_files(make(tmp_path / "a.h5", steps=1), make(tmp_path / "b.h5", steps=1, seed=1))
    assert told(result) == [
        ("seed-mismatch", Severity.ERROR),
        ("initial-weights-differ", Severity.ERROR),
    ]
    assert result.summary == (
        "The runs draw different random numbers (the initial weights look like two draws of one distribution); no "
        "module can be blamed before the seeds agree."
    )
    assert result.findings[1].summary == (
        "The initial weights differ in 14 of 34 tensors: they look like another draw of the same distribution. No "
        "module was judged."
    )


def test_correlated_weights_are_no_other_seed(tmp_path: Path) -> None:
    noise = np.random.default_rng(9).normal(0, 0.05, (50, 32))
    candidate = make(tmp_path / "b.h5", steps=1, initial={"head.weight": lambda weight: weight + noise})
    result = diff_files(make(tmp_path / "a.h5", steps=1), candidate)
    assert [finding.label for finding in result.findings] == ["initial-weights-differ"]


def test_seeds_that_differ_without_consequence_are_a_note(tmp_path: Path) -> None:
    reference = make(tmp_path / "a.h5", steps=1, run=RunInfo(seeds={"torch": 1}))
    candidate = make(tmp_path / "b.h5", steps=1, run=RunInfo(seeds={"torch": 2}))
    result = diff_files(reference, candidate)
    assert result.verdict is Verdict.ALIGNED
    assert told(result) == [
        ("seed-mismatch", Severity.NOTE),
        ("within-noise", Severity.NOTE),
    ]
    assert result.findings[0].summary == "The runs draw different random numbers (the torch seed is 1 and 2)."


def test_states_of_generators_matter_only_where_batches_differ(tmp_path: Path) -> None:
    reference = make(tmp_path / "a.h5", steps=1, run=RunInfo(seeds={"torch": 1, "numpy_state": "aa"}))
    seeds = RunInfo(seeds={"torch": 1, "numpy_state": "bb"})
    same = diff_files(reference, make(tmp_path / "b.h5", steps=1, run=seeds))
    other = diff_files(reference, make(tmp_path / "c.h5", steps=1, run=seeds, data_seed=5))
    assert [finding.label for finding in same.findings] == ["within-noise"]
    assert [finding.label for finding in other.findings] == ["data-differs", "seed-mismatch"]
