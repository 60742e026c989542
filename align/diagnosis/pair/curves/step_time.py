"""AL805: from one step on the steps of one run take longer, those of the other do not."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis.registry import rule
from align.inspection.step_times import step_times
from align.records import Finding, Place, Severity
from align.sentences import say

CODE = "AL805"
LABEL = "step-time-cliff"


@rule(CODE, LABEL, rank=90)
def find(walk: Walk) -> Iterator[Finding]:
    """A cliff of one run that the other does not have."""
    times = [step_times(rows, walk.steps) for rows in (walk.reference_timeline, walk.candidate_timeline)]
    slower = [number for number, found in enumerate(times) if found.cliff is not None]
    if len(slower) != 1:
        return
    found, side = times[slower[0]], ("reference", "candidate")[slower[0]]
    other = times[1 - slower[0]]
    if found.cliff is None or not other.count:
        return
    yield Finding(
        CODE,
        LABEL,
        Severity.NOTE,
        say(
            "From {} on a step of the {} takes {} seconds, {} before: {} times as long. Those of the other run do "
            "not change.",
            wording.step(found.cliff),
            side,
            f"{found.after:.3g}",
            f"{found.before:.3g}",
            wording.factor(found.after / found.before),
        ),
        "Look at what begins there in that run only: an operator that runs on the CPU, memory that swaps or is "
        "compacted, a slower data source, heat, another program on the machine.",
        Place(step=found.cliff),
        {"side": side, "before": found.before, "after": found.after, "other": other.median},
        {"step": found.cliff, "side": side, "before": found.before, "after": found.after},
    )
