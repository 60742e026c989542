"""AL110: operators that ran on the CPU for the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from align.records import DiffResult, ModuleInfo, RunInfo, Severity
from tests.builders import diff_files
from tests.numpy_run import make

ACT = [ModuleInfo("blocks.0.mlp.act", "GELU")]


def diff(folder: Path, fallbacks: dict[str, int], point: str = "") -> DiffResult:
    run = RunInfo(outcome="finished", device_type="npu", fallbacks=fallbacks)
    faults = {(0, point): lambda array: array * 1.5} if point else {}
    return diff_files(
        make(folder / "a.h5", steps=1, extra_modules=ACT),
        make(folder / "b.h5", steps=1, extra_modules=ACT, run=run, faults=faults),
    )


def test_they_are_a_note(tmp_path: Path) -> None:
    result = diff(tmp_path, {"aten::gelu": 4, "aten::histc": 1})
    note = next(finding for finding in result.findings if finding.code == "AL110")
    assert note.severity is Severity.NOTE
    assert note.summary == (
        "Operators that the device has no kernel for ran on the CPU: aten::gelu and aten::histc in the candidate (5 "
        "calls in the first captured step)."
    )
    assert note.advice == (
        "They compute as the CPU does, and cost copies to and from it in every call. "
        "`TORCH_NPU_FALLBACK_CPU_DISABLE=1` stops at the first, to find its caller; replace it by operators that the "
        "device has."
    )


@pytest.mark.parametrize(
    ("operator", "point", "severity"),
    [
        ("aten::gelu", "forward blocks.0.mlp.act", Severity.WARNING),
        ("aten::gelu.out", "forward blocks.0.mlp.act", Severity.WARNING),
        ("aten::gelu", "forward blocks.0.mlp.fc", Severity.NOTE),
        ("aten::histc", "forward blocks.0.mlp.act", Severity.NOTE),
    ],
)
def test_one_that_the_first_difference_is_made_by_is_a_warning(
    tmp_path: Path, operator: str, point: str, severity: Severity
) -> None:
    result = diff(tmp_path, {operator: 2}, point)
    finding = next(finding for finding in result.findings if finding.code == "AL110")
    told = f"The first difference is made by such an operator: blocks.0.mlp.act runs {operator}."
    assert finding.severity is severity
    assert (told in finding.summary) == (severity is Severity.WARNING)


def test_without_any_there_is_no_finding(tmp_path: Path) -> None:
    assert [finding.label for finding in diff(tmp_path, {}).findings] == ["within-noise"]
