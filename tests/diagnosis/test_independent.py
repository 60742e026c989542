"""AL407: what starts on its own after the first difference; AL109: a device that cuts operands off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from align.records import Severity, Verdict
from tests.builders import Array, diff_files
from tests.numpy_run import Fault, make
from tests.running import WORKLOADS, capture_all, diff


def _larger(tensor: Array) -> Array:
    larger: Array = tensor * np.float32(1.1)
    return larger


def _other(tensor: Array) -> Array:
    other: Array = tensor[::-1] * np.float32(5.0)
    return other


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("reference") / "gpu.h5", steps=1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("forward blocks.0.attn.o", "forward blocks.1.mlp.fc"),
        ("forward blocks.0.attn.o", "between blocks.1.attn"),
        ("forward blocks.1.mlp.fc", "backward blocks.0.mlp.fc"),
    ],
)
def test_a_second_fault_is_listed(reference: Path, tmp_path: Path, first: str, second: str) -> None:
    faults: dict[tuple[int, str], Fault] = {(0, first): _larger, (0, second): _other}
    result = diff_files(reference, make(tmp_path / "npu.h5", steps=1, faults=faults))
    assert result.first_divergence is not None
    assert result.first_divergence.name == first.split()[1]
    later = [finding for finding in result.findings if finding.code == "AL407"]
    assert [finding.where.name for finding in later] == [second.split()[1]]
    assert later[0].severity is Severity.WARNING
    assert later[0].advice == (
        "Mend the first difference, capture again and compare: what is told of 1 later place is less sure."
    )


def test_one_fault_has_no_second(reference: Path, tmp_path: Path) -> None:
    faults: dict[tuple[int, str], Fault] = {(0, "forward blocks.0.attn.o"): _larger}
    result = diff_files(reference, make(tmp_path / "npu.h5", steps=1, faults=faults))
    assert [finding.code for finding in result.findings] == ["AL401"]


def test_operands_that_are_cut_off_are_told_once_and_blame_nothing(tmp_path: Path) -> None:
    script = (WORKLOADS / "llama.py", "--steps", "1", "--layers", "2", "--precision", "fp32", "--device")
    capture_all("cpu", [(tmp_path / "cpu.h5", (*script, "cpu"))])
    knobs = {"hf32_matmul": True, "hf32_conv": True, "hf32_truncate": True}
    capture_all("npu", [(tmp_path / "cut.h5", (*script, "npu"))], {"numerics": knobs})
    told = diff(tmp_path / "cpu.h5", tmp_path / "cut.h5")
    assert told.verdict is Verdict.ALIGNED
    notes = [finding.summary for finding in told.findings if finding.code == "AL109"]
    assert notes == [
        (
            "Matrix products of the candidate are too small by 0.036 % throughout (in 15 of 15 modules): its device "
            "cuts operands off where the other rounds them. No module is at fault."
        )
    ]
