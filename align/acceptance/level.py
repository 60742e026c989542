"""How far the two losses are apart: on the whole, in the worst window, for good, and to one side."""

from __future__ import annotations

import math

import numpy as np

from align import wording
from align.acceptance.case import Case, excused
from align.acceptance.policy import Setting
from align.acceptance.scale import Losses
from align.acceptance.statistics import apart_at_the_end, lasting_from, onset, window_means
from align.acceptance.telling import Found, capture_at, judged, longer, not_measured, too_few, uncertain
from align.acceptance_records import Criterion, Limit, Measure
from align.sentences import say
from align.standard_error import deviations_from_zero

UNEXPLAINED = 5.0
"""Times what repeats differ by that no rounding reaches: 3.8 at most in `benchmarks/acceptance_trainings.py`."""

SMALLEST_REPEAT = 1e-5
"""What repeats of a run in float32 differ by."""

MODELZOO = 0.02
"""The level below which ModelZoo-PyTorch's reports ask a mean relative error to be."""


def mean_error(case: Case, setting: Setting) -> Criterion:
    """The mean of the relative differences, each without its sign."""
    skipped = int(setting.numbers.get("skip", 0))
    losses = case.losses
    if len(losses) <= skipped:
        return not_measured(setting, Measure.PERCENT, too_few(len(losses), skipped + 1), longer(case, skipped + 1))

    def mean(of: Losses) -> float:
        return float(np.abs(of.relative[skipped:]).mean()) if len(of) > skipped else 0.0

    measured = mean(losses)
    limit = case.raised(setting, mean)
    absolute = float(np.abs(losses.raw[1] - losses.raw[0])[skipped:].mean())
    passed = measured <= limit.value or absolute < setting.numbers.get("absolute", -1.0)
    sentence = say(
        "The mean relative difference of the loss is {} ({} in absolute numbers), the largest {} at step {}.",
        wording.share(measured),
        wording.value(absolute),
        wording.share(float(np.abs(losses.relative).max())),
        int(losses.steps[int(np.argmax(np.abs(losses.relative)))]),
    )
    if not passed and case.doubtful(mean, limit.value):
        return _doubt(setting, measured, sentence)
    evidence = {"absolute": absolute, "meets_2_percent": measured < MODELZOO}
    times = _times_repeats(case)
    if times is not None:
        evidence["times_repeats"] = times
    unexplained = passed and times is not None and times > UNEXPLAINED
    if unexplained:
        sentence += say(
            " That is within the limit, but {} what repeats of the reference differ by: rounding does not explain it.",
            wording.times(times),
        )
    advice = capture_at(case.pair, _parting(losses, limit.value))
    found = Found(measured, Measure.PERCENT, sentence, evidence)
    remark = unexplained or excused(setting, limit, measured)
    return judged(setting, found, advice, limit=limit, passed=passed, remark=remark)


def _times_repeats(case: Case) -> float | None:
    """How many times as far apart as the repeats of the reference the two runs are; None without repeats."""
    if not case.floors:
        return None

    def apart(losses: Losses) -> float:
        return float(np.abs(window_means(losses.relative, losses.window)).mean()) if len(losses) else 0.0

    return apart(case.losses) / max(SMALLEST_REPEAT, *map(apart, case.floors))


def worst_window(case: Case, setting: Setting) -> Criterion:
    """The largest mean over a window of steps."""
    losses = case.losses
    if len(losses) < losses.window:
        return not_measured(setting, Measure.PERCENT, too_few(len(losses), losses.window), longer(case, losses.window))
    means = window_means(losses.relative, losses.window)
    worst = int(np.argmax(np.abs(means)))
    first, last = int(losses.steps[worst]), int(losses.steps[worst + losses.window - 1])
    limit = case.raised(setting, _worst)
    measured = _worst(losses)
    sentence = say(
        "The worst {} are {}-{}: there the candidate's loss is {} on average.",
        wording.plural(losses.window, "step"),
        first,
        last,
        _side(float(means[worst])),
    )
    if measured > limit.value and case.doubtful(_worst, limit.value):
        return _doubt(setting, measured, sentence)
    begin = int(np.flatnonzero(np.abs(means) > limit.value)[0]) if measured > limit.value else worst
    place = onset(losses.relative, begin, losses.window)
    evidence = {"first_step": first, "last_step": last, "window": losses.window}
    found = Found(measured, Measure.PERCENT, sentence, evidence)
    advice = capture_at(case.pair, int(losses.steps[place]))
    return judged(setting, found, advice, limit=limit, remark=excused(setting, limit, measured))


