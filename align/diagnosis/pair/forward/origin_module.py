"""AL401: the difference starts in the code of one module."""

from __future__ import annotations

from collections.abc import Iterator

from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.backward import backward_cause
from align.diagnosis.pair.forward import added_tensor, forward_cause, wrong_elements
from align.diagnosis.registry import rule
from align.records import Finding, Kind, Origin, Phase, Severity
from align.sentences import joined, say
from align.units import SCRIPT
from align.walk import Suspect

CODE = "AL401"
LABEL = "origin-module"


@rule(CODE, LABEL, rank=50)
def find(walk: Walk) -> Iterator[Finding]:
    """The first difference, where it is a value or a shape that one module makes from agreeing inputs."""
    first = walk.first
    if first is None or first.origin is not Origin.MODULE or first.kind not in {Kind.VALUE, Kind.SHAPE}:
        return
    if forward_cause.is_isolated(walk) or forward_cause.is_operator(walk) or backward_cause.is_known(walk):
        return
    key = first.comparison.key
    classes = _classes(walk, key.name)
    evidence = telling.evidence_of(first.comparison) | wrong_elements.evidence(walk.wrong_part)
    evidence |= added_tensor.evidence(walk)
    evidence["carried_on"] = telling.carried_on(walk.comparisons, first.comparison)
    evidence["class_name"] = classes[0] or None
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        telling.statistics_summary(first)
        if first.statistics_only
        else say("{}{}{}", _summary(walk, first), added_tensor.told(walk), wrong_elements.told(walk.wrong_part)),
        telling.STATISTICS_ADVICE
        if first.statistics_only
        else added_tensor.advice(walk) or _advice(walk, first, classes),
        telling.place_of(key),
        evidence,
        {**telling.arguments_of(first), "shape_argument": telling.odd_argument(walk, first)},
    )


def _classes(walk: Walk, name: str) -> tuple[str, str]:
    """The classes of a module in both runs, empty where they are not known."""
    found = (walk.modules.get(name), walk.candidate_modules.get(walk.names.of(name)))
    ours, theirs = (info.class_name if info is not None else "" for info in found)
    return ours, theirs


def _summary(walk: Walk, first: Suspect) -> str:
    comparison = first.comparison
    key = comparison.key
    if first.kind is Kind.SHAPE:
        return say(
            "{}: {} is the first tensor of another shape. Its inputs agree, so it starts here.",
            telling.opening(key),
            telling.tensor(key),
        )
    relation = telling.comma_relation(comparison, first.scale)
    if key.phase is Phase.BACKWARD:
        return say(
            "Forward agrees; {} of {}: {} is the first gradient that differs: {}{}.",
            telling.point(key),
            key.name,
            key.slot,
            telling.amount(comparison),
            relation,
        )
    if key.phase is Phase.GRADIENT:
        return say(
            "{}: {} of {} is the first that differs: {}{}. What its gradient is made from agrees.",
            telling.opening(key),
            key.slot,
            key.name,
            telling.amount(comparison),
            relation,
        )
    return say(
        "{}: {} is the first tensor that differs: {}{}. {}",
        telling.opening(key),
        telling.tensor(key),
        telling.amount(comparison),
        relation,
        _inputs(walk, first),
    )


def _inputs(walk: Walk, first: Suspect) -> str:
    """What is known of its inputs, and what follows from that."""
    alone = telling.given_in_one_run(walk, first)
    if alone:
        slot, side = next(iter(alone.items()))
        return say(
            "Its inputs agree but for {}, which only the {} gives it: the code that calls it differs.", slot, side
        )
    own = telling.own_in_one_run(walk, first.comparison.key.name)
    if own:
        name, side = next(iter(own.items()))
        return say("Its inputs agree; {} is a tensor of its own in the {} only, and is not compared.", name, side)
    argument = telling.odd_argument(walk, first)
    inputs = say("Its inputs agree but for the shape of {}", argument) if argument else "Its inputs agree"
    return say("{}, so it starts here.", inputs)


def _has_parameters(walk: Walk, name: str) -> bool:
    """Whether a module has parameters or buffers of its own, as far as records tell."""
    own = {Phase.INIT, Phase.GRADIENT, Phase.UPDATE, Phase.PARAM}
    return any(each.key.name == name and each.key.phase in own for each in walk.comparisons)


def _advice(walk: Walk, first: Suspect, classes: tuple[str, str]) -> str:
    key = first.comparison.key
    ours, theirs = classes
    what = say("{} ({})", key.name, ours) if ours else key.name
    if ours and theirs and ours != theirs:
        what = say("{} ({} in the reference, {} in the candidate)", key.name, ours, theirs)
    alone = telling.given_in_one_run(walk, first)
    if alone:
        text = say(
            "Compare what both scripts hand to {}, first {}: masks, positions, settings.", what, next(iter(alone))
        )
    elif key.phase is Phase.FORWARD:
        text = say("Compare the settings and the operators of {} in both runs: arguments, constants, kernels.", what)
        if key.step > 0 and _has_parameters(walk, key.name):
            text += (
                " Its weights may have been changed between the steps, too (clamped, averaged, copied, broadcast): "
                "they are captured after optimizer.step, not at the begin of a step."
            )
    else:
        text = say(
            "Compare how the backward of {} is computed in both runs: custom autograd functions, kernels, hooks.", what
        )
    named = telling.capture_advice(key.name) if key.name != SCRIPT else ""
    return joined(" ", filter(None, (text, named)))
