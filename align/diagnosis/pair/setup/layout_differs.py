"""AL111: the code that makes the first difference is given tensors that lie otherwise in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator

from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.forward import forward_cause
from align.diagnosis.pair.setup import explaining
from align.diagnosis.registry import rule
from align.pairing import Pair
from align.records import Comparison, Finding, Severity, TensorRecord
from align.sentences import say

CODE = "AL111"
LABEL = "layout-differs"

PLAIN = "row-major"

SMALLEST_REORDERING = 0.1
"""Values in another order differ by 1.4 where they are unlike, by less where neighbours are alike."""

ROUNDINGS = 4.0
"""The extremes, the length and the sum of the same values differ by so many times the floor at most."""


@rule(CODE, LABEL, rank=34)
def find(walk: Walk) -> Iterator[Finding]:
    """An input of another layout, where all else that is known of the module agrees and only its output differs."""
    first = walk.first
    if first is None or forward_cause.is_isolated(walk) or not forward_cause.is_operator(walk):
        return
    if telling.odd_argument(walk, first):
        return
    given = next((pair for pair in forward_cause.inputs_of(walk, first) if _lies_otherwise(pair)), None)
    if given is None or not _reordered(first.comparison):
        return
    key = first.comparison.key
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "{} of {} has equal values in both runs and lies in memory {} in the reference and {} in the candidate. "
            "{} It holds the values of the reference in another order, as an operator makes them that reads memory "
            "and not the logical order.",
            given.key.slot,
            key.name,
            _name(given.reference),
            _name(given.candidate),
            explaining.first_sentence(first),
        ),
        say(
            "Hand {} tensors of one layout, for example with `.contiguous()`, and compare again; an operator that "
            "needs it should ask for it itself.",
            key.name,
        ),
        telling.place_of(key),
        {"slot": given.key.slot, "layouts": [given.reference.layout, given.candidate.layout]},
        {
            **telling.arguments_of(first),
            "argument": given.key.slot,
            "reference_layout": given.reference.layout,
            "candidate_layout": given.candidate.layout,
        },
    )


def _lies_otherwise(pair: Pair) -> bool:
    return pair.same_shape and pair.reference.layout != pair.candidate.layout and pair.reference.numel > 1


def _reordered(comparison: Comparison) -> bool:
    """Whether both outputs have the same extremes, length and sum up to rounding, and yet differ much."""
    ours, theirs = comparison.reference.stats, comparison.candidate.stats
    if ours is None or theirs is None or (comparison.relative_l2 or 0.0) < SMALLEST_REORDERING or ours.norm == 0.0:
        return False
    allowed = ROUNDINGS * max(comparison.floor, comparison.unit)
    extremes = max(abs(ours.minimum - theirs.minimum), abs(ours.maximum - theirs.maximum))
    sums = abs(ours.total - theirs.total) / math.sqrt(ours.count)
    return (
        ours.minimum < ours.maximum
        and extremes <= allowed * ours.absolute_maximum
        and max(abs(ours.norm - theirs.norm), sums) <= allowed * ours.norm
    )


def _name(record: TensorRecord) -> str:
    return record.layout or PLAIN
