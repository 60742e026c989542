"""The local error of one tensor: what a captured run made of the same inputs, against what its replay made of them.

Rounding leaves an error without structure. So besides its size the parts are measured that a fault leaves and rounding
does not: a factor or a constant, of the whole tensor or of one channel, and a few elements that are far off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from align.flow import LARGEST_AMPLITUDE
from align.pairing import Pair
from align.value_blocks import BlockReader, KeptPair, plain_cuts
from align.value_channels import ChannelSums, Vector, channel_sums

SIGNIFICANT = 8.0
"""A factor or a constant counts from so many of its standard errors on: no rounding noise of 10^6 channels has it."""

FEWEST = 16
"""Elements that a channel must have for its factor or constant to be told from noise."""

SMALLEST_CHANNEL = 1e-4
"""A channel with less than this of its part of the squares is next to nothing: a factor of it says nothing."""

NEXT = 3
"""How many elements behind the largest one the next ones are sought: a few wrong elements stand alone."""


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """A factor less 1, and a constant over the root mean square of the tensor, for each channel (float64).

    The last entry is that of the whole tensor. `scale_errors` and `shift_errors` are their standard errors, infinite
    for channels of too few elements.
    """

    scales: Vector
    scale_errors: Vector
    shifts: Vector
    shift_errors: Vector


@dataclass(frozen=True, slots=True, eq=False)
class LocalError:
    """The captured tensor minus the replayed one, relative to the replayed one, whose norm is `norm`.

    `size` is the relative L2 error, `peak` the largest error of an element over the sum of its own magnitude and the
    root mean square, `next_peak` the same behind the three largest. `structure` is None where nothing differs.
    """

    norm: float
    size: float
    peak: float = 0.0
    next_peak: float = 0.0
    structure: Structure | None = field(default=None, repr=False)


def change_error(reader: BlockReader, pair: KeptPair, change: KeptPair) -> LocalError:
    """The size of an error relative to a change: `change` has the tensor before it, and the replayed one after it."""
    distance, size = (float(channel_sums(reader, one).whole.difference_squares[0]) for one in (pair, change))
    if distance == 0.0:
        return LocalError(math.sqrt(size), 0.0)
    return LocalError(math.sqrt(size), math.sqrt(distance / size) if size > 0.0 else math.inf)


def local_error(reader: BlockReader, pair: KeptPair) -> LocalError:
    """Measure a pair of kept tensors: the reference of `pair` is the replay, its candidate the captured run.

    Memory is that of a few blocks. Raises CaptureFileError where a file cannot be read.
    """
    sums = channel_sums(reader, pair)
    whole = sums.whole
    square, count = float(whole.squares[0]), int(whole.count[0])
    distance = float(whole.difference_squares[0])
    if count == 0 or square == 0.0:
        return LocalError(0.0, 0.0 if distance == 0.0 else math.inf)
    norm, rms = math.sqrt(square), math.sqrt(square / count)
    if distance == 0.0:
        return LocalError(norm, 0.0)
    return LocalError(norm, math.sqrt(distance) / norm, *_peaks(reader, pair, rms), _structure(sums, whole, rms))


def _structure(sums: ChannelSums, whole: ChannelSums, rms: float) -> Structure:
    few = sums.count < FEWEST
    faint = sums.squares <= SMALLEST_CHANNEL * float(whole.squares[0]) / len(sums.squares)
    return Structure(
        np.append(sums.slopes, whole.slopes),
        np.append(_unless(few | faint, sums.slope_errors), whole.slope_errors),
        np.append(sums.means, whole.means) / rms,
        np.append(_unless(few, sums.mean_errors), whole.mean_errors) / rms,
    )


def _unless(condition: np.ndarray[tuple[int], np.dtype[np.bool_]], errors: Vector) -> Vector:
    return np.where(condition, np.inf, errors)


def _peaks(reader: BlockReader, pair: KeptPair, rms: float) -> tuple[float, float]:
    largest = np.zeros(NEXT + 1)
    with np.errstate(invalid="ignore", over="ignore"):
        for block in reader.blocks(pair, plain_cuts(pair.reference.numel)):
            ours = block.reference.astype(np.float64)
            quotient = np.abs(block.candidate - ours) / (np.abs(ours) + rms)
            quotient = np.concatenate([largest, quotient[np.isfinite(quotient)]])
            largest = np.partition(quotient, -NEXT - 1)[-NEXT - 1 :]
    return float(largest.max()), float(largest.min())


def significant(values: Vector, errors: Vector) -> Vector:
    """The values that noise does not explain, 0 for the others."""
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(values) > SIGNIFICANT * errors, values, 0.0)


def is_mask(pair: Pair) -> bool:
    """Whether either tensor masks with the greatest number of its format, which differs between formats."""
    return any(
        record.stats is not None and record.stats.absolute_maximum >= LARGEST_AMPLITUDE
        for record in (pair.reference, pair.candidate)
    )
