"""What a result says, as tables that tests compare whole."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from align.commands import inspect_files
from align.records import DiffResult, Finding, InspectResult, Severity, State
from tests.running import diff


def told(result: DiffResult) -> list[tuple[str, Severity]]:
    """The findings in their order, each by its label and how grave it is."""
    return [(finding.label, finding.severity) for finding in result.findings]


def reply(result: InspectResult, question: str) -> tuple[State, str]:
    """The answer to one question."""
    return next((one.state, one.sentence) for one in result.replies if one.question == question)


@cache
def inspected(path: Path) -> InspectResult:
    """What is said of a run, or of the ranks of a job; its files stay as they are."""
    return inspect_files(str(path))


def accused(path: Path) -> list[Finding]:
    """What a run, or the ranks of a job, are accused of."""
    return [one for one in inspected(path).findings if one.severity is not Severity.NOTE]


@cache
def compared(folder: Path, name: str, precision: str, candidate: str) -> DiffResult:
    """The good run of a case on the CPU against one of its other captures, `bad.bf16.npu` or `good.fp32.npu`."""
    return diff(folder / f"{name}.good.{precision}.cpu.h5", folder / f"{name}.{candidate}.h5")


def first_finding(folder: Path, name: str, precision: str = "fp32", device: str = "npu") -> Finding:
    """What the bad run of a case is told first."""
    return compared(folder, name, precision, f"bad.{precision}.{device}").findings[0]
