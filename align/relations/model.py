"""One answer for a model: a seed mismatch is one finding, not two hundred."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace

from align.relations.common_factor import NOTHING_KNOWN, common_factor
from align.relations.loading import how_loaded
from align.relations.moved_keys import moved_keys
from align.relations.relation import (
    AGREEING,
    Contents,
    ModelKind,
    ModelRelation,
    Relation,
    RelationKind,
)

MOST = 0.8
"""One answer speaks for a model where it holds for 80 % of the tensors in which it would be seen."""

REARRANGED = frozenset({RelationKind.PERMUTED, RelationKind.TRANSPOSED, RelationKind.RESHAPED, RelationKind.REORDERED})

WHOLE: tuple[tuple[ModelKind, frozenset[RelationKind]], ...] = (
    (ModelKind.NONFINITE, frozenset({RelationKind.NONFINITE})),
    (ModelKind.ALL_ZERO, frozenset({RelationKind.ALL_ZERO})),
    (ModelKind.STALE, frozenset({RelationKind.STALE})),
    (ModelKind.SIGN_FLIPPED, frozenset({RelationKind.SIGN_FLIPPED})),
    (ModelKind.CAST, frozenset({RelationKind.CAST})),
    (ModelKind.REORDERED, REARRANGED),
)
"""What may hold for all tensors at once, by the kinds that show it."""

UNSEEN: Mapping[ModelKind, Callable[[Relation], bool]] = {
    ModelKind.ALL_ZERO: lambda relation: relation.reference.norm == 0.0,
    ModelKind.STALE: lambda _: True,  # a frozen tensor is what it was
    ModelKind.SIGN_FLIPPED: lambda relation: relation.reference.norm == 0.0,
    ModelKind.CAST: lambda relation: relation.reference.deviation == 0.0 or "int" in relation.reference.dtype,
    ModelKind.REORDERED: lambda relation: sum(length > 1 for length in relation.reference.shape) <= 1,
}
"""Tensors that agree and would agree all the same."""


def aggregate(
    relations: Mapping[str, Relation],
    missing: Mapping[str, Contents] | None = None,
    extra: Mapping[str, Contents] | None = None,
) -> ModelRelation:
    """What the candidate's tensors are to the reference's, by name, as one answer.

    Give tensors of one kind: weights and buffers, or gradients. `missing` are tensors of the reference that the
    candidate has not, `extra` those that only the candidate has: they may be the same values under other names.
    """
    missing, extra = missing or {}, extra or {}
    told = {name: relation for name, relation in relations.items() if relation.kind is not RelationKind.UNKNOWN}
    differing = {name: relation for name, relation in told.items() if not relation.agrees}
    keys = moved_keys(differing, missing, extra)
    named = {name for pair in keys for name in pair}
    empty = ModelRelation(
        ModelKind.UNKNOWN,
        len(relations),
        sum(relation.agrees for relation in told.values()),
        keys=keys,
        missing=tuple(name for name in missing if name not in named),
        extra=tuple(name for name in extra if name not in named),
    )
    if not told and not keys:
        return empty
    return _answer(told, differing, empty)


def _answer(told: Mapping[str, Relation], differing: Mapping[str, Relation], empty: ModelRelation) -> ModelRelation:
    factor = common_factor(told)
    if factor is not None:
        found = replace(empty, kind=ModelKind.SCALED, names=factor.names, factor=factor.factor, spread=factor.spread)
        return _with_others(found, differing)
    if empty.keys and _are_most_keys(empty, differing):
        names = tuple(name for name, _ in empty.keys)
        return _with_others(replace(empty, kind=ModelKind.PERMUTED_KEYS, names=names), differing)
    if not differing:
        noisy = any(relation.kind is RelationKind.WITHIN_NOISE for relation in told.values())
        kind = ModelKind.WITHIN_NOISE if noisy else ModelKind.EQUAL
        return replace(empty, kind=ModelKind.SOME_TENSORS if empty.missing or empty.extra else kind)
    return _with_others(_whole(told, differing, empty) or how_loaded(told, differing, empty), differing)


def _whole(
    told: Mapping[str, Relation], differing: Mapping[str, Relation], empty: ModelRelation
) -> ModelRelation | None:
    for kind, kinds in WHOLE:
        names = tuple(name for name, relation in differing.items() if relation.kind in kinds)
        against = [
            name
            for name, relation in told.items()
            if name not in names
            and relation.noise <= NOTHING_KNOWN
            and not (relation.kind in AGREEING and _is_unseen(kind, relation))
        ]
        if names and len(names) >= MOST * (len(names) + len(against)):
            first = _most_frequent([differing[name] for name in names])
            return replace(empty, kind=kind, names=names, side=first.side, format=first.format, earlier=first.earlier)
    return None


def _is_unseen(kind: ModelKind, relation: Relation) -> bool:
    return kind in UNSEEN and UNSEEN[kind](relation)


def _most_frequent(relations: list[Relation]) -> Relation:
    """A relation with the side, format and earlier tensor that most have."""
    counts: dict[tuple[object, ...], list[Relation]] = defaultdict(list)
    for relation in relations:
        counts[relation.side, relation.format, relation.earlier].append(relation)
    return max(counts.values(), key=len)[0]


def _are_most_keys(empty: ModelRelation, differing: Mapping[str, Relation]) -> bool:
    """Whether most tensors that differ or have no partner are explained by other names."""
    ours = {name for name, _ in empty.keys}
    left = [name for name in differing if name not in ours] + list(empty.missing)
    return len(ours) >= MOST * (len(ours) + len(left))


def _with_others(found: ModelRelation, differing: Mapping[str, Relation]) -> ModelRelation:
    explained = {*found.names, *(name for pair in found.keys for name in pair)}
    names = [name for name in found.names if name in differing]
    others = [name for name in differing if name not in explained]
    return replace(found, kinds=_by_kind(names, differing), others=_by_kind(others, differing))


def _by_kind(names: list[str], differing: Mapping[str, Relation]) -> dict[RelationKind, tuple[str, ...]]:
    found: dict[RelationKind, list[str]] = defaultdict(list)
    for name in names:
        found[differing[name].kind].append(name)
    return {kind: tuple(held) for kind, held in found.items()}
