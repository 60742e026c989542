"""How much one pair differs: from sketches, where there are none from statistics, and from the values if need be."""

from __future__ import annotations

import math

from align import sketch
from align.pairing import Pair
from align.records import TensorRecord, TensorStats
from align.tolerance import is_float
from align.value_reader import ValueReader

NEAR = 2.0
"""A distance from a sketch of 251 numbers is 0.83 to 1.19 of the true one (36,500 tensors measured), and up to as much
of the floor is such a distance too: beyond a factor of 2 the values would say the same."""


def is_float_pair(pair: Pair) -> bool:
    """Whether both tensors are floating ones."""
    return is_float(pair.reference.dtype) and is_float(pair.candidate.dtype)


def has_sketches(pair: Pair) -> bool:
    """Whether the direction of the difference is known, not only the sizes."""
    return pair.reference.sketch is not None and pair.candidate.sketch is not None


def identical(pair: Pair) -> bool:
    """Whether both tensors are equal: by hash, else by identical sketches made the same way."""
    ours, theirs = pair.reference, pair.candidate
    if ours.hash is not None and theirs.hash is not None:
        return ours.hash == theirs.hash and ours.dtype == theirs.dtype
    left, right = sketch.sketch_of(ours), sketch.sketch_of(theirs)
    return left is not None and right is not None and ours.stats == theirs.stats and sketch.identical(left, right)


def relative_l2(pair: Pair, scale: float = 1.0, values: ValueReader | None = None) -> float | None:
    """||scale * candidate - reference|| / ||reference||, None where it cannot be had.

    Where the reference is all zeros it is relative to the candidate. From a sketch it is within about 15 %, from
    statistics alone a lower bound. With `values` it is exact where both files hold them; nothing is read of tensors
    that the records show to be equal.
    """
    ours, theirs = pair.reference, pair.candidate
    if ours.stats is None or theirs.stats is None or not pair.same_shape:
        return None
    if ours.numel == 0 or ours.stats.total_squares == theirs.stats.total_squares == 0.0:
        return 0.0
    if ours.stats.total_squares == 0.0:
        return 1.0
    if values is not None and not (scale == 1.0 and identical(pair)):
        found = values.distance(pair, scale)
        if found is not None:
            return found.relative_l2(ours.stats.norm)
    left, right = sketch.sketch_of(ours), sketch.sketch_of(theirs)
    if left is None or right is None:
        return statistics_distance(ours.stats, theirs.stats, scale)
    return sketch.distance(left, right, scale)


def is_near(error: float, allowed: float) -> bool:
    """Whether a distance from a sketch is so near to what is allowed that only the values can tell."""
    return allowed / NEAR <= error <= allowed * NEAR


def is_coarse(pair: Pair, error: float) -> bool:
    """Whether a distance from sketches is not far above their own resolution, whose subtraction makes it too small."""
    return error <= NEAR * math.hypot(pair.reference.resolution, pair.candidate.resolution)


def settled(pair: Pair, error: float, allowed: float, scale: float = 1.0, values: ValueReader | None = None) -> float:
    """The distance from the values where that from sketches is too near to what is allowed, or to their resolution.

    `error` is the distance from sketches, which stays where the values cannot be had.
    """
    if values is None or not (is_near(error, allowed) or is_coarse(pair, error)):
        return error
    exact = relative_l2(pair, scale, values)
    return error if exact is None else exact


def without_flips(
    pair: Pair, forward_error: float, scale: float = 1.0, values: ValueReader | None = None
) -> float | None:
    """The relative L2 difference that leaves out the few decisions (ReLU, max-pool) that rounding flipped.

    With `values` those elements are known, where both files hold the gradient and the forward tensor.
    """
    if not pair.same_shape or not math.isfinite(forward_error):
        return None
    found = values.without_flips(pair, forward_error, scale) if values is not None else None
    if found is not None and found.flips and pair.reference.stats is not None:
        return found.distance.relative_l2(pair.reference.stats.norm)
    left, right = sketch.sketch_of(pair.reference), sketch.sketch_of(pair.candidate)
    if left is None or right is None:
        return None
    return sketch.median_distance(left, right, forward_error, scale)


def statistics_distance(reference: TensorStats, candidate: TensorStats, scale: float = 1.0) -> float:
    """A lower bound of the relative L2 difference from norms and means."""
    if reference.norm == 0.0:
        return 0.0 if candidate.norm == 0.0 else 1.0
    norms = abs(candidate.norm * scale - reference.norm)
    means = abs(candidate.mean * scale - reference.mean) * math.sqrt(reference.count)
    return max(norms, means) / reference.norm


def cancellation(record: TensorRecord) -> float:
    """By how much subtracting the mean enlarges a relative difference: ||x|| / ||x - mean||, at least 1."""
    stats = record.stats
    if stats is None or not 0.0 < stats.total_squares < math.inf or record.numel == 0:
        return 1.0
    centred = stats.total_squares - stats.total * stats.total / record.numel
    return math.sqrt(stats.total_squares / max(centred, 1e-12 * stats.total_squares))
