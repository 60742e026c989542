"""Whether a run started from the checkpoint, from a part of it, or from random numbers; and from whose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from align.relations.draws import FEWEST
from align.relations.independence import CONSTANTS
from align.relations.relation import Contents, ModelKind, ModelRelation, Relation, RelationKind, Side

MOST = 0.8
ALMOST_ALL = 0.9

HALF = 0.5
TIMES = 10

FEW_SHARED = 0.1
"""A checkpoint of which at most so many matrices are there was not loaded, but for buffers that are computed."""

TRAINED = 0.2
"""Another draw leaves no vector correlated or of another distribution: two of them, or 20 %, are no chance."""

DRAWN = frozenset({RelationKind.OTHER_SEED, RelationKind.UNRELATED, RelationKind.NOT_LOADED})
OPEN = DRAWN | {RelationKind.DRIFTED, RelationKind.ALL_ZERO, RelationKind.OFFSET, RelationKind.SCALED}
"""Kinds that a checkpoint that was not loaded leaves behind."""


def how_loaded(told: Mapping[str, Relation], differing: Mapping[str, Relation], empty: ModelRelation) -> ModelRelation:
    """The answer from where the weights came, SOME_TENSORS where they do not tell."""
    open_ones = {name: relation for name, relation in differing.items() if relation.kind in OPEN}
    plain = replace(empty, kind=ModelKind.SOME_TENSORS, names=tuple(differing))
    if len(open_ones) < MOST * len(differing):
        return plain
    names = tuple(open_ones)
    side = _side_at_defaults(open_ones)
    shared = [relation for relation in told.values() if relation.agrees and _is_matrix(relation.reference)]
    matrices = [relation for relation in open_ones.values() if _is_matrix(relation.reference)]
    whole = len(shared) <= FEW_SHARED * (len(shared) + len(matrices))
    if side is not None:
        kind = ModelKind.NOT_LOADED if whole else ModelKind.PARTIALLY_LOADED
        return replace(empty, kind=kind, names=names, side=side)
    drawn = [relation for relation in matrices if relation.kind in DRAWN]
    if matrices and len(drawn) >= ALMOST_ALL * len(matrices):
        return _drawn(open_ones, matrices, replace(plain, names=names), whole=whole)
    drifted = [relation for relation in open_ones.values() if relation.kind is RelationKind.DRIFTED]
    if len(drifted) >= MOST * len(open_ones) and whole:
        return replace(empty, kind=ModelKind.DRIFTED, names=names)
    return plain


def _drawn(
    open_ones: Mapping[str, Relation], matrices: list[Relation], plain: ModelRelation, *, whole: bool
) -> ModelRelation:
    """Matrices that do not follow from one another: two draws, or two trainings."""
    same = sum(relation.kind is RelationKind.OTHER_SEED for relation in matrices)
    fresh = sum(bool(relation.reference.initial and relation.candidate.initial) for relation in matrices)
    if same >= MOST * len(matrices) and not _were_trained(open_ones):
        if whole:
            return replace(plain, kind=ModelKind.OTHER_SEED)
        if fresh >= MOST * len(matrices):
            note = "the other tensors agree: only these were drawn anew"
            return replace(plain, kind=ModelKind.OTHER_SEED, note=note)
    return replace(plain, kind=ModelKind.UNRELATED) if whole else plain


def _side_at_defaults(relations: Mapping[str, Relation]) -> Side | None:
    """The run whose vectors are constant (gains 1, biases 0) while the other's are not; else that of the matrices.

    Half of the matrices must say so, and ten times as many as say it of the other run.
    """
    matrices = [relation for relation in relations.values() if _is_matrix(relation.reference)]
    others = [relation for relation in relations.values() if not _is_matrix(relation.reference)]
    vectors = [relation for relation in others if _constant_side(relation) is not None]
    for side_of, asked in ((_constant_side, vectors), (_drawn_side, matrices)):
        sides = [side_of(relation) for relation in asked]
        votes = {side: sides.count(side) for side in (Side.REFERENCE, Side.CANDIDATE)}
        side = max(votes, key=lambda each: votes[each])
        if votes[side] >= max(HALF * len(asked), 1) and votes[side] >= TIMES * (sum(votes.values()) - votes[side]):
            return side
        if asked is vectors and vectors:
            return None
    return None


def _constant_side(relation: Relation) -> Side | None:
    constant = [_is_constant(contents) for contents in (relation.reference, relation.candidate)]
    if constant[0] == constant[1]:
        return None
    return Side.REFERENCE if constant[0] else Side.CANDIDATE


def _drawn_side(relation: Relation) -> Side | None:
    return relation.side if relation.kind is RelationKind.NOT_LOADED else None


def _were_trained(relations: Mapping[str, Relation]) -> bool:
    """Whether vectors differ as those of two trainings do: neither constant nor another draw."""
    vectors = [
        relation
        for relation in relations.values()
        if not _is_matrix(relation.reference) and _count(relation.reference) >= FEWEST
    ]
    trained = [relation for relation in vectors if _is_trained(relation)]
    return len(trained) > min(TRAINED * len(vectors), 1)


def _is_trained(relation: Relation) -> bool:
    """No default draws numbers around a mean of their own."""
    if relation.kind is RelationKind.OTHER_SEED:
        return abs(relation.reference.mean) > relation.reference.deviation > 0.0
    return relation.kind in {RelationKind.DRIFTED, RelationKind.UNRELATED}


def _is_matrix(contents: Contents) -> bool:
    """Whether it is a float tensor of two dimensions at least that holds more than one value."""
    return "float" in contents.dtype and sum(length > 1 for length in contents.shape) > 1 and contents.deviation > 0.0


def _is_constant(contents: Contents) -> bool:
    return contents.initial in CONSTANTS and contents.nonfinite == 0


def _count(contents: Contents) -> int:
    count = 1
    for length in contents.shape:
        count *= length
    return count
