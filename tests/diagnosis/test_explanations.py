"""AL102, AL103, AL104, AL105, AL204: what explains a difference, or only stands beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from align.records import DiffResult, Finding, ModuleInfo, Phase, RunInfo, Severity, TensorKey, TensorRecord, Verdict
from tests.builders import Array, diff_files, record_of, write_capture
from tests.numpy_run import make
from tests.said import told

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(64, 64)).astype(np.float32)


def _seen(name: str, slot: str, array: Array, phase: Phase = Phase.FORWARD) -> TensorRecord:
    return record_of(TensorKey(0, phase, name, slot), array)


def _dropout(path: Path, rate: float, seed: int, class_name: str = "Dropout") -> Path:
    kept = np.random.default_rng(seed).random(X.shape) >= rate
    records = [_seen("drop", "input.0", X), _seen("drop", "output.0", (X * kept / (1 - rate)).astype(np.float32))]
    return write_capture(path, {0: records}, modules=[ModuleInfo("drop", class_name)])


def test_other_dropout_masks_are_told_from_a_fault(tmp_path: Path) -> None:
    result = diff_files(_dropout(tmp_path / "a.h5", 0.1, 1), _dropout(tmp_path / "b.h5", 0.1, 2))
    assert [finding.label for finding in result.findings] == ["dropout-mask-differs", "origin-module"]
    shares = result.findings[0].evidence
    assert result.summary == (
        f"Step 0, forward: drop drops other elements in each run ({shares['reference_zero_share'] * 100:.1f} % and "
        f"{shares['candidate_zero_share'] * 100:.1f} % are zero), so all that follows differs. No module is to blame."
    )


@pytest.mark.parametrize(("rate", "class_name"), [(0.3, "Dropout"), (0.1, "Gate")], ids=["other rate", "no dropout"])
def test_another_rate_or_class_is_no_other_mask(tmp_path: Path, rate: float, class_name: str) -> None:
    reference = _dropout(tmp_path / "a.h5", 0.1, 1, class_name)
    result = diff_files(reference, _dropout(tmp_path / "b.h5", rate, 2, class_name))
    assert [finding.label for finding in result.findings] == ["origin-module"]


def _cast(path: Path, dtype: str, factor: float) -> Path:
    output = replace(_seen("fc", "output.0", (X * factor).astype(np.float32)), dtype=dtype)
    return write_capture(path, {0: [_seen("fc", "input.0", X), output]})


def test_a_dtype_explains_the_first_difference(tmp_path: Path) -> None:
    result = diff_files(_cast(tmp_path / "a.h5", "float32", 1.0), _cast(tmp_path / "b.h5", "bfloat16", 1.5))
    assert told(result) == [
        ("origin-module", Severity.ERROR),
        ("dtype-differs", Severity.WARNING),
    ]
    assert result.findings[1].summary == (
        "Step 0, forward: fc output.0 is fp32 in the reference and bf16 in the candidate."
    )


def test_a_dtype_stops_no_walk(tmp_path: Path) -> None:
    result = diff_files(_cast(tmp_path / "a.h5", "float32", 1.0), _cast(tmp_path / "b.h5", "bfloat16", 1.001))
    assert result.verdict is Verdict.ALIGNED
    assert told(result) == [
        ("dtype-differs", Severity.NOTE),
        ("within-noise", Severity.NOTE),
    ]


def _with_run(path: Path, run: RunInfo, factor: float = 1.0) -> Path:
    modules = [ModuleInfo("fc", "Linear", matmul=True), ModuleInfo("conv", "Conv2d", conv=True)]
    records = [_seen("fc", "input.0", X), _seen("fc", "output.0", (X * factor).astype(np.float32))]
    return write_capture(path, {0: records}, modules=modules, run=run)


@pytest.mark.parametrize(
    ("ours", "theirs", "told"),
    [
        (RunInfo(autocast="bfloat16"), RunInfo(), "autocast bf16 against off"),
        (
            RunInfo(device_type="cuda", flags={"matmul_allow_tf32": True}),
            RunInfo(device_type="npu"),
            "matrix products TF32 against fp32",
        ),
        (
            RunInfo(device_type="cuda", flags={"cudnn_allow_tf32": False}),
            RunInfo(device_type="npu"),
            "convolutions fp32 against HF32",
        ),
        (
            RunInfo(flags={"matmul_allow_bf16_reduced_precision_reduction": True}),
            RunInfo(flags={"matmul_allow_bf16_reduced_precision_reduction": False}),
            "matmul_allow_bf16_reduced_precision_reduction True against False",
        ),
    ],
)
def test_modes_that_differ_are_told(tmp_path: Path, ours: RunInfo, theirs: RunInfo, told: str) -> None:
    reference = _with_run(tmp_path / "a.h5", ours)
    aligned = diff_files(reference, _with_run(tmp_path / "b.h5", theirs))
    diverged = diff_files(reference, _with_run(tmp_path / "c.h5", theirs, 2.0))
    for result, severity in ((aligned, Severity.NOTE), (diverged, Severity.WARNING)):
        finding = _labelled(result, "precision-mode-differs")
        assert finding.severity is severity
        assert finding.summary == f"The runs compute in different precision: {told} (reference against candidate)."


def test_tf32_and_hf32_are_one_precision(tmp_path: Path) -> None:
    reference = _with_run(tmp_path / "a.h5", RunInfo(device_type="cuda"))
    result = diff_files(reference, _with_run(tmp_path / "b.h5", RunInfo(device_type="npu")))
    assert [finding.label for finding in result.findings] == ["within-noise"]


def _labelled(result: DiffResult, label: str) -> Finding:
    return next(finding for finding in result.findings if finding.label == label)


def test_shapes_of_weights_that_differ_stop_the_walk_before_it_begins(tmp_path: Path) -> None:
    paths = []
    for name, width in (("a", 64), ("b", 32)):
        initial = record_of(TensorKey(-1, Phase.INIT, "fc", "weight"), X[:, :width].copy())
        path = tmp_path / f"{name}.h5"
        paths.append(write_capture(path, {-1: [initial], 0: [_seen("fc", "output.0", X)]}))
    result = diff_files(*paths)
    assert result.first_divergence is not None
    assert (str(result.first_divergence.kind), str(result.first_divergence.origin)) == ("shape", "weights")
    assert told(result) == [("shape-differs", Severity.ERROR)]
    assert result.summary == (
        "Before step 0: fc weight has shape [64, 64] in the reference and [64, 32] in the candidate."
    )


def test_a_batch_of_another_shape_is_told_first(tmp_path: Path) -> None:
    candidate = make(tmp_path / "b.h5", steps=1, batch=lambda tokens: tokens[:2])
    result = diff_files(make(tmp_path / "a.h5", steps=1), candidate)
    assert result.findings[0].label == "shape-differs"
    assert result.summary.startswith(
        "Step 0, input: tokens value has shape [4, 16] in the reference and [2, 16] in the candidate; "
    )


def test_modules_and_calls_on_one_side_are_told(tmp_path: Path) -> None:
    common = [_seen("fc", "input.0", X), _seen("fc", "output.0", X)]
    twice = record_of(TensorKey(0, Phase.FORWARD, "fc", "output.0", call=1), X)
    reference = write_capture(tmp_path / "a.h5", {0: common})
    candidate = write_capture(tmp_path / "b.h5", {0: [*common, twice, _seen("cast", "output.0", X)]})
    result = diff_files(reference, candidate)
    assert told(result) == [
        ("structure-differs", Severity.NOTE),
        ("within-noise", Severity.NOTE),
    ]
    assert result.findings[0].summary == (
        "The structure of the runs differs: 1 name only in the candidate (such as cast) and 1 call only in the "
        "candidate (such as call 1 of fc in step 0)."
    )
