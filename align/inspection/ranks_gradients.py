"""Whether the gradients of replicas were reduced: what the optimizers of ranks with the same weights take is one."""

from __future__ import annotations

from dataclasses import dataclass

from align.inspection.ranks import Holdings, Likeness, Taken
from align.inspection.ranks_data import same_inputs
from align.records import Owner


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

    Parameters that begin as one constant (norms, biases) say nothing: the parts of a split vector begin alike too. Nor
    do ranks that were given the same batch, as tensor parallel ones are: they reduce no gradient of what all of them
    hold, and need not.
    """
    shared = {held.owner for held in holdings.shared}
    for step in holdings.steps:
        here = [each for each in holdings.taken if each.step == step and _given_others(holdings, each)]
        telling = [each for each in here if each.owner in shared and each.likeness is not Likeness.UNKNOWN]
        if telling:
            return _reduction(step, telling)
    return None


def _given_others(holdings: Holdings, taken: Taken) -> bool:
    """Whether each of the ranks was given another batch than the first."""
    first, *others = (holdings.views[rank] for rank in taken.records)
    return not any(same_inputs(first, other, taken.step) for other in others)


def _reduction(step: int, telling: list[Taken]) -> Reduction:
    apart = tuple(dict.fromkeys(each.owner for each in telling if each.likeness is Likeness.APART))
    same = tuple(dict.fromkeys(each.owner for each in telling if each.likeness is Likeness.SAME))
    far = [each.distance for each in telling if each.likeness is Likeness.APART and each.distance is not None]
    ranks = tuple(sorted({rank for each in telling for rank in each.records}))
    return Reduction(
        step, tuple(owner for owner in same if owner not in apart), apart, min(far, default=0.0),
        max(far, default=0.0), ranks,
    )  # fmt: skip
