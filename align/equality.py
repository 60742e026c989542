"""What must be equal before anything is judged: initial weights, batches, integer targets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from align import metrics
from align.pairing import Pair
from align.records import Phase
from align.tolerance import COMPUTED_ULPS, EQUAL_ULPS, FLOAT32, PRECISIONS, coarsest
from align.value_reader import ValueReader


class Answer(Enum):
    """The answer to "is it equal?"."""

    EQUAL = "equal"
    CLOSE = "close"
    UNEQUAL = "unequal"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, eq=False)
class Equality:
    """One pair that should be equal; `relative_l2` is None for integers and for other shapes.

    It is close within `ulps` times the `unit` roundoff.
    """

    pair: Pair
    answer: Answer
    relative_l2: float | None
    unit: float = 0.0
    ulps: float = EQUAL_ULPS


def judge_equality(pair: Pair, values: ValueReader | None = None) -> Equality:
    """Equal by hash; a float tensor of other bits is close within 4 unit roundoffs of the coarser dtype.

    A float32 batch, which may be computed on the device, is close within 64. Kept `values` tell where a sketch cannot.
    """
    ours, theirs = pair.reference, pair.candidate
    if metrics.identical(pair):
        return Equality(pair, Answer.EQUAL, 0.0)
    if not pair.same_shape:
        return Equality(pair, Answer.UNEQUAL, None)
    if not metrics.is_float_pair(pair):
        known = ours.hash is not None and theirs.hash is not None
        return Equality(pair, Answer.UNEQUAL if known else Answer.UNKNOWN, None)
    precision = coarsest([PRECISIONS[ours.dtype], PRECISIONS[theirs.dtype]]) or FLOAT32
    if _nonfinite_counts(pair):
        return Equality(pair, Answer.UNEQUAL, None, precision.unit)
    error = metrics.relative_l2(pair)
    if error is None:
        return Equality(pair, Answer.UNKNOWN, None, precision.unit)
    computed = ours.key.phase is Phase.INPUT and precision.unit <= FLOAT32.unit
    ulps = COMPUTED_ULPS if computed else EQUAL_ULPS
    allowed = ulps * precision.unit
    error = metrics.settled(pair, error, allowed, 1.0, values)
    close = error <= allowed and not _reordered(pair)
    return Equality(pair, Answer.CLOSE if close else Answer.UNEQUAL, error, precision.unit, ulps)


def _nonfinite_counts(pair: Pair) -> bool:
    ours, theirs = pair.reference.stats, pair.candidate.stats
    return ours is not None and theirs is not None and ours.nonfinite != theirs.nonfinite


def _reordered(pair: Pair) -> bool:
    """Whether only the order differs, as far as statistics alone can tell."""
    ours, theirs = pair.reference.stats, pair.candidate.stats
    if metrics.has_sketches(pair) or ours is None or theirs is None or ours.minimum == ours.maximum:
        return False
    if pair.reference.hash is None or pair.candidate.hash is None:
        return False  # nothing says that they differ
    return (ours.minimum, ours.maximum, ours.zeros) == (theirs.minimum, theirs.maximum, theirs.zeros)
