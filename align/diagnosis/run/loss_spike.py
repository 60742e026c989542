"""AL802: the loss jumps, or rises and stays, and what rose first."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.inspection.growth import norm_jump
from align.inspection.loss_curve import ONE_JUMP, Jump
from align.records import Finding, Place, Severity
from align.sentences import joined, say

CODE = "AL802"
LABEL = "loss-spike"

AROUND = 5
"""How many steps before a jump are worth capturing."""


@run_rule(CODE, LABEL, rank=82)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The jumps of the loss, or the rise that stays; with the parameter whose gradient grew first, where captured."""
    curve = inspection.loss_curve
    first = curve.first_jump
    if first is None:
        return
    growth = inspection.growth
    place = Place(step=first.step, phase="loss", name="loss")
    if growth is not None:
        place = Place(step=growth.step, phase="gradient", name=growth.owner[0], slot=growth.owner[1])
    yield Finding(
        CODE,
        LABEL,
        Severity.WARNING,
        say("{} {}", _jump(inspection, first), _rose_first(inspection, first)),
        _advice(inspection, first),
        place,
        {
            "steps": [jump.step for jump in curve.jumps],
            "rises_from": curve.rise.step if curve.rise is not None else None,
            "loss": first.loss,
            "before": first.before,
            "gradient": joined(" ", growth.owner) if growth is not None else None,
            "gradient_factor": growth.factor if growth is not None else None,
        },
        {"step": first.step, "loss": first.loss, "before": first.before, "name": place.name},
    )


def _jump(inspection: Inspection, first: Jump) -> str:
    jumps, rise = inspection.loss_curve.jumps, inspection.loss_curve.rise
    if rise is not None and first is rise:
        return say(
            "The loss rises in {} from {} to at most {} and is not back at the end of the run, {} later.",
            wording.step(rise.step),
            wording.loss(rise.before),
            wording.loss(rise.loss),
            wording.plural(rise.steps, "step"),
        )
    more = say(", and {} later", wording.plural(len(jumps) - 1, "more time")) if len(jumps) > 1 else ""
    stays = say("; from {} on it stays high", wording.step(rise.step)) if rise is not None else ""
    return say(
        "The loss jumps in {} from {} to {}{}{}.",
        wording.step(first.step),
        wording.loss(first.before),
        wording.loss(first.loss),
        more,
        stays,
    )


def _rose_first(inspection: Inspection, first: Jump) -> str:
    growth = inspection.growth
    if growth is not None:
        return say(
            "The gradient of {} grew before: its norm is {} in {}, {} times the median of the captured steps before.",
            joined(" ", growth.owner),
            wording.value(growth.norm),
            wording.step(growth.step),
            wording.factor(growth.factor),
        )
    norm = norm_jump(inspection.view.timeline, first.step - ONE_JUMP, first.step)
    if norm is None:
        return "Which gradient grew first is not known: the steps around it were not captured."
    if norm < first.step:
        return say(
            "The norm of the gradients rose before, in {}: look at the backward, or the optimizer.", wording.step(norm)
        )
    return say("The norm of the gradients rose with it, in {}: look at the batch of that step.", wording.step(norm))


def _advice(inspection: Inspection, first: Jump) -> str:
    growth = inspection.growth
    if growth is not None:
        return say(
            "Look at how the gradient of {} is summed: in 16 bits a sum of many terms loses the small ones. Sum it "
            "in fp32, clip it, or lower its learning rate, and see whether the loss stays.",
            growth.owner[0],
        )
    begin = max(0, first.step - AROUND)
    return say(
        "Capture these steps with `align capture --steps {}:{}` and inspect again: it tells which layer's gradient "
        "grew first. A jump that comes at the same step in a good run comes from the data.",
        begin,
        first.step + 2,
    )
