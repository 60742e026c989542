"""Whether a difference is a multiple of another tensor of the run: a residual once more, a gradient not cleared.

Sketches are linear: the sketch of a difference is the difference of two sketches, and tells how much of another tensor
it is made of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from align import sketch
from align.flow import is_grad_output, is_output
from align.records import Comparison, Phase, Status, TensorRecord

FEWEST_ELEMENTS = 32
"""Of so many numbers that differ at random, a multiple of another tensor leaves a tenth once in 10^31 pairs."""

LARGEST_RESIDUAL = 0.1
"""A multiple explains a difference where it leaves less than this of it,"""
BEYOND_FLOOR = 7.0
"""and less than so many times what rounding may part both tensors (the limit of the walk), or"""
SMALLEST_RESIDUAL = 1e-3
"""this, as the resolution of sketches of a sum leaves it."""

WHOLE = 0.01
"""A factor is a whole number where it is so near to one, relatively, or as near as the residual tells."""

CONTAINED = (0.5, 1.5)
"""The reference holds the tensor itself where its part along it is about the whole of it."""

AGREEING = frozenset({Status.EQUAL, Status.WITHIN})
PARAMETERS = frozenset({Phase.GRADIENT, Phase.UPDATE})

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Multiple:
    """The candidate's tensor is the reference's and `factor` times `source`, but for `residual` of the difference.

    `own` says that the source is what the same call was given: an input of the module, the gradient of its output.
    `contained` says that the reference's tensor holds the source once already.
    """

    source: TensorRecord
    factor: float
    residual: float
    own: bool
    contained: bool

    @property
    def once_more(self) -> bool:
        """Whether the source was added once, no more and no less."""
        return self.factor == 1.0

    @property
    def once_less(self) -> bool:
        """Whether the source was left out once."""
        return self.factor == -1.0


def find_multiple(first: Comparison, scale: float, before: Iterable[Comparison]) -> Multiple | None:
    """The tensor that explains the difference of a pair best, None where none does.

    `before` are the comparisons of the run up to the pair; `scale` undoes the loss scales. Sources are the tensors of
    the same phase and micro-step that agree; for gradients of a parameter its own values, and its own gradients of
    earlier steps and micro-steps.
    """
    ours, theirs = sketch.sketch_of(first.reference), sketch.sketch_of(first.candidate)
    if ours is None or theirs is None or first.reference.shape != first.candidate.shape:
        return None
    reference, candidate = ours.values.astype(np.float64), theirs.values.astype(np.float64) * scale
    difference = candidate - reference
    size = float(difference @ difference)
    if not 0.0 < size < math.inf or not np.isfinite(reference).all():
        return None
    allowed = max(BEYOND_FLOOR * first.floor * float(np.linalg.norm(reference)) / math.sqrt(size), SMALLEST_RESIDUAL)
    if allowed > LARGEST_RESIDUAL or _is_multiple(difference, reference, allowed):
        return None
    best: Multiple | None = None
    for source in _sources(first.reference, before):
        values = source.sketch
        if values is None or values.shape != reference.shape or not np.isfinite(values).all():
            continue
        found = _multiple(difference, reference, source, values.astype(np.float64))
        if found is None or found.residual > allowed:
            continue
        own = _is_own(first.reference, source)
        found = Multiple(source, _whole(found.factor, found.residual), found.residual, own, found.contained)
        # Of two that are one tensor, that of the call itself is told.
        if best is None or found.residual < best.residual / 2.0 or (found.own and not best.own):
            best = found
    return best


def _is_multiple(difference: Numbers, reference: Numbers, allowed: float) -> bool:
    """Whether the difference is a factor of the tensor itself: that is told as such."""
    square = float(reference @ reference)
    if not square > 0.0:
        return True
    factor = float(difference @ reference) / square
    left = difference - factor * reference
    return float(left @ left) <= allowed**2 * float(difference @ difference)


def _multiple(difference: Numbers, reference: Numbers, source: TensorRecord, values: Numbers) -> Multiple | None:
    square = float(values @ values)
    if not square > 0.0:
        return None
    factor = float(difference @ values) / square
    left = difference - factor * values
    residual = math.sqrt(float(left @ left) / float(difference @ difference))
    contained = CONTAINED[0] <= float(reference @ values) / square <= CONTAINED[1]
    return Multiple(source, factor, residual, own=False, contained=contained)


def _whole(factor: float, residual: float) -> float:
    nearest = float(round(factor))
    return nearest if nearest and abs(factor / nearest - 1.0) <= max(WHOLE, residual) else factor


def _sources(record: TensorRecord, before: Iterable[Comparison]) -> Iterator[TensorRecord]:
    """The tensors that the difference may be made of: in the order of execution, of a parameter the last first."""
    found = [each for each in before if _may_be(record, each)]
    for each in reversed(found) if record.key.phase in PARAMETERS else found:
        source = each.reference
        stats = source.stats
        if stats is None or stats.nonfinite or stats.minimum == stats.maximum:
            continue
        if source.shape == record.shape and stats.count - stats.zeros >= FEWEST_ELEMENTS:
            yield source


def _may_be(record: TensorRecord, each: Comparison) -> bool:
    key, other = record.key, each.key
    if key.phase in PARAMETERS:
        values = other.phase in {Phase.INIT, Phase.PARAM}
        if other.owner != key.owner or (values and other.step not in {key.step - 1, -1}):
            return False
        earlier = (other.step, other.micro) < (key.step, key.micro)
        return earlier and (values or (other.phase is key.phase and each.status in AGREEING))
    here = (other.step, other.micro, other.phase) == (key.step, key.micro, key.phase)
    return here and each.status in AGREEING and each.reference.order < record.order


def _is_own(record: TensorRecord, source: TensorRecord) -> bool:
    """Whether the source was given to the call that made the record."""
    key, other = record.key, source.key
    given = is_grad_output(source) if key.phase is Phase.BACKWARD else not is_output(source)
    return given and (other.phase, other.name, other.call) == (key.phase, key.name, key.call)
