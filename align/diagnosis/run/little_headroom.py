"""AL611 in one run: outputs that come near the greatest number of their format, or will soon."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.inspection.headroom import Headroom
from align.inspection.nonfinite_kind import SHORT
from align.records import Finding, Phase, Place, Severity
from align.sentences import say

CODE = "AL611"
LABEL = "little-headroom"


@run_rule(CODE, LABEL, rank=90)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The output with the least headroom, as a warning, where nothing has overflowed yet."""
    found = [one for one in inspection.headrooms if one.is_little]
    if not found or inspection.nonfinite.fatal or inspection.nonfinite.caught or inspection.saturation is not None:
        return
    first = found[0]
    step = max(first.sizes, key=lambda entry: entry[1])[0]
    yield Finding(
        CODE,
        LABEL,
        Severity.WARNING,
        say(
            "{} {} reaches {} in {}, {} of {}, the greatest {} number.{}{}",
            first.name,
            first.slot,
            wording.value(first.largest),
            wording.step(step),
            wording.percent(first.share),
            wording.value(first.precision.largest),
            first.precision.name,
            _grows(first),
            _others(len(found) - 1),
        ),
        _advice(first),
        Place(step=step, phase=str(Phase.FORWARD), name=first.name, slot=first.slot),
        {
            "largest": first.largest,
            "limit": first.precision.largest,
            "share": first.share,
            "growth_per_step": first.growth,
            "steps_left": first.steps_left,
            "sizes": dict(first.sizes),
            "others": len(found) - 1,
        },
        {"step": step, "name": first.name, "slot": first.slot, "precision": first.precision.name},
    )


def _grows(one: Headroom) -> str:
    if one.growth is None or one.steps_left is None:
        return ""
    steps = [step for step, _ in one.sizes]
    return say(
        " It grew by {} per step in {}; at this rate it overflows in about {}.",
        wording.factor(one.growth),
        wording.steps(steps),
        wording.plural(one.steps_left, "step"),
    )


def _others(number: int) -> str:
    return (
        say(" {} {} near it too.", wording.plural(number, "other output"), "is" if number == 1 else "are")
        if number
        else ""
    )


def _advice(one: Headroom) -> str:
    short = one.precision.largest < SHORT
    way = (
        say("Run {} in bf16 or fp32, whose range is wider, or put a normalization before it.", one.name)
        if short
        else say(
            "Look at why {} grows: the learning rate, the scale of the weights, a missing normalization.", one.name
        )
    )
    return say("{} Capture later steps as well (`align capture --every 100`) to see whether it grows on.", way)
