"""By what gradients are divided before the optimizer takes them, against what the loss was multiplied by."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from align.inspection.loss_scale import Course, after_of
from align.inspection.view import RunView, StepView
from align.records import Owner, Phase, TensorRecord

FEWEST_STEPS = 3
"""Steps in which the divisor must be seen: what a script divides by besides is the same in most of them."""

SAME = 1e-3
"""Divisors that agree within this share are equal; scales differ by a factor of 2."""

FEW_LEFT = 1e-3
"""What is left of the gradients when the optimizer's, times the divisor, are taken away: clipping of each by itself
leaves more."""


@dataclass(frozen=True, slots=True)
class WrongDivisor:
    """A step whose gradients were divided by the scale that it left, not by the one that its loss was multiplied by."""

    step: int
    scaled_by: float
    divided_by: float
    owner: Owner
    steps: tuple[int, ...]


def wrong_divisor(view: RunView, courses: Sequence[Course]) -> WrongDivisor | None:
    """The first captured step that is unscaled by the next scale; None where there is none, or it is not known.

    A script may divide by other numbers too (accumulated micro-steps, ranks): those are the same in other steps.
    """
    scales = {step: both for course in courses for step, both in _scales(course)}
    divisors = {step: divided_by(view.step(step)) for step in view.steps if step in scales}
    factors = {step: divisor / scales[step][0] for step, divisor in divisors.items() if divisor is not None}
    if len(factors) < FEWEST_STEPS:
        return None
    for usual in factors.values():
        wrong = tuple(step for step, factor in factors.items() if _is_next(factor / usual, *scales[step]))
        rest = [factor for step, factor in factors.items() if step not in wrong]
        if wrong and rest and all(math.isclose(factor, usual, rel_tol=SAME) for factor in rest):
            record = view.step(wrong[0]).by_phase[Phase.UPDATE][0]
            return WrongDivisor(wrong[0], *scales[wrong[0]], record.key.owner, wrong)
    return None


def _scales(course: Course) -> Iterator[tuple[int, tuple[float, float]]]:
    """The steps of which the scale and that of the next step are known, with both."""
    for row, following in zip(course.rows, (*course.rows[1:], None), strict=True):
        after = after_of(row) if following is None else following.loss_scale
        known = following is not None or not math.isnan(row.loss_scale_after)
        if known and 0.0 < row.loss_scale < math.inf:
            yield row.step, (row.loss_scale, after)


def divided_by(step: StepView) -> float | None:
    """The one number by which all gradients of a step were divided, None where there is no such number."""
    last: dict[Owner, TensorRecord] = {}
    for record in step.by_phase[Phase.GRADIENT]:
        last[record.key.owner] = record
    along = size = total = 0.0
    for record in step.by_phase[Phase.UPDATE]:
        before = last.get(record.key.owner)
        if before is None or before.sketch is None or record.sketch is None:
            return None
        gradient, taken = before.sketch.astype(np.float64), record.sketch.astype(np.float64)
        if gradient.shape != taken.shape or not bool(np.isfinite(gradient).all() and np.isfinite(taken).all()):
            return None
        along, size = along + float(gradient @ taken), size + float(taken @ taken)
        total += float(gradient @ gradient)
    if not (size > 0.0 and total > 0.0):
        return None
    divisor = along / size
    left = max(total - divisor * along, 0.0)
    return divisor if divisor > 0.0 and left <= FEW_LEFT**2 * total else None


def _is_next(factor: float, scale: float, following: float) -> bool:
    return following != scale and math.isclose(factor, following / scale, rel_tol=SAME)
