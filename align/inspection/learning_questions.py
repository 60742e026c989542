"""The questions about learning: recomputing, optimizer, parameters, the curve of the loss, the time of a step."""

from __future__ import annotations

from align import wording
from align.inspection.inspection import Inspection
from align.inspection.lacking import lacking, unusable
from align.inspection.learning import Learning
from align.inspection.stall import guessing, is_constant
from align.inspection.step_times import FEWEST
from align.optimizer_replay import KNOWN_KINDS, groups_of
from align.records import Phase, Reply, State

RECOMPUTING, OPTIMIZER, PARAMETERS, LOSS, TIME = "recompute", "optimizer", "parameters", "loss", "step time"


def recomputing(inspection: Inspection) -> Reply:
    """Whether activation checkpoints compute again what they computed first."""
    found = inspection.recomputing
    if not found:
        why = lacking(inspection.view, (Phase.FORWARD,))
        if why:
            return Reply(RECOMPUTING, State.UNKNOWN, f"Whether checkpoints repeat their forward cannot be told: {why}")
        return Reply(RECOMPUTING, State.ABSENT, "Nothing was computed again: no activation checkpointing.")
    bad = next((one for one in found if one.differing), None)
    if bad is not None:
        key = bad.differing[0].first.key
        return Reply(
            RECOMPUTING, State.BAD,
            f"{key.name} {key.slot} is not repeated as it was computed first, in {wording.step(bad.step)}.",
        )  # fmt: skip
    total, equal = sum(one.compared for one in found), sum(one.equal for one in found)
    rest = "equal to the bit" if equal == total else f"{wording.count(equal)} to the bit, the others within rounding"
    return Reply(
        RECOMPUTING, State.GOOD,
        f"All {wording.plural(total, 'tensor')} that checkpoints computed again are as they were first: {rest}.",
    )  # fmt: skip


def optimizer(inspection: Inspection) -> Reply:
    """Whether the optimizer follows its own formula."""
    check = inspection.optimizer_check
    if check.step is not None:
        return Reply(
            OPTIMIZER,
            State.BAD,
            f"What {wording.step(check.step)} makes of the parameters and states does not follow from the settings.",
        )
    if check.steps:
        return Reply(
            OPTIMIZER, State.GOOD,
            f"{wording.listing(check.kinds)} follows its formula and its settings in {wording.steps(check.steps)}, in "
            f"{wording.plural(check.parameters, 'parameter')} that could be replayed.",
        )  # fmt: skip
    return Reply(
        OPTIMIZER, State.UNKNOWN, f"Whether the optimizer follows its formula cannot be told: {_why(inspection)}"
    )


def _why(inspection: Inspection) -> str:
    """Why the optimizer could not be replayed, and what to capture."""
    view = inspection.view
    why = unusable(view) or lacking(view, (Phase.UPDATE, Phase.OPTIMIZER, Phase.PARAM))
    if why:
        return why
    if view.run.detail == "stats":
        return "statistics do not hold it; capture with --detail sketch."
    groups = [group for number in view.steps for group in groups_of(view.step(number).facts).values()]
    kinds = sorted({str(group["class"]) for group in groups if "class" in group})
    strange = [kind for kind in kinds if kind not in KNOWN_KINDS]
    if strange:
        return f"the formula of {wording.listing(strange)} is not known, only those of {wording.listing(KNOWN_KINDS)}."
    if inspection.learning.zero_steps == inspection.learning.steps:
        return f"in {wording.steps(inspection.learning.steps)} all gradients are 0."
    return (
        "too little is known of the parameters before the steps and of the states; capture steps in a row from step 0 "
        "with --steps 0:3."
    )


def parameters(inspection: Inspection) -> Reply:
    """Whether the parameters that get gradients move."""
    found, lost, learning = inspection.standstill, inspection.lost_updates, inspection.learning
    if found is not None:
        why = {
            "rate": "the learning rate is 0",
            "rate_ends": f"the learning rate is 0 from {wording.step(found.step)} on",
            "skipped": "all steps were skipped",
            "zero_gradients": "all gradients are 0",
            "not_owned": "the optimizer has none of those that get a gradient",
            "cleared": "the optimizer takes none of the gradients that backward makes",
            "unreached": "backward reaches none of those that the optimizer has",
            "loose": f"{wording.plural(len(found.owners), 'parameter')} with a gradient are in no optimizer",
            "replaced": f"the optimizer has others in the place of {wording.plural(len(found.owners), 'parameter')}",
            "stuck": f"{wording.plural(len(found.owners), 'parameter')} do not move though they should",
        }[found.cause]
        return Reply(PARAMETERS, State.BAD, f"{_whose(found.cause)} updated: {why}.")
    if lost is not None:
        return Reply(
            PARAMETERS, State.BAD,
            f"The updates of {wording.percent(lost.share)} of the elements are lost in rounding to "
            f"{wording.dtype(lost.dtype)}.",
        )  # fmt: skip
    due = learning.due
    if not due:
        return Reply(
            PARAMETERS, State.UNKNOWN, f"Whether the parameters move cannot be told: {_why_unmoved(inspection)}"
        )
    moved, owners = {move.owner for move in due if not move.unchanged}, {move.owner for move in due}
    gradient = "a gradient other than 0" if learning.zeroed else "a gradient"
    told = (
        f"{wording.count(len(moved))} of {wording.plural(len(owners), 'parameter')} with {gradient} moved."
        f"{_idle(learning)}"
    )
    if not moved:
        told = f"{told} Whether the optimizer was to move them in these steps cannot be told."
    elif len(learning.zeroed) > len(moved):
        told = f"{told} Whether that is meant cannot be told."
    else:
        return Reply(PARAMETERS, State.GOOD, told)
    return Reply(PARAMETERS, State.UNKNOWN, told)


