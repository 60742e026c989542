"""Where a call of one run stands in the other, for facts that are no tensors: its name, micro-step and number there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from align.pairing import NamePairs
from align.records import PairedCalls

CallPlace: TypeAlias = tuple[str, int, int]
"""A module by name, the micro-step, and which of its calls."""


class Places:
    """The calls of both runs in one step, by what was found when their records were paired."""

    def __init__(self, names: NamePairs, calls: Iterable[PairedCalls], step: int) -> None:
        self._names = names.partner
        self._back = names.reversed()
        self._numbers: dict[tuple[str, int], dict[int, int]] = {
            (each.name, each.micro): dict(each.pairs) for each in calls if each.step == step
        }

    def in_candidate(self, place: CallPlace) -> CallPlace | None:
        """Where a call of the reference stands in the candidate, None where that has no such call."""
        name, micro, call = place
        other = _looked_up(self._numbers.get(("", 0)), micro)
        number = _looked_up(self._numbers.get((name, micro)), call)
        new = self._names.get(name, name)
        return (new, other, number) if new and other is not None and number is not None else None

    def in_reference(self, place: CallPlace) -> CallPlace | None:
        """Where a call of the candidate stands in the reference, None where that has no such call."""
        name, micro, call = place
        old = self._back.get(name)
        other = _looked_up(_turned(self._numbers.get(("", 0))), micro)
        if old is None or other is None:
            return None
        number = _looked_up(_turned(self._numbers.get((old, other))), call)
        return None if number is None else (old, other, number)


def _looked_up(numbers: Mapping[int, int] | None, number: int) -> int | None:
    """The number that answers one; what was not aligned keeps its number."""
    return number if numbers is None else numbers.get(number)


def _turned(numbers: Mapping[int, int] | None) -> dict[int, int] | None:
    return None if numbers is None else {theirs: ours for ours, theirs in numbers.items()}