def divergence(case: Case, setting: Setting) -> Criterion:
    """Whether the losses part for good: every mean from one step to the end is beyond the limit."""
    losses = case.losses
    if len(losses) < losses.window:
        return not_measured(setting, Measure.PERCENT, too_few(len(losses), losses.window), longer(case, losses.window))
    limit = case.raised(setting, _worst)
    measured = _last(losses)
    if measured <= limit.value:
        sentence = say(
            "The losses do not part for good: at the end, over {}, they differ by {} on average.",
            wording.plural(losses.window, "step"),
            wording.share(measured),
        )
        remark = excused(setting, limit, measured)
        return judged(setting, Found(measured, Measure.PERCENT, sentence), limit=limit, remark=remark)
    begin = lasting_from(window_means(losses.relative, losses.window), limit.value)
    step = int(losses.steps[onset(losses.relative, begin, losses.window)])
    sentence = say(
        "From step {} on the losses are apart to the end: over the last {} the candidate's is {} on average.",
        step,
        wording.plural(losses.window, "step"),
        _side(apart_at_the_end(losses.relative, losses.window)),
    )
    if case.doubtful(_mean, limit.value, _from(losses, len(losses) - losses.window)):
        return _doubt(setting, measured, sentence)
    found = Found(measured, Measure.PERCENT, sentence, {"step": step})
    return judged(setting, found, capture_at(case.pair, step), limit=limit)


def bias(case: Case, setting: Setting) -> Criterion:
    """Whether the candidate's loss is surely higher or lower at the end of the runs."""
    losses, numbers = case.losses, setting.numbers
    last = _last_share(losses, numbers["share"])
    if len(last) < losses.window:
        needed = math.ceil(losses.window / numbers["share"])
        return not_measured(setting, Measure.PERCENT, too_few(len(losses), needed), longer(case, needed))

    measured, sure = _mean(last), deviations_from_zero(last.relative)
    limit = case.raised(setting, lambda floor: _largest(floor, len(last)))
    beyond = abs(measured) > limit.value
    passed = not (beyond and abs(sure) > numbers["deviations"])
    sentence = _bias_sentence(last, measured, sure)
    if not passed and case.doubtful(_mean, limit.value, last):
        return _doubt(setting, abs(measured), sentence)
    evidence = {"mean": measured, "deviations": sure, "first_step": int(last.steps[0])}
    found = Found(abs(measured), Measure.PERCENT, sentence, evidence)
    remark = beyond or excused(setting, limit, abs(measured)) or _remarkable(setting, limit, measured, sure)
    advice = _bias_advice(beyond=beyond) if passed else _bias_place(case, limit.value)
    return judged(setting, found, advice, limit=limit, passed=passed, remark=remark)


def _bias_sentence(last: Losses, measured: float, sure: float) -> str:
    return say(
        "From step {} on the candidate's loss is {} on average, which is {} times its standard error.",
        int(last.steps[0]),
        _side(measured),
        f"{abs(sure):.1f}" if math.isfinite(sure) else wording.value(abs(sure)),
    )


def _remarkable(setting: Setting, limit: Limit, measured: float, sure: float) -> bool:
    """A bias that is too small to fail and too sure to be chance; repeats of the reference may excuse it."""
    raised = limit.value > (setting.limit or 0.0)
    least = setting.numbers.get("remark", math.inf)
    return not raised and abs(measured) > least and abs(sure) > setting.numbers["remark_deviations"]


def _bias_advice(*, beyond: bool) -> str:
    if beyond:
        return say("That is beyond the limit, but may be chance: train both runs longer to tell.")
    return say(
        "The difference is steady, if small: evaluate both models on the downstream tasks before you rely on it."
    )


def _bias_place(case: Case, allowed: float) -> str:
    """Where to look: the bias is there from where on every window has half of what is allowed."""
    losses = case.losses
    begin = lasting_from(window_means(losses.relative, losses.window), allowed / 2)
    return capture_at(case.pair, int(losses.steps[onset(losses.relative, begin, losses.window)]))


def _last_share(losses: Losses, part: float) -> Losses:
    return _from(losses, len(losses) - int(len(losses) * part))


def _from(losses: Losses, place: int) -> Losses:
    return losses.only(np.arange(len(losses)) >= place)


def _mean(losses: Losses) -> float:
    return float(losses.relative.mean()) if len(losses) else 0.0


def _worst(losses: Losses) -> float:
    return _largest(losses, losses.window)


def _largest(losses: Losses, length: int) -> float:
    """The largest mean over any stretch of so many steps.

    Of repeats it is taken over the whole run, as chaos strikes when it will: over the judged stretch alone the mean of
    a repeat may be 0 by luck, and a healthy candidate then exceeds 2.5 times that of two repeats in 6 of 100 cases.
    """
    return float(np.abs(window_means(losses.relative, length)).max(initial=0.0))


def _last(losses: Losses) -> float:
    return abs(apart_at_the_end(losses.relative, losses.window)) if len(losses) else 0.0


def _parting(losses: Losses, limit: float) -> int:
    """The step at which the losses part first: where the first window beyond the limit begins to be so."""
    beyond = np.flatnonzero(np.abs(window_means(losses.relative, losses.window)) > limit)
    if len(beyond):
        return int(losses.steps[onset(losses.relative, int(beyond[0]), losses.window)])
    return int(losses.steps[int(np.argmax(np.abs(losses.relative) > limit))])


def _side(mean: float) -> str:
    return say("{} higher", wording.share(mean)) if mean > 0 else say("{} lower", wording.share(-mean))


def _doubt(setting: Setting, measured: float, sentence: str) -> Criterion:
    return uncertain(setting, Found(abs(measured), Measure.PERCENT, sentence))
