"""What a batch that differs is to the reference's: another scale, an offset, the same numbers in another order."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from align import sketch, wording
from align.diagnosis import telling
from align.pairing import Pair
from align.sentences import say
from align.tolerance import is_float

LARGEST = 1 << 24
"""Of a tensor with more elements no offset is looked for: the sketch of as many ones takes a second."""

UNEXPLAINED = 1e-3
"""An offset and a factor explain a batch of which they leave less than this; another batch leaves about 1."""

SMALLEST_OFFSET = 1e-2
"""Less than this of the root mean square is told as a factor alone."""


class BatchRelation(NamedTuple):
    """What follows `the batches differ`, and what to look at."""

    words: str
    advice: str


NORMALISATION = (
    "Compare how both scripts normalise this input: mean and standard deviation, values of 0 to 255 or of 0 to 1, a "
    "normalisation that is done twice or in one script only."
)
ORDER = (
    "Compare how both scripts read and lay out this input: order of the colour channels (RGB, BGR), channels first or "
    "last, transposed or mirrored samples."
)


def batch_relation(pair: Pair) -> BatchRelation | None:
    """What a float input of the candidate is to the reference's, None where it is nothing simple."""
    if not (is_float(pair.reference.dtype) and is_float(pair.candidate.dtype) and pair.same_shape):
        return None
    if telling.reordered(pair):
        return BatchRelation("the same numbers in another order", ORDER)
    found = _scaled_and_moved(pair)
    if found is None:
        return None
    factor, offset = found
    if not offset:
        return BatchRelation(say("{} times the reference's", wording.factor(factor)), NORMALISATION)
    times = "" if math.isclose(factor, 1.0, rel_tol=UNEXPLAINED) else say("{} times ", wording.factor(factor))
    sign = "+" if offset > 0 else "-"
    return BatchRelation(say("{}the reference's {} {}", times, sign, f"{abs(offset):.4g}"), NORMALISATION)


def _scaled_and_moved(pair: Pair) -> tuple[float, float] | None:
    """The factor and the offset by which the candidate follows from the reference, from their sketches."""
    ours, theirs = sketch.sketch_of(pair.reference), sketch.sketch_of(pair.candidate)
    numel = pair.reference.numel
    if ours is None or theirs is None or len(ours.values) != len(theirs.values) or not 2 < numel <= LARGEST:  # noqa: PLR2004 - a factor and an offset explain any two numbers
        return None
    ones = sketch.sketch_array(np.ones(pair.reference.shape, dtype=np.float32))
    if len(ones) != len(ours.values):
        return None
    known = np.stack([ours.values, ones], axis=1).astype(np.float64)
    given = theirs.values.astype(np.float64)
    if not (np.isfinite(known).all() and np.isfinite(given).all()) or not given.any():
        return None
    (factor, offset), _, rank, _ = np.linalg.lstsq(known, given, rcond=None)
    left = np.linalg.norm(given - known @ np.array([factor, offset])) / np.linalg.norm(given)
    size = theirs.norm / math.sqrt(numel)
    if rank < known.shape[1] or left > UNEXPLAINED or abs(factor) * ours.norm < UNEXPLAINED * theirs.norm:
        return None
    return float(factor), float(offset) if abs(offset) > SMALLEST_OFFSET * size else 0.0
