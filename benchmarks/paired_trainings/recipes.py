"""How a run is trained: the reference's way, on another device, from weights moved by rounding, or with one fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from benchmarks.paired_trainings.arithmetic import PRECISIONS, Arithmetic

STEPS = 320
LATE = 0.6
"""A run stalls after this share of its steps."""
FAULTY_IN = "bf16"
"""Faults are those of a candidate on another device that trains in this precision, as most migrated jobs do."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One training.

    `rate` is in times of the task's. `moved_by` is the share by which initial weights are moved, in directions that
    `moved_seed` draws. `order` draws the order of the samples, `mislabelled` is the share of wrong targets. From the
    step `stalled_from` on nothing is updated; the loss of step `lost_at` is NaN and its update skipped.
    """

    arithmetic: Arithmetic
    rate: float = 1.0
    decay: float = 0.1
    eps: float = 1e-8
    clip: float = 0.5
    moved_by: float = 0.0
    moved_seed: int = 0
    order: int = 0
    mislabelled: float = 0.0
    frozen: bool = False
    stalled_from: int | None = None
    lost_at: int | None = None


Change = Callable[[Recipe, int], Recipe]

FAULTS: Mapping[str, Change] = {
    "learning rate x 1.1": lambda recipe, _: replace(recipe, rate=1.1),
    "learning rate x 2": lambda recipe, _: replace(recipe, rate=2.0),
    "another order of data": lambda recipe, _: replace(recipe, order=1),
    "clipping dropped": lambda recipe, _: replace(recipe, clip=float("inf")),
    "weight decay 0": lambda recipe, _: replace(recipe, decay=0.0),
    "frozen layer": lambda recipe, _: replace(recipe, frozen=True),
    "eps 1e-3": lambda recipe, _: replace(recipe, eps=1e-3),
    "2 % wrong labels": lambda recipe, _: replace(recipe, mislabelled=0.02),
    "stall": lambda recipe, steps: replace(recipe, stalled_from=int(LATE * steps)),
    "one NaN": lambda recipe, steps: replace(recipe, lost_at=int(LATE * steps)),
}
"""What is changed of a healthy candidate of so many steps."""


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of pair: its class of precision, and the fault of its candidate, empty for none.

    A candidate is trained on another device, or with `moved` on the reference's from weights moved by rounding.
    """

    precision: str
    fault: str = ""
    moved: bool = False

    @property
    def name(self) -> str:
        """What the tables call it."""
        if self.moved:
            return f"healthy, {self.reference.arithmetic.name}, weights moved"
        return self.fault or f"healthy, {PRECISIONS[self.precision].device.name}"

    def candidate(self, steps: int) -> Recipe:
        """How the candidate is trained."""
        if self.moved:
            return self._repeat(0)
        recipe = Recipe(PRECISIONS[self.precision].device)
        return FAULTS[self.fault](recipe, steps) if self.fault else recipe

    @property
    def reference(self) -> Recipe:
        """How the reference is trained."""
        return Recipe(PRECISIONS[self.precision].reference)

    def repeats(self, count: int) -> tuple[Recipe, ...]:
        """The reference again, from weights that were moved by the rounding of its precision."""
        return tuple(self._repeat(seed) for seed in range(1, count + 1))

    def _repeat(self, seed: int) -> Recipe:
        return replace(self.reference, moved_by=PRECISIONS[self.precision].unit, moved_seed=seed)


CASES = (
    *(Case(precision) for precision in PRECISIONS),
    *(Case(precision, moved=True) for precision in ("fp32", "tf32", "bf16")),
    *(Case(FAULTY_IN, fault) for fault in FAULTS),
)
"""Healthy ones first."""
