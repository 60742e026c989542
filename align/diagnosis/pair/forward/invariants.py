"""What an operation keeps in the reference and not in the candidate: lengths, sums of rows, which elements are zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

from align import wording
from align.pairing import Pair
from align.records import Comparison, TensorRecord
from align.sentences import say

KEPT = 16.0
"""What is kept is kept within so many unit roundoffs; norms and sums are those of the file, in float32 or better."""

BROKEN = 10.0
"""What is broken is off by so many times more than that."""


def broken(comparison: Comparison, inputs: Sequence[Pair]) -> str:
    """A sentence on what the output of the candidate no longer keeps, begun with a blank; empty where that is nothing.

    `inputs` are those of the call that made it.
    """
    return _length(comparison, inputs) or _row_sums(comparison) or _zeros(comparison)


def _length(comparison: Comparison, inputs: Sequence[Pair]) -> str:
    """Rotations and permutations keep the length of what they are given."""
    for pair in inputs:
        ratios = _ratio(pair.reference, comparison.reference), _ratio(pair.candidate, comparison.candidate)
        kept, off = (abs(ratio - 1.0) if ratio is not None else math.nan for ratio in ratios)
        if kept <= KEPT * comparison.unit and off > BROKEN * KEPT * comparison.unit:
            return say(
                " It keeps the length of {} in the reference; in the candidate it makes it {} times as long.",
                pair.key.slot,
                wording.factor(ratios[1] or 0.0),
            )
    return ""


def _ratio(given: TensorRecord, made: TensorRecord) -> float | None:
    if given.shape != made.shape or given.stats is None or made.stats is None or given.dtype != made.dtype:
        return None
    return made.stats.norm / given.stats.norm if given.stats.norm > 0.0 else None


def _row_sums(comparison: Comparison) -> str:
    """Shares, as a softmax makes them, sum to 1 in every row."""
    sums = _mean_sum(comparison.reference), _mean_sum(comparison.candidate)
    if sums[0] is None or sums[1] is None or abs(sums[0] - 1.0) > KEPT * comparison.unit:
        return ""
    if abs(sums[1] - 1.0) <= BROKEN * KEPT * comparison.unit:
        return ""
    return say(" Its rows sum to 1 in the reference, and to {} on average in the candidate.", wording.value(sums[1]))


def _mean_sum(record: TensorRecord) -> float | None:
    if record.stats is None or len(record.shape) < 2 or record.stats.nonfinite:  # noqa: PLR2004 - rows and columns
        return None
    rows = record.numel // record.shape[-1] if record.shape[-1] else 0
    if not rows or record.stats.minimum < 0.0 or record.shape[-1] < 2:  # noqa: PLR2004 - one share is always 1
        return None
    return record.stats.total / rows


def _zeros(comparison: Comparison) -> str:
    """Which elements are masked shows in the number of exact zeros."""
    ours, theirs = comparison.reference.stats, comparison.candidate.stats
    if ours is None or theirs is None or ours.zeros == theirs.zeros:
        return ""
    # Small shares underflow to zero in one kernel and not in another; masks are more than that.
    if min(ours.zeros, theirs.zeros) == 0 or abs(ours.zeros - theirs.zeros) < ours.count // 100:
        return ""
    return say(
        " {} of its {} elements are zero in the reference and {} in the candidate: other elements are masked.",
        ours.zeros,
        ours.count,
        theirs.zeros,
    )
