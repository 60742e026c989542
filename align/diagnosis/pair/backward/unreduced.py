"""What one rank tells of the reduction of its gradients: none in one run, or with other weights of the ranks.

A capture of a rank has the gradients that its own backward left and those that its optimizer takes. Between them ranks
are added up (where a wrapper does that inside the backward, its own part is not seen).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from align import metrics, sketch
from align.comparison import Walk
from align.pairing import Pair
from align.records import Comparison, Kind, Phase, Status, TensorRecord
from align.walk import Suspect

PAIR = 2
"""Of two ranks, what the other one adds is known from the sum and the own part."""

RESIDUAL = 1e-3
"""What a mixture may leave unexplained: float32 leaves some unit roundoffs, another gradient leaves most of itself."""

ALIKE = 0.999
"""The cosine from which on two gradients are one up to a factor, and no parts of a mixture can be told."""

CHANGED = 0.01
"""A reduction changes the gradients of a rank by more, since the samples of the ranks differ."""


@dataclass(frozen=True, slots=True)
class Unreduced:
    """The run whose optimizer takes the gradients of its own rank as they are, where the other's takes others.

    `parameters` are those of the step, `distance` is the largest relative L2 by which the other run changes them.
    """

    side: str
    parameters: int
    distance: float


@dataclass(frozen=True, slots=True)
class Reweighted:
    """What the reference's optimizer takes as a mixture of this rank's own gradient and what the candidate's takes.

    `own` and `reduced` are the parts, which add up to 1 where both runs take a mean of the two ranks.
    """

    own: float
    reduced: float
    parameters: int
    residual: float


@lru_cache(maxsize=1)
def unreduced(walk: Walk) -> Unreduced | None:
    """The run without reduction, where the first difference is what the optimizer takes; None where that is not so."""
    local = _local_gradients(walk)
    if local is None:
        return None
    changes = (
        [_change(ours, updates[0]) for ours, _, updates in local],
        [_change(theirs, updates[1]) for _, theirs, updates in local],
    )
    for side, name in ((0, "reference"), (1, "candidate")):
        far = [change for change in changes[1 - side] if change is not None and change > CHANGED]
        unchanged = all(change == 0.0 for change in changes[side])
        if far and (walk.reference, walk.candidate)[side].world_size > 1 and unchanged and len(far) == len(local):
            return Unreduced(name, len(local), max(far))
    return None


@lru_cache(maxsize=1)
def reweighted(walk: Walk) -> Reweighted | None:
    """How both runs weigh the two ranks, where the gradients of this one agree; None where that is not all."""
    local = _local_gradients(walk)
    if local is None or max(walk.reference.world_size, walk.candidate.world_size) != PAIR:
        return None
    vectors = [found for ours, _, updates in local if (found := _sketched((ours, *updates))) is not None]
    if not vectors or len(vectors) < len(local):
        return None
    own, reference, candidate = (np.concatenate([parts[place] for parts in vectors]) for place in range(3))
    if abs(float(own @ candidate)) > ALIKE * float(np.linalg.norm(own) * np.linalg.norm(candidate)):
        return None
    basis = np.stack([own, candidate], axis=1)
    parts, *_ = np.linalg.lstsq(basis, reference, rcond=None)
    residual = float(np.linalg.norm(basis @ parts - reference) / np.linalg.norm(reference))
    if residual > RESIDUAL or abs(parts[0]) < CHANGED or abs(parts[1]) < CHANGED:
        return None
    return Reweighted(float(parts[0]), float(parts[1]), len(local), residual)


def is_known(walk: Walk) -> bool:
    """Whether the reduction tells the first difference."""
    return unreduced(walk) is not None or reweighted(walk) is not None


Local = tuple[TensorRecord, TensorRecord, tuple[TensorRecord, TensorRecord]]


def _local_gradients(walk: Walk) -> list[Local] | None:
    """The gradients of both runs after backward, which agree, and what the optimizers take, of each parameter.

    None where the first difference is not what an optimizer takes, and where no run has several ranks.
    """
    first = walk.first
    if first is None or not _is_update(first) or max(walk.reference.world_size, walk.candidate.world_size) < PAIR:
        return None
    step = first.comparison.key.step
    gradients = {each.key.owner: each for each in _of(walk, step, Phase.GRADIENT) if each.key.micro == 0}
    updates = {each.key.owner: each for each in _of(walk, step, Phase.UPDATE)}
    if not updates or updates.keys() - gradients.keys():
        return None
    found = [(gradients[owner], update) for owner, update in updates.items()]
    if any(gradient.status not in {Status.EQUAL, Status.WITHIN} for gradient, _ in found):
        return None
    return [
        (gradient.reference, gradient.candidate, (update.reference, update.candidate))
        for gradient, update in found
        if gradient.reference.stats is not None and gradient.reference.stats.norm > 0.0
    ]


def _is_update(first: Suspect) -> bool:
    return first.kind is Kind.VALUE and first.comparison.key.phase is Phase.UPDATE and not first.statistics_only


def _of(walk: Walk, step: int, phase: Phase) -> Iterator[Comparison]:
    return (each for each in walk.comparisons if (each.key.step, each.key.phase) == (step, phase))


def _change(gradient: TensorRecord, update: TensorRecord) -> float | None:
    """By how much code between backward and optimizer changes a gradient, relative to it; 0 where not a bit."""
    pair = Pair(gradient, update)
    if update.same_as == gradient.order and update.key.step == gradient.key.step:
        return 0.0
    return 0.0 if metrics.identical(pair) else metrics.relative_l2(pair)


def _sketched(records: Sequence[TensorRecord]) -> list[NDArray[np.float64]] | None:
    """The sketches of one parameter, so that what the reference's optimizer takes has length 1; all count alike."""
    found = [each.values.astype(np.float64) for record in records if (each := sketch.sketch_of(record)) is not None]
    length = float(np.linalg.norm(found[1])) if len(found) == len(records) else 0.0
    return [values / length for values in found] if length > 0.0 else None


def told_weights(found: Reweighted) -> Sequence[float] | None:
    """The weights of this rank and the other in the reference, where the candidate takes the plain mean; else None."""
    if abs(found.own + found.reduced - 1.0) > RESIDUAL:
        return None
    other = found.reduced / PAIR
    return 1.0 - other, other
