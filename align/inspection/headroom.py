"""How far each module's outputs are from the greatest number of their format, and when they reach it at this rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from align.inspection.nonfinite_kind import LARGE_POWER
from align.inspection.nonfinite_start import is_nonfinite, reach_of
from align.inspection.view import RunView
from align.records import Phase
from align.tolerance import PRECISIONS, Precision

LITTLE = 1 / 4
"""From this share of the greatest number on there is little headroom: the next doubling but one overflows. Measured:
the largest of 13 healthy captures with float16 outputs was 0.00006, of tiny models."""

SOON = 50
"""So many steps ahead a growth is told."""

FEWEST_STEPS = 3
SMALLEST_GROWTH = 1.1
"""A growth is told that went on from each captured step to the next, over at least 3, by 10 % a step on average."""


@dataclass(frozen=True, slots=True)
class Headroom:
    """The largest magnitude of one output over the captured steps.

    `sizes` are those of each step, `precision` is the format of the tensor. `growth` is the mean factor per step where
    it grew from each captured step to the next, else None; `steps_left` is after how many steps it reaches the limit.
    """

    name: str
    slot: str
    precision: Precision
    sizes: tuple[tuple[int, float], ...]
    growth: float | None = None
    steps_left: int | None = None

    @property
    def largest(self) -> float:
        """The largest of all captured steps."""
        return max(size for _, size in self.sizes)

    @property
    def share(self) -> float:
        """As a share of the greatest number of the format."""
        return self.largest / self.precision.largest

    @property
    def is_little(self) -> bool:
        """Whether it is near the limit, or will reach it soon."""
        soon = self.steps_left is not None and self.steps_left <= SOON
        return self.share >= LITTLE or (soon and self.largest >= math.pow(self.precision.largest, LARGE_POWER))


def headrooms(view: RunView) -> tuple[Headroom, ...]:
    """The outputs of all modules, the one with the least headroom first; those that were not finite are left out."""
    sizes: dict[tuple[str, str, str], dict[int, float]] = {}
    broken: set[tuple[str, str, str]] = set()
    for number in view.steps:
        for record in view.step(number).by_phase[Phase.FORWARD]:
            if not record.key.slot.startswith("output") or record.dtype not in PRECISIONS:
                continue
            place = (record.key.name, record.key.slot, record.dtype)
            if is_nonfinite(record):
                broken.add(place)
            steps = sizes.setdefault(place, {})
            steps[number] = max(steps.get(number, 0.0), reach_of(record))
    found = [_headroom(place, steps) for place, steps in sizes.items() if place not in broken]
    return tuple(sorted(found, key=lambda one: -one.share))


def _headroom(place: tuple[str, str, str], steps: dict[int, float]) -> Headroom:
    name, slot, dtype = place
    precision, sizes = PRECISIONS[dtype], tuple(sorted(steps.items()))
    growth = _growth(sizes)
    last = sizes[-1][1]
    left = None
    if growth is not None and last < precision.largest:
        left = math.ceil(math.log(precision.largest / last) / math.log(growth))
    return Headroom(name, slot, precision, sizes, growth, left)


def _growth(sizes: tuple[tuple[int, float], ...]) -> float | None:
    """The mean factor of one step, None where it did not grow from each captured step to the next."""
    grew = all(after > before for (_, before), (_, after) in pairwise(sizes))
    if len(sizes) < FEWEST_STEPS or sizes[0][1] <= 0.0 or not grew:
        return None
    growth = (sizes[-1][1] / sizes[0][1]) ** (1.0 / (sizes[-1][0] - sizes[0][0]))
    return growth if growth >= SMALLEST_GROWTH else None
