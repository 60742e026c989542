"""AL111, and the class in AL105 and the rates in AL108: one module, made from records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from align.records import (
    INIT_STEP,
    DiffResult,
    Fact,
    ModuleInfo,
    Phase,
    RunInfo,
    Severity,
    TensorKey,
    TensorRecord,
)
from tests.builders import Array, diff_files, record_of, write_capture

RUN = RunInfo(outcome="finished", classes={name: {"code": "ab", "random": False} for name in ("Scale", "Fused")})
GIVEN = np.random.default_rng(0).normal(size=(4, 8, 16)).astype(np.float32)
WEIGHT = np.random.default_rng(1).normal(size=(16, 16)).astype(np.float32)
MADE = GIVEN * np.float32(0.25)
REORDERED = MADE.transpose(1, 0, 2).reshape(MADE.shape)


def seen(slot: str, array: Array, layout: str = "") -> TensorRecord:
    return record_of(TensorKey(0, Phase.FORWARD, "scale", slot), array, within="<Net>", layout=layout)


def capture(path: Path, made: Array, layout: str = "", *, facts: tuple[Fact, ...] = (), **module: Any) -> Path:
    given = record_of(TensorKey(0, Phase.FORWARD, "<Net>", "input.0"), GIVEN)
    records = [given, seen("input.0", GIVEN, layout), seen("output.0", made)]
    initial = [record_of(TensorKey(INIT_STEP, Phase.INIT, "head", "weight"), WEIGHT)]
    modules = [ModuleInfo("<Net>", "Net", leaf=False), ModuleInfo("scale", **{"class_name": "Scale", **module})]
    return write_capture(path, {INIT_STEP: initial, 0: records}, modules=modules, run=RUN, facts={0: facts})


def diff(folder: Path, made: Array, layout: str = "", **theirs: Any) -> DiffResult:
    return diff_files(capture(folder / "a.h5", MADE), capture(folder / "b.h5", made, layout, **theirs))


def told(result: DiffResult) -> list[tuple[str, Severity, str]]:
    return [(finding.label, finding.severity, finding.explained_by) for finding in result.findings]


def test_values_in_another_order_are_laid_on_the_order_in_memory(tmp_path: Path) -> None:
    result = diff(tmp_path, REORDERED, "strided")
    finding = result.findings[0]
    assert told(result) == [("layout-differs", Severity.ERROR, ""), ("operator-differs", Severity.ERROR, "AL111")]
    assert finding.summary.startswith(
        "input.0 of scale has equal values in both runs and lies in memory row-major in the reference and strided in "
        "the candidate. Step 0, forward: scale output.0 is the first tensor that differs (relative L2 "
    )
    assert finding.summary.endswith(
        "It holds the values of the reference in another order, as an operator makes them that reads memory and not "
        "the logical order."
    )
    assert finding.advice == (
        "Hand scale tensors of one layout, for example with `.contiguous()`, and compare again; an operator that needs "
        "it should ask for it itself."
    )


@pytest.mark.parametrize(
    ("made", "layout"),
    [(REORDERED, ""), (MADE * np.float32(1.5), "strided"), (MADE[::-1] * np.float32(1.1), "channels_last")],
    ids=["one layout", "another factor", "other values"],
)
def test_other_differences_stay_with_the_operator(tmp_path: Path, made: Array, layout: str) -> None:
    assert told(diff(tmp_path, made, layout)) == [("operator-differs", Severity.ERROR, "")]


def test_another_layout_that_changes_nothing_is_no_finding(tmp_path: Path) -> None:
    assert [label for label, _, _ in told(diff(tmp_path, MADE, "strided"))] == ["within-noise"]


# ---- another class


def test_another_class_of_the_module_that_parts_the_runs_comes_first(tmp_path: Path) -> None:
    result = diff(tmp_path, MADE * np.float32(8.0), class_name="Fused")
    finding = result.findings[0]
    assert told(result) == [("structure-differs", Severity.ERROR, ""), ("origin-module", Severity.ERROR, "AL105")]
    assert finding.summary == (
        "scale is a Scale in the reference and a Fused in the candidate. Step 0, forward: scale output.0 is the first "
        "tensor that differs (relative L2 6.9, 1.2e8x the floor). The candidate's is 8 times the reference."
    )


@pytest.mark.parametrize(
    ("made", "module", "label"),
    [
        (MADE, {"class_name": "Fused"}, "within-noise"),
        (MADE * np.float32(8.0), {"class_name": "Fused", "leaf": False}, "origin-module"),
    ],
    ids=["it changes nothing", "it has children"],
)
def test_another_class_is_no_cause(tmp_path: Path, made: Array, module: dict[str, Any], label: str) -> None:
    assert told(diff(tmp_path, made, **module))[0][0] == label


# ---- a rate that changed


def rate(value: float) -> tuple[Fact, ...]:
    return (Fact(TensorKey(0, Phase.FORWARD, "scale", "dropout"), value),)


@pytest.mark.parametrize(("value", "label"), [(0.0, "train-eval-mode"), (0.3, "operator-differs")])
def test_a_rate_that_was_set_to_zero_is_told(tmp_path: Path, value: float, label: str) -> None:
    config = {"dropout": 0.2}
    reference = capture(tmp_path / "a.h5", MADE, config=config)
    result = diff_files(reference, capture(tmp_path / "b.h5", MADE * np.float32(1.5), facts=rate(value), config=config))
    assert result.findings[0].label == label
    agreeing = diff_files(reference, capture(tmp_path / "c.h5", MADE, facts=rate(value), config=config))
    assert [label for label, _, _ in told(agreeing)] == ["within-noise"]
