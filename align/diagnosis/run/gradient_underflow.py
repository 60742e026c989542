"""AL604: gradients of one run are too small for fp16 and become 0."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.registry import run_rule
from align.diagnosis.underflow_telling import advise_scale
from align.inspection import Inspection
from align.inspection.scale_questions import tell_scales
from align.inspection.underflow import StepUnderflow
from align.records import Finding, Place, Severity, TensorKey
from align.sentences import say

CODE = "AL604"
LABEL = "gradient-underflow"

NAMED = 3


@run_rule(CODE, LABEL, rank=47)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The captured step in which most was lost."""
    found = inspection.underflow
    worst = found.worst
    if worst is None or not worst.notable:
        return
    steps = [step.step for step in found.steps if step.notable]
    start = _start(worst)
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if worst.harmful else Severity.WARNING,
        say(
            "{}{}",
            _summary(worst, "6.1e-5, the device has no subnormals" if found.flushes else "6.0e-8"),
            tell_scales(worst),
        ),
        advise_scale(worst.scale, worst.lowest, worst.highest, lost=bool(worst.lost)),
        Place(start.step, str(start.phase), start.name, start.slot, start.micro, start.call),
        {
            "loss_scale": worst.scale,
            "lost": len(worst.lost),
            "parameters": worst.parameters,
            "starved_share": worst.starved,
            "worst_error": worst.worst.error,
            "zeros": worst.worst.zeros,
            "lowest_scale": worst.lowest,
            "highest_scale": worst.highest,
            "steps": steps,
        },
        {"step": worst.step, "name": start.name, "loss_scale": worst.scale, "lost": len(worst.lost)},
    )


def _start(step: StepUnderflow) -> TensorKey:
    """The first gradient that is starved, in the order of the backward."""
    lost = step.lost[0].key if step.lost else step.worst.key
    return next((layer.key for layer in step.layers if layer.starved), lost)


def _summary(step: StepUnderflow, smallest: str) -> str:
    start = next((layer for layer in step.layers if layer.starved), None)
    scale = (
        "without a loss scale" if step.scale == 1.0 else say("at a loss scale of {}", wording.loss_scale(step.scale))
    )
    at = ""
    if start is not None and start.zeros == 1.0:
        at = say(": from {} {} on they are all 0", start.key.name, start.key.slot)
    elif start is not None:
        at = say(
            ": from {} {} on, which is rounded by {} with {} zeros in it, they are about the smallest fp16 number ({})",
            start.key.name,
            start.key.slot,
            wording.percent(start.error),
            wording.percent(start.zeros),
            smallest,
        )
    text = say("Step {}: {} gradients are too small for fp16{}.", step.step, scale, at)
    if step.lost:
        names = wording.listing(
            [say("{} {}", lost.key.name, lost.key.slot) for lost in step.lost[:NAMED]], len(step.lost)
        )
        return say(
            "{} The gradients of {} of {} are all 0 ({}).",
            text,
            wording.count(len(step.lost)),
            wording.plural(step.parameters, "parameter"),
            names,
        )
    return say(
        "{} {} of the parameters get gradients that are made of such numbers.", text, wording.percent(step.starved)
    )
