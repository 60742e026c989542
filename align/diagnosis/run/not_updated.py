"""AL706: parameters that get gradients are not updated."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.inspection.stall import Standstill
from align.optimizer_replay import Owner
from align.records import Finding, Place, Severity

CODE = "AL706"
LABEL = "parameters-not-updated"

NAMED = 3

ADVICE = {
    "rate": (
        "Give the optimizer a learning rate above 0: look at its arguments and at the first value of the scheduler. "
        "Where a rate of 0 is meant, as in a test of equal steps, nothing is wrong."
    ),
    "rate_ends": (
        "Give the scheduler the number of steps that the run really takes: it counts calls of scheduler.step(), which "
        "some frameworks make once per process or per micro-batch."
    ),
    "skipped": "Find what is not finite: capture the first steps with `align capture --steps 0:3` and inspect again.",
    "zero_gradients": (
        "Look at what lies between the loss and the parameters: a factor of 0, a mask that leaves nothing, .detach(), "
        "numbers below the smallest of float16 (a loss scale helps)."
    ),
    "not_owned": (
        "Make the optimizer after the model has its last parameters: moving, wrapping, loading or replacing modules "
        "behind it leaves it with the old ones."
    ),
    "loose": (
        "Add them to a parameter group of the optimizer, or set requires_grad=False where they are to stay as they are."
    ),
    "stuck": (
        "Look at what the optimizer writes to: copies of the parameters, a step that was patched or fused by hand, "
        "values that are put back after the step."
    ),
}


@run_rule(CODE, LABEL, rank=53)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The first reason why parameters are not updated, in the order of a training step."""
    found = inspection.standstill
    if found is None:
        return
    name = found.owners[0][0] if found.owners else ""
    sure = found.sure or (found.cause == "rate" and inspection.loss_curve.fell is False)
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if sure else Severity.WARNING,
        sentence(found),
        ADVICE[found.cause],
        Place(step=found.step, phase="gradient" if found.cause == "zero_gradients" else "optimizer", name=name),
        {
            "cause": found.cause,
            "steps": found.count,
            "parameters": [" ".join(owner) for owner in found.owners],
            "of": found.total,
        },
        {"cause": found.cause, "step": found.step, "steps": found.count, "parameters": len(found.owners)},
    )


def sentence(found: Standstill) -> str:
    """Why parameters are not updated."""
    steps = wording.plural(found.count, "step")
    named = wording.listing([" ".join(owner) for owner in found.owners[:NAMED]], len(found.owners))
    which = f"{wording.count(len(found.owners))} of {wording.plural(found.total, 'parameter')}"
    return {
        "rate": f"The learning rate is 0 in all {steps} that were seen: no parameter can move.",
        "rate_ends": (
            f"The learning rate is 0 from {wording.step(found.step)} to the end of the run, {steps}: from there on no "
            "parameter moves."
        ),
        "skipped": f"All {steps} were skipped because a gradient was not finite: no parameter has moved.",
        "zero_gradients": f"All gradients are exactly 0 in {steps}, the loss is not: nothing can be learned from it.",
        "not_owned": (
            f"None of the {wording.plural(found.total, 'parameter')} that get a gradient belongs to the optimizer "
            f"({named}): it updates others, or none."
        ),
        "loose": (
            f"{which} with a gradient {_are(found.owners)} in no optimizer, so that nothing moves "
            f"{_them(found.owners)}: {named}."
        ),
        "stuck": (
            f"{which} with a gradient and a learning rate {_are(found.owners)} the same to the last bit after {steps}, "
            f"though the update is large enough to be seen: {named}."
        ),
    }[found.cause]


def _them(owners: tuple[Owner, ...]) -> str:
    return "it" if len(owners) == 1 else "them"


def _are(owners: tuple[Owner, ...]) -> str:
    return "is" if len(owners) == 1 else "are"
