"""Whether both runs see the same batches at the same steps: then their losses rise and fall together."""

from __future__ import annotations

import math

import numpy as np

from align import wording
from align.acceptance.case import Case
from align.acceptance.policy import Setting
from align.acceptance.telling import Found, judged, longer, not_measured, too_few
from align.acceptance.together import FEWEST, STRANGE, step_correlations
from align.acceptance_records import Criterion, Limit, Measure
from align.sentences import say

REMAINDER = 0.5
"""A lag explains the candidate better where it leaves less than this share of what no lag leaves unexplained: losses
that are means over many steps are alike at all small lags."""

BATCHES = say(
    "Compare the batches: `align capture --steps 0:3` of both runs, then `align diff`, which names their relation. "
    "Check seed, sampler and resumed position."
)


def shift(case: Case, setting: Setting) -> Criterion:
    """By how many steps the candidate is behind the reference, by what correlates best."""
    if len(case.losses) < FEWEST:
        return not_measured(setting, Measure.STEP, too_few(len(case.losses), FEWEST), longer(case, FEWEST))
    found = step_correlations(case.losses, int(setting.numbers["lags"]))
    if found is None:
        return _still(setting, Measure.STEP)
    lag = _best(found, setting.numbers["correlation"])
    evidence = {"lag": lag, "correlation": found[lag], "correlation_at_0": found[0]}
    if lag == 0:
        sentence = say("The losses go together best step by step: neither run is shifted.")
        return judged(setting, Found(0.0, Measure.STEP, sentence, evidence))
    count = wording.plural(abs(lag), "logged step")
    sentence = say(
        "The candidate's loss is that of the reference {} (correlation {}, step by step {}).",
        say("{} before", count) if lag > 0 else say("{} later", count),
        f"{found[lag]:.2f}",
        f"{found[0]:.2f}",
    )
    advice = say("One run began elsewhere in its data, or the logs number their steps differently. {}", BATCHES)
    return judged(setting, Found(float(abs(lag)), Measure.STEP, sentence, evidence), advice)


def data_order(case: Case, setting: Setting) -> Criterion:
    """The correlation of the changes of both losses from step to step."""
    needed = int(setting.numbers["steps"])
    if len(case.losses) < needed:
        return not_measured(setting, Measure.NUMBER, too_few(len(case.losses), needed), longer(case, needed))
    found = step_correlations(case.losses, 0)
    if found is None:
        return _still(setting, Measure.NUMBER)
    sentence = say("The changes of both losses from step to step have a correlation of {}.", f"{found[0]:.3f}")
    advice = say("The runs see other data, or the same in another order. {}", BATCHES)
    return judged(setting, Found(found[0], Measure.NUMBER, sentence), advice, limit=_limit(case, setting))


def _limit(case: Case, setting: Setting) -> Limit | None:
    """The limit, lowered to half of what repeats of the reference have where that is less: chaos has no order."""
    limit = setting.limited()
    usual = [found[0] for floor in case.floors if (found := step_correlations(floor, 0)) is not None]
    lowest = min(usual, default=math.inf) / 2
    if limit is None or lowest >= limit.value:
        return limit
    return Limit(lowest, limit.way, say("half of what repeats of the reference have ({})", setting.source))


def strange_repeats(case: Case) -> list[str]:
    """A word for each repeat of the reference whose loss does not go together with it: it may be another training."""
    return [
        say(
            "The changes of a repeat's loss have a correlation of {} with those of the reference: was it trained on "
            "the same batches?",
            f"{found[0]:.2f}",
        )
        for floor in case.floors
        if len(floor) >= FEWEST and (found := step_correlations(floor, 0)) is not None and found[0] < STRANGE
    ]


def _best(found: dict[int, float], least: float) -> int:
    lag = max(found, key=lambda one: (np.nan_to_num(found[one], nan=-1.0), -abs(one)))
    sure = found[lag] > least and 1.0 - found[lag] < REMAINDER * (1.0 - found[0])
    return lag if sure else 0


def _still(setting: Setting, measure: Measure) -> Criterion:
    sentence = say("One of the losses does not change from step to step: nothing can be told of the order of the data.")
    return not_measured(setting, measure, sentence, BATCHES)
