"""AL706: parameters that get gradients are not updated."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.inspection.nonfinite import Start
from align.inspection.stall import Standstill
from align.records import Finding, Place, Severity
from align.sentences import joined, say

CODE = "AL706"
LABEL = "parameters-not-updated"

NAMED = 3

MADE_TOO_EARLY = (
    "Make the optimizer after the model has its last parameters: moving, wrapping, loading or replacing modules behind "
    "it leaves it with the old ones."
)

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
    "overflowed": (
        "Look at what it is made of; where only scaled gradients overflow, begin with a lower loss scale "
        "(GradScaler(init_scale=...)) and let it fall, else compute there in bf16 or fp32."
    ),
    "zero_gradients": (
        "Look at what lies between the loss and the parameters: a factor of 0, a mask that leaves nothing, .detach(), "
        "numbers below the smallest of float16 (a loss scale helps)."
    ),
    "not_owned": MADE_TOO_EARLY,
    "replaced": MADE_TOO_EARLY,
    "cleared": ("Call optimizer.zero_grad() before loss.backward() or after optimizer.step(), never between the two."),
    "unreached": (
        "Look for what cuts the loss off from them: .detach(), .item(), torch.no_grad(), requires_grad=False, a loss "
        "of something else. `loss.backward()` raises no error while any tensor needs a gradient."
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
        say("{}{}", sentence(found), _overflowed(inspection, found)),
        ADVICE["overflowed" if _overflow(inspection, found) else found.cause],
        Place(step=found.step, phase="gradient" if found.cause == "zero_gradients" else "optimizer", name=name),
        {
            "cause": found.cause,
            "steps": found.count,
            "parameters": [joined(" ", owner) for owner in found.owners],
            "of": found.total,
        },
        {"cause": found.cause, "step": found.step, "steps": found.count, "parameters": len(found.owners)},
    )


def _overflow(inspection: Inspection, found: Standstill) -> Start | None:
    """What is not finite in the first captured of all skipped steps, where it is known."""
    starts = inspection.nonfinite.by_step
    return starts[min(starts)] if found.cause == "skipped" and starts else None


def _overflowed(inspection: Inspection, found: Standstill) -> str:
    start = _overflow(inspection, found)
    if start is None:
        return ""
    key = start.key
    return say(
        " The first that is not finite in {} is {} {} ({}).", wording.step(key.step), key.name, key.slot, key.phase
    )


def sentence(found: Standstill) -> str:
    """Why parameters are not updated."""
    return {**_no_step(found), **_no_gradient(found), **_some(found)}[found.cause]


def _no_step(found: Standstill) -> dict[str, str]:
    """The sentences where no step moves anything, or teaches anything."""
    steps = wording.plural(found.count, "step")
    return {
        "rate": say("The learning rate is 0 in all {} that were seen: no parameter can move.", steps),
        "rate_ends": say(
            "The learning rate is 0 from {} to the end of the run, {}: from there on no parameter moves.",
            wording.step(found.step),
            steps,
        ),
        "skipped": say("All {} were skipped because a gradient was not finite: no parameter has moved.", steps),
        "zero_gradients": say(
            "All gradients are exactly 0 in {}, the loss is not: nothing can be learned from it.", steps
        ),
    }


def _no_gradient(found: Standstill) -> dict[str, str]:
    """The sentences where no gradient comes to a parameter that the optimizer has."""
    steps, all_of_them = wording.plural(found.count, "step"), wording.plural(found.total, "parameter")
    return {
        "not_owned": say(
            "None of the {} that get a gradient belongs to the optimizer ({}): it updates others, or none.",
            all_of_them,
            _named(found),
        ),
        "cleared": say(
            "Backward makes gradients, and in none of the {} does the optimizer take one: they are cleared "
            "before it is called, and no parameter moves.",
            steps,
        ),
        "unreached": say(
            "In none of {} does one of the {} of the optimizer get a gradient: backward does not reach them, "
            "and no parameter moves.",
            steps,
            all_of_them,
        ),
    }


def _some(found: Standstill) -> dict[str, str]:
    """The sentences where some parameters stand still."""
    which = say("{} of {}", wording.count(len(found.owners)), wording.plural(found.total, "parameter"))
    are, them = ("is", "it") if len(found.owners) == 1 else ("are", "them")
    return {
        "loose": say(
            "{} with a gradient {} in no optimizer, so that nothing moves {}: {}.", which, are, them, _named(found)
        ),
        "replaced": say(
            "{} with a gradient {} in no optimizer, so that nothing moves {}: {}. In their place the optimizer "
            "has as many that belong to no module and get no gradient.",
            which,
            are,
            them,
            _named(found),
        ),
        "stuck": say(
            "{} with a gradient and a learning rate {} the same to the last bit after {}, though the update is "
            "large enough to be seen: {}.",
            which,
            are,
            wording.plural(found.count, "step"),
            _named(found),
        ),
    }


def _named(found: Standstill) -> str:
    return wording.listing([joined(" ", owner) for owner in found.owners[:NAMED]], len(found.owners))
