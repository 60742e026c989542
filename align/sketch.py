"""Linear sketches: a few hundred numbers per tensor from which distances between two tensors can be read.

Bucket j of K holds the sum of sign(i) * x_i over all i = j mod K, where i is the row-major index in the logical
shape. This is linear in x, so the difference of two sketches is the sketch of the difference (AMS sketch: Alon,
Matias, Szegedy 1996). Sketches are stored trimmed to min(n, K) numbers: for n <= K the later buckets are 0.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from align.records import TensorRecord

PERIOD = 1048583
"""The signs repeat after so many elements."""

BUCKET_COUNTS = (251, 257, 263, 269)
ROWS = 1024
"""A block of `ROWS * K` elements is summed at a time."""

SIGN_TABLE_ID = 0x2A7FACBA
"""The CRC-32 of the first PERIOD signs as signed bytes; sketches with another table cannot be compared."""

NORMAL_MEDIAN_OF_SQUARES = 0.4549
"""The median of the square of a standard normal number."""

FEWEST_BUCKETS = 30


class Sketch(NamedTuple):
    """One tensor's sketch with what its use needs: element count, zeros among them, L2 norm, relative resolution."""

    values: NDArray[np.float32]
    numel: int
    norm: float
    resolution: float = 0.0
    zeros: int = 0

    @property
    def exact(self) -> bool:
        """Whether the sketch holds every element by itself."""
        return self.numel <= len(self.values)


class ScaleFactor(NamedTuple):
    """The candidate is `factor` times the reference, up to `residual` relative to the candidate's norm."""

    factor: float
    residual: float


@lru_cache(maxsize=4)
def sketch_of(record: TensorRecord) -> Sketch | None:
    """The sketch of a record, None where the record has no sketch or no statistics."""
    if record.sketch is None or record.stats is None:
        return None
    return Sketch(record.sketch, record.numel, record.stats.norm, record.resolution, record.stats.zeros)


@lru_cache(maxsize=4096)
def bucket_count(shape: tuple[int, ...]) -> int:
    """K: the first candidate that divides no product of trailing dimensions, so that no channel fills one bucket."""
    strides = []
    stride = 1
    for length in reversed(shape):
        if stride > 1:
            strides.append(stride)
        stride *= length
    return next((count for count in BUCKET_COUNTS if all(stride % count for stride in strides)), BUCKET_COUNTS[-1])


@lru_cache(maxsize=1)
def signs() -> NDArray[np.float32]:
    """The signs, +1 or -1, of elements 0, 1, ...; repeated past PERIOD so that the slice of a block never wraps."""
    index = np.arange(PERIOD, dtype=np.uint32)
    mixed = index * np.uint32(0x9E3779B1)
    mixed ^= mixed >> np.uint32(15)
    mixed *= np.uint32(0x85EBCA77)
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(0xC2B2AE3D)
    mixed ^= mixed >> np.uint32(16)
    table = (mixed & np.uint32(1)).astype(np.float32) * 2 - 1
    extended = np.concatenate([table, table[: ROWS * BUCKET_COUNTS[-1]]])
    extended.flags.writeable = False
    return extended


