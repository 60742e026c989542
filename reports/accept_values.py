"""How the criteria of an acceptance are written: their numbers, limits and results, alike in all reports."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from align import wording
from align.acceptance_records import Acceptance, AcceptResult, Criterion, Measure, Outcome
from align.sentences import say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from align.reports.language import Language

ROLES = {Acceptance.PASS: "pass", Acceptance.FAIL: "error", Acceptance.UNKNOWN: "unknown"}
RESULT_ROLES = {
    "accept_required_open": "unknown",
    "accept_result_open": "unknown",
    "accept_result_not_measured": "unknown",
    "accept_result_fail": "error",
    "accept_result_missed": "warning",
    "accept_result_reported": "note",
    "accept_result_remark": "warning",
    "accept_result_pass": "pass",
}
"""The badge of a criterion for each key of its outcome."""
NOT_MEASURED = "-"


def whole(number: float) -> str:
    """A number of things."""
    return wording.count(int(number)) if math.isfinite(number) else wording.value(number)


WRITTEN: Mapping[Measure, Callable[[float], str]] = {
    Measure.PERCENT: wording.share,
    Measure.RELATIVE: wording.relative,
    Measure.TIMES: wording.times,
    Measure.COUNT: whole,
    Measure.STEP: whole,
    Measure.NUMBER: wording.value,
    Measure.SECONDS: wording.seconds,
}


def measured_text(criterion: Criterion, language: Language) -> str:
    """What was measured, a dash where nothing was."""
    if criterion.measured is None:
        return NOT_MEASURED
    return language.said(WRITTEN[criterion.measure](criterion.measured))


def limit_text(criterion: Criterion, language: Language) -> str:
    """The limit with its direction, a dash where there is none."""
    if criterion.limit is None:
        return language["accept_no_limit"]
    key = "accept_at_least" if criterion.limit.way == "at least" else "accept_at_most"
    return language[key].format(value=WRITTEN[criterion.measure](criterion.limit.value))


def result_key(criterion: Criterion) -> str:
    """The key of the phrase for a criterion's outcome."""
    if criterion.outcome is Outcome.NOT_MEASURED and criterion.measured is not None:
        return "accept_result_open"
    if criterion.outcome is Outcome.NOT_MEASURED:
        return "accept_required_open" if criterion.required else "accept_result_not_measured"
    if criterion.outcome is Outcome.FAIL:
        return "accept_result_fail" if criterion.required else "accept_result_missed"
    if criterion.limit is None:
        return "accept_result_reported"
    return "accept_result_remark" if criterion.remark else "accept_result_pass"


def name_of(criterion: Criterion, language: Language) -> str:
    """What a criterion is called, its code where it is of another program."""
    key = f"criterion_{criterion.code}"
    return language[key] if key in language.phrases else criterion.code


def badge(result: AcceptResult, language: Language) -> str:
    """The verdict in a word, with the number of steps where these are too few."""
    word = language[f"accept_{result.verdict}"]
    if not result.preliminary:
        return word
    minimum = wording.count(result.policy.minimum_steps)
    few = language["accept_preliminary"].format(steps=wording.plural(result.steps, "step"), minimum=minimum)
    return language.said(say("{} ({})", word, few))


def failing(result: AcceptResult) -> list[Criterion]:
    """The required criteria that are missed, in their order."""
    return [each for each in result.criteria if each.required and each.outcome is Outcome.FAIL]
