"""The distance of two kept tensors from their values, and where they differ first and most.

One pass over both: a subtraction, the largest and the least difference, a dot product. The cosine needs no pass of its
own, it follows from the distance and both norms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.value_blocks import Block, BlockReader, KeptPair

SMALLEST_SQUARE, LARGEST_SQUARE = 2.0**-80, 2.0**100
"""Outside of these a block's sum of squares may have lost terms to float32's range; 131,072 squares below its
smallest normal number (2^-126) are 2^-109."""


@dataclass(frozen=True, slots=True)
class ValueDistance:
    """How two tensors of `count` elements differ: the candidate, times a scale, minus the reference.

    `square` is the sum of the squared differences and `largest` the largest magnitude among them, found at
    `largest_at`, both None where it was not looked for; `first_at` is the first element that differs. The places are
    row-major indices, None where nothing differs.
    Elements that are equal, or NaN on both sides, do not differ. Other elements without a finite difference are in no
    sum: `unmeasured` counts them, and `first_at` may be one.
    """

    count: int
    square: float = 0.0
    largest: float | None = None
    largest_at: int | None = None
    first_at: int | None = None
    unmeasured: int = 0

    def relative_l2(self, norm: float) -> float:
        """The distance over the norm of the reference; 0 where nothing differs, infinite where the norm is 0."""
        if self.square == 0.0:
            return 0.0
        return math.sqrt(self.square) / norm if norm > 0.0 else math.inf

    def cosine(self, reference_norm: float, candidate_norm: float) -> float | None:
        """The cosine between both, from both norms (the candidate's with its scale); None where one has no direction.

        1 - cos = (||b - a||^2 - (||b|| - ||a||)^2) / (2 ||a|| ||b||) keeps what a quotient of products near 1 loses.
        """
        product = reference_norm * candidate_norm
        if self.unmeasured or not 0.0 < product < math.inf:
            return None
        left = self.square - (candidate_norm - reference_norm) ** 2
        return min(1.0, max(-1.0, 1.0 - left / (2.0 * product)))


class _Sum:
    """The distance while it is being added up; `parts` numbers are one element."""

    def __init__(self, parts: int, *, largest: bool) -> None:
        self.parts = parts
        self.look_for_largest = largest
        self.squares: list[float] = []
        self.largest = 0.0
        self.largest_at: int | None = None
        self.first_at: int | None = None
        self.unmeasured = 0

    def add(self, start: int, difference: NDArray[Any], square: float) -> None:
        """Take the differences of a block from an element on, of which not all are 0."""
        self.squares.append(square)
        if self.first_at is None:
            self.first_at = start + int(np.flatnonzero(difference)[0]) // self.parts
        if self.look_for_largest:
            peak = _peak(difference)
            if peak > self.largest:
                self.largest = peak
                self.largest_at = start + int(np.abs(difference).argmax()) // self.parts

    def add_unmeasured(self, start: int, numbers: NDArray[np.int64], difference: NDArray[Any]) -> None:
        """Take the numbers of a block that differ and have no difference."""
        places = np.unique(numbers // self.parts)
        self.unmeasured += len(places)
        if len(places) and self.first_at is None:
            measured = np.flatnonzero(difference)[:1] // self.parts
            self.first_at = start + int(min([*places[:1], *measured]))

    def finished(self, count: int) -> ValueDistance:
        """What was found."""
        largest = self.largest if self.look_for_largest else None
        return ValueDistance(
            count, math.fsum(self.squares), largest, self.largest_at, self.first_at, unmeasured=self.unmeasured
        )


def measure(reader: BlockReader, pair: KeptPair, *, largest: bool = True) -> ValueDistance:
    """The distance of two kept tensors of one shape.

    Squares are summed in float32 in blocks of 131,072 and between blocks in float64: within 1e-5 of the exact sum.
    Without `largest` the largest difference is not looked for, which saves a quarter of the time.
    Raises CaptureFileError where a file cannot be read.
    """
    found = _Sum(pair.parts, largest=largest)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        for start, ours, theirs in reader.blocks(pair):
            difference = np.subtract(theirs, ours, out=theirs)
            square = float(np.dot(difference, difference))
            if SMALLEST_SQUARE <= square <= LARGEST_SQUARE:
                found.add(start, difference, square)
            elif square or _peak(difference):
                _add_carefully(found, reader.block(pair, start, len(ours) // pair.parts))
    return found.finished(pair.reference.numel)


def measure_blocks(
    reader: BlockReader,
    pair: KeptPair,
    cuts: Iterable[tuple[int, int]],
    left_out: Callable[[int, int], NDArray[np.bool_]],
) -> ValueDistance:
    """The same without the elements that `left_out` marks in each block, given as (start, count).

    `unmeasured` does not count them.
    """
    found = _Sum(pair.parts, largest=True)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        for start, count in cuts:
            block = reader.block(pair, start, count)
            marked = np.flatnonzero(left_out(start, count))
            block.candidate[marked] = block.reference[marked] = 0.0
            _add_carefully(found, block)
    return found.finished(pair.reference.numel)


def _add_carefully(found: _Sum, block: Block) -> None:
    """Add a block of float64 with numbers that are not finite, or whose squares leave the range of float32."""
    start, ours, theirs = block
    difference = theirs - ours
    lost = ~np.isfinite(difference)
    if lost.any():
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        difference[lost] = 0.0
        found.add_unmeasured(start, np.flatnonzero(lost & ~same), difference)
    peak = _peak(difference)
    if peak > 0.0:
        # By a power of two, so that no square leaves the range of float64 either.
        unit = math.ldexp(1.0, math.frexp(peak)[1] - 1)
        scaled = difference / unit
        found.add(start, difference, float(scaled @ scaled) * unit * unit)


def _peak(difference: NDArray[Any]) -> float:
    return max(float(difference.max()), -float(difference.min()))
