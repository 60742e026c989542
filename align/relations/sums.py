"""The few sums over two tensors from which factors, offsets and correlations follow; those of parts add up."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sums:
    """Over the elements that are finite on both sides: count, sums, sums of products, of the difference and its square.

    All in float64, so that a residual of 1e-8 of a norm is still seen.
    """

    count: int = 0
    ours: float = 0.0
    theirs: float = 0.0
    ours_squared: float = 0.0
    product: float = 0.0
    theirs_squared: float = 0.0
    difference: float = 0.0
    difference_squared: float = 0.0

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(mine + others for mine, others in zip(astuple(self), astuple(other), strict=True)))

    @property
    def relative_l2(self) -> float:
        """||candidate - reference|| / ||reference||; relative to the candidate where the reference is zero."""
        norm = self.ours_squared or self.theirs_squared
        return math.sqrt(self.difference_squared / norm) if norm > 0.0 else 0.0

    @property
    def of_candidate(self) -> float:
        """||candidate - reference|| / ||candidate||."""
        return math.sqrt(self.difference_squared / self.theirs_squared) if self.theirs_squared > 0.0 else math.inf

    @property
    def factor(self) -> float:
        """The factor that brings the reference nearest to the candidate."""
        return self.product / self.ours_squared if self.ours_squared > 0.0 else math.nan

    @property
    def factor_residual(self) -> float:
        """What the factor leaves, relative to the candidate's norm."""
        if not (self.ours_squared > 0.0 and self.theirs_squared > 0.0):
            return math.inf
        # 1 - cos^2 cancels where the factor fits; from the difference it does not where the factor is near 1.
        left = self.theirs_squared - self.product * self.product / self.ours_squared
        gap = self.product - self.ours_squared
        near_one = self.difference_squared - gap * gap / self.ours_squared  # `**` raises where this overflows
        if abs(self.factor - 1.0) < 0.5:  # noqa: PLR2004 - both are right; the second is finer here
            left = near_one
        return math.sqrt(max(left, 0.0) / self.theirs_squared)

    @property
    def offset(self) -> float:
        """The constant that brings the reference nearest to the candidate."""
        return self.difference / self.count if self.count else 0.0

    @property
    def offset_residual(self) -> float:
        """What the constant leaves, relative to the candidate's norm."""
        if not (self.count and self.theirs_squared > 0.0):
            return math.inf
        left = self.difference_squared - self.difference * self.difference / self.count
        return math.sqrt(max(left, 0.0) / self.theirs_squared)

    @property
    def cosine(self) -> float:
        """The cosine between both, 0 where one is zero."""
        norms = math.sqrt(self.ours_squared * self.theirs_squared)
        return self.product / norms if norms > 0.0 else 0.0

    @property
    def correlation(self) -> float | None:
        """The cosine after taking out the means, None where one side is constant."""
        ours = self.ours_squared - self.ours * self.ours / max(self.count, 1)
        theirs = self.theirs_squared - self.theirs * self.theirs / max(self.count, 1)
        if not (ours > 1e-13 * self.ours_squared and theirs > 1e-13 * self.theirs_squared):
            return None
        return (self.product - self.ours * self.theirs / self.count) / math.sqrt(ours * theirs)


def sums_of(ours: Numbers, theirs: Numbers) -> Sums:
    """The sums of two one-dimensional arrays of finite float64."""
    difference = theirs - ours
    return Sums(
        ours.size,
        float(ours.sum()),
        float(theirs.sum()),
        float(ours @ ours),
        float(ours @ theirs),
        float(theirs @ theirs),
        float(difference.sum()),
        float(difference @ difference),
    )
