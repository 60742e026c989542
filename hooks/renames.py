"""One part of the names that a checkpoint calls otherwise than the module: `layers` for `blocks`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

FEWEST = 3
"""A new head on an old body brings two keys, a weight and a bias: as few tell of no renaming."""
MOST_TRIED = 32
"""Renamings that are tried, the shortest ones."""

Parts = tuple[str, ...]


def renamed_part(missing: Mapping[str, Any], unexpected: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the file's names and what the module has in its place, where that pairs all keys one to one.

    Both map keys to shapes; keys of a pair have equal shapes. Empty where no such part is found.
    """
    if len(missing) != len(unexpected) or len(missing) < FEWEST:
        return {}
    candidates = _candidates(tuple(next(iter(unexpected)).split(".")), list(missing))
    for old, new in islice(candidates, MOST_TRIED):
        found = {_replaced(key, old, new): shape for key, shape in unexpected.items()}
        if found == dict(missing):
            return {"renamed": ".".join(old), "renamed_to": ".".join(new), "prefix_explains": len(found)}
    return {}


def _candidates(key: Parts, others: Sequence[str]) -> list[tuple[Parts, Parts]]:
    """What stands in a key between the begin and the end that it shares with another one, and what stands there."""
    found: dict[tuple[Parts, Parts], None] = {}
    for other in others:
        theirs = tuple(other.split("."))
        shorter = min(len(key), len(theirs))
        first = next((place for place in range(shorter) if key[place] != theirs[place]), shorter)
        end = next(
            (place for place in range(shorter - first) if key[-1 - place] != theirs[-1 - place]), shorter - first
        )
        old, new = key[first : len(key) - end], theirs[first : len(theirs) - end]
        if old and new and len(old) < len(key):
            found[old, new] = None
    return sorted(found, key=lambda pair: len(pair[0]) + len(pair[1]))


def _replaced(key: str, old: Parts, new: Parts) -> str:
    """The key with the first such part replaced; itself where it has none."""
    parts = key.split(".")
    for place in range(len(parts) - len(old) + 1):
        if tuple(parts[place : place + len(old)]) == old:
            return ".".join([*parts[:place], *new, *parts[place + len(old) :]])
    return key
