"""Which rows of a large comparison a page holds: all of them, or those that say most."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from align.records import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.records import Comparison

MOST_ROWS = 400_000
"""Rows that a page holds at most: about 6 MB."""
NEAR = 0.5
"""A tensor above this part of its limit is kept."""
NEIGHBOURS = 120
"""Rows on either side of the first difference that are kept, so that its inputs are in sight."""
STARTS = frozenset({Status.ORIGIN, Status.NONFINITE})


def kept_rows(comparisons: Sequence[Comparison], first: int | None, most: int = MOST_ROWS) -> Sequence[int]:
    """The places of the rows to keep, in their order.

    Above `most` rows: the first difference and its neighbours, all that start one, what is near or above its limit,
    and the largest of each module and step; without those that only inherit a difference where that is still too much.
    """
    if len(comparisons) <= most:
        return range(len(comparisons))
    starts = {place for place, pair in enumerate(comparisons) if pair.status in STARTS}
    if first is not None:
        starts |= set(range(max(0, first - NEIGHBOURS), min(len(comparisons), first + NEIGHBOURS)))
    largest = _largest(comparisons)
    near = {place for place, pair in enumerate(comparisons) if (pair.times_floor or 0.0) > NEAR * pair.limit > 0}
    kept = starts | largest | near
    if len(kept) > most:
        kept = starts | largest
    return sorted(kept)[:most]


def usual_limit(pairs: Sequence[Comparison]) -> float:
    """The limit of most tensors, 0.0 where none was judged."""
    counts = Counter(pair.limit for pair in pairs if pair.limit > 0)
    return counts.most_common(1)[0][0] if counts else 0.0


def _largest(comparisons: Sequence[Comparison]) -> set[int]:
    """The place of the largest difference of each module and step."""
    best: dict[tuple[int, str], tuple[float, int]] = {}
    for place, pair in enumerate(comparisons):
        key = (pair.key.step, pair.key.name)
        size = -1.0 if pair.times_floor is None else pair.times_floor
        known = best.get(key)
        if known is None or size > known[0]:
            best[key] = (size, place)
    return {place for _, place in best.values()}
