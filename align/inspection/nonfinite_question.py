"""The question whether all numbers are finite."""

from __future__ import annotations

import math

from align import wording
from align.inspection.inspection import Inspection
from align.inspection.lacking import lacking
from align.inspection.nonfinite import Start
from align.inspection.nonfinite_kind import SHORT
from align.inspection.view import RunView
from align.records import INIT_STEP, Phase, Reply, State
from align.sentences import joined, say
from align.tolerance import PRECISIONS

FINITE, HEADROOM = "finite numbers", "headroom"

TELLING = frozenset({Phase.LOSS, Phase.GRADIENT, Phase.UPDATE, Phase.PARAM})


def finite(inspection: Inspection) -> Reply:
    """Whether the loss, the gradients and the parameters are finite, and what of the rest is meant."""
    view, found = inspection.view, inspection.nonfinite
    if found.uncaptured is not None:
        return Reply(
            FINITE,
            State.BAD,
            say("The loss is not finite in {}, which was not captured.", wording.step(found.uncaptured.step)),
        )
    start = next(iter(found.fatal or (found.caught if found.lasting else ())), None)
    if start is not None:
        return Reply(FINITE, State.BAD, say("{} starts in {}.", _what(start), _where(start)))
    phases = sorted(view.phases() & TELLING, key=list(Phase).index)
    if phases:
        told = say("Every {} of {} is finite", _listed(phases), wording.steps(view.steps))
        if found.caught or found.expected:
            told = say("What the optimizer took is finite in {}", wording.steps(view.steps))
        more = joined("", (_caught(found.caught), _expected(inspection), _meant(found.meant)))
        return Reply(FINITE, State.GOOD, say("{}{}.", told, more))
    known = [row.step for row in view.timeline if math.isfinite(row.loss)]
    if known:
        return Reply(
            FINITE,
            State.GOOD,
            say("The loss is finite in all {} in which it was seen.", wording.plural(len(known), "step")),
        )
    return Reply(
        FINITE,
        State.UNKNOWN,
        "Whether all numbers are finite cannot be told: neither losses nor gradients nor parameters were captured; "
        "capture without --phases.",
    )


def headroom(inspection: Inspection) -> Reply:
    """How far the outputs in a short format are from its greatest number."""
    view = inspection.view
    why = lacking(view, (Phase.FORWARD,))
    if why:
        return Reply(HEADROOM, State.UNKNOWN, say("How near numbers come to their limit cannot be told: {}", why))
    found = [one for one in inspection.headrooms if one.precision.largest < SHORT or one.is_little]
    if not found and _is_short(view):
        why = say("every output in a short format is not finite in some step.")
        return Reply(HEADROOM, State.UNKNOWN, say("How near numbers come to their limit cannot be told: {}", why))
    if not found:
        return Reply(HEADROOM, State.ABSENT, "No module computes in a format of a short range.")
    first = found[0]
    if first.is_little:
        share = wording.percent(first.share)
        return Reply(
            HEADROOM,
            State.BAD,
            say(
                "{} {} reaches {}, {} of the limit of {}.",
                first.name,
                first.slot,
                wording.value(first.largest),
                share,
                first.precision.name,
            ),
        )
    times = say("{} below", wording.times(1.0 / first.share)) if first.largest else "far below"
    return Reply(
        HEADROOM,
        State.GOOD,
        say(
            "The largest magnitude is {} in {}, {} the limit of {}.",
            wording.value(first.largest),
            first.name,
            times,
            first.precision.name,
        ),
    )


def _what(start: Start) -> str:
    return "NaN" if start.nan else "Inf"


def _where(start: Start) -> str:
    key = start.key
    if key.step == INIT_STEP:
        return say("the initial weights: {} {}", key.name, key.slot)
    return say("{0}, {1}: {2} {3}", wording.step(key.step, key.micro), key.phase, key.name, key.slot)


def _listed(phases: list[Phase]) -> str:
    names = {
        Phase.LOSS: "loss", Phase.GRADIENT: say("gradient"), Phase.UPDATE: "gradient of the optimizer",
        Phase.PARAM: say("parameter"),
    }  # fmt: skip
    return wording.listing([names[phase] for phase in phases if phase is not Phase.UPDATE or len(phases) == 1])


def _caught(starts: tuple[Start, ...]) -> str:
    if not starts:
        return ""
    steps = wording.steps(start.key.step for start in starts)
    first = starts[0]
    return say("; {} in {} {} ({}) was kept from it", _what(first), first.key.name, first.key.slot, steps)


def _expected(inspection: Inspection) -> str:
    starts = inspection.nonfinite.expected
    if not starts:
        return ""
    steps = wording.steps(start.key.step for start in starts)
    first = starts[0]
    return say(
        "; in {} scaled gradients overflowed, first in {} {}, and the loss scaler skipped the step{}",
        steps,
        first.key.name,
        first.key.slot,
        "" if inspection.scaling.problems else ", as it does to find its scale",
    )


def _meant(number: int) -> str:
    if not number:
        return ""
    verb = "does" if number == 1 else "do"
    return say("; {} with -Inf, Inf or NaN {} no harm, as masks do none", wording.plural(number, "other tensor"), verb)


def _is_short(view: RunView) -> bool:
    """Whether any output is in a format of a short range."""
    records = (record for number in view.steps for record in view.step(number).by_phase[Phase.FORWARD])
    return any(record.dtype in PRECISIONS and PRECISIONS[record.dtype].largest < SHORT for record in records)
