"""AL404: foreign elements side by side in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from align.records import DiffResult, RunInfo, Severity
from tests.builders import Array, diff_files
from tests.numpy_run import Fault, make

RUN = RunInfo(outcome="finished", device_type="npu", classes={"LayerNorm": {"code": "torch", "random": False}})
POINT = "gradient blocks.0.norm1.weight"
FOREIGN = np.random.default_rng(3).normal(size=32)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("reference") / "a.h5", steps=1, run=RUN)


def written(start: int, stop: int, values: Array = FOREIGN) -> Fault:
    """Elements of a vector that hold something else, as large as the rest."""

    def fault(array: Array) -> Array:
        result: Array = array.copy()
        result[start:stop] = values[start:stop] * np.sqrt(np.mean(array**2))
        return result

    return fault


def diff(reference: Path, folder: Path, fault: Fault, point: str = POINT) -> DiffResult:
    return diff_files(reference, make(folder / "b.h5", steps=1, run=RUN, faults={(0, point): fault}))


def test_a_run_of_foreign_elements_is_told_with_what_to_try(reference: Path, tmp_path: Path) -> None:
    result = diff(reference, tmp_path, written(0, 12))
    finding = result.findings[0]
    assert [(each.label, each.severity) for each in result.findings] == [("isolated-corruption", Severity.ERROR)]
    assert (finding.where.phase, finding.where.name, finding.where.slot) == ("gradient", "blocks.0.norm1", "weight")
    assert finding.evidence["wrong_run"] == [0, 12]
    opening, _, rest = result.summary.partition(" Only ")
    assert opening.startswith("Step 0, gradient: blocks.0.norm1 weight is the first tensor that differs (relative L2 ")
    assert rest == (
        "elements 0 to 11 of 32 differ beyond rounding; the others agree. What it is made from agrees. That is what "
        "memory looks like that was written or used again by something else (a gradient buffer before its stream was "
        "done, for example)."
    )
    assert finding.advice == (
        "Repeat the candidate with `ASCEND_LAUNCH_BLOCKING=1` and `PYTORCH_NO_NPU_MEMORY_CACHING=1`: if 12 elements "
        "then agree, look for a buffer that is used again before its stream is done (communication, prefetching, "
        "custom operators). Watching slows a run and can hide such a race: repeat the capture several times. Else look "
        "for code that treats a part of weight of blocks.0.norm1 otherwise (a shard, a mask)."
    )


def test_one_element_of_a_module_of_torch_may_be_a_flipped_bit(reference: Path, tmp_path: Path) -> None:
    result = diff(reference, tmp_path, written(7, 8, FOREIGN * 50.0))
    assert result.findings[0].label == "isolated-corruption"
    assert "Only element 7 of 32 differs beyond rounding" in result.summary
    assert "That is what a bit that flipped looks like, or memory that something else wrote." in result.summary


def scaled(start: int, stop: int, factor: float) -> Fault:
    def fault(array: Array) -> Array:
        result: Array = array.copy()
        result[start:stop] *= factor
        return result

    return fault


@pytest.mark.parametrize(
    ("fault", "point"),
    [
        (scaled(0, 12, 0.0), POINT),
        (scaled(0, 12, 0.5), POINT),
        (written(20, 32), POINT),
        (written(0, 32), POINT),
        (written(0, 20), POINT),
        (written(0, 1), "gradient blocks.0.mlp.fc.weight"),
    ],
    ids=["zeros", "another share of the same", "the end", "all", "more than half", "a row"],
)
def test_what_code_can_do_to_a_part_is_no_corruption(reference: Path, tmp_path: Path, fault: Fault, point: str) -> None:
    result = diff(reference, tmp_path, fault, point)
    assert [finding.label for finding in result.findings] == ["origin-module"]


def test_noise_is_none(reference: Path, tmp_path: Path) -> None:
    result = diff(reference, tmp_path, lambda array: array * (1 + 2.0**-23))
    assert [finding.label for finding in result.findings] == ["within-noise"]
