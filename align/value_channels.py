"""What two kept tensors differ by in each channel: one factor, or one constant, that is wrong in one channel only.

A channel is an index of the last dimension, of images (4 dimensions) of dimension 1. A vector is one channel, since one
element of it would say nothing. A pass of its own, in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.value_blocks import ELEMENTS, BlockReader, KeptPair

Vector = NDArray[np.float64]

IMAGES = 4
"""Dimensions of a batch of images: batch, channel, height, width."""

MOST_CHANNELS = 1 << 18
"""Of more the sums would take more memory than all else (48 bytes each), so the whole tensor is one channel then."""


@dataclass(frozen=True, slots=True, eq=False)
class ChannelSums:
    """Sums over the elements of each channel, where a is the reference and d the candidate, scaled, minus a.

    `count` is how many elements a channel has (int64), `reference` the sum of a, `difference` of d, `squares` of a*a,
    `products` of a*d, `difference_squares` of d*d (float64); elements that are not finite on both sides are in none.
    """

    count: NDArray[np.int64]
    reference: Vector
    difference: Vector
    squares: Vector
    products: Vector
    difference_squares: Vector

    @property
    def slopes(self) -> Vector:
        """By how much each channel is scaled, less 1: the k - 1 that makes k*a nearest to a + d; NaN where a is 0."""
        return _quotient(self.products, self.squares)

    @property
    def slope_errors(self) -> Vector:
        """The standard error of each slope where what it leaves is noise; NaN with fewer than two elements."""
        left = np.maximum(self.difference_squares - _quotient(self.products, self.squares) * self.products, 0.0)
        return np.sqrt(_quotient(left, self.squares * (self.count - 1)))

    @property
    def means(self) -> Vector:
        """The mean difference of each channel; NaN where it has no element."""
        return _quotient(self.difference, self.count.astype(np.float64))

    @property
    def mean_errors(self) -> Vector:
        """The standard error of each mean difference; NaN with fewer than two elements."""
        count = self.count.astype(np.float64)
        left = np.maximum(self.difference_squares - _quotient(self.difference**2, count), 0.0)
        return np.sqrt(_quotient(left, count * (count - 1)))

    @property
    def whole(self) -> ChannelSums:
        """The same over all elements, as one channel."""
        fields = (self.count, self.reference, self.difference, self.squares, self.products, self.difference_squares)
        return ChannelSums(*(field.sum(keepdims=True) for field in fields))


def channel_sums(reader: BlockReader, pair: KeptPair) -> ChannelSums:
    """The sums of two kept tensors of one shape and real dtype; the candidate is multiplied by the pair's scale."""
    rows, channels, inner = layout = channels_of(pair.reference.shape)
    sums = np.zeros((5, channels))
    lost = np.zeros(channels, dtype=np.int64)
    parts = list(_parts(*layout)) if rows and channels and inner else []
    blocks = reader.blocks(pair, ((start, count) for start, count, _, _ in parts))
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        for block, (_, _, first, width) in zip(blocks, parts, strict=True):
            ours = block.reference.astype(np.float64).reshape(-1, width, min(inner, len(block.reference)))
            difference = block.candidate.reshape(ours.shape) - ours
            if not math.isfinite(float(difference.sum())):
                bad = ~np.isfinite(difference)
                ours[bad] = difference[bad] = 0.0
                lost[first : first + width] += bad.sum(axis=(0, 2))
            sums[:, first : first + width] += _sums(ours, difference)
    return ChannelSums(rows * inner - lost, *sums)


def channels_of(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """A shape as rows, channels and the elements that a channel has in a row."""
    batch, channels, inner = math.prod(shape[:-1]), shape[-1] if shape else 1, 1
    if len(shape) == IMAGES:
        batch, channels, inner = shape[0], shape[1], shape[2] * shape[3]
    if len(shape) < 2 or channels > MOST_CHANNELS:  # noqa: PLR2004 - a vector
        return math.prod(shape), 1, 1
    return batch, channels, inner


def _sums(ours: Vector, difference: Vector) -> Vector:
    return np.stack(
        [
            np.einsum("rci->c", ours),
            np.einsum("rci->c", difference),
            np.einsum("rci,rci->c", ours, ours),
            np.einsum("rci,rci->c", ours, difference),
            np.einsum("rci,rci->c", difference, difference),
        ]
    )


def _parts(rows: int, channels: int, inner: int) -> Iterator[tuple[int, int, int, int]]:
    """(start, count, first channel, channels) of blocks that each hold whole channels, or a part of one."""
    row = channels * inner
    if row <= ELEMENTS:
        step = ELEMENTS // row * row
        for start in range(0, rows * row, step):
            yield start, min(step, rows * row - start), 0, channels
        return
    width, piece = max(ELEMENTS // inner, 1), min(inner, ELEMENTS)
    for begin in range(0, rows * row, row):
        for first in range(0, channels, width):
            taken = min(width, channels - first)
            for offset in range(0, inner, piece):
                count = taken * inner if piece == inner else min(piece, inner - offset)
                yield begin + first * inner + offset, count, first, taken


def _quotient(above: NDArray[Any], below: NDArray[Any]) -> Vector:
    """The quotient, NaN where the denominator is not positive."""
    result: Vector = np.full(len(below), np.nan)
    np.divide(above, below, out=result, where=below > 0)
    return result
