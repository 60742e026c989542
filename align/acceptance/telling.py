"""How criteria are made: the outcome from the measurement and the limit, the advice for what was not measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from align import wording
from align.acceptance.case import Case
from align.acceptance.pairing import CurvePair
from align.acceptance.policy import Need, Setting
from align.acceptance.policy_keys import AT_LEAST
from align.acceptance_records import Criterion, Limit, Measure, Outcome
from align.curve_records import CurveKind
from align.sentences import say

REPEAT = say(
    "Run the reference twice more with `align capture --perturb 1` and `--perturb 2`, and give these runs as `--floor`."
)


def met(measured: float, limit: Limit) -> bool:
    """Whether a limit is kept; NaN keeps none."""
    return measured >= limit.value if limit.way == AT_LEAST else measured <= limit.value


@dataclass(frozen=True, slots=True)
class Found:
    """A measurement: the number (None where it is no number), how it is written, what it says, what belongs to it."""

    measured: float | None
    measure: Measure
    sentence: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


def judged(
    setting: Setting, found: Found, advice: str = "", *, limit: Limit | None = None, passed: bool | None = None,
    remark: bool = False,
) -> Criterion:  # fmt: skip
    """A criterion that was measured, held against the policy's limit or another one.

    `passed` says so where another rule decides. The advice is for failures and remarks only.
    """
    limit = setting.limited() if limit is None else limit
    if passed is None:
        passed = limit is None or (found.measured is not None and met(found.measured, limit))
    return Criterion(
        code=setting.code,
        outcome=Outcome.PASS if passed else Outcome.FAIL,
        measured=found.measured,
        measure=found.measure,
        limit=limit,
        required=limit is not None and setting.need is not Need.NEVER,
        sentence=found.sentence,
        advice=advice if remark or not passed else "",
        remark=remark and passed,
        evidence=found.evidence,
    )


def not_measured(
    setting: Setting, measure: Measure, sentence: str, advice: str, measured: float | None = None
) -> Criterion:
    """A criterion that could not be told, and how it can be."""
    return Criterion(
        code=setting.code,
        outcome=Outcome.NOT_MEASURED,
        measured=measured,
        measure=measure,
        limit=setting.limited(),
        required=setting.need is Need.ALWAYS,
        sentence=sentence,
        advice=advice,
    )


def uncertain(setting: Setting, found: Found) -> Criterion:
    """A criterion that is missed only where healthy runs may differ as much."""
    sentence = say(
        "{} That is beyond the limit only where the loss is near 0 or little and scattered, and healthy runs may "
        "differ as much there.",
        found.sentence,
    )
    return not_measured(setting, found.measure, sentence, REPEAT, found.measured)


def capture_at(pair: CurvePair, step: int) -> str:
    """What to run to see why two runs differ from a step on; captures count from 0, logs that begin with 1 do not."""
    counts_from_one = pair.reference.kind is not CurveKind.CAPTURE and int(pair.steps[0]) == 1
    first = max(step - 1 - counts_from_one, 0)
    return say(
        "Capture steps {} and {} of both runs with `align capture --steps {}:{}` and compare them with `align diff`.",
        first,
        first + 1,
        first,
        first + 2,
    )


def longer(case: Case, needed: int) -> str:
    """What to do about too few steps."""
    if not len(case.losses):
        return say("See what is not finite with `align inspect`.")
    return say(
        "Train both runs longer: for {} logged steps to tell this, for {} to meet the policy.",
        wording.count(needed),
        wording.count(max(case.policy.minimum_steps, needed)),
    )


def too_few(count: int, needed: int) -> str:
    """Why nothing was measured; `count` are the common steps at which both losses are finite."""
    if count == 0:
        return say("At no common step are both losses finite: {} such steps are needed.", needed)
    if count == 1:
        return say("1 common step is too few to tell: {} are needed.", needed)
    return say("{} are too few to tell: {} are needed.", wording.plural(count, "common step"), needed)
