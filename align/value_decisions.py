"""Decisions that rounding flipped (ReLU, max-pool, top-k), found in the values, and a distance that leaves them out.

A backward passes a gradient on or not, or to one of several elements, as the forward decided. Where two runs decided
differently, because a number was within rounding of the boundary, the gradients of those elements differ by all of
themselves: one in 32,768 made a backward error 18 times larger (measured). Without those elements the backward of a
benign pair keeps to 1.02 times what it inherits. Only elements whose forward value is so near to its boundary that
rounding explains the flip are left out; all others stay in the distance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.pool_windows import Pooling, largest_of_windows
from align.value_blocks import ELEMENTS, BlockReader, KeptPair, plain_cuts
from align.value_distance import ValueDistance, measure_blocks

NEAR = 8.0
"""A flip is rounding's where the forward value x is within 8 e rms(x) of the boundary, e being the relative error of x:
measured on four models in four precisions."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class WithoutFlips:
    """The distance of a backward pair without the elements whose decision rounding flipped.

    `flips` elements were left out. `unexplained` have another decision on both sides although their forward value is
    too far from the boundary; they are in the distance. `farthest` is the largest distance from the boundary among all
    flips, over the rms of the forward tensor.
    """

    distance: ValueDistance
    flips: int
    unexplained: int
    farthest: float


def without_flips(
    readers: tuple[BlockReader, BlockReader],
    forward: KeptPair,
    backward: KeptPair,
    near: float,
    pooling: Pooling | None = None,
) -> WithoutFlips | None:
    """The distance of a backward pair without the flips of a forward pair of the same shape.

    The decision is whether the forward value is above 0 (ReLU and its like), with `pooling` which element of its window
    is the largest. `near` is the largest distance from the boundary that rounding explains: NEAR e rms(x). All four
    tensors are read once, in blocks, by a reader each for forward and backward. None where the shapes differ or one
    plane of a pooled tensor does not fit in a block.
    """
    shape = forward.reference.shape
    if shape != backward.reference.shape or forward.candidate.shape != backward.candidate.shape != shape:
        return None
    plane = math.prod(shape[-len(pooling.kernel) :]) if pooling is not None else 1
    if plane > ELEMENTS or (pooling is not None and len(shape) < len(pooling.kernel)):
        return None
    tally = _Tally(near)
    cuts = list(plain_cuts(forward.reference.numel, max(plane, 1)))
    forwards = readers[0].blocks(forward, cuts)

    def flipped(_: int, count: int) -> Mask:
        block = next(forwards)
        if pooling is None:
            return tally.signs(block.reference, block.candidate)
        planes = (count // plane, *shape[-len(pooling.kernel) :])
        return tally.windows(block.reference.reshape(planes), block.candidate.reshape(planes), pooling)

    distance = measure_blocks(readers[1], backward, cuts, flipped)
    return WithoutFlips(distance, tally.flips, tally.unexplained, tally.farthest)


def top_k_flips(reader: BlockReader, scores: KeptPair, count: int, near: float) -> tuple[Mask, int]:
    """The rows (last dimension) of two score tensors whose `count` largest are not the same elements on both sides.

    Gives the rows whose flip rounding explains (bool, one for each row), since what was chosen and what was not are
    within `near` of each other, and the number of the others. For argmax the count is 1.
    """
    shape = scores.reference.shape
    width = shape[-1] if shape else 1
    rows = np.zeros(scores.reference.numel // max(width, 1), dtype=bool)
    unexplained = 0
    if not 0 < count < width:
        return rows, unexplained
    for block in reader.blocks(scores, plain_cuts(scores.reference.numel, width)):
        ours, theirs = (side.reshape(-1, width) for side in (block.reference, block.candidate))
        chosen, other = (_chosen(side, count) for side in (ours, theirs))
        changed = np.flatnonzero((chosen != other).any(axis=1))
        lost, won = chosen & ~other, other & ~chosen
        for row in changed:
            gap = float(ours[row, lost[row]].max() - ours[row, won[row]].min())
            if gap <= near:
                rows[block.start // width + row] = True
            else:
                unexplained += 1
    return rows, unexplained


def without_rows(reader: BlockReader, pair: KeptPair, rows: Mask) -> ValueDistance | None:
    """The distance without the rows that are marked; None where the elements are no multiple of the rows."""
    if len(rows) == 0 or pair.reference.numel % len(rows):
        return None
    width = pair.reference.numel // len(rows)

    def marked(start: int, count: int) -> Mask:
        first, last = start // max(width, 1), -(-(start + count) // max(width, 1))
        spread = np.repeat(rows[first:last], width)
        begin = start - first * width
        return spread[begin : begin + count]

    return measure_blocks(reader, pair, list(plain_cuts(pair.reference.numel)), marked)


class _Tally:
    """Counts the flips, and says of each whether rounding explains it."""

    def __init__(self, near: float) -> None:
        self.near = near
        self.flips = 0
        self.unexplained = 0
        self.farthest = 0.0

    def signs(self, ours: NDArray[Any], theirs: NDArray[Any]) -> Mask:
        """The elements that are above 0 on one side only, and near it."""
        mask: Mask = (ours > 0) != (theirs > 0)
        places = np.flatnonzero(mask)
        if len(places):
            distance = np.maximum(np.abs(ours[places]), np.abs(theirs[places]))
            explained = self._note(distance)
            mask[places[~explained]] = False
        return mask

    def windows(self, ours: NDArray[Any], theirs: NDArray[Any], pooling: Pooling) -> Mask:
        """The largest elements of windows in which another one is the largest on the other side, both near."""
        mask = np.zeros(ours.shape, dtype=bool)
        left, right = (largest_of_windows(side, pooling) for side in (ours, theirs))
        planes = np.broadcast_to(np.arange(len(ours))[:, None], left.shape)
        changed = left != right
        if changed.any():
            where, before, after = planes[changed], left[changed], right[changed]
            flat = ours.reshape(len(ours), -1)
            explained = self._note(np.abs(flat[where, before] - flat[where, after]))
            marks = mask.reshape(len(ours), -1)
            for places in (before, after):
                marks[where[explained], places[explained]] = True
        return mask.reshape(-1)

    def _note(self, distance: NDArray[Any]) -> Mask:
        explained: Mask = distance <= self.near
        self.flips += int(np.count_nonzero(explained))
        self.unexplained += int(np.count_nonzero(~explained))
        self.farthest = max(self.farthest, float(distance.max()))
        return explained


def _chosen(scores: NDArray[Any], count: int) -> Mask:
    """The `count` largest of each row, the first of equal ones."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    mask: Mask = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(mask, order, values=True, axis=1)
    return mask
