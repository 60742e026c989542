"""The gradient norm, the other curve that most runs record."""

from __future__ import annotations

import numpy as np

from align import wording
from align.acceptance.case import Case, both, excused
from align.acceptance.pairing import CurvePair, at_steps
from align.acceptance.policy import Setting
from align.acceptance.statistics import Values, quotients
from align.acceptance.telling import Found, capture_at, judged, not_measured, uncertain
from align.acceptance_records import Criterion, Measure
from align.curve_records import Quantity
from align.sentences import say

SMALLEST = 0.05
"""A norm below this share of the median one is held against that share, as a loss near 0 is."""


def gradient_norm(case: Case, setting: Setting) -> Criterion:
    """The mean relative difference of the gradient norms."""
    measured = _mean(case.pair)
    if measured is None:
        return not_measured(
            setting,
            Measure.PERCENT,
            say("The gradient norm is not in both files."),
            say(
                "Log the gradient norm in both runs, or capture them: `align capture` records it where it is computed."
            ),
        )
    distances = [distance for pair in case.norms if (distance := _mean(pair)) is not None]
    limit = case.raised_by(setting, distances)
    first, low = _first_beyond(case.pair, limit.value)
    sentence = say(
        "The mean relative difference of the gradient norm is {} over {}.",
        wording.share(measured),
        wording.plural(low, "step"),
    )
    found = Found(measured, Measure.PERCENT, sentence, {"first_step_beyond": first})
    if measured > limit.value and not case.floors and _is_met_away_from_zero(case, limit.value):
        return uncertain(setting, found)
    remark = excused(setting, limit, measured)
    return judged(setting, found, capture_at(case.pair, first), limit=limit, remark=remark)


def _is_met_away_from_zero(case: Case, limit: float) -> bool:
    """Whether the limit is missed only at steps whose loss is near 0, where gradients are little but noise."""
    losses = case.losses
    if not losses.near.any() or case.policy.smallest == 0.0:
        return False
    away = losses.steps[~losses.near]
    pair = CurvePair(at_steps(case.pair.reference, away), at_steps(case.pair.candidate, away), (0, 0))
    measured = _mean(pair)
    return measured is None or measured <= limit


def _relative(ours: Values, theirs: Values) -> Values:
    least = max(SMALLEST * float(np.median(np.abs(ours))), float(np.finfo(np.float64).tiny))
    scale = np.maximum(np.abs(ours), least)
    return np.abs(quotients(theirs - ours, scale))


def _mean(pair: CurvePair) -> float | None:
    norms = both(pair, Quantity.GRADIENT_NORM)
    return None if norms is None else float(_relative(*norms).mean())


def _first_beyond(pair: CurvePair, limit: float) -> tuple[int, int]:
    """The first step whose norms differ by more than the limit, else the first of all; and how many steps have both."""
    ours, theirs = (run.columns[Quantity.GRADIENT_NORM] for run in (pair.reference, pair.candidate))
    kept = np.isfinite(ours) & np.isfinite(theirs)
    steps, away = pair.steps[kept], _relative(ours[kept], theirs[kept])
    return int(steps[int(np.argmax(away > limit))]), len(steps)
