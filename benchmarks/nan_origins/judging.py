"""What `align inspect` says of each training, held against what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from align.capture_file import open_capture
from align.diagnosis.inspecting import inspect
from align.inspection import RunView
from align.records import Finding, Severity
from benchmarks.nan_origins.case import Case, Where

LABELS = frozenset({"nan-origin", "overflow", "overflow-saturated"})


@dataclass(frozen=True)
class Judgement:
    """What was said of one training: the place and the label of the first error on NaN and Inf, None without one."""

    case: Case
    where: Where | None
    label: str | None
    summary: str

    @property
    def is_right(self) -> bool:
        """Whether the place and the label are those of the case."""
        return self.where == self.case.where and self.label == (self.case.label if self.case.where else None)


def judge(case: Case, capture: Path) -> Judgement:
    """Inspect one capture."""
    with open_capture(capture) as opened:
        findings = inspect([RunView(opened)]).findings
    wrong = [finding for finding in findings if finding.severity is Severity.ERROR and finding.label in LABELS]
    return _judgement(case, wrong[0] if wrong else None)


def _judgement(case: Case, first: Finding | None) -> Judgement:
    if first is None:
        return Judgement(case, None, None, "")
    place = first.where
    step = -1 if place.step is None else place.step
    return Judgement(case, (step, place.phase or "", place.name), first.label, first.summary)
