"""The questions about learning: recomputing, optimizer, parameters, the curve of the loss, the time of a step."""

from __future__ import annotations

from align import wording
from align.inspection.inspection import Inspection
from align.inspection.lacking import STATISTICS_ONLY, lacking, unusable
from align.inspection.learning import Learning
from align.inspection.stall import guessing, is_constant
from align.inspection.step_times import FEWEST
from align.optimizer_replay import KNOWN_KINDS, groups_of
from align.records import Phase, Reply, State
from align.sentences import say

RECOMPUTING, OPTIMIZER, PARAMETERS, LOSS, TIME = "recompute", "optimizer", "parameters", "loss", "step time"


def recomputing(inspection: Inspection) -> Reply:
    """Whether activation checkpoints compute again what they computed first."""
    found = inspection.recomputing
    if not found:
        why = lacking(inspection.view, (Phase.FORWARD,))
        if why:
            return Reply(
                RECOMPUTING, State.UNKNOWN, say("Whether checkpoints repeat their forward cannot be told: {}", why)
            )
        return Reply(RECOMPUTING, State.ABSENT, "Nothing was computed again: no activation checkpointing.")
    bad = next((one for one in found if one.differing), None)
    if bad is not None:
        key = bad.differing[0].first.key
        return Reply(
            RECOMPUTING, State.BAD,
            say("{} {} is not repeated as it was computed first, in {}.", key.name, key.slot, wording.step(bad.step)),
        )  # fmt: skip
    total, equal = sum(one.compared for one in found), sum(one.equal for one in found)
    rest = (
        "equal to the bit" if equal == total else say("{} to the bit, the others within rounding", wording.count(equal))
    )
    return Reply(
        RECOMPUTING,
        State.GOOD,
        say(
            "All {} that checkpoints computed again are as they were first: {}.", wording.plural(total, "tensor"), rest
        ),
    )


def optimizer(inspection: Inspection) -> Reply:
    """Whether the optimizer follows its own formula."""
    check = inspection.optimizer_check
    if check.step is not None:
        return Reply(
            OPTIMIZER,
            State.BAD,
            say(
                "What {} makes of the parameters and states does not follow from the settings.",
                wording.step(check.step),
            ),
        )
    if check.steps:
        return Reply(
            OPTIMIZER,
            State.GOOD,
            say(
                "{} follows its formula and its settings in {}, in {} that could be replayed.",
                wording.listing(check.kinds),
                wording.steps(check.steps),
                wording.plural(check.parameters, "parameter"),
            ),
        )
    return Reply(
        OPTIMIZER, State.UNKNOWN, say("Whether the optimizer follows its formula cannot be told: {}", _why(inspection))
    )


def _why(inspection: Inspection) -> str:
    """Why the optimizer could not be replayed, and what to capture."""
    view = inspection.view
    why = unusable(view) or lacking(view, (Phase.UPDATE, Phase.OPTIMIZER, Phase.PARAM))
    if why:
        return why
    if view.run.detail == "stats":
        return STATISTICS_ONLY
    groups = [group for number in view.steps for group in groups_of(view.step(number).facts).values()]
    kinds = sorted({str(group["class"]) for group in groups if "class" in group})
    strange = [kind for kind in kinds if kind not in KNOWN_KINDS]
    if strange:
        return say(
            "the formula of {} is not known, only those of {}.", wording.listing(strange), wording.listing(KNOWN_KINDS)
        )
    return _all_zero(inspection) or (
        "too little is known of the parameters before the steps and of the states; capture steps in a row from step 0 "
        "with --steps 0:3."
    )


def _all_zero(inspection: Inspection) -> str:
    """That no step has a gradient other than 0; empty where one has."""
    learning = inspection.learning
    every = learning.zero_steps == learning.steps
    return say("in {} all gradients are 0.", wording.steps(learning.steps)) if every else ""


