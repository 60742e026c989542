"""Whether the targets of one run are those of the other moved along their sequence, from hashes of single targets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

FURTHEST = 4
"""Mistakes move labels by one, rarely by two."""

SMALLEST_AGREEMENT = 0.7
"""Sequences that stand one after another in a flat tensor break a move at their ends, one label in so many."""

DEVIATIONS = 5.0
"""How far beyond the agreement of labels of these frequencies in any order."""

FEWEST = 8


@dataclass(frozen=True, slots=True)
class LabelShift:
    """The candidate's target i is the reference's i + `by`; `agreeing` of `compared` targets are so."""

    by: int
    agreeing: int
    compared: int


def label_shift(
    reference: Sequence[int], candidate: Sequence[int], ignored: AbstractSet[int] = frozenset()
) -> LabelShift | None:
    """By how many places the candidate's targets are ahead of the reference's, None where they are not moved.

    `ignored` are the hashes of targets that the loss leaves out, which are not compared.
    """
    if len(reference) != len(candidate):
        return None
    shifts = [shift for step in range(1, FURTHEST + 1) for shift in (step, -step)]
    found = {shift: _agreement(reference, candidate, shift, ignored) for shift in (0, *shifts)}
    best = max(shifts, key=lambda shift: (_share(found[shift]), -abs(shift)))
    agreeing, compared = found[best]
    if compared < FEWEST:
        return None
    chance = _chance(reference, ignored)
    expected = chance + DEVIATIONS * math.sqrt(chance * (1.0 - chance) / compared)
    share = _share(found[best])
    if share < max(SMALLEST_AGREEMENT, expected) or share <= _share(found[0]):
        return None
    return LabelShift(best, agreeing, compared)


def _agreement(ours: Sequence[int], theirs: Sequence[int], shift: int, ignored: AbstractSet[int]) -> tuple[int, int]:
    pairs = [
        (one, other)
        for one, other in zip(ours[max(shift, 0) :], theirs[max(-shift, 0) :], strict=False)
        if one not in ignored and other not in ignored
    ]
    return sum(one == other for one, other in pairs), len(pairs)


def _share(agreement: tuple[int, int]) -> float:
    return agreement[0] / agreement[1] if agreement[1] else 0.0


def _chance(labels: Sequence[int], ignored: AbstractSet[int]) -> float:
    """How often two labels of these frequencies are the same one."""
    counts = Counter(label for label in labels if label not in ignored)
    total = counts.total()
    return sum((number / total) ** 2 for number in counts.values()) if total else 1.0
