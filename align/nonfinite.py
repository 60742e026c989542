"""NaN and Inf: which side has which, which are meant, and which a loss scaler expects."""

from __future__ import annotations

from dataclasses import dataclass

from align.pairing import Pair
from align.records import Phase, TensorRecord, TensorStats
from align.tolerance import Precision

NEAR_LIMIT = 0.95
"""From this share of the greatest number on, overflow on one side only is a matter of rounding."""

MASK_VALUE = -9e3
MASK_SHARE = 0.01
"""Scores masked with -Inf on one side and with a large negative number on the other: at least 1 % of them."""

SCALED_PHASES = frozenset({Phase.BACKWARD, Phase.GRADIENT})


@dataclass(frozen=True, slots=True)
class NonfiniteSide:
    """The side that has a kind of non-finite number which the other does not have."""

    candidate: bool
    nan: bool
    inf: bool

    @property
    def side(self) -> str:
        """`reference` or `candidate`."""
        return "candidate" if self.candidate else "reference"


def kinds(stats: TensorStats | None) -> tuple[bool, bool]:
    """Whether there are NaN, and whether there are infinite values."""
    if stats is None:
        return (False, False)
    return (stats.nans > 0, stats.positive_infs + stats.negative_infs > 0)


def is_mask(stats: TensorStats | None) -> bool:
    """Whether it is an additive mask: -Inf here and there, 0 elsewhere."""
    return (
        stats is not None
        and stats.negative_infs > 0
        and stats.nans == stats.positive_infs == 0
        and stats.minimum == stats.maximum == 0.0
    )


def is_masked(pair: Pair) -> bool:
    """Whether all that is not finite is meant: masks, and scores masked at as many places on both sides."""
    ours, theirs = pair.reference.stats, pair.candidate.stats
    if ours is None or theirs is None:
        return False
    if is_mask(ours) or is_mask(theirs):
        return True
    if ours.nans or theirs.nans or ours.positive_infs or theirs.positive_infs:
        return False
    if ours.negative_infs == theirs.negative_infs:
        return True
    fewer, more = sorted((ours, theirs), key=lambda stats: stats.negative_infs)
    return fewer.negative_infs == 0 and fewer.minimum <= MASK_VALUE and more.negative_infs >= MASK_SHARE * more.count


def masks_differ(pair: Pair) -> bool:
    """Whether two additive masks surely hide different numbers of elements.

    A run that masks with large negative numbers instead of -Inf hides as many as it likes: then it is not known.
    """
    ours, theirs = pair.reference.stats, pair.candidate.stats
    if ours is None or theirs is None or not (is_mask(ours) or is_mask(theirs)):
        return False
    zeros_only = all(stats.minimum == stats.maximum == 0.0 and not stats.nans for stats in (ours, theirs))
    return zeros_only and pair.same_shape and ours.negative_infs != theirs.negative_infs


def one_sided(pair: Pair) -> NonfiniteSide | None:
    """The side with more kinds of non-finite numbers, None where both have as many."""
    ours, theirs = kinds(pair.reference.stats), kinds(pair.candidate.stats)
    if sum(ours) == sum(theirs):
        return None
    more_in_candidate = sum(theirs) > sum(ours)
    nan, inf = theirs if more_in_candidate else ours
    return NonfiniteSide(more_in_candidate, nan, inf)


def expected_by_scaler(
    pair: Pair, side: NonfiniteSide, precision: Precision, *, scaled: bool, both_skipped: bool
) -> bool:
    """Whether a loss scaler's search for its scale explains the overflow of one side.

    Either both runs skipped the step, or the other side is within 5 % of the greatest number of its format.
    """
    if not scaled or pair.key.phase not in SCALED_PHASES:
        return False
    if both_skipped:
        return True
    other = pair.reference if side.candidate else pair.candidate
    return near_limit(other, precision)


def near_limit(record: TensorRecord, precision: Precision) -> bool:
    """Whether the largest magnitude is within 5 % of the greatest number of the working format."""
    return record.stats is not None and record.stats.absolute_maximum >= NEAR_LIMIT * precision.largest
