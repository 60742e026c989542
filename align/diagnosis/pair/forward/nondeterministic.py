"""AL405: one run, repeated, does not give the same bits."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.forward.repeats import first_unequal, is_repeat
from align.diagnosis.registry import rule
from align.records import Comparison, Finding, Phase, Severity
from align.sentences import say
from align.tolerance import LIMIT

CODE = "AL405"
LABEL = "nondeterministic"


@rule(CODE, LABEL, rank=61)
def find(walk: Walk) -> Iterator[Finding]:
    """The first tensor that is not equal to the last bit, in a repeat of one run, where rounding can explain it."""
    if not is_repeat(walk.reference, walk.candidate):
        return
    comparison = first_unequal(walk)
    if comparison is None or not _is_rounding(comparison):
        return
    key = comparison.key
    module = walk.modules.get(key.name)
    deterministic = bool(walk.reference.flags.get("deterministic"))
    yield Finding(
        CODE,
        LABEL,
        Severity.NOTE if walk.first is None else Severity.WARNING,
        say(
            "Both files are of one run, repeated on one device: all is equal to the last bit up to {}, where {} "
            "differs by rounding (relative L2 {}). {}{}.",
            telling.point(key),
            telling.tensor(key),
            wording.relative(comparison.relative_l2),
            _operator(comparison),
            ", although deterministic algorithms are on" if deterministic else "",
        ),
        _advice(walk, comparison, deterministic=deterministic),
        telling.place_of(key),
        {
            "relative_l2": comparison.relative_l2,
            "unit": comparison.unit,
            "deterministic": deterministic,
            "class_name": module.class_name if module is not None else None,
        },
        {
            **telling.key_arguments(key),
            "relative_l2": comparison.relative_l2,
            "deterministic": deterministic,
        },
    )


def _is_rounding(comparison: Comparison) -> bool:
    error, unit = comparison.relative_l2, max(comparison.unit, comparison.floor)
    return error is not None and unit > 0.0 and error <= LIMIT * unit


def _operator(comparison: Comparison) -> str:
    key = comparison.key
    if key.phase is Phase.FORWARD and not key.slot.startswith("output"):
        return say("An operator of the code before {} sums in another order each time", key.name)
    if key.phase is Phase.FORWARD:
        return say("An operator in {} sums in another order each time", key.name)
    return say("An operator in the backward of {} sums in another order each time", key.name)


def _advice(walk: Walk, comparison: Comparison, *, deterministic: bool) -> str:
    floor = (
        "That is no fault; such a repeat tells what rounding does to this model: give it to `align diff REF.h5 CAND.h5 "
        "--floor REPEAT.h5`."
    )
    if walk.first is not None:
        floor = "What differs beyond that is told apart from it by `align diff REF.h5 CAND.h5 --floor REPEAT.h5`."
    if deterministic:
        return say(
            "The operator has no deterministic kernel, or a library around torch runs it: replace it in {}, or run "
            "it on the CPU, to get equal bits. {}",
            comparison.key.name or "the script",
            floor,
        )
    return say(
        "Capture both with `align capture --deterministic` to get equal bits, where there are such kernels. {}", floor
    )
