"""Sentences on a first difference that is a multiple of another tensor: a residual twice, a gradient not cleared."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.multiples import Multiple, find_multiple
from align.records import Kind, Phase
from align.sentences import say


@lru_cache(maxsize=1)
def of_first(walk: Walk) -> Multiple | None:
    """What the first difference is a multiple of, None where that is not known."""
    first = walk.first
    if first is None or first.kind is not Kind.VALUE or first.statistics_only:
        return None
    phases = {Phase.FORWARD, Phase.BACKWARD, Phase.GRADIENT, Phase.UPDATE}
    return (
        find_multiple(first.comparison, first.scale, walk.comparisons) if first.comparison.key.phase in phases else None
    )


def told(walk: Walk) -> str:
    """What is added or missing, in a sentence begun with a blank; empty where that is not known."""
    found, first = of_first(walk), walk.first
    if found is None or first is None:
        return ""
    key, source = first.comparison.key, found.source
    if key.phase in {Phase.GRADIENT, Phase.UPDATE}:
        return _told_of_parameter(found, key.slot, key.step, key.phase)
    what = say("its own {}", source.key.slot) if found.own else telling.tensor(source.key)
    residual = "the gradient of a residual" if key.phase is Phase.BACKWARD else "a residual"
    if found.once_more:
        twice = say(": {} is counted twice", residual) if found.contained or key.phase is Phase.BACKWARD else ""
        return say(" It is the reference's with {} added once more{}.", what, twice)
    if found.once_less:
        return say(" It is the reference's without {}, which is not added: {} is missing.", what, residual)
    return say(" The difference is {} times {}.", wording.factor(found.factor), what)


def _told_of_parameter(found: Multiple, slot: str, step: int, phase: Phase) -> str:
    source = found.source.key
    if source.phase in {Phase.INIT, Phase.PARAM}:
        return say(
            " The difference is {} times {} itself, as a weight decay that is added to the gradient makes it.",
            wording.factor(found.factor),
            slot,
        )
    where = say("micro-step {}", source.micro) if source.step == step else wording.step(source.step)
    how = "" if found.once_more else say("{} times ", wording.factor(found.factor))
    what = "after backward" if phase is Phase.GRADIENT else "as the optimizer took it"
    end = " It was not cleared before the next backward." if found.once_more else ""
    return say(" The difference is {}the gradient of {} ({}).{}", how, where, what, end)


def advice(walk: Walk) -> str:
    """What to do about it; empty where nothing is known."""
    found, first = of_first(walk), walk.first
    if found is None or first is None or not (found.once_more or found.once_less):
        return ""
    key = first.comparison.key
    code = telling.code_name(telling.blamed(first))
    if key.phase is Phase.FORWARD:
        return say(
            "See which operators of {} add {} themselves (kernels that are fused with a residual do), and let one "
            "place alone add it. {}",
            code,
            telling.tensor(found.source.key),
            telling.capture_advice(key.name),
        )
    if key.phase is Phase.BACKWARD:
        return say(
            "See whether the backward of {} adds the gradient of a residual that the code around it adds too. {}",
            key.name,
            telling.capture_advice(key.name),
        )
    if found.source.key.phase in {Phase.GRADIENT, Phase.UPDATE} and found.once_more:
        return "Call optimizer.zero_grad before each backward that begins a step, in both runs."
    return ""


def evidence(walk: Walk) -> dict[str, Any]:
    """The numbers behind the sentence."""
    found = of_first(walk)
    if found is None:
        return {}
    return {
        "difference_is": {
            "factor": found.factor,
            "of": str(found.source.key),
            "residual": found.residual,
        }
    }