def parameters(inspection: Inspection) -> Reply:
    """Whether the parameters that get gradients move."""
    found, lost, learning = inspection.standstill, inspection.lost_updates, inspection.learning
    if found is not None:
        why = {
            "rate": "the learning rate is 0",
            "rate_ends": say("the learning rate is 0 from {} on", wording.step(found.step)),
            "skipped": "all steps were skipped",
            "zero_gradients": "all gradients are 0",
            "not_owned": "the optimizer has none of those that get a gradient",
            "cleared": "the optimizer takes none of the gradients that backward makes",
            "unreached": "backward reaches none of those that the optimizer has",
            "loose": say("{} with a gradient are in no optimizer", wording.plural(len(found.owners), "parameter")),
            "replaced": say(
                "the optimizer has others in the place of {}", wording.plural(len(found.owners), "parameter")
            ),
            "stuck": say("{} do not move though they should", wording.plural(len(found.owners), "parameter")),
        }[found.cause]
        return Reply(PARAMETERS, State.BAD, say("{} updated: {}.", _whose(found.cause), why))
    if lost is not None:
        return Reply(
            PARAMETERS,
            State.BAD,
            say(
                "The updates of {} of the elements are lost in rounding to {}.",
                wording.percent(lost.share),
                wording.dtype(lost.dtype),
            ),
        )
    due = learning.due
    if not due:
        return Reply(
            PARAMETERS, State.UNKNOWN, say("Whether the parameters move cannot be told: {}", _why_unmoved(inspection))
        )
    moved, owners = {move.owner for move in due if not move.unchanged}, {move.owner for move in due}
    gradient = "a gradient other than 0" if learning.zeroed else "a gradient"
    told = say(
        "{} of {} with {} moved.{}",
        wording.count(len(moved)),
        wording.plural(len(owners), "parameter"),
        gradient,
        _idle(learning),
    )
    if not moved:
        told = say("{} Whether the optimizer was to move them in these steps cannot be told.", told)
    elif len(learning.zeroed) > len(moved):
        told = say("{} Whether that is meant cannot be told.", told)
    else:
        return Reply(PARAMETERS, State.GOOD, told)
    return Reply(PARAMETERS, State.UNKNOWN, told)


def _idle(learning: Learning) -> str:
    """How many parameters of the optimizer got gradients of zeros, and how many none at all, after a blank."""
    zeros, none = len(learning.zeroed), len(learning.idle) - len(learning.zeroed)
    told = (
        say(" {} of the optimizer got gradients that are all 0.", wording.plural(zeros, "parameter")) if zeros else ""
    )
    return say("{} {} of the optimizer got no gradient.", told, wording.plural(none, "parameter")) if none else told


def _whose(cause: str) -> str:
    return "Not all parameters are" if cause in {"loose", "replaced", "stuck", "rate_ends"} else "No parameter is"


def _why_unmoved(inspection: Inspection) -> str:
    """Why no parameter is known before and after a step, with a gradient in it that is not 0."""
    view = inspection.view
    if view.run.detail == "stats" and view.steps:
        return STATISTICS_ONLY
    why = unusable(view) or lacking(view, (Phase.GRADIENT, Phase.OPTIMIZER, Phase.PARAM))
    if why:
        return why
    return _all_zero(inspection) or (
        "no parameter is known before and after a step that updated it; capture steps in a row from step 0 with "
        "--steps 0:3."
    )


def loss(inspection: Inspection) -> Reply:
    """Whether the loss falls, without jumps."""
    curve = inspection.loss_curve
    if not curve.count:
        return Reply(LOSS, State.UNKNOWN, "Whether the loss falls cannot be told: no step has a known, finite loss.")
    course = say(
        "{} first, {} last, {}",
        wording.loss(curve.first),
        wording.loss(curve.last),
        wording.plural(curve.count, "step"),
    )
    wrong = _wrong_loss(inspection)
    if wrong:
        return Reply(LOSS, State.BAD, say("The loss {} ({}).", wrong, course))
    if curve.fell:
        return Reply(LOSS, State.GOOD, say("The loss falls ({}).", course))
    if curve.fell is None:
        return Reply(LOSS, State.UNKNOWN, say("Whether the loss falls cannot be told of so few steps ({}).", course))
    return Reply(
        LOSS,
        State.UNKNOWN,
        say(
            "The loss does not fall by more than its noise ({}). Whether that is wrong cannot be told: training "
            "that goes on from a finished model looks the same, and so do targets that belong to other inputs.",
            course,
        ),
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
    return say("{} in {}", "rises and stays high" if jump is curve.rise else "jumps", wording.step(jump.step))


def step_time(inspection: Inspection) -> Reply:
    """Whether the steps take equally long."""
    found = inspection.step_times
    if found.cliff is not None:
        return Reply(
            TIME,
            State.BAD,
            say(
                "A step takes {} seconds from {} on, {} before.",
                f"{found.after:.3g}",
                wording.step(found.cliff),
                f"{found.before:.3g}",
            ),
        )
    if found.count < 2 * FEWEST:
        return Reply(
            TIME,
            State.UNKNOWN,
            say(
                "Whether steps grow slower cannot be told of a run this short: it takes {} steps beside those that "
                "are captured, this one has {}.",
                2 * FEWEST,
                wording.count(found.count),
            ),
        )
    # No ground to call a run healthy: it may be quick and learn nothing.
    return Reply(TIME, State.ABSENT, say("A step takes {} seconds, from the first to the last.", f"{found.median:.3g}"))
