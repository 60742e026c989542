"""How differences are judged: how far above its floor one counts, and which floor was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from align import tolerance
from align.errors import UsageError
from align.records import TensorRecord
from align.sentences import say
from align.tolerance import FLOAT32, LIMIT, TF32, Precision


@dataclass(frozen=True, slots=True)
class MeasuredLimits:
    """Above so many times a measured floor a difference is real: in float32, in TF32 and HF32, in shorter formats."""

    fine: float
    shortened: float
    short: float


REPEATS = MeasuredLimits(10.0, 10.0, 5.0)
"""Good runs of one device do not round as another device does; none of 56 benign pairs was above."""

ONE_PERTURBED = MeasuredLimits(10.0, 8.0, 3.0)
SEVERAL_PERTURBED = MeasuredLimits(10.0, 3.0, 3.0)
"""Weights and batches moved by one unit roundoff: over 121 healthy pairs of the benchmark a difference was at most 5.4,
1.5 and 1.6 times the larger of two such floors, in TF32 5.2 times one alone."""

SMALLEST_MEASURED = 1.0
"""A floor measured by one run may be 0 by chance: it counts as one unit roundoff at least."""

BEYOND_INHERITED = 2.0
"""A difference starts where it is twice as far above its measured floor as what it was made from."""


class FloorErrors(Protocol):
    """The differences between the reference and other runs that are known to be good, by record."""

    @property
    def method(self) -> str:
        """What the floor was measured by, in words."""

    @property
    def perturbed(self) -> int:
        """How many of the runs started from weights and batches that were moved by a rounding error."""

    def error(self, record: TensorRecord) -> float | None:
        """The relative L2 difference at a record of the reference, the largest of all floors; None where unknown."""


@dataclass(frozen=True, slots=True)
class Judging:
    """`limit` times its estimated floor a difference is real; `floor` was measured, where there is one."""

    limit: float = LIMIT
    floor: FloorErrors | None = None

    def __post_init__(self) -> None:
        """Refuse a limit that nothing or everything exceeds."""
        if not 1.0 < self.limit < math.inf:
            raise UsageError(say("Cannot judge with --limit {}: write a number above 1, such as 7.", f"{self.limit:g}"))

    def limit_of(self, numel: int) -> float:
        """Above so many times the estimated floor a tensor of so many elements differs."""
        return self.limit / LIMIT * tolerance.limit(numel)

    def measured_limit(self, precision: Precision, numel: int) -> float:
        """Above so many times the measured floor a tensor of so many elements differs."""
        perturbed = self.floor.perturbed if self.floor is not None else 0
        limits = REPEATS if perturbed == 0 else ONE_PERTURBED if perturbed == 1 else SEVERAL_PERTURBED
        times = limits.short
        if precision.spacing <= FLOAT32.spacing and precision.unit <= TF32.unit:
            times = limits.fine if precision.unit <= FLOAT32.unit else limits.shortened
        return self.limit / LIMIT * times * tolerance.limit(numel) / LIMIT

    def measured(self, record: TensorRecord, precision: Precision) -> float | None:
        """The measured floor of a record, None where there is none."""
        error = self.floor.error(record) if self.floor is not None else None
        return None if error is None else max(error, SMALLEST_MEASURED * precision.unit)
