"""AL611 in one run: outputs that come near the greatest number of their format, or will soon."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.inspection.headroom import Headroom
from align.inspection.nonfinite_kind import SHORT
from align.records import Finding, Phase, Place, Severity

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
        f"{first.name} {first.slot} reaches {wording.value(first.largest)} in {wording.step(step)}, "
        f"{wording.percent(first.share)} of {wording.value(first.precision.largest)}, the greatest "
        f"{first.precision.name} number.{_grows(first)}{_others(len(found) - 1)}",
        _advice(first),
        Place(step=step, phase=str(Phase.FORWARD), name=first.name, slot=first.slot),
        {
            "largest": first.largest, "limit": first.precision.largest, "share": first.share,
            "growth_per_step": first.growth, "steps_left": first.steps_left, "sizes": dict(first.sizes),
            "others": len(found) - 1,
        },
        {"step": step, "name": first.name, "slot": first.slot, "precision": first.precision.name},
    )  # fmt: skip


def _grows(one: Headroom) -> str:
    if one.growth is None or one.steps_left is None:
        return ""
    steps = [step for step, _ in one.sizes]
    return (
        f" It grew by {wording.factor(one.growth)} per step in {wording.steps(steps)}; at this rate it overflows in "
        f"about {wording.plural(one.steps_left, 'step')}."
    )


def _others(number: int) -> str:
    return f" {wording.plural(number, 'other output')} {'is' if number == 1 else 'are'} near it too." if number else ""


def _advice(one: Headroom) -> str:
    short = one.precision.largest < SHORT
    way = (
        f"Run {one.name} in bf16 or fp32, whose range is wider, or put a normalization before it."
        if short
        else f"Look at why {one.name} grows: the learning rate, the scale of the weights, a missing normalization."
    )
    return f"{way} Capture later steps as well (`align capture --every 100`) to see whether it grows on."
