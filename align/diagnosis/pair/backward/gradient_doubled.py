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
        f"{_summary(first, cause)}{added_tensor.told(walk)}{_grown(walk, first)}",
        _advice(walk, first, cause),
        telling.place_of(first.comparison.key),
        evidence,
        {**telling.arguments_of(first), "parameters": len(cause.common.names) if cause.common is not None else None},
    )


def _summary(first: Suspect, cause: BackwardCause) -> str:
    comparison = first.comparison
    key = comparison.key
    much = f"{telling.amount(comparison)}{telling.relation(comparison, first.scale)}"
    if key.phase is Phase.BACKWARD:
        if cause.factor is None:
            return (
                f"Forward agrees; {telling.point(key)} of {key.name}: {key.slot} is the first gradient that differs: "
                f"{much}."
            )
        return (
            f"Forward agrees; {telling.point(key)}: {key.slot} of {key.name} is the first gradient that differs: it is "
            f"twice the reference's ({telling.amount(comparison)})."
        )
    agrees = "as the optimizer takes it" if key.phase is Phase.UPDATE else "though the gradients of activations agree"
    if cause.common is None:
        return f"{telling.opening(key)}: the gradient of {key.slot} of {key.name} is twice the reference's, {agrees}."
    agrees = agrees.replace("takes it", "takes them")
    return (
        f"{telling.opening(key)}: the gradients are twice those of the reference, {agrees} "
        f"({wording.count(len(cause.common.names))} of {wording.plural(cause.common.total, 'parameter')}; first "
        f"{key.slot} of {key.name})."
    )


def _grown(walk: Walk, first: Suspect) -> str:
    growth = growth_of(first.comparison, first.scale, walk.comparisons)
    if growth is None:
        return ""
    return (
        f" It grows from layer to layer: the gradient of {growth.last} has {growth.nearest:.3g} times the norm of the "
        f"reference's, that of {growth.first} {growth.furthest:.3g} times."
    )


def _advice(walk: Walk, first: Suspect, cause: BackwardCause) -> str:
    key = first.comparison.key
    residual = added_tensor.advice(walk)
    if key.phase is Phase.BACKWARD:
        return residual or f"{_twice(walk, first)}{telling.capture_advice(key.name)}"
    if cause.common is None:
        return (
            f"See what adds to the gradient of {key.slot} of {key.name} twice: a weight that is used or registered "
            "twice, a hook on it, a reduction that runs twice."
        )
    return (
        "See what adds up gradients twice: two backward calls for one loss, gradients that are not cleared between "
        "micro-batches, a sum where a mean over ranks is meant, a reduction that runs twice."
    )


def _twice(walk: Walk, first: Suspect) -> str:
    code = telling.code_of(first, telling.users_of(walk, first)) if not telling.is_module(first) else ""
    what = code or first.comparison.key.name
    return f"See whether the backward of {what} hands its gradient back twice: a hook, a custom autograd function. "
