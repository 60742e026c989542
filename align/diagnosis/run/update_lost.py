"""AL705: the update is smaller than half the distance between two numbers of the parameter's dtype."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.inspection.stall import NEARLY_ALL
from align.records import Finding, Place, Severity
from align.sentences import joined, say

CODE = "AL705"
LABEL = "update-lost"


@run_rule(CODE, LABEL, rank=56)
def find(inspection: Inspection) -> Iterator[Finding]:
    """Updates that rounding swallows in every judged step; an error where hardly any arrives and the loss stays."""
    found = inspection.lost_updates
    if found is None:
        return
    owner = found.owners[0]
    sure = found.share >= NEARLY_ALL and inspection.loss_curve.fell is not True
    dtype = wording.dtype(found.dtype)
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if sure else Severity.WARNING,
        say(
            "The updates of {} of the elements are lost in rounding, in all {} that could be judged: {} is {}, "
            "where half the distance between two numbers is about {}, and its update about {}. {} of {} are "
            "concerned.",
            wording.percent(found.share),
            wording.plural(found.steps, "step"),
            joined(" ", owner),
            dtype,
            wording.value(found.half_unit),
            wording.value(found.update),
            len(found.owners),
            wording.plural(found.total, "parameter"),
        ),
        say(
            "Keep the parameters, or a copy of them that the optimizer updates, in fp32 and compute in {} by "
            "torch.autocast; or round stochastically. A larger learning rate than {} only hides it.",
            dtype,
            f"{found.rate:.3g}",
        ),
        Place(step=found.step, phase="param", name=owner[0], slot=owner[1]),
        {
            "share": found.share,
            "dtype": found.dtype,
            "update": found.update,
            "half_unit": found.half_unit,
            "learning_rate": found.rate,
            "parameters": [joined(" ", one) for one in found.owners],
            "of": found.total,
            "steps": found.steps,
        },
        {"share": found.share, "dtype": found.dtype, "name": owner[0], "slot": owner[1]},
    )
