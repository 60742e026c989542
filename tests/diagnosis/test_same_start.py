"""AL101: only one run was made comparable, or weights and batches came from another capture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from align.records import DiffResult, ModuleInfo, RunInfo, Severity
from tests.builders import diff_files
from tests.numpy_run import dropped, make
from tests.said import told


def diff(folder: Path, ours: dict[str, Any], theirs: dict[str, Any], **options: Any) -> DiffResult:
    modules = {"extra_modules": [ModuleInfo("blocks.0.mlp.act", "Dropout")]}
    runs = [RunInfo(outcome="finished", same_start=start) for start in (ours, theirs)]
    reference = make(folder / "ref.h5", steps=1, run=runs[0], **modules)
    return diff_files(reference, make(folder / "b.h5", steps=1, run=runs[1], **modules, **options))


def test_dropout_off_in_one_run_only_explains_a_dropout_that_differs(tmp_path: Path) -> None:
    faults = {(0, "forward blocks.0.mlp.act"): dropped}
    result = diff(tmp_path, {"no_dropout": True, "seed": 1}, {"seed": 1}, faults=faults)
    assert told(result) == [("environment-differs", Severity.ERROR), ("origin-module", Severity.ERROR)]
    assert result.summary == (
        "The runs were not made comparable alike: dropout was off in the reference only. Step 0, forward: "
        "blocks.0.mlp.act output.0 is the first tensor that differs (relative L2 0.34, 5,580,000x the floor)."
    )
    assert result.findings[0].advice == "Capture the candidate with `align capture --no-dropout` too."
    assert result.findings[0].where.name == "blocks.0.mlp.act"


def test_dropout_off_in_one_run_only_is_a_warning_elsewhere(tmp_path: Path) -> None:
    faults = {(0, "forward blocks.0.mlp.fc"): dropped}
    result = diff(tmp_path, {}, {"no_dropout": True, "deterministic": True}, faults=faults)
    assert told(result) == [("origin-module", Severity.ERROR), ("environment-differs", Severity.WARNING)]
    assert result.findings[1].summary == (
        "The runs were not made comparable alike: dropout was off in the candidate only and deterministic algorithms "
        "were on in the candidate only."
    )


def test_weights_of_another_capture_are_told(tmp_path: Path) -> None:
    start = {"init_from": "/data/other.h5", "batches_from": "/data/other.h5"}
    result = diff(tmp_path, {}, start, initial={"head.weight": lambda weight: 2 * weight})
    assert told(result) == [("weight-scaled", Severity.ERROR), ("environment-differs", Severity.WARNING)]
    assert result.findings[1].summary == (
        "The runs were not made comparable alike: the candidate took its initial weights from other.h5, and they are "
        "not those of the reference."
    )
    assert result.findings[1].advice == (
        "Take them from the capture that is compared with: `align capture --init-from ref.h5`."
    )


def test_batches_of_another_capture_are_told(tmp_path: Path) -> None:
    result = diff(tmp_path, {}, {"batches_from": "other.h5"}, data_seed=7)
    assert told(result) == [("data-differs", Severity.ERROR), ("environment-differs", Severity.WARNING)]
    assert result.findings[1].advice == (
        "Take them from the capture that is compared with: `align capture --batches-from ref.h5`."
    )


def test_weights_and_batches_that_were_taken_and_agree_are_no_finding(tmp_path: Path) -> None:
    start = {"init_from": "ref.h5", "batches_from": "ref.h5", "no_dropout": True}
    assert told(diff(tmp_path, {"no_dropout": True}, start)) == [("within-noise", Severity.NOTE)]


def test_batches_that_were_not_found_are_told(tmp_path: Path) -> None:
    result = diff(tmp_path, {}, {"batches_from": "other.h5", "batches_taken": 0}, data_seed=7)
    assert result.findings[1].summary == (
        "The runs were not made comparable alike: the candidate was to take its batches from other.h5 and found none "
        "of its own there."
    )


def test_a_seed_is_not_the_cause_where_only_one_run_drops(tmp_path: Path) -> None:
    """Only the run that drops draws a mask."""
    modules = [ModuleInfo("embed", "Dropout")]
    ours, theirs = (RunInfo(outcome="finished", seeds={"torch": seed}) for seed in (1, 2))
    reference = make(tmp_path / "a.h5", steps=1, run=ours, extra_modules=modules)
    faults = {(0, "forward embed"): dropped}
    result = diff_files(reference, make(tmp_path / "b.h5", steps=1, run=theirs, extra_modules=modules, faults=faults))
    assert told(result) == [("origin-module", Severity.ERROR), ("seed-mismatch", Severity.WARNING)]
