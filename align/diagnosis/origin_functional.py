"""AL402: the difference starts in code between modules: a parent's forward, the loss, clipping, the script."""

from __future__ import annotations

from collections.abc import Iterator

from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.records import Finding, Kind, Origin, Phase, Severity
from align.units import SCRIPT
from align.walk import Suspect

CODE = "AL402"
LABEL = "origin-functional"

ORIGINS = frozenset({Origin.FUNCTIONAL, Origin.LOSS, Origin.OPTIMIZER})


@rule(CODE, LABEL, rank=51)
def find(walk: Walk) -> Iterator[Finding]:
    """The first difference, where it is a value or a shape that code between modules makes."""
    first = walk.first
    if first is None or first.origin not in ORIGINS or first.kind not in {Kind.VALUE, Kind.SHAPE}:
        return
    key = first.comparison.key
    owner = key.name if first.origin is not Origin.FUNCTIONAL else first.owner
    evidence = telling.evidence_of(first.comparison)
    evidence["carried_on"] = telling.carried_on(walk.comparisons, first.comparison)
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        _summary(first),
        _advice(first),
        telling.place_of(key, owner),
        evidence,
        {**telling.arguments_of(first), "parent": first.owner, "child": key.name},
    )


def _summary(first: Suspect) -> str:
    comparison = first.comparison
    key = comparison.key
    start = f"{telling.opening(key)}: "
    much = telling.amount(comparison) if first.kind is Kind.VALUE else "another shape"
    relation = telling.relation(comparison, first.scale)
    code = _code(first)
    if first.origin is Origin.LOSS:
        return f"{start}the loss is the first value that differs: {much}{relation}. The outputs it is made from agree."
    if first.origin is Origin.OPTIMIZER:
        return (
            f"{start}{key.slot} of {key.name} is the first gradient that differs as the optimizer takes it: "
            f"{much}{relation}. The gradient after backward agrees."
        )
    if first.argument:
        return (
            f"{start}{telling.tensor(key)} is the first tensor that differs: {much}. "
            f"Its argument {first.argument} differs already: {code} made it."
        )
    if key.phase is Phase.BACKWARD:
        return (
            f"Forward agrees; {telling.point(key)}: {key.slot} of {key.name} is the first gradient that differs: "
            f"{much}{relation}. It is made by the backward of {code}."
        )
    if key.slot.startswith("output"):
        return (
            f"{start}{telling.tensor(key)} is the first tensor that differs: {much}{relation}. "
            f"Its inputs and children agree: {code} is the cause."
        )
    agrees = f" while {first.sibling} agrees" if first.sibling else ""
    return f"{start}{key.slot} of {key.name} already differs ({much}{relation}){agrees}: {code} is the cause."


def _code(first: Suspect) -> str:
    """`the code of layers.2.attn between q_proj and softmax`."""
    key = first.comparison.key
    owner = "the training script" if first.owner == SCRIPT else f"the code of {first.owner}"
    if key.phase is not Phase.FORWARD or first.argument or not first.sibling:
        return f"{owner} (loss)" if first.owner == SCRIPT and key.phase is Phase.BACKWARD else owner
    if key.slot.startswith("output"):
        return f"{owner} after {first.sibling}"
    return f"{owner} between {first.sibling} and {key.name}"


def _advice(first: Suspect) -> str:
    key = first.comparison.key
    if first.origin is Origin.LOSS:
        return (
            "Compare how both scripts make the loss from the outputs: reduction, ignored targets, label shift, "
            "division by accumulation steps or world size."
        )
    if first.origin is Origin.OPTIMIZER:
        return (
            "Compare what happens between backward and optimizer.step in both scripts: unscaling, clipping, reduction."
        )
    code = telling.code_name(first.owner)
    if first.argument:
        return f"Compare the indices or masks that {code} hands to {key.name}: positions, offsets, padding."
    if key.phase is Phase.BACKWARD:
        return f"Compare the operators of {code} that follow {key.name}, and their backward, in both runs."
    return (
        f"Compare the operators of {code} there in both runs: residual additions, attention, masks, rotary embedding. "
        f"{telling.capture_advice(key.name)}"
    )
