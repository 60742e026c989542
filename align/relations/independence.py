"""Steps for tensors that do not follow from one another: not loaded, another draw, drifted apart, unrelated."""

from __future__ import annotations

import math
from typing import Any

from align.relations.both import Compared
from align.relations.circumstances import Circumstances
from align.relations.draws import FEWEST, Numbers, Spread, may_be, same_distribution
from align.relations.formats import unit_of
from align.relations.relation import Contents, Relation, RelationKind, Side

UNCORRELATED = 4.0
"""Independent tensors of n numbers correlate within 4/sqrt(n), but for one in 16,000."""

DRIFTED_COSINE = 0.9
DRIFTED_CORRELATION = 0.3
"""Tensors that were trained apart from one start: cosine above 0.9, or a correlation that no two draws of
FEWEST numbers and more have."""

MANY = 1024
"""From so many numbers on, a cosine that is high because all are positive (pixels) is no nearness."""

CONSTANTS = frozenset({"zeros", "ones", "constant"})


def not_loaded(both: Compared, _: Circumstances[Any]) -> Relation | None:
    """One side is a default initialisation while the other, which does not follow from it, is not."""
    side = default_side(both.contents, both.samples)
    if side is None:
        return None
    constant = both.contents[0 if side is Side.REFERENCE else 1].initial in CONSTANTS
    if not constant and not uncorrelated(both):
        return None
    return both.answer(RelationKind.NOT_LOADED, side=side)


def default_side(
    contents: tuple[Contents, Contents], samples: tuple[Numbers, Numbers] | tuple[None, None]
) -> Side | None:
    """The only side that looks like a default initialisation, where the other cannot be a draw of that one.

    Both are the same parameter of one model, so they have one default.
    """
    looks = [each.initial for each in contents]
    if bool(looks[0]) == bool(looks[1]):
        return None
    drawn = 0 if looks[0] else 1
    other = contents[1 - drawn]
    count = math.prod(other.shape) - other.nonfinite
    spread = Spread(count, other.minimum, other.maximum, other.mean, other.deviation)
    if may_be(looks[drawn], spread, other.shape, samples[1 - drawn], unit_of(other.dtype)):
        return None
    return Side.REFERENCE if drawn == 0 else Side.CANDIDATE


def uncorrelated(both: Compared) -> bool:
    """Whether both tensors correlate no more than independent draws do."""
    correlation = both.sums.correlation
    return correlation is not None and abs(correlation) <= UNCORRELATED / math.sqrt(max(both.sums.count, 1))


def independent(both: Compared, _: Circumstances[Any]) -> Relation | None:
    """Another draw of one distribution, drifted apart, or neither."""
    sums = both.sums
    if sums.cosine > DRIFTED_COSINE and not (sums.count >= MANY and _is_other_draw(both)):
        return both.answer(RelationKind.DRIFTED)
    if uncorrelated(both) and sums.count >= FEWEST:
        looks = {contents.initial for contents in both.contents}
        if same_distribution(*both.samples) or (len(looks) == 1 and "" not in looks):
            return both.answer(RelationKind.OTHER_SEED)
    correlation = sums.correlation
    if correlation is not None and correlation > DRIFTED_CORRELATION and not uncorrelated(both):
        return both.answer(RelationKind.DRIFTED)
    return None


def _is_other_draw(both: Compared) -> bool:
    return uncorrelated(both) and same_distribution(*both.samples)
