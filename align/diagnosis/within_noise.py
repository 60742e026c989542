"""AL406: nothing differs beyond rounding, and what could have been seen."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.records import Comparison, Finding, Phase, Place, Severity, Status

CODE = "AL406"
LABEL = "within-noise"

LARGE = 0.5
"""A module output that differs by half is worth a word, whatever it inherits."""

FINE = frozenset({"fp32", "fp64"})


@rule(CODE, LABEL, rank=90)
def find(walk: Walk) -> Iterator[Finding]:
    """The largest difference of an aligned pair and the smallest effect that would have been called one."""
    if walk.first is not None:
        return
    judged = walk.judged
    largest = max((each for each in judged if each.status is Status.WITHIN), key=_share_of_limit, default=None)
    effect, precision = walk.resolution.smallest_visible_effect, walk.resolution.precision
    yield Finding(
        CODE,
        LABEL,
        Severity.NOTE,
        _summary(walk, len(judged), largest),
        _advice(precision, _notes(walk)),
        telling.place_of(largest.key) if largest is not None else Place(),
        {
            "judged": len(judged),
            "equal": sum(comparison.status is Status.EQUAL for comparison in judged),
            "largest_times_floor": largest.times_floor if largest is not None else 0.0,
            "limit": largest.limit if largest is not None else None,
            "smallest_visible_effect": effect,
            "notes": list(_notes(walk)),
        },
        {
            "judged": len(judged),
            "steps": list(walk.steps),
            "times_floor": largest.times_floor if largest is not None else None,
            "name": largest.key.name if largest is not None else "",
            "slot": largest.key.slot if largest is not None else "",
            "precision": precision,
            "effect": effect,
        },
    )


def _notes(walk: Walk) -> tuple[str, ...]:
    """What was not judged, and why."""
    lost = [
        comparison
        for comparison in walk.comparisons
        if comparison.status is Status.NOT_JUDGED
        and comparison.key.phase in {Phase.FORWARD, Phase.LOSS}
        and (comparison.relative_l2 or 0.0) >= LARGE
    ]
    if not lost:
        return walk.notes
    steps = wording.steps(comparison.key.step for comparison in lost)
    largest = max(comparison.relative_l2 or 0.0 for comparison in lost)
    note = (
        f"In {steps} {wording.plural(len(lost), 'tensor')} of the forward pass differ by up to "
        f"{wording.relative(largest)} because the parameters they start from differ; the update itself is not judged. "
        "Compare weight decay and optimizer settings."
    )
    return (*walk.notes, note)


def _share_of_limit(comparison: Comparison) -> float:
    return (comparison.times_floor or 0.0) / comparison.limit if comparison.limit else 0.0


def _summary(walk: Walk, judged: int, largest: Comparison | None) -> str:
    steps = wording.steps(walk.steps)
    if judged == 0:
        return f"No tensor of {steps} could be judged."
    effect, precision = walk.resolution.smallest_visible_effect, walk.resolution.precision
    if precision not in FINE and effect is not None:
        return (
            f"Aligned as far as {precision} can show: an effect below {wording.percent(effect)} of a module's output "
            "would not have been seen."
        )
    tensors = wording.plural(judged, "tensor")
    if largest is None:
        return f"Aligned: {tensors} over {steps} are equal."
    if not largest.times_floor:
        return f"Aligned: {tensors} over {steps} agree as closely as sketches can tell."
    return (
        f"Aligned: {tensors} over {steps} agree within the floor; the largest is {wording.times(largest.times_floor)} "
        f"at {telling.tensor(largest.key)}."
    )


def _advice(precision: str, notes: tuple[str, ...]) -> str:
    finer = "" if precision in FINE else "Repeat both runs in fp32 to see smaller effects. "
    return f"{finer}{' '.join(notes)}".strip() or "Nothing to do for these steps."
