"""AL502: gradients of one run are divided by another loss scale than the loss was multiplied by."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.records import Finding, Phase, Place, Severity

CODE = "AL502"
LABEL = "gradient-scaled"


@run_rule(CODE, LABEL, rank=49)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The first step that is unscaled by the scale of the step after it."""
    found = inspection.wrong_divisor
    if found is None:
        return
    factor = found.scaled_by / found.divided_by
    more = f" So it is in {wording.steps(found.steps)}." if len(found.steps) > 1 else ""
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        f"Step {found.step}: the loss was multiplied by {wording.loss_scale(found.scaled_by)}, and its gradients are "
        f"divided by {wording.loss_scale(found.divided_by)}, the loss scale of the step after: the optimizer takes "
        f"{wording.factor(factor)} times the true gradients. In the other captured steps both are equal.{more}",
        "Divide the gradients by the scale that their loss was multiplied by, and move the scale afterwards.",
        Place(found.step, str(Phase.UPDATE), *found.owner),
        {
            "scaled_by": found.scaled_by,
            "divided_by": found.divided_by,
            "factor": factor,
            "steps": list(found.steps),
        },
        {"step": found.step, "scaled_by": found.scaled_by, "divided_by": found.divided_by},
    )
