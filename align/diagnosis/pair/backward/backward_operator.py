"""AL501: one module, equal in all that is known of it, makes other gradients of what agrees."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.depth import Growth, growth_of
from align.diagnosis import telling
from align.diagnosis.pair.backward.backward_cause import BackwardKind, cause_of
from align.diagnosis.pair.forward import added_tensor, wrong_elements
from align.diagnosis.registry import rule
from align.records import Finding, Phase, Severity, Status
from align.sentences import say
from align.walk import Suspect

CODE = "AL501"
LABEL = "backward-operator-differs"


@rule(CODE, LABEL, rank=49)
def find(walk: Walk) -> Iterator[Finding]:
    """The first difference, where it is a gradient that a module makes whose forward and settings agree."""
    first, cause = walk.first, cause_of(walk)
    if first is None or cause is None or cause.kind is not BackwardKind.OPERATOR:
        return
    key = first.comparison.key
    growth = growth_of(first.comparison, first.scale, walk.comparisons)
    evidence = telling.evidence_of(first.comparison) | wrong_elements.evidence(walk.wrong_part)
    evidence |= added_tensor.evidence(walk)
    evidence["carried_on"] = telling.carried_on(walk.comparisons, first.comparison)
    evidence["class_name"] = walk.modules[key.name].class_name
    evidence["gain_of_a_layer"] = growth.gain if growth is not None else None
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "{}{}{}{}",
            _summary(walk, first),
            added_tensor.told(walk),
            wrong_elements.told(walk.wrong_part),
            _grown(growth),
        ),
        _advice(walk, first),
        telling.place_of(key),
        evidence,
        {**telling.arguments_of(first), "class_name": walk.modules[key.name].class_name, "factor": cause.factor},
    )


def _summary(walk: Walk, first: Suspect) -> str:
    comparison = first.comparison
    key = comparison.key
    name = walk.modules[key.name].class_name
    much = say("{}{}", telling.amount(comparison), telling.comma_relation(comparison, first.scale))
    device = telling.other_device(walk)
    if key.phase is Phase.GRADIENT:
        return say(
            "{}: {} of {} is the first gradient that differs: {}. Forward agrees, and so {}: the part of the "
            "backward of {} ({}) that makes the gradient of {} gives another result{}.",
            telling.opening(key),
            key.slot,
            key.name,
            much,
            _input_agrees(walk, first),
            key.name,
            name,
            _own_gradients(walk, first),
            device,
        )
    return say(
        "Forward agrees; {} of {}: {} is the first gradient that differs: {}. The gradient of its output agrees, "
        "and so do its class ({}) and settings: its backward gives another result{}.",
        telling.point(key),
        key.name,
        key.slot,
        much,
        name,
        device,
    )


def _input_agrees(walk: Walk, first: Suspect) -> str:
    """What of the module's backward is known to agree."""
    key = first.comparison.key
    agrees = any(
        (each.key.step, each.key.phase, each.key.name) == (key.step, Phase.BACKWARD, key.name)
        and each.key.slot.startswith("grad_input")
        and each.status in {Status.EQUAL, Status.WITHIN}
        for each in walk.comparisons
    )
    return "does the gradient of its input" if agrees else "do the gradients of activations"


def _own_gradients(walk: Walk, first: Suspect) -> str:
    """The parameters of the module whose gradients differ."""
    key = first.comparison.key
    slots = [
        each.key.slot
        for each in walk.comparisons
        if (each.key.step, each.key.phase, each.key.name) == (key.step, key.phase, key.name)
        and each.status in {Status.ORIGIN, Status.PROPAGATED}
    ]
    return wording.listing(list(dict.fromkeys(slots)))


def _grown(growth: Growth | None) -> str:
    if growth is None:
        return ""
    return say(
        " The factor grows by {} with each of {} layers towards the input: the gradient of {} has {} times the norm "
        "of the reference's, that of {} {} times.",
        wording.factor(growth.gain),
        growth.layers,
        growth.last,
        f"{growth.nearest:.2f}",
        growth.first,
        f"{growth.furthest:.2f}",
    )


def _advice(walk: Walk, first: Suspect) -> str:
    key = first.comparison.key
    what = say("{} ({})", key.name, walk.modules[key.name].class_name)
    text = say("Run {} with another implementation in one run (the plain operators instead of a fused one", what)
    if walk.candidate.device_type not in {"cpu", walk.reference.device_type}:
        text += ", or on the CPU"
    text += (
        ") and compare again; if the gradients then agree, correct the backward where it is your own code (an autograd "
        "function, a hook), else update or report the operator, with its shapes and dtypes. "
    )
    if walk.candidate.device_type == "npu":
        text += "Check the versions of torch_npu and CANN. "
    return say("{}{}", text, telling.capture_advice(key.name))
