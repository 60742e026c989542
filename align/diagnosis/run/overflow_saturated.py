"""AL603 in one run: an overflow that the device turned into the greatest number of the format."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis import telling
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.inspection.saturation import Saturation, flagged_step
from align.records import Finding, Place, Severity
from align.sentences import say
from align.tolerance import PRECISIONS

CODE = "AL603"
LABEL = "overflow-saturated"


@run_rule(CODE, LABEL, rank=39)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The first tensor at the limit: an error where the device says that it saturated and the update was made of it."""
    found = inspection.saturation
    if found is None:
        yield from _flagged(inspection)
        return
    if found.skipped:
        return
    key, precision = found.record.key, PRECISIONS[found.record.dtype]
    limit = say("{}, the greatest {} number", wording.value(precision.largest), precision.name)
    cause = (
        "the device has no Inf and sets what overflows to it"
        if found.told_by_device
        else "what overflows has been set to it, by a device without Inf or by the code (clamp, nan_to_num)"
    )
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if found.told_by_device else Severity.WARNING,
        say(
            "{}: {} reaches exactly {}: {}. The step was not skipped, so the update is made of wrong numbers{}.",
            telling.opening(key),
            telling.tensor(key),
            limit,
            cause,
            _again(found),
        ),
        _advice(found),
        telling.place_of(key),
        {"limit": precision.largest, "steps": list(found.steps), "told_by_device": found.told_by_device},
        {"step": key.step, "name": key.name, "slot": key.slot, "precision": precision.name},
    )


def _flagged(inspection: Inspection) -> Iterator[Finding]:
    """The word of the device alone, where no captured tensor is at its limit."""
    step = flagged_step(inspection.view)
    if step is None:
        return
    yield Finding(
        CODE,
        LABEL,
        Severity.WARNING,
        say(
            "The overflow flag of the device is set in {}: it has no Inf, and has set a number to the greatest of "
            "its format instead. No captured tensor holds that number; it was inside a module, or in a step before. "
            "Nothing skipped the step.",
            wording.step(step),
        ),
        say(
            "Capture {} without --modules and --phases, and look for large numbers in fp16. A mask of -Inf sets the "
            "flag too.",
            wording.steps({max(step - 1, 0), step}),
        ),
        Place(step=step),
        {"step": step},
        {"step": step},
    )


def _again(found: Saturation) -> str:
    return say("; it is so in {}", wording.steps(found.steps)) if len(found.steps) > 1 else ""


def _advice(found: Saturation) -> str:
    run = say("Run {} in bf16 or fp32, whose range is wider", found.record.key.name)
    if found.told_by_device:
        return say(
            "{}. Set INF_NAN_MODE_ENABLE=1 where the device supports it: then an overflow is seen as Inf, and a "
            "loss scaler skips the step.",
            run,
        )
    return say("{}, and take out the clamp that hides the overflow; then inspect again.", run)
