"""What the candidate's tensor is to the reference's, from the values of both.

Each step answers one question and may end the search; the order is that of `STEPS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from align.relations import changes, independence, likeness, rearrangements
from align.relations.both import Both, Values, contents_of_values
from align.relations.circumstances import Circumstances
from align.relations.relation import Relation, RelationKind

__all__ = ["Values", "contents_of_values", "relate_values"]

STEPS: tuple[Callable[[Both, Circumstances[Any]], Relation | None], ...] = (
    likeness.other_shape,
    likeness.equal,
    likeness.nonfinite,
    likeness.all_zero,
    likeness.cast,
    likeness.repeated,
    likeness.within_noise,
    likeness.stale,
    changes.scaled,
    changes.offset,
    rearrangements.same_values,
    rearrangements.noisy,
    changes.few_places,
    independence.not_loaded,
    independence.independent,
)


def relate_values(reference: Values, candidate: Values, circumstances: Circumstances[Values] | None = None) -> Relation:
    """What the candidate is to the reference. NaN and Inf are allowed; memory is about 30 bytes an element of each."""
    known: Circumstances[Values] = circumstances if circumstances is not None else Circumstances()
    both = Both(reference, candidate, known.noise)
    for step in STEPS:
        found = step(both, known)
        if found is not None:
            return found
    return both.answer(RelationKind.UNRELATED)
