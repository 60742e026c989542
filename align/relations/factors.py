"""Which number a factor is: a simple one, or one that means something in this run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from align.relations.relation import Factor
from align.sentences import say

SIMPLE_INTEGERS = 16
LARGEST_POWER = 24
"""Integers up to 16 and powers of two up to 2**24 (the range of a GradScaler's scale) and their inverses are simple."""

SMALLEST_TOLERANCE = 2e-6
"""k from sketches and norms is within 7e-8 of the true factor, from gradients of fp32 on another device within 6e-7."""

LARGEST_TOLERANCE = 0.05
"""Beyond that every number would be near a simple one."""


def snapped(raw: float, factors: Mapping[str, float], uncertainty: float) -> Factor:
    """The factor with the number that it is within its relative uncertainty, and all meanings of that number."""
    tolerance = min(max(uncertainty, SMALLEST_TOLERANCE), LARGEST_TOLERANCE)
    meant = [(number, meaning) for number, meaning in _meanings(factors) if _near(raw, number, tolerance)]
    if meant:
        nearest = min((number for number, _ in meant), key=lambda number: abs(raw / number - 1.0))
        names = [meaning for number, meaning in meant if _near(nearest, number, SMALLEST_TOLERANCE)]
        return Factor(raw, nearest, tuple(dict.fromkeys(names)))
    simple = [number for number in _simple() if _near(raw, number, tolerance)]
    return Factor(raw, min(simple, key=lambda number: abs(raw / number - 1.0)) if simple else None)


def _meanings(factors: Mapping[str, float]) -> Iterator[tuple[float, str]]:
    given = {name: number for name, number in factors.items() if number > 0.0 and number != 1.0}
    both = {say("{} x {}", one, other): given[one] * given[other] for one, other in combinations(given, 2)}
    for name, number in (given | both).items():
        yield number, name
        yield 1.0 / number, f"1/{name}" if name in given else say("1/({})", name)


def _simple() -> Iterator[float]:
    for number in (*range(2, SIMPLE_INTEGERS + 1), *(2**power for power in range(5, LARGEST_POWER + 1))):
        yield float(number)
        yield 1.0 / number


def _near(raw: float, number: float, tolerance: float) -> bool:
    return abs(raw / number - 1.0) <= tolerance