def sketch_array(array: NDArray[Any]) -> NDArray[np.float32]:
    """The sketch of any array of real numbers, summed in float64, trimmed to min(n, K) numbers."""
    buckets = bucket_count(array.shape)
    flat = array.reshape(-1)
    total = np.zeros(buckets, dtype=np.float64)
    block = ROWS * buckets
    for start in range(0, flat.size, block):
        piece = flat[start : start + block].astype(np.float64)
        offset = start % PERIOD
        padded = np.zeros(-(-piece.size // buckets) * buckets, dtype=np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            np.multiply(piece, signs()[offset : offset + piece.size], out=padded[: piece.size])
            total += padded.reshape(-1, buckets).sum(axis=0)
    with np.errstate(over="ignore"):
        return total[: min(flat.size, buckets)].astype(np.float32)


def recovered(sketch: NDArray[np.float32], numel: int) -> NDArray[np.float32] | None:
    """The elements themselves in row-major order where the tensor has at most K of them, else None."""
    if numel > len(sketch):
        return None
    return sketch[:numel] * signs()[:numel]


def identical(reference: Sketch, candidate: Sketch) -> bool:
    """Whether both sketches are the same bits, made with the same resolution: only then do they say "equal"."""
    return (
        reference.numel == candidate.numel
        and reference.resolution == candidate.resolution
        and reference.values.tobytes() == candidate.values.tobytes()
    )


def distance(reference: Sketch, candidate: Sketch, scale: float = 1.0) -> float | None:
    """The relative L2 distance ||scale * candidate - reference|| / ||reference||.

    `scale` undoes a loss scale: the reference's divided by the candidate's. Buckets that are not finite on both
    sides are left out. None where the sketches do not fit each other or too few buckets are left. Exact for
    tensors of at most K elements; else within about 15 %, after subtracting both resolutions in quadrature.
    """
    pair = _usable(reference, candidate, scale)
    if pair is None:
        return None
    ours, theirs = pair
    difference = theirs - ours
    square = float(difference @ difference)
    if reference.exact:
        return _relative(square, math.sqrt(float(ours @ ours)))
    square *= len(reference.values) / len(ours)
    return _relative(square - _noise(reference, candidate, scale), reference.norm)


def median_distance(reference: Sketch, candidate: Sketch, forward_error: float, scale: float = 1.0) -> float | None:
    """The relative L2 distance without the few buckets that rounding flipped (ReLU, max-pool).

    `forward_error` is the relative error in the forward output, which bounds how many flips to expect. From 8
    elements a bucket on (zeros not counted) it is read from the median, below the largest are left out. None where
    there are more outlying buckets than the forward error explains, or no usable sketch.
    """
    pair = _usable(reference, candidate, scale)
    if pair is None:
        return None
    ours, theirs = pair
    squares = np.square(theirs - ours)
    filled = reference.numel - reference.zeros
    if filled < 8 * len(reference.values):
        square = _without_largest(squares, _allowed(filled, forward_error))
    else:
        square = _from_median(squares, 3 + 6.4 * filled * forward_error)
    if square is None:
        return None
    if reference.exact:
        return _relative(square, reference.norm)
    square *= len(reference.values) / len(ours)
    return _relative(square - _noise(reference, candidate, scale), reference.norm)


def _from_median(squares: NDArray[np.float64], allowed: float) -> float | None:
    """The sum of normal squares with this median; None where more lie outside than allowed."""
    middle = _median(squares)
    if int(np.count_nonzero(squares > 64 * middle)) > allowed:
        return None
    return len(squares) * middle / NORMAL_MEDIAN_OF_SQUARES


def _allowed(numel: int, forward_error: float) -> int:
    """How many of few elements may be left out: one at least, and three times the flips to expect."""
    return min(3, max(1, numel // 16)) + int(numel * min(forward_error, 1.0))


def _without_largest(squares: NDArray[np.float64], count: int) -> float | None:
    """The sum of squares as it is without so many of the largest; None where that leaves too little."""
    if 4 * count > len(squares):
        return None
    kept = np.partition(squares, len(squares) - count)[: len(squares) - count]
    return float(kept.sum()) * len(squares) / len(kept)


class Peak(NamedTuple):
    """The largest bucket of a difference, by magnitude, and how many standard deviations of the others it is."""

    height: float
    deviations: float


def peak_of_difference(reference: Sketch, candidate: Sketch, scale: float = 1.0) -> Peak | None:
    """The largest bucket of the difference; None where the sketches do not fit each other."""
    pair = _usable(reference, candidate, scale)
    if pair is None:
        return None
    ours, theirs = pair
    squares = np.square(theirs - ours)
    height = math.sqrt(float(squares.max()))
    deviation = math.sqrt(_median(squares) / NORMAL_MEDIAN_OF_SQUARES)
    return Peak(height, height / deviation if deviation > 0.0 else math.inf)


def inner_product(reference: Sketch, candidate: Sketch, scale: float = 1.0) -> float | None:
    """The inner product of the reference and `scale * candidate`, within about 4 ||a|| ||b|| / sqrt(K)."""
    pair = _usable(reference, candidate, scale)
    if pair is None:
        return None
    ours, theirs = pair
    share = 1.0 if reference.exact else len(reference.values) / len(ours)
    return float(ours @ theirs) * share


def scale_factor(reference: Sketch, candidate: Sketch) -> ScaleFactor | None:
    """The factor between both tensors by their norms, with its sign, and what it leaves unexplained."""
    pair = _usable(reference, candidate, 1.0)
    if pair is None:
        return None
    ours, theirs = pair
    norms = (reference.norm, candidate.norm)
    if reference.exact:
        norms = (math.sqrt(float(ours @ ours)), math.sqrt(float(theirs @ theirs)))
    if not (norms[0] > 0.0 and norms[1] > 0.0):
        return None
    factor = math.copysign(norms[1] / norms[0], float(ours @ theirs))
    left = theirs - factor * ours
    square = float(left @ left)
    if not reference.exact:
        square *= len(reference.values) / len(ours)
        square -= (reference.resolution**2 + candidate.resolution**2) * norms[1] ** 2
    return ScaleFactor(factor, _relative(square, norms[1]))


def _usable(
    reference: Sketch, candidate: Sketch, scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Both sketches in float64, the candidate scaled, over the buckets that are finite on both sides."""
    buckets = len(reference.values)
    if buckets != len(candidate.values) or reference.numel != candidate.numel:
        return None
    ours = reference.values.astype(np.float64)
    theirs = candidate.values.astype(np.float64)
    if scale != 1.0:
        theirs *= scale
    # The square of its norm tells that all of a sketch is finite; unlike a sum, np.dot never warns.
    if math.isfinite(np.dot(ours, ours)) and math.isfinite(np.dot(theirs, theirs)):
        return ours, theirs
    usable = np.isfinite(ours) & np.isfinite(theirs)
    count = int(np.count_nonzero(usable))
    if count == 0 or count < min(FEWEST_BUCKETS, buckets / 4):
        return None
    return ours[usable], theirs[usable]


def _noise(reference: Sketch, candidate: Sketch, scale: float) -> float:
    """The square of what the summation of both sketches may have added to their difference."""
    return float((reference.resolution * reference.norm) ** 2 + (candidate.resolution * candidate.norm * scale) ** 2)


def _relative(square: float, norm: float) -> float:
    if square <= 0.0:
        return 0.0
    return math.sqrt(square) / norm if norm > 0.0 else math.inf


def _median(values: NDArray[np.float64]) -> float:
    middle = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, middle)[middle])
    below, above = np.partition(values, (middle - 1, middle))[middle - 1 : middle + 1]
    return float(below + above) / 2
