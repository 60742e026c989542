"""AL403: one module, equal in all that is known of it, makes something else: the operator behind it differs."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.forward import added_tensor, forward_cause, invariants, wrong_elements
from align.diagnosis.registry import rule
from align.records import Finding, Severity
from align.sentences import say
from align.tolerance import FLOAT32, TF32
from align.walk import Suspect

CODE = "AL403"
LABEL = "operator-differs"

SHORTENED = (0.1, 3.0)
"""Operands shortened to 11 bits part a float32 product by 0.3 to 1.2 unit roundoffs of TF32; with a margin of 3."""


@rule(CODE, LABEL, rank=49)
def find(walk: Walk) -> Iterator[Finding]:
    """The first difference, where it is the output of a module of which all that is known agrees."""
    first = walk.first
    if first is None or forward_cause.is_isolated(walk) or not forward_cause.is_operator(walk):
        return
    key = first.comparison.key
    module = walk.modules[key.name]
    invariant = invariants.broken(first.comparison, forward_cause.inputs_of(walk, first))
    evidence = telling.evidence_of(first.comparison) | wrong_elements.evidence(walk.wrong_part)
    evidence |= added_tensor.evidence(walk)
    evidence["carried_on"] = telling.carried_on(walk.comparisons, first.comparison)
    evidence["class_name"] = module.class_name
    argument = telling.odd_argument(walk, first)
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "{}{}{}{}",
            _summary(walk, first, argument),
            added_tensor.told(walk),
            invariant,
            wrong_elements.told(walk.wrong_part),
        ),
        added_tensor.advice(walk) or _advice(walk, first, argument),
        telling.place_of(key),
        evidence,
        {
            **telling.arguments_of(first),
            "shape_argument": argument,
            "class_name": module.class_name,
            "invariant": invariant.strip(),
        },
    )


def _summary(walk: Walk, first: Suspect, argument: str) -> str:
    comparison = first.comparison
    key = comparison.key
    name = walk.modules[key.name].class_name
    told = say(
        "{}: {} is the first tensor that differs: {}{}.",
        telling.opening(key),
        telling.tensor(key),
        telling.amount(comparison),
        telling.comma_relation(comparison, first.scale),
    )
    if argument:
        return say(
            "{} The class ({}), settings, parameters and inputs of {} agree but for the shape of {} ({}): its "
            "operator reads that otherwise.",
            told,
            name,
            key.name,
            argument,
            _shapes(walk, first, argument),
        )
    agree = say("{} The class ({}), settings, parameters and inputs of {} agree", told, name, key.name)
    if forward_cause.is_library(walk, key.name):
        return say("{}, so the operator behind it gives another result{}.", agree, telling.other_device(walk))
    return say(
        "{}, so what its code runs gives another result{}: an operator, or a branch or state of the code that no "
        "capture sees.",
        agree,
        telling.other_device(walk),
    )


def _shapes(walk: Walk, first: Suspect, argument: str) -> str:
    key = first.comparison.key
    pair = next(pair for pair in walk.shape_differences if pair.key.owner == (key.name, argument))
    return say("{} and {}", wording.shape(pair.reference.shape), wording.shape(pair.candidate.shape))


def _advice(walk: Walk, first: Suspect, argument: str) -> str:
    key = first.comparison.key
    what = say("{} ({})", key.name, walk.modules[key.name].class_name)
    if argument:
        return say(
            "Give {} {} of the shape that its operator documents, in both runs. {}",
            what,
            argument,
            telling.capture_advice(key.name),
        )
    text = say("Run {} with another implementation in one run (the plain operators instead of a fused one", what)
    if walk.candidate.device_type not in {"cpu", walk.reference.device_type}:
        text += ", or on the CPU, with its inputs moved there and its output back"
    text += ") and compare again; if the runs then agree, update or report the operator, with its shapes and dtypes. "
    if walk.candidate.device_type == "npu":
        text += "Check the versions of torch_npu and CANN, and try `TORCH_NPU_USE_COMPATIBLE_IMPL=1`. "
    return say("{}{}{}", text, _hint_of_shortening(walk, first), telling.capture_advice(key.name))


def _hint_of_shortening(walk: Walk, first: Suspect) -> str:
    """Where the difference is as large as that of operands shortened to TF32 or HF32, by a switch nobody recorded."""
    comparison = first.comparison
    module = walk.modules[comparison.key.name]
    error = comparison.relative_l2 or 0.0
    as_large = SHORTENED[0] * TF32.unit <= error <= SHORTENED[1] * TF32.unit
    if comparison.unit > FLOAT32.unit or not as_large or not (module.matmul or module.conv):
        return ""
    return say(
        "The difference is as large as TF32 or HF32 make it (about {}): check `allow_tf32` and `allow_hf32`. ",
        wording.relative(TF32.unit),
    )
