"""Why nothing is learned, in the order in which it is to be asked: rate, skipped steps, gradients, optimizer, rounding.

What the timeline alone tells is told without a captured step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from align.hyperparameters import RATE
from align.inspection.learning import STRANGERS, Learning, Move
from align.inspection.loss_curve import LossCurve
from align.inspection.view import RunView, StepView
from align.matching.rules import is_root
from align.optimizer_replay import groups_of
from align.records import Owner, Phase, TensorRecord, TimelineRow
from align.tolerance import PRECISIONS

FEWEST_RATES = 3
"""A warm-up may begin at a rate of 0 in its first step, and a schedule end there."""

LONG_END = 10
END_SHARE = 0.1
"""So many steps at a rate of 0, and this share of all, are no end of a schedule."""

SETTLING = 10
USUAL_SCALE = 2.0**16
"""A loss scaler may skip so many steps in a row until it has found its scale (from 2^16 down to 2^6), and one more for
each doubling of its first scale above 2^16."""

FEWEST_STEPS = 2
"""What one step does may be chance: a batch without targets, an optimizer that takes every second call."""

LOST = 0.5
"""The share of the elements whose updates are lost from which on it is told,"""
NEARLY_ALL = 0.95
"""and from which on hardly anything can be learned."""

COARSE = 2.0**-11
"""Told of dtypes of 16 bits and fewer: in float32 an update that small means that nothing is left to learn."""

FEWEST_CONSTANT = 10
FEWEST_CONSTANT_COARSE = 50
"""A loss is constant over so many steps; so many where it may be a number of 16 bits, which has few digits."""

NEAR_GUESSING = 0.01
"""A loss this near to ln(classes) is that of guessing: 1 % below it a model knows something."""

WARMING = 1.5
"""A rate that is so many times that of the middle of the run is still rising."""


@dataclass(frozen=True, slots=True)
class Standstill:
    """A reason for parameters not to be updated.

    `cause` is `rate` (0 in every step), `rate_ends` (0 from `step` on), `skipped`, `zero_gradients`, `not_owned` (the
    optimizer has none of the parameters that get gradients), `cleared` (it takes none of the gradients that backward
    made), `unreached` (backward reaches none of its parameters), `loose` (it lacks some), `replaced` (it lacks some,
    and has as many that belong to no module and get no gradient), or `stuck`. `sure` says that nothing but this
    explains what was seen. `owners` are the parameters, of `total`; `count` is the number of steps.
    """

    cause: str
    sure: bool
    step: int
    count: int
    owners: tuple[Owner, ...] = ()
    total: int = 0


@dataclass(frozen=True, slots=True)
class LostUpdates:
    """Parameters whose updates are too small for their dtype: `share` is that of their elements among all that are due.

    `update` is the root mean square of what is asked for and `half_unit` half the spacing of the numbers there, both of
    the parameter with most elements.
    """

    step: int
    steps: int
    share: float
    owners: tuple[Owner, ...]
    total: int
    dtype: str
    update: float
    half_unit: float
    rate: float


def standstill(view: RunView, learning: Learning) -> Standstill | None:
    """The first reason, in the order of a training step, for parameters not to be updated; None where there is none.

    Where only some modules were captured (--modules), what those have in common says nothing of the others.
    """
    rows = view.timeline
    found = _rate(view, rows) or _skipped(rows)
    if found is None and not view.run.modules_requested:
        found = _zero_gradients(rows, learning) or _owned(learning) or _stuck(learning)
    return found or _rate_ends(view, rows)


def _rates(step: StepView) -> list[float]:
    """The rates of all groups of the optimizers of a step."""
    known = (group.get(RATE) for group in groups_of(step.facts).values())
    return [float(rate) for rate in known if isinstance(rate, (int, float))]


def _rate(view: RunView, rows: Sequence[TimelineRow]) -> Standstill | None:
    """A rate of 0 in every step: of all groups where they were captured, else of the first."""
    known = [row for row in rows if math.isfinite(row.learning_rate)]
    if len(known) < FEWEST_RATES or any(row.learning_rate for row in known):
        return None
    groups = [rate for number in view.steps for rate in _rates(view.step(number))]
    return None if any(groups) else Standstill("rate", bool(groups), known[0].step, len(known))


def _rate_ends(view: RunView, rows: Sequence[TimelineRow]) -> Standstill | None:
    """A rate of 0 from one step to the end of the run, for more steps than a schedule ends with."""
    known = [row for row in rows if math.isfinite(row.learning_rate)]
    behind = next((number for number, row in enumerate(reversed(known)) if row.learning_rate), len(known))
    if behind < max(LONG_END, END_SHARE * len(known)) or behind == len(known):
        return None
    first = known[-behind].step
    groups = [rate for number in view.steps if number >= first for rate in _rates(view.step(number))]
    return None if any(groups) else Standstill("rate_ends", sure=False, step=first, count=behind)


def _skipped(rows: Sequence[TimelineRow]) -> Standstill | None:
    if not rows or not all(row.skipped for row in rows):
        return None
    first = rows[0].loss_scale
    doublings = math.log2(first / USUAL_SCALE) if math.isfinite(first) and first > USUAL_SCALE else 0.0
    if len(rows) <= SETTLING + doublings:
        return None
    return Standstill("skipped", sure=True, step=rows[0].step, count=len(rows))


def _zero_gradients(rows: Sequence[TimelineRow], learning: Learning) -> Standstill | None:
    """Gradients that are all exactly 0 in every step in which they are known, though the loss is not."""
    losses = {row.step: row.loss for row in rows}
    steps = learning.zero_steps
    if len(steps) >= FEWEST_STEPS and steps == learning.steps and not learning.turns:
        if all(losses.get(step) != 0.0 for step in steps):
            return Standstill("zero_gradients", sure=True, step=steps[0], count=len(steps))
        return None
    known = [row for row in rows if math.isfinite(row.gradient_norm) and not row.skipped]
    if len(known) < FEWEST_RATES or learning.gradients or any(row.gradient_norm or row.loss == 0.0 for row in known):
        return None
    return Standstill("zero_gradients", sure=True, step=known[0].step, count=len(known))


def _owned(learning: Learning) -> Standstill | None:
    """Parameters that get gradients and are in no optimizer; an optimizer that gets none for its own."""
    if learning.turns or len(learning.steps) < FEWEST_STEPS:
        return None
    nothing = len(learning.untaken) >= FEWEST_STEPS and learning.untaken == learning.steps
    if nothing and (learning.cleared or not learning.loose):
        cause = "cleared" if learning.cleared else "unreached"
        return Standstill(cause, sure=True, step=learning.steps[0], count=len(learning.steps), total=learning.grouped)
    if not learning.loose:
        return None
    owners = learning.loose
    replaced = sum(name == STRANGERS for name, _ in learning.idle) == len(owners)
    cause = ("replaced" if replaced else "loose") if learning.trained else "not_owned"
    total = len(owners) + learning.trained
    return Standstill(cause, cause != "loose", learning.steps[0], len(learning.steps), owners, total)


def _stuck(learning: Learning) -> Standstill | None:
    """Parameters that never move in two steps or more, although their updates are large enough."""
    moves: dict[Owner, list[Move]] = {}
    for move in learning.due:
        moves.setdefault(move.owner, []).append(move)
    found = [
        owner
        for owner, own in moves.items()
        if len(own) >= FEWEST_STEPS and all(move.unchanged for move in own) and any(move.stuck for move in own)
    ]
    if not found:
        return None
    all_of_them = all(move.unchanged for move in learning.due)
    step = min(move.step for owner in found for move in moves[owner])
    count = len({move.step for move in learning.due})
    return Standstill("stuck", all_of_them, step, count, tuple(found), len(moves))


def lost_updates(learning: Learning) -> LostUpdates | None:
    """The updates that rounding swallows in every judged step, None where more than half of all arrive."""
    judged = [move for move in learning.due if move.asked is not None and PRECISIONS[move.dtype].unit >= COARSE]
    steps = sorted({move.step for move in judged})
    if len(steps) < FEWEST_STEPS:
        return None
    share, number = min((_lost_share(judged, step), step) for step in steps)
    if share < LOST:
        return None
    here = [move for move in judged if move.step == number]
    lost = sorted((move for move in here if move.lost), key=lambda move: -move.numel)
    largest = lost[0]
    return LostUpdates(
        step=steps[0],
        steps=len(steps),
        share=share,
        owners=tuple(move.owner for move in lost),
        total=len(here),
        dtype=largest.dtype,
        update=(largest.asked or 0.0) / math.sqrt(largest.numel * largest.filled),
        half_unit=largest.half_unit,
        rate=largest.rate,
    )


def _lost_share(moves: Sequence[Move], step: int) -> float:
    """The share of the elements due in a step whose updates are lost."""
    here = [move for move in moves if move.step == step]
    return sum(move.numel for move in here if move.lost) / sum(move.numel for move in here)


def is_constant(view: RunView, curve: LossCurve) -> bool:
    """Whether the loss is one number to the last bit over so many steps that this is no chance, and not 0."""
    if not curve.constant or not curve.first:
        return False
    dtypes = {
        record.dtype
        for number in view.steps
        for record in view.step(number).by_phase[Phase.LOSS]
        if record.key.slot == "value"
    }
    fine = bool(dtypes) and dtypes <= {"float32", "float64"}
    return curve.count >= (FEWEST_CONSTANT if fine else FEWEST_CONSTANT_COARSE)


def guessing(view: RunView, curve: LossCurve) -> int | None:
    """The number of classes where the loss begins and ends at its logarithm, as guessing has it; else None.

    A rate that is still rising says nothing yet.
    """
    rates = [row.learning_rate for row in view.timeline if math.isfinite(row.learning_rate)]
    if curve.fell is not False or not rates or max(rates) <= 0.0 or rates[-1] > WARMING * rates[len(rates) // 2]:
        return None
    classes = classes_of(view)
    if classes is None:
        return None
    guess = math.log(classes)
    near = all(abs(loss - guess) <= NEAR_GUESSING * guess for loss in (curve.first, curve.last))
    return classes if near else None


def classes_of(view: RunView) -> int | None:
    """The number of classes: the length of the model's output along which the targets have none."""
    for number in view.steps:
        step = view.step(number)
        targets = [one for one in step.by_phase[Phase.LOSS] if one.key.slot == "target" and one.dtype == "int64"]
        outputs = [one for one in step.by_phase[Phase.FORWARD] if _is_of_root(one)]
        found = {classes for output in outputs for target in targets if (classes := _classes(output, target))}
        if len(found) == 1:
            return found.pop()
    return None


def _is_of_root(record: TensorRecord) -> bool:
    return is_root(record.key.name) and record.key.slot.startswith("output")


def _classes(output: TensorRecord, target: TensorRecord) -> int | None:
    shape, given = output.shape, target.shape
    if len(shape) < 2 or not target.numel:  # noqa: PLR2004 - samples and classes
        return None
    if len(shape) > 2 and given == shape[:1] + shape[2:]:  # noqa: PLR2004 - classes before the places of an image
        return shape[1] if shape[1] > 1 else None
    # A language model is asked for the next word: of each row one fewer.
    rows = math.prod(shape[:-1])
    shifted = rows - math.prod(shape[:-2])
    fits = target.numel == rows or (len(shape) > 2 and target.numel == shifted)  # noqa: PLR2004 - as above
    return shape[-1] if fits and shape[-1] > 1 else None
