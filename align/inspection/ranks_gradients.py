"""Whether the gradients of replicas were reduced: what the optimizers of ranks with the same weights take is one."""

from __future__ import annotations

from dataclasses import dataclass

from align.inspection.ranks import Holdings, Likeness, Taken
from align.optimizer_replay import Owner


@dataclass(frozen=True, slots=True)
class Reduction:
    """What the ranks take in the first captured step that tells: the parameters whose gradients are one, and are not.

    Compared are parameters that begin with the same values on several ranks. `least` and `most` are the relative L2
    differences of those that are apart. `ranks` are the places of ranks that were compared.
    """

    step: int
    same: tuple[Owner, ...]
    apart: tuple[Owner, ...]
    least: float
    most: float
    ranks: tuple[int, ...]

    @property
    def missing(self) -> bool:
        """Whether no gradient is reduced."""
        return bool(self.apart) and not self.same


def reduction_of(holdings: Holdings) -> Reduction | None:
    """How the gradients of shared parameters were reduced; None where nothing tells.

    Parameters that begin as one constant (norms, biases) are told along, and decide nothing: the parts of a split
    vector begin alike too.
    """
    shared = {held.owner for held in holdings.shared}
    for step in holdings.steps:
        here = [each for each in holdings.taken if each.step == step]
        telling = [each for each in here if each.owner in shared and each.likeness is not Likeness.UNKNOWN]
        if telling:
            return _reduction(step, telling)
    return None


def _reduction(step: int, telling: list[Taken]) -> Reduction:
    apart = tuple(dict.fromkeys(each.owner for each in telling if each.likeness is Likeness.APART))
    same = tuple(dict.fromkeys(each.owner for each in telling if each.likeness is Likeness.SAME))
    far = [each.distance for each in telling if each.likeness is Likeness.APART and each.distance is not None]
    ranks = tuple(sorted({rank for each in telling for rank in each.records}))
    return Reduction(
        step, tuple(owner for owner in same if owner not in apart), apart, min(far, default=0.0),
        max(far, default=0.0), ranks,
    )  # fmt: skip
