"""Steps over records that find one simple change: a factor, a constant, another order, few elements."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from align import sketch
from align.records import TensorRecord, TensorStats
from align.relations.changes import BEYOND_NOISE, BEYOND_TOLERANCE
from align.relations.circumstances import Circumstances
from align.relations.factors import snapped
from align.relations.glance import Glance, deviation_of
from align.relations.relation import Factor, Part, Relation, RelationKind
from align.sentences import say

HIDDEN_RESIDUAL = 0.3
"""As for values: a factor inside the noise is told where it leaves less than a third of the difference."""

OFFSET_RESIDUAL = 0.3
LARGEST_OFFSET = 1 << 24
"""The sketch of a constant is not made for more elements: 0.1 s."""

SAME_SUM = 1e-6
"""The sums of the same numbers in another order of summation (telling.SAME_SUM)."""

LEAST_REORDERING = 32.0
"""Values in another order are further apart than so many unit roundoffs of float32."""

CLOSER_THAN_DRAWS = 0.1
"""Under noise, sums that agree so much better than those of two draws, in their standard deviations, speak for the same
values: two draws do so once in 250 times for both sums, and must agree in both extremes too."""

LARGEST_NOISE = 1e-3
"""With more noise another order and another draw are not told apart."""

FEW_BUCKETS = 0.3
FEW_ELEMENTS = 0.02

Known = Circumstances[TensorRecord]


def without_sketch(glance: Glance, known: Known) -> Relation | None:
    """What statistics alone tell: a factor that all of them share, other order, no more."""
    if glance.sketches is not None:
        return None
    ours, theirs = glance.stats
    factor = _common_factor(ours, theirs)
    if factor is not None and abs(factor - 1.0) > max(BEYOND_NOISE * glance.noise, SAME_SUM):
        found = _snapped(factor, known.factors, glance.noise)
        kind = RelationKind.SIGN_FLIPPED if found.value == -1.0 else RelationKind.SCALED
        return glance.answer(kind, factor=found, note="by statistics, which see no order")
    if glance.hashes_differ and same_statistics(glance):
        return glance.answer(RelationKind.REORDERED, note="by statistics")
    what = "the hashes differ" if glance.hashes_differ else "there is no hash"
    return glance.unknown(say("{}, and statistics see neither signs nor order; capture with --detail sketch", what))


def scaled(glance: Glance, known: Known) -> Relation | None:
    """The candidate is a factor times the reference, -1 included."""
    found, error = glance.scale, glance.distance
    if found is None or error is None or not glance.fits(found.residual, glance.of_candidate):
        return None
    if abs(found.factor - 1.0) <= BEYOND_NOISE * glance.noise or found.residual > glance.of_candidate / 3.0:
        return None
    factor = _snapped(found.factor, known.factors, max(BEYOND_NOISE * glance.noise, found.residual))
    kind = RelationKind.SIGN_FLIPPED if factor.value == -1.0 else RelationKind.SCALED
    return glance.answer(kind, factor=factor, residual=found.residual)


def hidden_factor(glance: Glance, known: Known) -> Relation | None:
    """A factor that is nearly all of a difference no larger than noise may be."""
    found, error = glance.scale, glance.distance
    if found is None or error is None or found.residual > HIDDEN_RESIDUAL * glance.of_candidate:
        return None
    return scaled(glance, known)


def offset(glance: Glance, _: Known) -> Relation | None:
    """One constant was added to every element: the difference is the sketch of a constant."""
    ours, theirs = glance.stats
    count = glance.records[0].numel
    if glance.sketches is None or count > LARGEST_OFFSET or ours.nonfinite:
        return None
    added = theirs.mean - ours.mean
    norm = abs(added) * math.sqrt(count)
    error = glance.distance
    if error is None or norm < 0.8 * error * ours.norm or theirs.norm == 0.0:
        return None
    constant = sketch.sketch_array(np.ones(glance.records[0].shape, dtype=np.float32)).astype(np.float64)
    left = glance.sketches[1].values.astype(np.float64) - glance.sketches[0].values - added * constant
    square = float(left @ left) - (glance.resolution * max(ours.norm, theirs.norm)) ** 2
    residual = math.sqrt(max(square, 0.0)) / theirs.norm
    if not glance.fits(residual, glance.of_candidate) or residual > OFFSET_RESIDUAL * error * ours.norm / theirs.norm:
        return None
    return glance.answer(RelationKind.OFFSET, offset=added, residual=residual)


def reordered(glance: Glance, _: Known) -> Relation | None:
    """The same values in another order, as far as statistics tell."""
    error = glance.distance
    far = error is not None and error > LEAST_REORDERING * 2.0**-24 + 4.0 * glance.noise
    if not far or not same_statistics(glance):
        return None
    return glance.answer(RelationKind.REORDERED, note="the values, not their order, are known to be the same")


def same_statistics(glance: Glance) -> bool:
    """Whether everything that no order changes is the same, as it is for no two draws."""
    ours, theirs = glance.stats
    if ours.minimum == ours.maximum or ours.count != theirs.count or _other_exponents(glance):
        return False
    scale = math.sqrt(ours.count * ours.total_squares)
    sums = (theirs.total - ours.total) / scale if scale else math.inf
    squares = theirs.total_squares / ours.total_squares - 1.0 if ours.total_squares else math.inf
    if (ours.minimum, ours.maximum, ours.zeros) == (theirs.minimum, theirs.maximum, theirs.zeros):
        return abs(sums) <= SAME_SUM and abs(squares) <= SAME_SUM
    spread = deviation_of(ours)
    if not 0.0 < glance.noise <= LARGEST_NOISE or spread == 0.0 or ours.zeros != theirs.zeros:
        return False
    ends = max(abs(theirs.minimum - ours.minimum), abs(theirs.maximum - ours.maximum)) / ours.absolute_maximum
    draws = math.sqrt(0.8 / ours.count)
    means = abs(theirs.mean - ours.mean) / spread
    return ends <= 4.0 * glance.noise and max(abs(squares), means) <= CLOSER_THAN_DRAWS * draws


def few_elements(glance: Glance, _: Known) -> Relation | None:
    """Most buckets agree: so few elements differ that they fell into few of them."""
    if glance.sketches is None or (glance.distance or 0.0) < BEYOND_TOLERANCE * glance.noise:
        return None
    ours, theirs = (each.values.astype(np.float64) for each in glance.sketches)
    norm = max(glance.stats[0].norm, glance.stats[1].norm)
    away = np.abs(theirs - ours)
    level = max(glance.resolution, glance.noise) * norm / math.sqrt(len(away))
    other = int(np.count_nonzero(~(away <= 8.0 * level))) if level > 0.0 else int(np.count_nonzero(away))
    if not 0 < other <= FEW_BUCKETS * len(away):
        return None
    rest = away[away <= 8.0 * level]
    if math.sqrt(float(rest @ rest)) > max(4.0 * glance.noise, 4.0 * glance.resolution) * norm:
        return None
    count = max(round(-len(away) * math.log(1.0 - other / len(away))), 1)
    if count > max(1, FEW_ELEMENTS * glance.records[0].numel):
        return None
    note = "counted from the buckets that differ; which elements is not seen"
    return glance.answer(RelationKind.FEW_ELEMENTS, part=Part(count), note=note)


def _snapped(raw: float, factors: Mapping[str, float], uncertainty: float) -> Factor:
    if abs(raw + 1.0) <= max(uncertainty, 2.0 * SAME_SUM):
        return Factor(raw, -1.0)
    found = snapped(abs(raw), factors, uncertainty)
    return Factor(raw, None if found.snapped is None else math.copysign(found.snapped, raw), found.meanings)


def _common_factor(ours: TensorStats, theirs: TensorStats) -> float | None:
    """The factor that minimum, maximum, sum and norm share; None where they do not."""
    if ours.norm == 0.0 or ours.zeros != theirs.zeros or ours.minimum == ours.maximum:
        return None
    size = theirs.norm / ours.norm
    scale = math.sqrt(ours.count) * theirs.norm
    for factor in (size, -size):
        ends = sorted((factor * ours.minimum, factor * ours.maximum))
        misses = (ends[0] - theirs.minimum, ends[1] - theirs.maximum)
        if max(map(abs, misses)) <= SAME_SUM * theirs.absolute_maximum and (
            abs(factor * ours.total - theirs.total) <= SAME_SUM * scale
        ):
            return factor
    return None


def _other_exponents(glance: Glance) -> bool:
    """Whether the counts of exponents, where both records have them, are not the same."""
    ours, theirs = (record.exponents for record in glance.records)
    if ours is None or theirs is None or glance.noise > 0.0 or len(ours) != len(theirs):
        return False
    return not np.array_equal(ours, theirs)
