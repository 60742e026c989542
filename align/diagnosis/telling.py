"""What several rules say alike: places, numbers, and the code that a difference is laid on."""

from __future__ import annotations

from typing import Any

from align import sketch, wording
from align.pairing import Pair
from align.records import Comparison, Phase, Place, Status, TensorKey
from align.units import SCRIPT
from align.walk import Suspect

SIMPLE_RESIDUAL = 0.05
"""A scale factor is told where it leaves less than this of the candidate unexplained, and less than a tenth of the
difference."""

SAME_SUM = 1e-6
"""The sum of squares in another order of summation."""


def place_of(key: TensorKey, name: str | None = None) -> Place:
    """The place of a record, or of other code at the same point."""
    return Place(key.step, str(key.phase), key.name if name is None else name, key.slot, key.micro, key.call)


def point(key: TensorKey) -> str:
    """`step 3, micro 1, backward`; before step 0 without a phase."""
    where = wording.step(key.step, key.micro)
    return where if key.phase is Phase.INIT else f"{where}, {key.phase}"


def opening(key: TensorKey) -> str:
    """The point as the begin of a sentence."""
    text = point(key)
    return text[0].upper() + text[1:]


def tensor(key: TensorKey) -> str:
    """`layers.2.mlp output.0`, with the call where it is not the first."""
    return f"{key.name} {key.slot}, call {key.call}" if key.call else f"{key.name} {key.slot}"


def code_name(owner: str) -> str:
    """The code of a module, or of the training script."""
    return "the training script" if owner == SCRIPT else owner


def amount(comparison: Comparison) -> str:
    """`relative L2 0.031, 147,000x the floor`."""
    return f"relative L2 {wording.relative(comparison.relative_l2)}, {wording.times(comparison.times_floor)} the floor"


def evidence_of(comparison: Comparison) -> dict[str, Any]:
    """The numbers of a comparison that a reader may want to check."""
    ours, theirs = comparison.reference, comparison.candidate
    return {
        "relative_l2": comparison.relative_l2,
        "floor": comparison.floor or None,
        "times_floor": comparison.times_floor,
        "limit": comparison.limit or None,
        "unit": comparison.unit or None,
        "reference_dtype": ours.dtype,
        "candidate_dtype": theirs.dtype,
        "reference_shape": list(ours.shape),
        "candidate_shape": list(theirs.shape),
        "reference_norm": ours.stats.norm if ours.stats is not None else None,
        "candidate_norm": theirs.stats.norm if theirs.stats is not None else None,
    }


def arguments_of(suspect: Suspect) -> dict[str, Any]:
    """What the sentences about a first difference are made from."""
    comparison = suspect.comparison
    key = comparison.key
    return {
        "step": key.step,
        "micro": key.micro,
        "phase": str(key.phase),
        "name": key.name,
        "slot": key.slot,
        "call": key.call,
        "owner": suspect.owner,
        "sibling": suspect.sibling,
        "argument": suspect.argument,
        "relative_l2": comparison.relative_l2,
        "times_floor": comparison.times_floor,
    }


def scale_between(comparison: Comparison, scale: float = 1.0) -> float | None:
    """The factor k where the candidate is k times the reference, None where that does not explain it.

    `scale` undoes the loss scales.
    """
    pair = Pair(comparison.reference, comparison.candidate)
    left, right = sketch.sketch_of(pair.reference), sketch.sketch_of(pair.candidate)
    if left is None or right is None or not pair.same_shape:
        return None
    if comparison.reference.numel == 1 and comparison.key.phase is not Phase.LOSS:
        return None
    found = sketch.scale_factor(left, right)
    error = comparison.relative_l2
    if found is None or error is None or found.residual > min(SIMPLE_RESIDUAL, error / 10):
        return None
    return found.factor * scale


def reordered(pair: Pair) -> bool:
    """Whether both tensors hold the same values in another order, as far as their statistics tell."""
    ours, theirs = pair.reference.stats, pair.candidate.stats
    if ours is None or theirs is None or ours.minimum == ours.maximum:
        return False
    if (ours.minimum, ours.maximum, ours.zeros) != (theirs.minimum, theirs.maximum, theirs.zeros):
        return False
    return abs(theirs.total_squares - ours.total_squares) <= SAME_SUM * ours.total_squares


def relation(comparison: Comparison, scale: float = 1.0) -> str:
    """What the candidate is to the reference where that is simple, else nothing; begins with a comma."""
    ours, theirs = comparison.reference.stats, comparison.candidate.stats
    if ours is None or theirs is None or comparison.reference.numel == 0:
        return ""
    if theirs.zeros == theirs.count and ours.zeros < ours.count:
        return ", all zeros in the candidate"
    if ours.zeros == ours.count and theirs.zeros < theirs.count:
        return ", all zeros in the reference"
    if reordered(Pair(comparison.reference, comparison.candidate)):
        return ", the values of the reference in another order"
    factor = scale_between(comparison, scale)
    return "" if factor is None else f", {wording.factor(factor)} times the reference"


def carried_on(comparisons: tuple[Comparison, ...], first: Comparison) -> int:
    """How many tensors after the first only carry the difference on."""
    return sum(
        comparison is not first and comparison.status in {Status.PROPAGATED, Status.NONFINITE}
        for comparison in comparisons
    )


def capture_advice(name: str) -> str:
    """How to see the values of one module."""
    return f"To see its values, run `align capture --detail tensors --modules '{name}'` on both sides and compare again."
