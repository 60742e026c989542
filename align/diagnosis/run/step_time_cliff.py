"""AL805 in one run: from one step on all steps take longer."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.records import Finding, Place, Severity
from align.sentences import say

CODE = "AL805"
LABEL = "step-time-cliff"


@run_rule(CODE, LABEL, rank=90)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The step from which on nearly all steps take at least twice as long as nearly all before."""
    found = inspection.step_times
    if found.cliff is None:
        return
    yield Finding(
        CODE,
        LABEL,
        Severity.NOTE,
        say(
            "From {} on a step takes {} seconds, {} before: {} times as long.",
            wording.step(found.cliff),
            f"{found.after:.3g}",
            f"{found.before:.3g}",
            wording.factor(found.after / found.before),
        ),
        "Look at what begins there: another length of the batches, memory that swaps or is compacted, a slower data "
        "source, an operator that has begun to run on the CPU, heat, another program on the machine.",
        Place(step=found.cliff),
        {"before": found.before, "after": found.after, "steps": found.count},
        {"step": found.cliff, "before": found.before, "after": found.after},
    )
