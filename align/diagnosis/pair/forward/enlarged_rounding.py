"""A module that makes a large difference of a rounding: its input is ill-conditioned, and no operator is wrong."""

from __future__ import annotations

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.flow import is_output
from align.records import Comparison, Finding, Phase, Severity, Status
from align.sentences import say
from align.tolerance import EQUAL_ULPS, PRECISIONS

LARGE = 0.01
"""A difference of this size is worth a word where it comes of rounding alone."""

ENLARGED = 1e4
"""So many times the difference of the inputs, or their unit roundoff: sums that cancel enlarge one by a few hundred."""

FAR_APART = 0.01
"""Neighbouring numbers so far apart leave a sine two digits; then that is told as the reason."""


def find_enlarged(walk: Walk, code: str, label: str) -> Finding | None:
    """The first module whose inputs agree to rounding and whose output does not, although nothing was wrong in it."""
    inputs: dict[tuple[int, int, str, int], list[Comparison]] = {}
    for comparison in walk.comparisons:
        key = comparison.key
        if key.phase is not Phase.FORWARD:
            continue
        call = (key.step, key.micro, key.name, key.call)
        if not is_output(comparison.reference):
            inputs.setdefault(call, []).append(comparison)
        elif comparison.status is Status.WITHIN and _is_enlarged(comparison, inputs.get(call, [])):
            return _finding(comparison, inputs[call], code, label)
    return None


def _is_enlarged(output: Comparison, inputs: list[Comparison]) -> bool:
    error = output.relative_l2 or 0.0
    if error < LARGE or not inputs or any(each.relative_l2 is None for each in inputs):
        return False
    given = max(each.relative_l2 or 0.0 for each in inputs)
    differs = any(each.status is not Status.EQUAL for each in inputs)
    return differs and given <= EQUAL_ULPS * output.unit and error >= ENLARGED * max(given, output.unit)


def _finding(output: Comparison, inputs: list[Comparison], code: str, label: str) -> Finding:
    key, error = output.key, output.relative_l2 or 0.0
    given = max(inputs, key=lambda each: each.relative_l2 or 0.0)
    reach, spacing = _spacing(given)
    apart = (
        say(
            " {} reaches {}, where neighbouring numbers are {} apart.",
            given.key.slot,
            wording.value(reach),
            wording.value(spacing),
        )
        if spacing >= FAR_APART
        else ""
    )
    return Finding(
        code,
        label,
        Severity.NOTE,
        say(
            "{}: {} makes a relative L2 difference of {} of one of at most {} in its input. It enlarges rounding: "
            "what it is given is ill-conditioned, and no operator is wrong.{} What is made of it, NaN too, may "
            "differ between any two devices.",
            telling.opening(key),
            key.name,
            wording.relative(error),
            wording.relative(max(given.relative_l2 or 0.0, output.unit)),
            apart,
        ),
        say(
            "Make what enters {} smaller: reduce an angle to one turn before it is scaled, take the product in "
            "fp64, or subtract what is common before it is rounded.",
            key.name,
        ),
        telling.place_of(key),
        {
            "relative_l2": error,
            "relative_l2_of_input": given.relative_l2,
            "largest_input": reach,
            "spacing": spacing,
            "ill_conditioned": True,
        },
        {"step": key.step, "name": key.name, "slot": key.slot, "relative_l2": error, "spacing": spacing},
    )


def _spacing(given: Comparison) -> tuple[float, float]:
    """The largest magnitude of an input, and how far apart the numbers of its format are there."""
    precision, stats = PRECISIONS.get(given.reference.dtype), given.reference.stats
    if precision is None or stats is None:
        return 0.0, 0.0
    reach = stats.absolute_maximum
    return reach, 2.0 * precision.unit * reach
