"""Time per step and tokens per second: reported, and judged where the policy has a limit."""

from __future__ import annotations

import numpy as np

from align import wording
from align.acceptance.case import Case, both
from align.acceptance.policy import Setting
from align.acceptance.telling import Found, judged, not_measured
from align.acceptance_records import Criterion, Measure
from align.curve_records import Quantity
from align.sentences import say

LOOK = say("Look for operators that fall back to the CPU, recompilation, waiting for data and communication.")


def step_time(case: Case, setting: Setting) -> Criterion:
    """The candidate's median time per step, in times the reference's."""
    medians = _medians(case, Quantity.SECONDS)
    if medians is None:
        sentence = say("The time per step is not in both files.")
        return not_measured(setting, Measure.TIMES, sentence, say("Log it in both runs, or capture them."))
    ours, theirs = medians
    sentence = say(
        "Half of the steps take {} or less in the reference, {} in the candidate.",
        wording.seconds(ours),
        wording.seconds(theirs),
    )
    found = Found(theirs / ours, Measure.TIMES, sentence, {"reference": ours, "candidate": theirs})
    return judged(setting, found, LOOK)


def tokens_per_second(case: Case, setting: Setting) -> Criterion:
    """The candidate's median tokens per second, in times the reference's."""
    medians = _medians(case, Quantity.TOKENS_PER_SECOND)
    if medians is None:
        return not_measured(
            setting, Measure.TIMES, say("Tokens per second are not in both files."), say("Log them in both runs.")
        )
    ours, theirs = medians
    sentence = say(
        "The median is {} tokens per second in the reference, {} in the candidate.",
        wording.value(ours),
        wording.value(theirs),
    )
    found = Found(theirs / ours, Measure.TIMES, sentence, {"reference": ours, "candidate": theirs})
    return judged(setting, found, LOOK)


def _medians(case: Case, quantity: Quantity) -> tuple[float, float] | None:
    """The medians of both runs without the first step, which compiles and allocates; None where one is not positive."""
    values = both(case.pair, quantity)
    if values is None:
        return None
    ours, theirs = (float(np.median(side[1:] if len(side) > 1 else side)) for side in values)
    return (ours, theirs) if ours > 0 and theirs > 0 else None
