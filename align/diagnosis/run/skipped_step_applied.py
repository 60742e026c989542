"""AL610: an update was made in a step of one run that overflowed."""

from __future__ import annotations

from collections.abc import Iterator

from align.applied_skips import AppliedSkip
from align.diagnosis.registry import run_rule
from align.diagnosis.skipped_step_telling import advice, tell
from align.inspection import Inspection
from align.records import Finding, Phase, Place, Severity
from align.sentences import say

CODE = "AL610"
LABEL = "skipped-step-applied"


@run_rule(CODE, LABEL, rank=38)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The first captured step in which the scaler found an overflow and the optimizer moved the parameters."""
    for found in inspection.scaling.applied[:1]:
        yield Finding(
            CODE,
            LABEL,
            Severity.ERROR,
            say("{}{}", tell(found), _more(inspection.scaling.applied)),
            advice(_optimizer(inspection, found.step)),
            Place(found.step, str(Phase.PARAM), *found.moved[0]),
            {"moved": len(found.moved), "parameters": found.seen, "proof": found.proof, "farthest": found.farthest},
            {"step": found.step, "name": found.moved[0][0], "moved": len(found.moved), "parameters": found.seen},
        )


def _more(applied: tuple[AppliedSkip, ...]) -> str:
    return say(" So it is in {} captured steps.", len(applied)) if len(applied) > 1 else ""


def _optimizer(inspection: Inspection, step: int) -> str:
    return next((row.optimizer for row in inspection.view.timeline if row.step == step), "")
