"""Steps that find one simple change: a factor, a constant that was added, few places."""

from __future__ import annotations

import math
from typing import Any

from align.relations.both import NOISE_OF_PAIR, Both, Compared
from align.relations.circumstances import Circumstances
from align.relations.factors import snapped
from align.relations.parts import differing_part
from align.relations.relation import Factor, Relation, RelationKind
from align.relations.sums import Sums

FEWEST = 4
"""Of fewer numbers nearly every change is near a factor: only one that means something is told."""

EXACT = 1e-4
"""One in 300 ratios between 1/16 and 16 is by chance so near to a simple one."""

HIDDEN_SHARE = 0.95
BEYOND_NOISE = 2.0
"""Inside the noise a factor is told where it is 95 % of the difference and twice the noise: over healthy gradients it
was 94 % of the difference at most (12 pairs), and the difference is about the noise."""

BEYOND_TOLERANCE = 8.0
"""Rounding that flips decisions (ReLU) changes few rows: few places are told from twice the tolerance for noise on."""

OFFSET_SHARE = 0.9
"""An added constant leaves at most so much less of the difference's square unexplained."""


def scaled(both: Compared, known: Circumstances[Any]) -> Relation | None:
    """The candidate is a factor times the reference, -1 included."""
    sums = both.sums
    factor, residual = sums.factor, sums.factor_residual
    if not math.isfinite(factor) or factor == 0.0 or not both.fits(residual, sums.of_candidate):
        return None
    if abs(factor - 1.0) <= BEYOND_NOISE * both.noise or residual > sums.of_candidate / 3.0:
        return None
    found = factor_of(sums, known.factors, both.noise)
    constant = both.contents[0].minimum == both.contents[0].maximum
    if (sums.count < FEWEST or constant) and not _is_exact(found):
        return None
    note = "an added constant fits as well" if constant else ""
    if found.value == -1.0:
        return both.answer(RelationKind.SIGN_FLIPPED, factor=found, residual=residual, note=note)
    return both.answer(RelationKind.SCALED, factor=found, residual=residual, note=note)


def _is_exact(factor: Factor) -> bool:
    """Whether a simple number is so near that few numbers do not hit it by chance."""
    return factor.snapped is not None and abs(factor.raw / factor.snapped - 1.0) <= EXACT


def hidden_factor(both: Compared, known: Circumstances[Any]) -> Relation | None:
    """A factor that is nearly all of a difference no larger than noise may be."""
    sums = both.sums
    if sums.count < FEWEST or not math.isfinite(sums.factor):
        return None
    away = abs(sums.factor - 1.0)
    if away <= BEYOND_NOISE * both.noise or away < HIDDEN_SHARE * sums.relative_l2:
        return None
    return scaled(both, known)


def factor_of(sums: Sums, factors: Any, noise: float) -> Factor:
    """The factor, snapped within what noise leaves open; a sign stays a sign."""
    uncertainty = max(BEYOND_NOISE * noise, sums.factor_residual)
    if abs(sums.factor + 1.0) <= max(uncertainty, 1e-6):
        return Factor(sums.factor, -1.0)
    found = snapped(abs(sums.factor), factors, uncertainty)
    sign = math.copysign(1.0, sums.factor)
    return Factor(sums.factor, None if found.snapped is None else sign * found.snapped, found.meanings)


def offset(both: Compared, _: Circumstances[Any]) -> Relation | None:
    """One constant was added to every element."""
    sums = both.sums
    if sums.count < FEWEST or not both.fits(sums.offset_residual, sums.of_candidate):
        return None
    left = sums.offset_residual**2 * sums.theirs_squared
    if left > (1.0 - OFFSET_SHARE) * sums.difference_squared:
        return None
    return both.answer(RelationKind.OFFSET, offset=sums.offset, residual=sums.offset_residual)


def few_places(both: Both, _: Circumstances[Any]) -> Relation | None:
    """All but few elements or slices agree."""
    ours, theirs = both.wide
    sums = both.sums
    rounding = both.unit if both.contents[0].dtype != both.contents[1].dtype else 0.0
    allowed = max(NOISE_OF_PAIR * both.noise, rounding) ** 2 * sums.ours_squared
    if both.noise > 0.0 and sums.relative_l2 < BEYOND_TOLERANCE * both.noise:
        return None
    found = differing_part(theirs - ours, allowed)
    if found is None:
        return None
    kind = RelationKind.FEW_SLICES if found.slices else RelationKind.FEW_ELEMENTS
    return both.answer(kind, part=found.part, residual=math.sqrt(found.left) * sums.relative_l2)
