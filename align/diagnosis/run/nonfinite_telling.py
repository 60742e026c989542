"""What the rules on NaN and Inf of one run say alike: what it is, where it starts, who made it, how far it went."""

from __future__ import annotations

from typing import Any

from align import wording
from align.diagnosis import telling
from align.inspection import Inspection, RunView
from align.inspection.nonfinite import Start
from align.records import Origin, Phase, Place
from align.sentences import joined, say

BEFORE = (Phase.FORWARD, Phase.LOSS, Phase.BACKWARD, Phase.GRADIENT, Phase.UPDATE)
"""Phases in their order, each made from the ones before it."""

CAUGHT_FOR_GOOD = (
    " The loss scaler skips every step from here on; no loss scale helps, since it does not come of a scaled gradient."
)


def accused(inspection: Inspection) -> tuple[Start | None, bool]:
    """The start to tell, None where there is none, and whether it is an error: it did harm, or no step gets through."""
    found = inspection.nonfinite
    if found.fatal:
        return found.fatal[0], True
    return (found.caught[0], found.lasting) if found.caught else (None, False)


def kind_of(start: Start) -> str:
    """`NaN`, `Inf`, `-Inf` or `NaN and Inf`."""
    stats = start.record.stats
    if start.nan:
        return "NaN and Inf" if start.inf else "NaN"
    return "-Inf" if stats is not None and not stats.positive_infs else "Inf"


def amount(start: Start) -> str:
    """`12 of 48 elements`; nothing of a single number."""
    stats = start.record.stats
    if stats is None or stats.count == 1:
        return ""
    return say("{} of {}", wording.count(stats.nonfinite), wording.plural(stats.count, "element"))


def blamed(start: Start) -> str:
    """The name that a finding points to: the code between modules where that made it, else the record's."""
    return start.owner if start.origin is Origin.FUNCTIONAL else start.key.name


def place(start: Start) -> Place:
    """Where a finding points."""
    return telling.place_of(start.key, blamed(start))


def made_by(start: Start) -> str:
    """The code that made it, as the end of a sentence after a colon; nothing where the module itself did."""
    backward = start.origin is Origin.FUNCTIONAL and start.key.phase is Phase.BACKWARD
    return say("the backward of {}", code_of(start)) if backward else code_of(start)


def code_of(start: Start) -> str:
    """The code that made it, of a gradient the code whose backward did; nothing where the module itself did."""
    key = start.key
    if start.origin is Origin.UNKNOWN:
        return "code that was not captured"
    if start.origin is not Origin.FUNCTIONAL:
        return ""
    if key.phase is Phase.BACKWARD:
        users = [telling.code_name(user) if not user else say("the code of {}", user) for user in start.users]
        which = "" if len(users) < 2 else ", which can all use it"  # noqa: PLR2004 - one alone is told as such
        return say("{}{}", joined(" or of ", users), which)
    if not start.owner:
        return "the training script"
    code = say("the code of {}", start.owner)
    if not start.sibling:
        return code
    return say("{} after {}", code, start.sibling) if start.key.slot.startswith("output") else (
        say("{} between {} and {}", code, start.sibling, key.name)
    )  # fmt: skip


def lacking(view: RunView, start: Start) -> list[Phase]:
    """The phases before that of a start that the capture does not have: it may start there."""
    if start.key.phase not in BEFORE:
        return [] if start.key.phase in {Phase.INIT, Phase.INPUT} else _not_captured(view, BEFORE)
    return _not_captured(view, BEFORE[: BEFORE.index(start.key.phase)])


def _not_captured(view: RunView, phases: tuple[Phase, ...]) -> list[Phase]:
    return [phase for phase in phases if phase not in view.phases()]


def seen_first(view: RunView, start: Start) -> str:
    """What cannot be told of a start because of what was not captured, as a sentence after a blank."""
    phases = lacking(view, start)
    if phases:
        return say(
            " It may start earlier: the capture has no phase {}.", wording.listing([str(phase) for phase in phases])
        )
    if start.origin is Origin.UNKNOWN:
        return " Which code made it cannot be told: the module around was not captured."
    if weights_unknown(view, start):
        step = wording.step(start.key.step - 1)
        return say(" Its weights may have been like that already: {}, whose update made them, was not captured.", step)
    if view.run.modules_requested and start.key.phase not in {Phase.INIT, Phase.INPUT}:
        names = wording.listing(view.run.modules_requested)
        return say(" Only modules that match {} were captured: it may start in others.", names)
    return ""


def weights_unknown(view: RunView, start: Start) -> bool:
    """Whether a module with weights made it, and the update that made those was not captured."""
    step = start.key.step
    of_module = start.key.phase is Phase.FORWARD and start.origin is Origin.MODULE and start.weights > 0.0
    return of_module and step > 0 and step - 1 not in view.steps


def fate(inspection: Inspection, start: Start, *, lasting: bool) -> str:
    """What became of it, as sentences after a blank."""
    found = inspection.nonfinite
    if start in found.fatal:
        return _spread(start)
    if lasting:
        return CAUGHT_FOR_GOOD
    if any(step == start.key.step and row_skipped for step, row_skipped in _skips(inspection)):
        return " The loss scaler skipped the step, so the parameters are unharmed."
    return " The optimizer got other gradients, which are finite: the parameters are unharmed."


def _skips(inspection: Inspection) -> list[tuple[int, bool]]:
    return [(row.step, row.skipped) for row in inspection.view.timeline]


def _spread(start: Start) -> str:
    """Whether it has reached the loss and the parameters, and when."""
    in_loss = min((step for step, phase in start.harm if phase is Phase.LOSS), default=None)
    in_weights = min((step for step, phase in start.harm if phase is Phase.PARAM), default=None)
    parts = []
    if in_loss is not None and start.key.phase is not Phase.LOSS:
        parts.append(say("the loss of {}", wording.step(in_loss)))
    if in_weights is not None and start.key.phase is not Phase.PARAM:
        parts.append(say("the parameters after {}", wording.step(in_weights)))
    return say(" It reaches {}.", wording.listing(parts)) if parts else ""


def evidence(start: Start) -> dict[str, Any]:
    """The numbers of a start."""
    stats = start.record.stats
    return {
        "elements": start.record.numel,
        "nan": stats.nans if stats is not None else 0,
        "inf": stats.positive_infs + stats.negative_infs if stats is not None else 0,
        "largest_finite": stats.absolute_maximum if stats is not None else 0.0,
        "largest_entered": start.reach,
        "largest_weight": start.weights or None,
        "dtype": start.record.dtype,
        "reaches": sorted({say("{}:{}", step, phase) for step, phase in start.harm}),
    }


def arguments(start: Start) -> dict[str, Any]:
    """What the sentences are made from."""
    return {
        **telling.key_arguments(start.key),
        "owner": start.owner,
        "sibling": start.sibling,
        "kind": kind_of(start),
        "origin": str(start.origin),
        "masked_rows": start.mask is not None,
    }


def look_advice(start: Start) -> str:
    """How to see the values of the step in which it starts."""
    name = blamed(start) or start.key.name
    if start.origin is Origin.FUNCTIONAL:
        # The values that its code had are those of the children; of the whole model that is all of them.
        name = start.key.name if name.startswith("<") else f"{name}*"
    step = max(start.key.step, 0)
    return say(
        "To see its values, run `align capture --steps {}:{} --detail tensors --modules '{}'`, then `align show "
        "RUN.h5 '{}'`.",
        step,
        step + 1,
        name,
        name,
    )
