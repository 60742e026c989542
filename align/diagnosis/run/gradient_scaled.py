"""AL502: gradients of one run are divided by another loss scale than the loss was multiplied by."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.registry import run_rule
from align.diagnosis.scale_telling import DIVIDE_FIRST
from align.inspection import Inspection
from align.records import Finding, Phase, Place, Severity
from align.sentences import say

CODE = "AL502"
LABEL = "gradient-scaled"


@run_rule(CODE, LABEL, rank=49)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The first step that is unscaled by the scale of the step after it."""
    found = inspection.wrong_divisor
    if found is None:
        return
    factor = found.scaled_by / found.divided_by
    more = say(" So it is in {}.", wording.steps(found.steps)) if len(found.steps) > 1 else ""
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "Step {}: the loss was multiplied by {}, and its gradients are divided by {}, the loss scale of the "
            "step after: the optimizer takes {} times the true gradients. In the other captured steps both are "
            "equal.{}",
            found.step,
            wording.loss_scale(found.scaled_by),
            wording.loss_scale(found.divided_by),
            wording.factor(factor),
            more,
        ),
        DIVIDE_FIRST,
        Place(found.step, str(Phase.UPDATE), *found.owner),
        {
            "scaled_by": found.scaled_by,
            "divided_by": found.divided_by,
            "factor": factor,
            "steps": list(found.steps),
        },
        {"step": found.step, "scaled_by": found.scaled_by, "divided_by": found.divided_by},
    )
