"""The first step and the first few: before training has made much of little differences they tell the most."""

from __future__ import annotations

import numpy as np

from align import wording
from align.acceptance.case import Case
from align.acceptance.policy import Setting
from align.acceptance.scale import Losses
from align.acceptance.telling import Found, capture_at, judged, longer, not_measured, too_few
from align.acceptance_records import Criterion, Limit, Measure
from align.sentences import say


def first_loss(case: Case, setting: Setting) -> Criterion:
    """The relative difference at the first common step, or the absolute one where the policy takes either."""
    losses = case.losses
    if not case.pair.begins:
        sentence = say(
            "Step {} is the first that was compared, but not the first of both runs.", int(case.pair.steps[0])
        )
        advice = say("Give both runs from their first step on.")
        return not_measured(setting, Measure.PERCENT, sentence, advice)
    if not len(losses) or losses.steps[0] != case.pair.steps[0]:
        sentence = say("The loss of step {} is not finite in both runs.", int(case.pair.steps[0]))
        return not_measured(setting, Measure.PERCENT, sentence, say("See what is not finite with `align inspect`."))
    ours, theirs = (float(raw[0]) for raw in losses.raw)
    measured = abs(float(losses.relative[0]))
    limit = setting.limited()
    absolute = setting.numbers.get("absolute")
    passed = limit is not None and measured <= limit.value
    if not passed and absolute is not None:
        passed = abs(theirs - ours) < absolute
    remark = passed and measured > setting.numbers.get("remark", np.inf)
    sentence = say(
        "Step {}: the loss is {} in the reference and {} in the candidate, {} apart.",
        int(losses.steps[0]),
        wording.loss(ours),
        wording.loss(theirs),
        wording.share(measured),
    )
    digit = losses.unit * float(np.median(losses.scale)) / float(losses.scale[0])
    if passed and limit is not None and absolute is None and digit / 2 > limit.value:
        said = say(
            "{} The files print no more digits than that, of which the last is {} of the loss.",
            sentence,
            wording.share(digit),
        )
        return not_measured(
            setting, Measure.PERCENT, said, say("Print more digits of the loss in both runs."), measured
        )
    evidence = {"step": int(losses.steps[0]), "reference": ours, "candidate": theirs, "absolute": abs(theirs - ours)}
    found = Found(measured, Measure.PERCENT, sentence, evidence)
    return judged(setting, found, _first_advice(case, losses), passed=passed, remark=remark)


def _first_advice(case: Case, losses: Losses) -> str:
    return say(
        "Nothing was learned yet: the weights, the batch or the forward pass differ. {}",
        capture_at(case.pair, int(losses.steps[0])),
    )


def early_window(case: Case, setting: Setting) -> Criterion:
    """The mean relative difference of the first steps, in times the floor where repeats of the reference are known."""
    losses = case.losses
    needed = int(setting.numbers["steps"])
    if len(losses) < needed:
        return not_measured(setting, Measure.PERCENT, too_few(len(losses), needed), longer(case, needed))
    last = int(losses.steps[needed - 1])
    measured = _mean_of_first(losses, needed)
    evidence = {"mean": measured, "first_step": int(losses.steps[0]), "last_step": last}
    advice = capture_at(case.pair, _first_beyond(losses, needed, setting.limit or 0.0))
    said = say(
        "Over the first {} (up to step {}) the mean relative difference is {}.",
        wording.plural(needed, "step"),
        last,
        wording.share(measured),
    )
    if not case.floors:
        return judged(setting, Found(measured, Measure.PERCENT, said, evidence), advice)
    floor = max(*(_mean_of_first(each, needed) for each in case.floors), setting.numbers["smallest_floor"], losses.unit)
    limit = Limit(setting.numbers["times_floor"], setting.form.way, setting.source)
    sentence = say("{} That is {} the floor of {}.", said, wording.times(measured / floor), wording.share(floor))
    found = Found(measured / floor, Measure.TIMES, sentence, {**evidence, "floor": floor})
    return judged(setting, found, advice, limit=limit)


def _mean_of_first(losses: Losses, count: int) -> float:
    return float(np.abs(losses.relative[:count]).mean()) if len(losses) else 0.0


def _first_beyond(losses: Losses, count: int, limit: float) -> int:
    """The first of the steps whose difference is beyond the limit, the largest where none is."""
    away = np.abs(losses.relative[:count])
    beyond = np.flatnonzero(away > limit)
    return int(losses.steps[beyond[0] if len(beyond) else int(np.argmax(away))])