def _idle(learning: Learning) -> str:
    """How many parameters of the optimizer got gradients of zeros, and how many none at all, after a blank."""
    zeros, none = len(learning.zeroed), len(learning.idle) - len(learning.zeroed)
    told = f" {wording.plural(zeros, 'parameter')} of the optimizer got gradients that are all 0." if zeros else ""
    return f"{told} {wording.plural(none, 'parameter')} of the optimizer got no gradient." if none else told


def _whose(cause: str) -> str:
    return "Not all parameters are" if cause in {"loose", "replaced", "stuck", "rate_ends"} else "No parameter is"


def _why_unmoved(inspection: Inspection) -> str:
    """Why no parameter is known before and after a step, with a gradient in it that is not 0."""
    view = inspection.view
    if view.run.detail == "stats" and view.steps:
        return "statistics do not hold it; capture with --detail sketch."
    why = unusable(view) or lacking(view, (Phase.GRADIENT, Phase.OPTIMIZER, Phase.PARAM))
    if why:
        return why
    if inspection.learning.zero_steps == inspection.learning.steps:
        return f"in {wording.steps(inspection.learning.steps)} all gradients are 0."
    return (
        "no parameter is known before and after a step that updated it; capture steps in a row from step 0 with "
        "--steps 0:3."
    )


def loss(inspection: Inspection) -> Reply:
    """Whether the loss falls, without jumps."""
    curve = inspection.loss_curve
    if not curve.count:
        return Reply(LOSS, State.UNKNOWN, "Whether the loss falls cannot be told: no step has a known, finite loss.")
    course = (
        f"{wording.loss(curve.first)} first, {wording.loss(curve.last)} last, {wording.plural(curve.count, 'step')}"
    )
    wrong = _wrong_loss(inspection)
    if wrong:
        return Reply(LOSS, State.BAD, f"The loss {wrong} ({course}).")
    if curve.fell:
        return Reply(LOSS, State.GOOD, f"The loss falls ({course}).")
    if curve.fell is None:
        return Reply(LOSS, State.UNKNOWN, f"Whether the loss falls cannot be told of so few steps ({course}).")
    return Reply(
        LOSS,
        State.UNKNOWN,
        f"The loss does not fall by more than its noise ({course}). Whether that is wrong cannot be told: training "
        "that goes on from a finished model looks the same, and so do targets that belong to other inputs.",
    )


def _wrong_loss(inspection: Inspection) -> str:
    """What is surely wrong with the loss, empty for nothing."""
    curve, jump = inspection.loss_curve, inspection.loss_curve.first_jump
    if is_constant(inspection.view, curve):
        return "is the same in every step, to the last bit"
    if guessing(inspection.view, curve) is not None:
        return "stays where guessing has it"
    if jump is None:
        return ""
    return f"{'rises and stays high' if jump is curve.rise else 'jumps'} in {wording.step(jump.step)}"


def step_time(inspection: Inspection) -> Reply:
    """Whether the steps take equally long."""
    found = inspection.step_times
    if found.cliff is not None:
        return Reply(
            TIME, State.BAD,
            f"A step takes {found.after:.3g} seconds from {wording.step(found.cliff)} on, {found.before:.3g} before.",
        )  # fmt: skip
    if found.count < 2 * FEWEST:
        return Reply(
            TIME, State.UNKNOWN,
            f"Whether steps grow slower cannot be told of a run this short: it takes {2 * FEWEST} steps beside those "
            f"that are captured, this one has {wording.count(found.count)}.",
        )  # fmt: skip
    # No ground to call a run healthy: it may be quick and learn nothing.
    return Reply(TIME, State.ABSENT, f"A step takes {found.median:.3g} seconds, from the first to the last.")
