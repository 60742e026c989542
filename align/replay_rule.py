"""From when on the local error of a tensor is no rounding: the double benchmark, and what has a structure.

The candidate's local error is held against the reference's own, each measured against a replay of its own capture in a
higher precision. The reference may be exact where the candidate rounds in another place, so the floor is a share of the
unit roundoff at least. A factor or a constant, of all or of one channel, is what both do not have in common: rounding
in the same places leaves the same one on both sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import numpy as np

from align import tolerance
from align.records import Aspect, ModuleInfo, Phase, TensorRecord
from align.replay_errors import LocalError, Structure, significant
from align.tolerance import FLOAT16, FLOAT32
from align.value_channels import Vector


class Work(Enum):
    """What made a record.

    A matrix product or convolution, a normalisation, another leaf module, code between modules; the loss, the
    gradient of a parameter, an update.
    """

    PRODUCT = "product"
    NORM = "norm"
    OTHER = "other"
    CODE = "code"
    LOSS = "loss"
    GRADIENT = "gradient"
    UPDATE = "update"


def work_of(record: TensorRecord, module: ModuleInfo | None) -> Work:
    """What made a record, as far as the capture knows its module."""
    key = record.key
    found = {Phase.LOSS: Work.LOSS, Phase.GRADIENT: Work.GRADIENT, Phase.UPDATE: Work.UPDATE, Phase.PARAM: Work.UPDATE}
    if key.phase in found:
        return found[key.phase]
    made = key.slot.startswith("output") if key.phase is Phase.FORWARD else key.slot.startswith("grad_input")
    if not made or record.total or module is None or not module.leaf:
        return Work.CODE
    if module.matmul or module.conv:
        return Work.PRODUCT
    return Work.NORM if "Norm" in module.class_name else Work.OTHER


class Part(Enum):
    """What is measured of an error; `LONE` is how far the few largest elements stand out from the next ones."""

    SIZE = Aspect.SIZE
    SCALE = Aspect.SCALE
    SHIFT = Aspect.SHIFT
    CHANNEL = Aspect.CHANNEL
    PEAK = Aspect.PEAK
    LONE = "lone"

    @property
    def aspect(self) -> Aspect:
        """The aspect that a report names."""
        return Aspect.PEAK if self is Part.LONE else self.value


@dataclass(frozen=True, slots=True)
class PartRule:
    """`share` of the unit roundoff is the least floor of a part; above `limit` times the floor it is no rounding."""

    share: float
    limit: float


Rules: TypeAlias = Mapping[Part, PartRule]

RULES: Mapping[Work, Rules] = {
    Work.PRODUCT: {
        Part.SIZE: PartRule(0.6, 1.8),
        Part.SCALE: PartRule(0.05, 3.0),
        Part.SHIFT: PartRule(0.05, 3.0),
        Part.CHANNEL: PartRule(0.7, 3.0),
        Part.PEAK: PartRule(0.5, 2.7),
        Part.LONE: PartRule(1.0, 3.4),
    },
    Work.NORM: {
        Part.SIZE: PartRule(0.45, 4.7),
        Part.SCALE: PartRule(0.8, 3.0),
        Part.SHIFT: PartRule(0.25, 3.0),
        Part.CHANNEL: PartRule(1.7, 3.0),
        Part.PEAK: PartRule(0.5, 7.2),
        Part.LONE: PartRule(1.0, 3.8),
    },
    Work.OTHER: {
        Part.SIZE: PartRule(0.42, 7.2),
        Part.SCALE: PartRule(0.1, 3.0),
        Part.SHIFT: PartRule(0.1, 3.0),
        Part.CHANNEL: PartRule(1.5, 3.0),
        Part.PEAK: PartRule(0.6, 8.0),
        Part.LONE: PartRule(1.0, 3.2),
    },
    Work.CODE: {
        Part.SIZE: PartRule(0.6, 5.0),
        Part.SCALE: PartRule(0.23, 3.0),
        Part.SHIFT: PartRule(0.1, 3.0),
        Part.CHANNEL: PartRule(2.3, 3.0),
        Part.PEAK: PartRule(0.6, 7.0),
        Part.LONE: PartRule(1.0, 4.5),
    },
    Work.LOSS: {Part.SIZE: PartRule(0.02, 3.0)},
    Work.GRADIENT: {Part.SIZE: PartRule(0.6, 2.8), Part.SCALE: PartRule(0.3, 3.0), Part.PEAK: PartRule(1.0, 5.0)},
    Work.UPDATE: {Part.SIZE: PartRule(0.5, 5.0)},
}
"""What bfloat16 allows, where a fault of 1 % is 2.6 unit roundoffs: 1.35 times the largest of 40 benign pairs of five
models and eight simulated devices, or more where that costs nothing. The widest of them added two units in the last
place to every transcendental function, which is why activations may differ more than matrix products."""

WIDER_FINE, WIDER_FULL = 2.0, 8.0
"""Where the unit roundoff is smaller, so that a fault is many of them, the limits are wider: fp16 and TF32, and fp32,
where errors are those of sums in another order and no longer of one rounding."""

WIDER_SAME = 8.0
"""A replay that computes no finer than the capture: the reference's own error is nothing then on the machine that it
was captured on, and says nothing of what rounding does."""

CUT_OFF: Mapping[Work, Mapping[Part, float]] = {
    Work.PRODUCT: {Part.SCALE: 0.5, Part.SHIFT: 0.2, Part.PEAK: 2.0, Part.CHANNEL: 1.5},
    Work.CODE: {Part.SCALE: 0.7, Part.SHIFT: 0.2, Part.PEAK: 2.0},
    Work.GRADIENT: {Part.SCALE: 0.7},
}
"""The same shares where a matrix unit shortens its operands. One that cuts them off makes each product too small by
0.75 to 1.5 unit roundoffs, and two of them follow each other in attention; the error of an element is that of its
terms, which cancel."""

OF_AN_UPDATE = 16.0 * FLOAT32.unit
"""What clipping by a norm, and the square roots and quotients of an optimizer, may lose in float32."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """The aspect of a local error that is nearest to its limit, or furthest above it."""

    aspect: Aspect
    part: float
    floor: float
    limit: float

    @property
    def times_floor(self) -> float:
        """How many times the floor the part is."""
        return abs(self.part) / self.floor

    @property
    def differs(self) -> bool:
        """Whether rounding does not explain it."""
        return self.times_floor > self.limit


@dataclass(frozen=True, slots=True)
class Format:
    """The unit roundoff in which a record was made, whether the matrix unit may cut operands off, what replayed it."""

    unit: float
    cut_off: bool = False
    replayed_in: str = "fp64"

    @property
    def wider(self) -> float:
        """By how much the limits are wider than in bfloat16."""
        finer = self.replayed_in == "fp64" or (self.replayed_in == "fp32" and self.unit > FLOAT32.unit)
        again = 1.0 if finer else WIDER_SAME
        if self.unit > FLOAT16.unit:
            return again
        return again * (WIDER_FINE if self.unit > FLOAT32.unit else WIDER_FULL)


def rule(
    work: Work, candidate: LocalError, reference: LocalError | None, made_in: Format, numel: int, *, times: float = 1.0
) -> Ruling:
    """Hold all parts of a local error against the reference's and the unit roundoff; `times` multiplies limits."""
    limits = times * made_in.wider * tolerance.limit(numel) / tolerance.LIMIT
    least = OF_AN_UPDATE if work is Work.UPDATE else 0.0
    parts = parts_of(candidate, reference)
    found = []
    for part, known in RULES[work].items():
        share = max(known.share, CUT_OFF.get(work, {}).get(part, 0.0) if made_in.cut_off else 0.0)
        floor = max(parts[part][1], share * made_in.unit, least)
        found.append(Ruling(part.aspect, parts[part][0], floor, known.limit * limits))
    return max(found, key=lambda one: one.times_floor / one.limit)


