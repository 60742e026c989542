"""The same tensors under other names: found by their values, whatever they are called."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from align.relations.relation import Contents, Relation, RelationKind

INDEPENDENT = frozenset(
    {
        RelationKind.UNRELATED,
        RelationKind.OTHER_SEED,
        RelationKind.NOT_LOADED,
        RelationKind.DRIFTED,
        RelationKind.OTHER_SHAPE,
        RelationKind.ALL_ZERO,
        RelationKind.SCALED,
    }
)
"""Kinds of pairs whose partners may have changed names."""

FEWEST = 8
"""Fewer values may be the same by chance."""

DIGITS = 6


def moved_keys(
    differing: Mapping[str, Relation], missing: Mapping[str, Contents], extra: Mapping[str, Contents]
) -> tuple[tuple[str, str], ...]:
    """Pairs (name in the reference, name in the candidate) that hold the same values in one shape.

    Tensors of one value (gains of 1, biases of 0) tell nothing and are left out.
    """
    moved = {name: relation for name, relation in differing.items() if relation.kind in INDEPENDENT}
    ours = {name: relation.reference for name, relation in moved.items()} | dict(missing)
    theirs = {name: relation.candidate for name, relation in moved.items()} | dict(extra)
    places: dict[Hashable, list[str]] = {}
    for name, contents in theirs.items():
        if _tells(contents):
            places.setdefault(_print(contents), []).append(name)
    found = []
    for name, contents in ours.items():
        names = places.get(_print(contents), []) if _tells(contents) else []
        if names:
            found.append((name, names.pop(0)))
    return tuple((mine, other) for mine, other in found if mine != other)


def _tells(contents: Contents) -> bool:
    count = 1
    for length in contents.shape:
        count *= length
    return count >= FEWEST and contents.deviation > 0.0


def _print(contents: Contents) -> Hashable:
    """What no other tensor shares: the order-blind hash, of records the statistics."""
    if contents.multiset is not None:
        return contents.shape, contents.multiset
    numbers = (contents.minimum, contents.maximum, contents.norm)
    return contents.shape, contents.zeros, *(f"{number:.{DIGITS}g}" for number in numbers)
