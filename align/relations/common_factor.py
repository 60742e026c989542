"""Whether all tensors of a model are one factor times those of the other, as gradients are that were not averaged."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from align.relations.relation import Factor, Relation, RelationKind

MOST = 0.8
BY_NOISE = 10.0
SMALLEST_LIMIT, LARGEST_LIMIT = 1e-5, 1e-2
"""The median factor is beyond rounding where it is this far from 1: 1e-5 in float32, 1e-2 in bf16 and TF32, between
them ten times the median noise. Over 12 healthy pairs it was within 1.2e-7 (float32), 2.2e-3 (TF32), 3.0e-3 (bf16)."""

COHERENT = 2.0
"""And twice the median noise at least: rounding moves a small loss, and all gradients with it (a trained CNN in bf16:
all by 1.9 %, with a median noise of 2.7 %)."""

NOTHING_KNOWN = 0.5
"""A gradient that is zero but for rounding (a bias before a batch norm) has no factor."""

WITHIN = 3.0
"""A tensor agrees with the median within three times its noise (the factors of 12 healthy pairs: 0.94 at most)."""

CARRIERS = frozenset({RelationKind.EQUAL, RelationKind.WITHIN_NOISE, RelationKind.SCALED, RelationKind.SIGN_FLIPPED})


class CommonFactor(NamedTuple):
    """The factor, the tensors that have it, and how far the furthest of them is from it, relatively."""

    factor: Factor
    names: tuple[str, ...]
    spread: float


def common_factor(relations: Mapping[str, Relation]) -> CommonFactor | None:
    """The median factor of all tensors that are not zero, None where it is near 1 or does not hold for most."""
    known = {
        name: relation
        for name, relation in relations.items()
        if relation.factor is not None and relation.reference.norm > 0.0 and relation.noise <= NOTHING_KNOWN
    }
    carriers = {name: relation for name, relation in known.items() if relation.kind in CARRIERS}
    if not carriers:
        return None
    raw = {name: relation.factor.raw for name, relation in carriers.items() if relation.factor is not None}
    middle = statistics.median(raw.values())
    noise = statistics.median(relation.noise for relation in carriers.values())
    limit = max(min(max(BY_NOISE * noise, SMALLEST_LIMIT), LARGEST_LIMIT), COHERENT * noise)
    if abs(middle - 1.0) <= limit or middle == 0.0 or abs(middle + 1.0) <= limit:
        return None
    near = {
        name: abs(factor / middle - 1.0)
        for name, factor in raw.items()
        if abs(factor / middle - 1.0) <= _allowed(carriers[name])
    }
    if len(near) < MOST * len(known):
        return None
    if all(carriers[name].kind in {RelationKind.EQUAL, RelationKind.WITHIN_NOISE} for name in near) and noise == 0.0:
        return None
    return CommonFactor(_snapped(middle, carriers, limit), tuple(near), max(near.values()))


def _allowed(relation: Relation) -> float:
    """How far a tensor's factor may be from the median."""
    left = relation.residual if relation.kind is RelationKind.SCALED else None
    return max(WITHIN * relation.noise, 2e-6, left or 0.0)


def _snapped(middle: float, carriers: Mapping[str, Relation], limit: float) -> Factor:
    """The number that most of the tensors name, where the median agrees with it."""
    named = Counter(
        (relation.factor.snapped, relation.factor.meanings)
        for relation in carriers.values()
        if relation.factor is not None and relation.factor.snapped is not None
    )
    for (number, meanings), _ in named.most_common():
        if number is not None and abs(middle / number - 1.0) <= max(limit, 2e-6):
            return Factor(middle, number, meanings)
    return Factor(middle)
