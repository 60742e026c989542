"""The zeros that dropout makes: how many, and whether two masks may be of one rate."""

from __future__ import annotations

import math

from align.records import TensorRecord

FARTHEST = 5.0
"""The shares of zeros of two masks of one rate differ by less than so many standard deviations."""


def zero_share(record: TensorRecord) -> float:
    """The share of the elements that are 0, 0 where it is not known."""
    return record.stats.zeros / record.numel if record.stats is not None and record.numel else 0.0


def of_one_rate(shares: tuple[float, float], numel: int) -> bool:
    """Whether two tensors of so many elements, with these shares of zeros, may have been dropped from at one rate."""
    mean = sum(shares) / 2
    deviation = math.sqrt(max(2 * mean * (1 - mean), 0.0) / max(numel, 1))
    return min(shares) > 0.0 and abs(shares[0] - shares[1]) <= FARTHEST * deviation
