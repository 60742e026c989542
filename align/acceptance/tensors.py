"""What a comparison of two captures says: whether both runs began alike, and whether any tensor really differs."""

from __future__ import annotations

import math

from align import wording
from align.acceptance.case import Case
from align.acceptance.policy import Setting
from align.acceptance.telling import Found, judged, not_measured
from align.acceptance_records import Criterion, Measure
from align.records import Comparison, DiffResult, Kind, Phase, Status, Verdict
from align.sentences import say

GIVEN = (Phase.INIT, Phase.INPUT)
DIFFERENT = (Status.ORIGIN, Status.PROPAGATED, Status.NONFINITE)
SHOWN = 3
KEPT = 100
BOTH = say("Run both with `align capture --steps 0:3` and give the captures to `align accept`.")


def equal_start(case: Case, setting: Setting) -> Criterion:
    """How many of the initial weights and batches differ."""
    diff = case.diff
    if diff is None:
        return not_measured(
            setting,
            Measure.COUNT,
            case.undiffed or say("Logs do not hold weights and batches: that both runs began alike was not seen."),
            BOTH,
        )
    given = [each for each in diff.comparisons if each.key.phase in GIVEN and each.status is not Status.NOT_JUDGED]
    if not given:
        return not_measured(setting, Measure.COUNT, say("The captures hold no initial weights and no batches."), BOTH)
    differing = [each for each in given if each.status in DIFFERENT]
    if not differing:
        sentence = say("The initial weights and batches are equal, {}.", wording.plural(len(given), "tensor"))
        return judged(setting, Found(0.0, Measure.COUNT, sentence))
    names = list(dict.fromkeys(_name(each) for each in differing))
    sentence = say(
        "{} of {} differ: {}.",
        wording.count(len(differing)),
        wording.plural(len(given), "initial weight or batch", "initial weights and batches"),
        wording.listing(names[:SHOWN], len(names)),
    )
    advice = say("Start both runs from the same weights and batches. {}", _first_advice(diff))
    return judged(setting, Found(float(len(differing)), Measure.COUNT, sentence, {"names": names[:KEPT]}), advice)


def tensors(case: Case, setting: Setting) -> Criterion:
    """The verdict of the comparison of two captures."""
    diff = case.diff
    if diff is None:
        why = case.undiffed or say("There are no tensors to compare: at least one run is no capture.")
        return not_measured(setting, Measure.TIMES, why, BOTH)
    first = diff.first_divergence
    given = first is not None and first.kind is Kind.EQUALITY and first.phase in GIVEN
    if diff.verdict is Verdict.INCOMPARABLE or given:
        why = say("The tensors were not judged, since the runs did not begin alike.") if given else diff.summary
        return not_measured(setting, Measure.TIMES, why, _first_advice(diff) or BOTH)
    largest = _largest(diff)
    if first is None or all(each.key != first.key for each in diff.comparisons):  # else other criteria tell of it
        sentence = say(
            "{} tensors of the captured steps were compared, and none really differs.",
            wording.count(len(diff.comparisons)),
        )
        return judged(setting, Found(largest, Measure.TIMES, sentence), passed=True)
    # A tensor that is not finite, missing or of another shape has no distance.
    times = first.times_floor if first is not None else None
    labels = [finding.label for finding in diff.findings[:SHOWN]]
    measured = times if times is not None and math.isfinite(times) else None
    found = Found(measured, Measure.TIMES, diff.summary, {"findings": labels})
    return judged(setting, found, _first_advice(diff), passed=False)


def _largest(diff: DiffResult) -> float:
    """The largest difference in times its floor, among those that a limit applies to."""
    return max((each.times_floor or 0.0 for each in diff.comparisons if _held(each)), default=0.0)


def _held(comparison: Comparison) -> bool:
    known = comparison.times_floor is not None and math.isfinite(comparison.times_floor)
    return known and comparison.status is Status.WITHIN


def _first_advice(diff: DiffResult) -> str:
    return diff.findings[0].advice if diff.findings else ""


def _name(comparison: Comparison) -> str:
    key = comparison.key
    return f"{key.name} {key.slot}" if key.phase is Phase.INIT else say("{} in {}", key.name, wording.step(key.step))
