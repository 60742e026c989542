"""Four ways in which two tensors can differ; rounding does each to another extent.

The size of a difference says little where rounding is large. What rounding leaves is without structure: it hardly
changes the tensor's length or its mean, and it is spread evenly. A difference that has structure stands out although it
is small: a factor, a constant, one wrong element.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from align import sketch
from align.pairing import Pair
from align.records import Aspect, Phase
from align.tolerance import FLOAT32, HF32, LIMIT, TF32, TINY, Precision

STRUCTURED = (Aspect.SCALE, Aspect.SHIFT, Aspect.PEAK)

TESTED: Mapping[Phase, tuple[Aspect, ...]] = {
    Phase.FORWARD: STRUCTURED,
    Phase.BACKWARD: STRUCTURED,
    Phase.GRADIENT: (Aspect.PEAK,),
    Phase.UPDATE: (Aspect.PEAK,),
}
"""Where rounding leaves no structure. That of a parameter's gradient, a sum over all samples, may be one factor: of
benign pairs up to 0.94 of the difference was."""

FORWARD_SHARES = {Aspect.SCALE: 0.06, Aspect.SHIFT: 0.05, Aspect.PEAK: 1.6}
BACKWARD_SHARES = {Aspect.SCALE: 0.12, Aspect.SHIFT: 0.08, Aspect.PEAK: 1.6}
"""The share of the floor of the size that rounding may have in each aspect."""

LEAST_PART = 0.25
"""A factor or a constant stands out from the rest of a difference from this share of it on."""

CUT_OFF = (TF32, HF32)
CUT_OFF_SHARE = 0.36
"""A matrix unit that cuts its operands off, instead of rounding them, makes each product smaller by 0.75 to 1.5 unit
roundoffs; with the limit this is 2.5."""

RESOLUTION = 16.0 * FLOAT32.unit
"""Statistics are summed in float32, in blocks, in another order on each device."""

COHERENT = 2.0
"""Where many elements are alike (broadcast gradients, constant areas) they are all rounded alike: a factor or a
constant counts from so many unit roundoffs on."""

OUTLYING = 8.0
"""A peak is so many standard deviations of the other buckets: even noise has 3.3, of 251 buckets."""

WHOLE = 1.2
"""A size read from a sketch of 251 buckets is at most so many times too small: three standard deviations."""

SKETCH_NOISE = 0.1
"""The square of a distance read from a sketch of 251 buckets has a standard deviation of 9 %."""


@dataclass(frozen=True, slots=True)
class Structure:
    """What a difference consists of; `spread` is the peak of even noise of size 1, `chance` its part along one axis."""

    scale: float = 0.0
    shift: float = 0.0
    peak: float = 0.0
    spread: float = 1.0
    chance: float = 1.0
    outlying: bool = False
    size: float = 0.0

    def part(self, aspect: Aspect) -> float:
        """One aspect, with its sign."""
        return {Aspect.SCALE: self.scale, Aspect.SHIFT: self.shift, Aspect.PEAK: self.peak}[aspect]

    def of(self, aspect: Aspect) -> float:
        """The magnitude of one aspect."""
        return abs(self.part(aspect))

    def stands_out(self, aspect: Aspect) -> bool:
        """Whether a part can be told from noise that is spread evenly."""
        if aspect is Aspect.PEAK:
            return self.outlying
        # A tensor that is turned without growing has a part of -e^2 / 2 along itself.
        return self.of(aspect) >= max(LEAST_PART * self.size, self.size**2)

    def handed_on(self, aspect: Aspect) -> float:
        """What what is made of the tensor may have of an aspect: an activation makes a shift of a factor."""
        return self.peak if aspect is Aspect.PEAK else max(abs(self.scale), abs(self.shift))

    def floor(self, aspect: Aspect, size_floor: float, precision: Precision, phase: Phase = Phase.FORWARD) -> float:
        """What rounding may do in one aspect where it may do `size_floor` in all."""
        share = (FORWARD_SHARES if phase is Phase.FORWARD else BACKWARD_SHARES)[aspect]
        share = share * self.spread if aspect is Aspect.PEAK else max(share, self.chance)
        if aspect is not Aspect.PEAK and precision in CUT_OFF:
            share = max(share, CUT_OFF_SHARE)
        if aspect is Aspect.PEAK:
            return max(share * size_floor, RESOLUTION)
        return max(share * size_floor, COHERENT / LIMIT * precision.unit, RESOLUTION)


def factor_share(precision: Precision) -> float:
    """The share of the floor of the size that a common factor of an activation may have."""
    return CUT_OFF_SHARE if precision in CUT_OFF else FORWARD_SHARES[Aspect.SCALE]


def structure(pair: Pair, size: float, scale: float = 1.0) -> Structure | None:
    """The aspects of a difference whose relative L2 norm is `size`; None where they cannot be had.

    `scale` is what the candidate is multiplied by to undo the loss scale. They come from the statistics and sketches:
    ||b||^2 - ||a||^2 = 2 <a, d> + ||d||^2 for d = b - a.
    """
    ours, theirs = pair.reference.stats, pair.candidate.stats
    left, right = sketch.sketch_of(pair.reference), sketch.sketch_of(pair.candidate)
    if ours is None or theirs is None or left is None or right is None or pair.reference.numel <= TINY:
        return None
    norm = ours.norm
    if ours.nonfinite or theirs.nonfinite or not 0.0 < norm < math.inf or not math.isfinite(theirs.norm * scale):
        return None
    peak = sketch.peak_of_difference(left, right, scale)
    if peak is None:
        return None
    factor = ((theirs.norm * scale / norm) ** 2 - 1.0 - size * size) / 2.0
    uncertain = 0.0 if left.exact else SKETCH_NOISE * size * size
    numel = pair.reference.numel
    shift = (theirs.total * scale - ours.total) / (math.sqrt(numel) * norm)
    # No part is larger than the whole: what statistics say beyond that is the error of their own sums.
    whole = WHOLE * size + max(pair.reference.resolution, pair.candidate.resolution)
    return Structure(
        math.copysign(min(max(abs(factor) - uncertain, 0.0), whole), factor),
        math.copysign(min(abs(shift), whole), shift),
        peak.height / norm,
        max(1.0 / math.sqrt(len(left.values)), ours.absolute_maximum / norm),
        1.0 / math.sqrt(numel),
        outlying=peak.deviations > OUTLYING,
        size=size,
    )
