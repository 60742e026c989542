"""How much one pair differs, from sketches or, where there are none, from statistics."""

from __future__ import annotations

import math

from align import sketch
from align.pairing import Pair
from align.records import TensorRecord, TensorStats
from align.tolerance import is_float


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


def relative_l2(pair: Pair, scale: float = 1.0) -> float | None:
    """||scale * candidate - reference|| / ||reference||, None where it cannot be had.

    Where the reference is all zeros it is relative to the candidate. From statistics alone it is a lower bound.
    """
    ours, theirs = pair.reference, pair.candidate
    if ours.stats is None or theirs.stats is None or not pair.same_shape:
        return None
    if ours.numel == 0 or ours.stats.total_squares == theirs.stats.total_squares == 0.0:
        return 0.0
    if ours.stats.total_squares == 0.0:
        return 1.0
    left, right = sketch.sketch_of(ours), sketch.sketch_of(theirs)
    if left is None or right is None:
        return statistics_distance(ours.stats, theirs.stats, scale)
    return sketch.distance(left, right, scale)


def without_flips(pair: Pair, forward_error: float, scale: float = 1.0) -> float | None:
    """The relative L2 difference that leaves out the few decisions (ReLU, max-pool) that rounding flipped."""
    left, right = sketch.sketch_of(pair.reference), sketch.sketch_of(pair.candidate)
    if left is None or right is None or not pair.same_shape or not math.isfinite(forward_error):
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
