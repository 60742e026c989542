"""One run alone, or all ranks of one job: what its own records say of it. The rules of `diagnosis` read it."""

from __future__ import annotations

from align.inspection.inspection import Inspection, Job
from align.inspection.view import RunView, StepView

__all__ = ["Inspection", "Job", "RunView", "StepView"]
