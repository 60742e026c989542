"""Why nothing is learned, as tables: the reasons in the order in which they are to be asked, what does not move."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from align import wording
from align.inspection.inspection import Inspection
from align.inspection.lacking import STATISTICS_ONLY, lacking, unusable
from align.inspection.learning import Move
from align.inspection.learning_questions import LOSS, OPTIMIZER, PARAMETERS, RECOMPUTING
from align.inspection.stall import COARSE, NEAR_GUESSING, classes_of
from align.records import Column, FactValue, Owner, Phase, Shown, Table
from align.sentences import say
from align.tolerance import PRECISIONS

YES, NO, UNKNOWN = "yes", "no", "not measured"
NOTABLE = 0.05
"""A parameter is listed from this share of its elements on that stay as they are although they have a gradient."""
MOST_ROWS = 200

Check = tuple[str, str, str]
"""What is asked, `yes`, `no` or `not measured`, and what was seen or what to capture."""


def tables(inspection: Inspection) -> Iterable[Table]:
    """The checklist of a loss that stands still, the updates that are not what they should be, what was repeated."""
    yield _checklist(inspection)
    yield _replay(inspection)
    yield _unmoved(inspection)
    yield _recomputed(inspection)


def _checklist(inspection: Inspection) -> Table:
    makes = (_rate, _skipped, _gradients, _still, _rounding, _constant, _guessing)
    checks = [make(inspection) for make in makes] if inspection.view.timeline else []
    return Table(
        "learning",
        "What keeps a loss where it is",
        "In the order in which they are to be asked: the first yes is the cause of those after it.",
        (Column("number", Shown.COUNT), Column("is it so that"), Column("answer"), Column("seen")),
        tuple((number, *check) for number, check in enumerate(checks, 1)),
        LOSS,
    )


def _told(question: str, *, holds: bool, seen: str) -> Check:
    return question, YES if holds else NO, seen


def _missing(inspection: Inspection, question: str, phases: tuple[Phase, ...]) -> Check:
    if inspection.view.run.detail == "stats":
        return question, UNKNOWN, STATISTICS_ONLY
    why = unusable(inspection.view) or lacking(inspection.view, phases)
    return question, UNKNOWN, why or "capture steps in a row from step 0 with --steps 0:3."


def _rate(inspection: Inspection) -> Check:
    question = "the learning rate is 0"
    rates = [row.learning_rate for row in inspection.view.timeline if math.isfinite(row.learning_rate)]
    if not rates:
        return question, UNKNOWN, "no step has a known learning rate."
    low, high, steps = min(rates), max(rates), wording.plural(len(rates), "step")
    seen = say("from {} to {} in {}", wording.value(low), wording.value(high), steps)
    if low == high:
        seen = say("{} in all {}", wording.value(low), steps)
    return _told(question, holds=not any(rates), seen=seen)


def _skipped(inspection: Inspection) -> Check:
    rows = inspection.view.timeline
    skipped = sum(row.skipped for row in rows)
    seen = say("{} of {}", wording.count(skipped), wording.plural(len(rows), "step"))
    return _told("all steps are skipped", holds=skipped == len(rows), seen=seen)


def _gradients(inspection: Inspection) -> Check:
    question, learning = "all gradients are 0", inspection.learning
    if learning.gradients:
        seen = say("in {} of {} captured steps", len(learning.zero_steps), len(learning.steps))
        return _told(question, holds=learning.zero_steps == learning.steps, seen=seen)
    norms = [row.gradient_norm for row in inspection.view.timeline if math.isfinite(row.gradient_norm)]
    if not norms:
        return _missing(inspection, question, (Phase.GRADIENT,))
    seen = say("the norm is {} at most, in {}", wording.value(max(norms)), wording.plural(len(norms), "step"))
    return _told(question, holds=not any(norms), seen=seen)


def _still(inspection: Inspection) -> Check:
    question = "the parameters stay as they are, to the last bit"
    moves = [move for move in inspection.learning.moves if move.gradient > 0.0]
    if not moves:
        return _missing(inspection, question, (Phase.GRADIENT, Phase.OPTIMIZER, Phase.PARAM))
    still = {move.owner for move in moves} - {move.owner for move in moves if not move.unchanged}
    total = len({move.owner for move in moves})
    seen = say("{} of {} with a gradient", wording.count(len(still)), wording.plural(total, "parameter"))
    return _told(question, holds=len(still) == total, seen=seen)


def _rounding(inspection: Inspection) -> Check:
    question, due = "the updates are below the rounding of the parameters", inspection.learning.due
    judged = [move for move in due if move.asked is not None]
    if inspection.learning.moves and not due:
        return question, UNKNOWN, "no update is asked for where gradients or learning rates are 0."
    if not judged:
        return _missing(inspection, question, (Phase.GRADIENT, Phase.OPTIMIZER, Phase.PARAM))
    lost = inspection.lost_updates
    fine = all(PRECISIONS[move.dtype].unit < COARSE for move in judged)
    share = sum(move.numel for move in judged if move.lost) / sum(move.numel for move in judged)
    seen = say("those of {} of the elements", wording.percent(share) if share else "0 %")
    if fine and lost is None:
        seen = say("{}; the parameters are {}", seen, wording.dtype(judged[0].dtype))
    return _told(question, holds=lost is not None, seen=seen)


def _constant(inspection: Inspection) -> Check:
    question, curve = "the loss is the same to the last bit", inspection.loss_curve
    if not curve.count:
        return question, UNKNOWN, "no step has a known, finite loss."
    if curve.count == 1:
        return question, UNKNOWN, "one step alone has a known, finite loss."
    seen = say(
        "{} first, {} last, {}",
        wording.loss(curve.first),
        wording.loss(curve.last),
        wording.plural(curve.count, "step"),
    )
    return _told(question, holds=curve.constant, seen=seen)


def _guessing(inspection: Inspection) -> Check:
    question, curve = "the loss is that of guessing", inspection.loss_curve
    classes = classes_of(inspection.view)
    if classes is None or not curve.count:
        return question, UNKNOWN, "the number of classes is not known: no captured output has targets of whole numbers."
    guess = math.log(classes)
    near = abs(curve.last - guess) <= NEAR_GUESSING * guess
    seen = say("ln({}) is {}, the loss is {} last", classes, wording.loss(guess), wording.loss(curve.last))
    return _told(question, holds=near, seen=seen)


def _replay(inspection: Inspection) -> Table:
    check = inspection.optimizer_check
    errors = sorted(check.errors, key=lambda error: -error.error / error.allowed)
    return Table(
        "optimizer_replay",
        "What does not follow the optimizer's formula",
        "Parameters whose update, or whose state, is not what gradients, states and settings give.",
        (
            Column("parameter", Shown.NAME),
            Column("what"),
            Column("relative L2", Shown.RELATIVE),
            Column("allowed", Shown.RELATIVE),
            Column("over allowed", Shown.TIMES),
            Column("factor", Shown.NUMBER),
        ),
        tuple(
            (_owner(error.owner), error.what, error.error, error.allowed, error.error / error.allowed, error.factor)
            for error in errors[:MOST_ROWS]
        ),
        OPTIMIZER,
    )


def _owner(owner: Owner) -> str:
    return say("{} {}", *owner)


def _unmoved(inspection: Inspection) -> Table:
    """The worst step of each parameter that should move and of which a share stays as it is."""
    worst: dict[Owner, Move] = {}
    for move in inspection.learning.due:
        if move.owner not in worst or _unchanged(move) > _unchanged(worst[move.owner]):
            worst[move.owner] = move
    moves = sorted(worst.values(), key=lambda move: -_unchanged(move))
    return Table(
        "unmoved",
        "What does not move",
        "Parameters that have a gradient and a learning rate, and elements that stay as they are all the same.",
        (
            Column("parameter", Shown.NAME),
            Column("unchanged", Shown.SHARE),
            Column("step", Shown.COUNT),
            Column("format"),
            Column("gradient norm", Shown.NUMBER),
            Column("update asked for", Shown.NUMBER),
            Column("update made", Shown.NUMBER),
            Column("lost in rounding"),
        ),
        tuple(_move_row(move) for move in moves[:MOST_ROWS] if _unchanged(move) >= NOTABLE),
        PARAMETERS,
    )


def _unchanged(move: Move) -> float:
    """The share of the elements with a gradient that stay as they are."""
    if move.unchanged:
        return 1.0
    if move.changed is None or move.filled <= 0.0:
        return 0.0
    return min(1.0, max(0.0, 1.0 - move.changed / move.filled))


def _move_row(move: Move) -> tuple[FactValue, ...]:
    return (
        _owner(move.owner), _unchanged(move), move.step, move.dtype, move.gradient, move.asked, move.arrived, move.lost,
    )  # fmt: skip


def _recomputed(inspection: Inspection) -> Table:
    def rows() -> Iterator[tuple[FactValue, ...]]:
        for one in inspection.recomputing:
            first = one.differing[0].first.key if one.differing else None
            name = None if first is None else say("{} {}", first.name, first.slot)
            relative = one.differing[0].relative_l2 if one.differing else None
            yield one.step, one.compared, one.equal, len(one.differing), name, relative

    return Table(
        "recomputed",
        "What was computed again",
        "Of each captured step: the tensors that checkpoints computed twice, how many are equal to the bit, and the "
        "first that is not what it was.",
        (
            Column("step", Shown.COUNT),
            Column("tensors", Shown.COUNT),
            Column("equal to the bit", Shown.COUNT),
            Column("not the same", Shown.COUNT),
            Column("the first of them", Shown.NAME),
            Column("relative L2", Shown.RELATIVE),
        ),
        tuple(rows()),
        RECOMPUTING,
    )
