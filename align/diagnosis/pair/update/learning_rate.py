"""AL703: the runs learn at different rates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.hyperparameters import RATE
from align.records import Finding, Place, Severity
from align.schedules import ScheduleKind, schedule_between
from align.sentences import say
from align.timelines import OPTIMIZER
from align.updates import differing_learning_rates

CODE = "AL703"
LABEL = "learning-rate-differs"
ADVICE = "Give both runs one learning rate and one schedule: warm-up, scaling by world size, steps per epoch."


@rule(CODE, LABEL, rank=55)
def find(walk: Walk) -> Iterator[Finding]:
    """The learning rates of the first compared step where they differ; an error where the runs part there.

    Where the rate of every parameter is known that of all must differ: AL106 tells a rate that some parameters have.
    """
    ours = {row.step: row for row in walk.reference_timeline}
    theirs = {row.step: row for row in walk.candidate_timeline}
    found = {step: differing_learning_rates(ours.get(step), theirs.get(step)) for step in walk.steps}
    found.update(_of_all_parameters(walk))
    differing = {step: rates for step, rates in found.items() if rates is not None}
    if not differing:
        yield from _later(walk)
        return
    step, rates = next(iter(differing.items()))
    told = [f"{rate:.6g}" for rate in rates]
    parts_here = telling.parts_in_update(walk, step)
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if parts_here or telling.parts_by(walk, OPTIMIZER) else Severity.WARNING,
        say(
            "The learning rate of {} is {} in the reference and {} in the candidate.{}",
            wording.step(step),
            told[0],
            told[1],
            " All gradients agree; the parameters part here." if parts_here else "",
        )
        + _schedule(walk),
        ADVICE,
        Place(step=step, phase="optimizer", name=telling.first_name(walk) if parts_here else ""),
        {"learning_rates": {str(step): list(pair) for step, pair in differing.items()}, **_evidence(walk)},
        {"step": step, "reference": rates[0], "candidate": rates[1]},
    )


def _later(walk: Walk) -> Iterator[Finding]:
    """Rates that differ in steps only that were not captured, where all that was captured agrees."""
    other = walk.other_rate
    if other is None:
        return
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if telling.parts_by(walk, OPTIMIZER) else Severity.WARNING,
        say(
            "What was captured agrees ({}), but the learning rate of {} is {} in the reference and {} in the "
            "candidate.",
            wording.steps(walk.steps),
            wording.step(other.step),
            f"{other.rates[0]:.6g}",
            f"{other.rates[1]:.6g}",
        )
        + _schedule(walk),
        ADVICE,
        Place(step=other.step, phase="optimizer"),
        {"learning_rates": {str(other.step): list(other.rates)}, **_evidence(walk)},
        {"step": other.step, "reference": other.rates[0], "candidate": other.rates[1]},
    )


def _schedule(walk: Walk) -> str:
    """What the rates of the whole run are to the reference's, in a sentence begun with a blank, else empty."""
    found = schedule_between(walk.reference_timeline, walk.candidate_timeline)
    if found is None:
        return ""
    number = wording.factor(found.number)
    if found.kind is ScheduleKind.TIMES:
        return say(" In all {} steps that both timelines have it is {} times the reference's.", found.steps, number)
    if found.kind is ScheduleKind.SHIFTED:
        ahead = "ahead of" if found.number > 0 else "behind"
        return say(
            " The schedule of the candidate is {} {} the other.", wording.plural(abs(int(found.number)), "step"), ahead
        )
    fast, slow = ("candidate", "reference") if found.kind is ScheduleKind.FASTER else ("reference", "candidate")
    return say(
        " The rate of step n of the {} is that of step {} n of the {} (in {} steps): its scheduler is advanced {} "
        "times for each step of the other's.",
        fast,
        number,
        slow,
        found.steps,
        number,
    )


def _evidence(walk: Walk) -> dict[str, Any]:
    found = schedule_between(walk.reference_timeline, walk.candidate_timeline)
    return {} if found is None else {"schedule": {"kind": str(found.kind), "number": found.number}}


def _of_all_parameters(walk: Walk) -> Iterator[tuple[int, tuple[float, float] | None]]:
    """The rates of the steps in which that of every parameter is known, None where not all of them differ."""
    for check in walk.settings_checks:
        if check.rates_known:
            other = next((each for each in check.differences if each.name == RATE), None)
            if other is None or len(other.owners) < other.compared:
                yield check.step, None
            elif isinstance(other.reference, (int, float)) and isinstance(other.candidate, (int, float)):
                yield check.step, (float(other.reference), float(other.candidate))
