"""Steps over records for tensors that do not follow from one another, as `independence` does over values."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from align.records import TensorRecord
from align.relations.circumstances import Circumstances
from align.relations.draws import FEWEST, TWO_SAMPLES
from align.relations.glance import Glance, deviation_of
from align.relations.independence import (
    CONSTANTS,
    DRIFTED_CORRELATION,
    DRIFTED_COSINE,
    MANY,
    UNCORRELATED,
    default_side,
)
from align.relations.relation import Relation, RelationKind, Side

SAME_SPREAD = 0.02
"""Two draws of one distribution have spreads within 2 %, and four standard errors (seed_mismatch)."""

EXTREMES = 1.5
HEAVY = 6.0
"""The largest magnitudes of two draws of one distribution are within this factor where the smaller of them is within 6
deviations; heavy tails have no such bound."""

Known = Circumstances[TensorRecord]


def not_loaded(glance: Glance, _: Known) -> Relation | None:
    """One side is a default initialisation while the other, which does not follow from it, is not."""
    side = default_side(glance.contents, (None, None))
    if side is None:
        return None
    constant = glance.contents[0 if side is Side.REFERENCE else 1].initial in CONSTANTS
    if not constant and not _uncorrelated(glance):
        return None
    return glance.answer(RelationKind.NOT_LOADED, side=side)


def independent(glance: Glance, _: Known) -> Relation | None:
    """Another draw of one distribution, drifted apart, or neither."""
    correlation = glance.correlation
    other_draw = _uncorrelated(glance) and glance.stats[0].count >= MANY and _same_distribution(glance)
    if _cosine(glance) > DRIFTED_COSINE and not other_draw:
        return glance.answer(RelationKind.DRIFTED)
    if _uncorrelated(glance) and glance.stats[0].count >= FEWEST:
        looks = {contents.initial for contents in glance.contents}
        alike = _same_distribution(glance) or (len(looks) == 1 and "" not in looks)
        if alike:
            return glance.answer(RelationKind.OTHER_SEED)
    if correlation is not None and correlation > DRIFTED_CORRELATION and not _uncorrelated(glance):
        return glance.answer(RelationKind.DRIFTED)
    return None


def _cosine(glance: Glance) -> float:
    """From both norms and the distance, which is finer than the inner product where both are near."""
    ours, theirs = (stats.norm for stats in glance.stats)
    if glance.distance is None or ours == 0.0 or theirs == 0.0:
        return 0.0
    return (ours**2 + theirs**2 - (glance.distance * ours) ** 2) / (2.0 * ours * theirs)


def _uncorrelated(glance: Glance) -> bool:
    seen = min(glance.records[0].numel, glance.buckets)
    correlation = glance.correlation
    return correlation is not None and seen > 0 and abs(correlation) <= UNCORRELATED / math.sqrt(seen)


def _same_distribution(glance: Glance) -> bool:
    ours, theirs = glance.stats
    spreads = [deviation_of(stats) for stats in glance.stats]
    if min(spreads) <= 0.0:
        return False
    error = UNCORRELATED / math.sqrt(ours.count)
    if abs(spreads[0] / spreads[1] - 1.0) > SAME_SPREAD + error:
        return False
    if abs(ours.mean - theirs.mean) > error * math.hypot(*spreads):
        return False
    ends = sorted((ours.absolute_maximum, theirs.absolute_maximum))
    heavy = ends[0] > HEAVY * max(spreads)
    if not heavy and ends[1] > EXTREMES * ends[0]:
        return False
    exponents = [record.exponents for record in glance.records]
    return exponents[0] is None or exponents[1] is None or _same_exponents(exponents[0], exponents[1])


def _same_exponents(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> bool:
    """Kolmogorov-Smirnov over the magnitudes."""
    totals = int(ours.sum()), int(theirs.sum())
    if len(ours) != len(theirs) or min(totals) == 0:
        return True
    distance = np.abs(np.cumsum(ours) / totals[0] - np.cumsum(theirs) / totals[1]).max()
    return bool(distance < TWO_SAMPLES * math.sqrt(1.0 / totals[0] + 1.0 / totals[1]))
