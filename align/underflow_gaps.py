"""Gradients that fade away in float16 in one of two runs, where the other shows what they should be.

Underflow grows from layer to layer, each a little worse than what it is made of, so that no single one stands out.
What it leaves of a tensor follows from the tensor itself, and the other run tells that the zeros are not meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from align.fp16_range import FADING, FLOAT16, QUANTUM, STARVED, error_of, is_zero, size_of
from align.pairing import Pair, PairedStep
from align.records import Comparison, Kind, Origin, Owner, Phase, Status, TensorRecord
from align.tolerance import is_float
from align.walk import StepResult, Suspect

AS_SMALL = 16.0
"""The other run's gradient, at this run's loss scale, may be so many times the smallest float16 number and no more."""

ERROR_SHARE = 0.2
"""The share of the parameters whose gradients are made of starved ones (numerics: zeros above 20 % harm)."""


@dataclass(frozen=True, slots=True, eq=False)
class UnderflowGap:
    """What faded away in one run of one step.

    `suspect` is the first gradient that is starved or all 0 there, `lost` the parameters whose gradient is all 0 while
    the other run's is not, of `parameters` compared; `starved` is the share of their elements whose gradients are made
    of starved ones. `zeros` are the shares of zeros in the first gradient, of the reference and the candidate.
    """

    step: int
    by_candidate: bool
    suspect: Suspect
    lost: tuple[Owner, ...]
    parameters: int
    starved: float
    zeros: tuple[float, float]
    error: float
    scales: tuple[float, float]


def find_underflow(paired: PairedStep, result: StepResult, scales: tuple[float, float]) -> UnderflowGap | None:
    """The underflow of one run that does harm; None where neither or both have it. `scales` are the loss scales."""
    for side in (1, 0):
        found = _of_side(paired, result, scales, side)
        if found is not None:
            return found
    return None


def laid_on_underflow(result: StepResult, gap: UnderflowGap) -> StepResult:
    """The step with the underflow as what parts the runs, unless something parts them before."""
    place = gap.suspect.comparison
    if any(suspect.comparison.reference.order < place.reference.order for suspect in result.suspects):
        return result
    comparisons = tuple(
        place
        if each.reference is place.reference
        else replace(each, status=Status.PROPAGATED)
        if each.status is Status.ORIGIN
        else each
        for each in result.comparisons
    )
    later = tuple(
        replace(suspect, comparison=replace(suspect.comparison, status=Status.PROPAGATED))
        for suspect in result.suspects
        if suspect.comparison.reference is not place.reference
    )
    return replace(result, comparisons=comparisons, suspects=(gap.suspect, *later))


def _of_side(paired: PairedStep, result: StepResult, scales: tuple[float, float], side: int) -> UnderflowGap | None:
    """The underflow of the reference (0) or the candidate (1)."""
    ratio = scales[side] / scales[1 - side]
    pairs = [pair for pair in paired.pairs if pair.key.phase is Phase.BACKWARD and pair.same_shape]
    faded = [pair for pair in pairs if _is_faded(*_sides(pair, side), ratio)]
    if not faded:
        return None
    gradients = [pair for pair in paired.pairs if pair.key.phase is Phase.GRADIENT and is_float(pair.reference.dtype)]
    entering = {pair.key.name for pair in faded if pair.key.slot.startswith("grad_output")}
    lost = [pair for pair in gradients if _is_lost(pair, side, ratio, made_of_faded=pair.key.name in entering)]
    total = sum(pair.reference.numel for pair in gradients)
    starved = sum(pair.reference.numel for pair in gradients if pair.key.name in entering)
    if not lost and not (total and starved >= ERROR_SHARE * total):
        return None
    first = faded[0]
    place = _placed(first, result.comparisons)
    shares = tuple(stats.zeros / stats.count for stats in (first.reference.stats, first.candidate.stats) if stats)
    return UnderflowGap(
        result.step,
        side == 1,
        Suspect(place, Kind.VALUE, Origin.LOSS, first.key.name, scale=scales[0] / scales[1]),
        tuple(pair.key.owner for pair in lost),
        len(gradients),
        starved / total if total else 0.0,
        (shares[0], shares[1]),
        error_of(_sides(first, side)[0]) or 1.0,
        scales,
    )


def _sides(pair: Pair, side: int) -> tuple[TensorRecord, TensorRecord]:
    both = (pair.reference, pair.candidate)
    return both[side], both[1 - side]


def _is_faded(short: TensorRecord, other: TensorRecord, ratio: float) -> bool:
    """Whether a float16 gradient is starved or all 0, and the other one would be as small at its loss scale."""
    if short.dtype != FLOAT16 or not _is_whole(short) or not _is_whole(other):
        return False
    size = size_of(other)
    if size is None or (other.dtype == FLOAT16 and (error_of(other) or 0.0) >= FADING):
        return False
    if is_zero(short):
        return size * ratio <= QUANTUM
    error = error_of(short)
    return error is not None and error >= STARVED and size * ratio <= AS_SMALL * QUANTUM


def _is_lost(pair: Pair, side: int, ratio: float, *, made_of_faded: bool) -> bool:
    """Whether the gradient of a parameter is all 0 on one side only, and float16 explains it."""
    short, other = _sides(pair, side)
    if not is_zero(short) or is_zero(other) or not _is_whole(other) or other.stats is None:
        return False
    elements = other.stats.count - other.stats.zeros
    return made_of_faded or other.stats.norm * ratio <= AS_SMALL * QUANTUM * elements**0.5


def _is_whole(record: TensorRecord) -> bool:
    return record.stats is not None and record.stats.nonfinite == 0 and record.stats.count > 0


def _placed(pair: Pair, comparisons: Iterable[Comparison]) -> Comparison:
    """The comparison of a pair, as the place where a difference starts."""
    known = next((each for each in comparisons if each.reference is pair.reference), None)
    known = known or Comparison(pair.reference, pair.candidate, Status.NOT_JUDGED)
    return replace(known, status=Status.ORIGIN)
