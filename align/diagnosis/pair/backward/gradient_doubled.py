"""AL503: gradients are counted twice, all of them or from one place on."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.depth import growth_of
from align.diagnosis import telling
from align.diagnosis.pair.backward.backward_cause import BackwardCause, BackwardKind, cause_of
from align.diagnosis.pair.forward import added_tensor
from align.diagnosis.registry import rule
from align.records import Finding, Phase, Severity
from align.sentences import say
from align.walk import Suspect

CODE = "AL503"
LABEL = "gradient-doubled"


@rule(CODE, LABEL, rank=48)
def find(walk: Walk) -> Iterator[Finding]:
    """The first difference, where it is a gradient that holds the reference's, or the gradient of a residual, twice."""
    first, cause = walk.first, cause_of(walk)
    if first is None or cause is None or cause.kind is not BackwardKind.DOUBLED:
        return
    evidence = telling.evidence_of(first.comparison) | added_tensor.evidence(walk)
    evidence["carried_on"] = telling.carried_on(walk.comparisons, first.comparison)
    if cause.common is not None:
        evidence |= {"factor": cause.common.factor.raw, "parameters": len(cause.common.names)}
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say("{}{}{}", _summary(first, cause), added_tensor.told(walk), _grown(walk, first)),
        _advice(walk, first, cause),
        telling.place_of(first.comparison.key),
        evidence,
        {**telling.arguments_of(first), "parameters": len(cause.common.names) if cause.common is not None else None},
    )


def _summary(first: Suspect, cause: BackwardCause) -> str:
    comparison = first.comparison
    key = comparison.key
    much = say("{}{}", telling.amount(comparison), telling.comma_relation(comparison, first.scale))
    if key.phase is Phase.BACKWARD:
        if cause.factor is None:
            return say(
                "Forward agrees; {} of {}: {} is the first gradient that differs: {}.",
                telling.point(key),
                key.name,
                key.slot,
                much,
            )
        return say(
            "Forward agrees; {}: {} of {} is the first gradient that differs: it is twice the reference's ({}).",
            telling.point(key),
            key.slot,
            key.name,
            telling.amount(comparison),
        )
    taken = key.phase is Phase.UPDATE
    if cause.common is None:
        return say(
            "{}: the gradient of {} of {} is twice the reference's, {}.",
            telling.opening(key),
            key.slot,
            key.name,
            "as the optimizer takes it" if taken else "though the gradients of activations agree",
        )
    return say(
        "{}: the gradients are twice those of the reference, {} ({} of {}; first {} of {}).",
        telling.opening(key),
        "as the optimizer takes them" if taken else "though the gradients of activations agree",
        wording.count(len(cause.common.names)),
        wording.plural(cause.common.total, "parameter"),
        key.slot,
        key.name,
    )


def _grown(walk: Walk, first: Suspect) -> str:
    growth = growth_of(first.comparison, first.scale, walk.comparisons)
    if growth is None:
        return ""
    return say(
        " It grows from layer to layer: the gradient of {} has {} times the norm of the reference's, that of {} {} "
        "times.",
        growth.last,
        f"{growth.nearest:.3g}",
        growth.first,
        f"{growth.furthest:.3g}",
    )


def _advice(walk: Walk, first: Suspect, cause: BackwardCause) -> str:
    key = first.comparison.key
    residual = added_tensor.advice(walk)
    if key.phase is Phase.BACKWARD:
        return residual or say("{}{}", _twice(walk, first), telling.capture_advice(key.name))
    if cause.common is None:
        return say(
            "See what adds to the gradient of {} of {} twice: a weight that is used or registered twice, a hook on "
            "it, a reduction that runs twice.",
            key.slot,
            key.name,
        )
    return (
        "See what adds up gradients twice: two backward calls for one loss, gradients that are not cleared between "
        "micro-batches, a sum where a mean over ranks is meant, a reduction that runs twice."
    )


def _twice(walk: Walk, first: Suspect) -> str:
    code = telling.code_of(first, telling.users_of(walk, first)) if not telling.is_module(first) else ""
    what = code or first.comparison.key.name
    return say(
        "See whether the backward of {} hands its gradient back twice: a hook, a custom autograd function. ", what
    )
