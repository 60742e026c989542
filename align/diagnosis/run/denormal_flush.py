"""AL605: the device of one run makes 0 of the numbers below the normal ones of fp16."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.records import Finding, Phase, Place, Severity
from align.sentences import say

CODE = "AL605"
LABEL = "denormal-flush"


@run_rule(CODE, LABEL, rank=60)
def find(inspection: Inspection) -> Iterator[Finding]:
    """No subnormal among the fp16 gradients, though many lie just above; a note, for underflow is told by itself."""
    found = inspection.underflow
    if not found.flushes or not found.steps:
        return
    yield Finding(
        CODE,
        LABEL,
        Severity.NOTE,
        say(
            "This device has no subnormal fp16 numbers: {} elements of gradients lie between 6.1e-5 and 1.2e-4, and "
            "none below but 0. Underflow begins at 6.1e-5 instead of 3.0e-8, 2^11 earlier.",
            wording.count(found.near_subnormal),
        ),
        "Nothing to do while the loss scale is high enough (see the line fp16 range); one that is small for another "
        "device may be too small here.",
        Place(found.steps[0].step, str(Phase.BACKWARD)),
        {"just_above": found.near_subnormal, "subnormals": 0},
        {"just_above": found.near_subnormal},
    )
