"""AL801: the loss does not fall, and something says why."""

from __future__ import annotations

import math
from collections.abc import Iterator

from align import wording
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.inspection.stall import guessing, is_constant
from align.records import Finding, Place, Severity
from align.sentences import say

CODE = "AL801"
LABEL = "loss-stall"


@run_rule(CODE, LABEL, rank=80)
def find(inspection: Inspection) -> Iterator[Finding]:
    """A loss that is one number, or that of guessing, or that stays where parameters are known not to be updated.

    A flat loss alone is no finding: training that goes on from a finished model looks the same.
    """
    curve = inspection.loss_curve
    if is_constant(inspection.view, curve):
        yield _finding(
            inspection,
            Severity.ERROR,
            say(
                "The loss is {} in all {}, equal to the last bit: it does not depend on what is trained.",
                wording.loss(curve.first),
                wording.plural(curve.count, "step"),
            ),
            "Follow the loss back to the parameters: a .detach(), .item() or argmax on the way, a model in "
            "torch.no_grad(), an optimizer with other parameters, one batch of a model that is never updated.",
        )
        return
    classes = guessing(inspection.view, curve)
    if classes is not None:
        yield _finding(
            inspection,
            Severity.WARNING,
            say(
                "The loss does not fall: {} in the first and {} in the last of {}, and ln({}) = {} is what guessing "
                "among {} classes gives.",
                wording.loss(curve.first),
                wording.loss(curve.last),
                wording.plural(curve.count, "step"),
                wording.count(classes),
                wording.loss(math.log(classes)),
                wording.count(classes),
            ),
            "Train on one batch: if its loss falls, the targets do not belong to their inputs (shuffled, shifted, from "
            "another file) or the rate is wrong; if not, inputs or gradients do not reach the model.",
        )
    elif curve.fell is False and (inspection.standstill is not None or inspection.lost_updates is not None):
        yield _finding(
            inspection,
            Severity.WARNING,
            say(
                "The loss does not fall by more than its noise: {} in the first and {} in the last of {}.",
                wording.loss(curve.first),
                wording.loss(curve.last),
                wording.plural(curve.count, "step"),
            ),
            "See what keeps the parameters from being updated.",
        )


def _finding(inspection: Inspection, severity: Severity, summary: str, advice: str) -> Finding:
    curve = inspection.loss_curve
    numbers = {"first": curve.first, "last": curve.last, "steps": curve.count}
    return Finding(CODE, LABEL, severity, summary, advice, Place(phase="loss", name="loss"), numbers, numbers)