def parts_of(candidate: LocalError, reference: LocalError | None) -> dict[Part, tuple[float, float]]:
    """Each part of the candidate's local error and what the reference's own error has of it."""
    own = reference if reference is not None else LocalError(0.0, 0.0)
    scales, shifts = _without_common(candidate.structure, own.structure)
    return {
        Part.SIZE: (candidate.size, own.size),
        Part.SCALE: (float(scales[-1]), 0.0),
        Part.SHIFT: (float(shifts[-1]), 0.0),
        Part.CHANNEL: (max(_largest(scales), _largest(shifts), key=abs), 0.0),
        Part.PEAK: (candidate.peak, own.peak),
        Part.LONE: (candidate.peak, candidate.next_peak),
    }


def _without_common(candidate: Structure | None, reference: Structure | None) -> tuple[Vector, Vector]:
    """The significant factors and constants that the reference has not; those of channels without that of the whole."""
    if candidate is None:
        return np.zeros(1), np.zeros(1)
    own = reference
    if own is None or len(own.scales) != len(candidate.scales):
        nothing = np.zeros(len(candidate.scales))
        own = Structure(nothing, nothing, nothing, nothing)
    scales = _apart(candidate.scales - own.scales, np.hypot(candidate.scale_errors, own.scale_errors))
    shifts = _apart(candidate.shifts - own.shifts, np.hypot(candidate.shift_errors, own.shift_errors))
    return scales, shifts


def _apart(values: Vector, errors: Vector) -> Vector:
    values = np.append(values[:-1] - values[-1], values[-1])
    return significant(np.nan_to_num(values), np.nan_to_num(errors, nan=np.inf, posinf=np.inf))


def _largest(values: Vector) -> float:
    """The value of the largest magnitude among the channels, with its sign."""
    channels = values[:-1]
    return float(channels[np.argmax(np.abs(channels))]) if len(channels) else 0.0
