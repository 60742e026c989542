"""AL803: the loss of the candidate is higher or lower by a constant share, where nothing that was captured differs."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis.pair.curves.loss_curves import uncaptured
from align.diagnosis.registry import rule
from align.records import Finding, Place, Severity
from align.sentences import say

CODE = "AL803"
LABEL = "loss-bias"


@rule(CODE, LABEL, rank=71)
def find(walk: Walk) -> Iterator[Finding]:
    """A mean difference of the last quarter that is no chance; losses that part are AL804."""
    curves = uncaptured(walk)
    if curves is None or curves.apart is not None or not curves.biased:
        return
    yield Finding(
        CODE,
        LABEL,
        Severity.WARNING,
        say(
            "What was captured agrees ({}), but over the last quarter of {} the loss of the candidate is {} {} than "
            "that of the reference on average.",
            wording.steps(walk.steps),
            wording.plural(curves.count, "step"),
            wording.percent(abs(curves.bias)),
            "higher" if curves.bias > 0 else "lower",
        ),
        "Compare the runs once more over later captured steps, and the reference with a second run of itself: a bias "
        "smaller than what the reference does to itself is none.",
        Place(phase="loss", name="loss"),
        {"bias": curves.bias, "deviations": curves.deviations, "steps": curves.count},
        {"bias": curves.bias},
    )
