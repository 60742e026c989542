"""What happens at single steps: losses that are not finite, and spikes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from align import wording
from align.acceptance.case import Case
from align.acceptance.policy import Setting
from align.acceptance.scale import Losses
from align.acceptance.statistics import SpikeRule, spikes
from align.acceptance.telling import Found, capture_at, judged, longer, not_measured, too_few
from align.acceptance_records import Criterion, Measure
from align.sentences import say

Places = NDArray[np.intp]

SHOWN = 5
KEPT = 100
"""So many steps are named in a sentence, and so many in the evidence."""


def non_finite(case: Case, setting: Setting) -> Criterion:
    """The steps at which only the candidate's loss is NaN or Inf; steps that the GradScaler skipped do not count."""
    ours, theirs = case.pair.reference, case.pair.candidate
    alone = theirs.nonfinite & ~ours.nonfinite
    lost = case.pair.steps[alone & ~theirs.skipped]
    skipped = int((alone & theirs.skipped).sum())
    if not len(lost):
        sentence = say("The candidate's loss is finite wherever the reference's is.")
        if skipped:
            sentence = say(
                "The candidate's loss is not finite at {} that it skipped, as loss scaling does, and nowhere else.",
                wording.plural(skipped, "step"),
            )
        return judged(setting, Found(0.0, Measure.COUNT, sentence))
    first = int(lost[0])
    sentence = say(
        "The candidate's loss is NaN or Inf at {}, the reference's is not; the first is step {}.",
        wording.plural(len(lost), "step"),
        first,
    )
    advice = say("{} `align inspect` of the candidate names the tensor.", capture_at(case.pair, first))
    evidence = {"step": first, "steps": lost[:SHOWN].tolist()}
    return judged(setting, Found(float(len(lost)), Measure.COUNT, sentence, evidence), advice)


def spike_count(case: Case, setting: Setting) -> Criterion:
    """Whether the candidate's loss spikes more often than the reference's, by more than chance."""
    losses, window = case.losses, int(setting.numbers["window"])
    needed = 2 * window
    if len(losses) < needed:
        return not_measured(setting, Measure.COUNT, too_few(len(losses), needed), longer(case, needed))
    ours, theirs = _spikes(losses, setting)
    usual = max([len(ours), *(len(side) for floor in case.floors for side in _spikes(floor, setting))])
    allowed = math.floor(usual + (setting.limit or 0.0) + setting.numbers["factor"] * math.sqrt(usual))
    named = [int(losses.steps[place]) for place in theirs]
    sentence = say(
        "The candidate's loss has {}, the reference's {}.",
        wording.plural(len(theirs), "spike"),
        wording.count(len(ours)),
    )
    extra = [step for step in named if step not in {int(losses.steps[place]) for place in ours}]
    if len(theirs) > allowed:
        steps = wording.listing([str(step) for step in extra[:SHOWN]], len(extra))
        sentence = say("{} Only the candidate's spikes at {}.", sentence, steps)
    evidence = {"reference": len(ours), "candidate": len(theirs), "steps": named[:KEPT]}
    found = Found(float(len(theirs)), Measure.COUNT, sentence, evidence)
    advice = capture_at(case.pair, extra[0]) if extra else ""
    return judged(setting, found, advice, limit=setting.limited(float(allowed)))


def _spikes(losses: Losses, setting: Setting) -> tuple[Places, Places]:
    """The spikes of both sides; where the loss is smaller than its scale, they are held against the scale."""
    numbers = setting.numbers
    rule = SpikeRule(
        window=int(numbers["window"]),
        deviations=numbers["deviations"],
        height=numbers["height"],
        apart=int(numbers["apart"]),
        least=float(losses.scale.min(initial=math.inf)),
    )
    return spikes(losses.reference, rule), spikes(losses.candidate, rule)
