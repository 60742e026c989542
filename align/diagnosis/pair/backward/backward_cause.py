"""Which of the labels of a first difference among gradients is known to hold: one of them, or none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.forward import added_tensor, forward_cause
from align.diagnosis.pair.forward.repeats import is_repeat
from align.flow import is_grad_output
from align.gradient_factors import GradientFactor, factor_of, is_clipping, next_scale
from align.records import Comparison, Kind, Origin, Phase, TimelineRow, Word
from align.relations.factors import snapped
from align.sentences import say
from align.units import SCRIPT
from align.walk import Suspect

TWICE = 2.0
SMALLEST_UNCERTAINTY, LARGEST_UNCERTAINTY = 1e-3, 0.02
"""A factor of one tensor is 2 within what rounding may part it by, and no more than 2 %."""

FEWEST_ELEMENTS = 32
"""Fewer numbers may be twice others by chance of a reduction: a gradient that lost half of its sum."""

PARAMETERS = frozenset({Phase.GRADIENT, Phase.UPDATE})


class BackwardKind(Word):
    """What the gradients are from the first that differs on."""

    DOUBLED = "doubled"
    SCALED = "scaled"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class BackwardCause:
    """The kind, the factor of the first gradient where it has one, and the factor that all have in common."""

    kind: BackwardKind
    factor: float | None = None
    common: GradientFactor | None = None


@lru_cache(maxsize=1)
def cause_of(walk: Walk) -> BackwardCause | None:
    """Why the first gradient differs; None where the first difference is none, or the cause is not known."""
    first = walk.first
    if first is None or first.kind is not Kind.VALUE or first.statistics_only or forward_cause.is_isolated(walk):
        return None
    if any(first is gap.suspect for gap in walk.underflow_gaps):
        return None
    phase = first.comparison.key.phase
    if phase is Phase.BACKWARD:
        return _of_activation(walk, first)
    return _of_parameters(walk, first) if phase in PARAMETERS else None


def is_known(walk: Walk) -> bool:
    """Whether one of the labels of this module tells the first difference."""
    return cause_of(walk) is not None


def _of_activation(walk: Walk, first: Suspect) -> BackwardCause | None:
    comparison = first.comparison
    added = added_tensor.of_first(walk)
    factor = telling.scale_between(comparison, first.scale)
    if added is not None and added.own and added.once_more:
        return BackwardCause(BackwardKind.DOUBLED)
    enough = comparison.reference.numel >= FEWEST_ELEMENTS
    if factor is not None and enough and is_twice(comparison, factor):
        return BackwardCause(BackwardKind.DOUBLED, factor)
    if first.origin is Origin.FUNCTIONAL and first.owner == SCRIPT and is_grad_output(comparison.reference):
        common = common_of(walk, Phase.GRADIENT)
        return BackwardCause(BackwardKind.SCALED, factor, common) if factor is not None and common is not None else None
    return BackwardCause(BackwardKind.OPERATOR, factor) if _is_operator(walk, first) else None


def _of_parameters(walk: Walk, first: Suspect) -> BackwardCause | None:
    comparison = first.comparison
    if added_tensor.of_first(walk) is not None:
        return None
    factor = telling.scale_between(comparison, first.scale)
    common = common_of(walk, comparison.key.phase)
    if common is not None:
        plain = common.factor.value == TWICE and not common.factor.meanings and not _has_cause(walk, TWICE)
        return BackwardCause(BackwardKind.DOUBLED if plain else BackwardKind.SCALED, common.factor.value, common)
    enough = comparison.reference.numel >= FEWEST_ELEMENTS
    if factor is not None and enough and is_twice(comparison, factor):
        return BackwardCause(BackwardKind.DOUBLED, factor)
    return BackwardCause(BackwardKind.OPERATOR, factor) if _is_operator(walk, first) else None


def has_the_factor(walk: Walk, comparison: Comparison) -> bool:
    """Whether a gradient is one of those that have the factor of the first in common."""
    cause = cause_of(walk)
    key = comparison.key
    return cause is not None and cause.common is not None and say("{} {}", key.name, key.slot) in cause.common.names


def is_twice(comparison: Comparison, factor: float) -> bool:
    """Whether a factor is 2, as far as rounding lets it be known."""
    allowed = min(max(SMALLEST_UNCERTAINTY, 3.0 * comparison.floor), LARGEST_UNCERTAINTY)
    return abs(factor / TWICE - 1.0) <= allowed


def common_of(walk: Walk, phase: Phase) -> GradientFactor | None:
    """The factor that all gradients of a phase in the step of the first difference have."""
    first = walk.first
    if first is None:
        return None
    step = first.comparison.key.step
    undone = 1.0 if phase is Phase.UPDATE or first.comparison.key.phase is Phase.UPDATE else first.scale
    return factor_of(walk.comparisons, phase, step, undone, numbers_of(walk, step))


def numbers_of(walk: Walk, step: int) -> dict[str, float]:
    """What a factor between both runs may be, by meaning."""
    ours, theirs = rows_of(walk, step)
    found = {
        "world size": float(max(walk.reference.world_size, walk.candidate.world_size)),
        "accumulation steps": float(max((row.micros for row in (ours, theirs) if row is not None), default=1)),
    }
    scales = [row.loss_scale for row in (ours, theirs) if row is not None and row.loss_scale > 1.0]
    if scales:
        found["loss scale"] = scales[-1]
    return {name: number for name, number in found.items() if number > 1.0}


def rows_of(walk: Walk, step: int) -> tuple[TimelineRow | None, TimelineRow | None]:
    """The rows of the timelines of one step."""
    ours = next((row for row in walk.reference_timeline if row.step == step), None)
    theirs = next((row for row in walk.candidate_timeline if row.step == step), None)
    return ours, theirs


def moved_scale(walk: Walk, step: int, factor: float) -> tuple[str, tuple[float, float]] | None:
    """The side that divides by the loss scale of the next step, with both scales, where that makes the factor."""
    for side, timeline, quotient in (
        ("candidate", walk.candidate_timeline, factor),
        ("reference", walk.reference_timeline, 1.0 / factor if factor else 0.0),
    ):
        scales = next_scale(step, timeline)
        if scales is not None and snapped(quotient, {}, 0.0).value * scales[1] == scales[0]:
            return side, scales
    return None


def _has_cause(walk: Walk, factor: float) -> bool:
    step = walk.first.comparison.key.step if walk.first is not None else 0
    return moved_scale(walk, step, factor) is not None or is_clipping(factor, *rows_of(walk, step))


def _is_operator(walk: Walk, first: Suspect) -> bool:
    """Whether a module without children, equal in all that is known, makes another gradient of what agrees."""
    if first.origin is not Origin.MODULE or is_repeat(walk.reference, walk.candidate):
        return False
    if not forward_cause.is_same_leaf(walk, first):
        return False
    return first.comparison.key.phase is Phase.BACKWARD or _is_of_one_class(walk, first)


def _is_of_one_class(walk: Walk, first: Suspect) -> bool:
    """Whether the parameter gradients that differ are those of all modules of one class, and others agree.

    What is done to all gradients (a reduction between ranks, gradients that were not cleared) is no operator's doing,
    nor is what is done to one parameter of several (a hook, a mask); a weight that another module uses too has that
    one's part in its gradient.
    """
    if max(walk.reference.world_size, walk.candidate.world_size) > 1:
        return False
    key = first.comparison.key
    here = [each for each in walk.comparisons if (each.key.step, each.key.phase) == (key.step, key.phase)]
    owners = {each.key.name for each in here}
    if any(module.leaf and module.matmul and name not in owners for name, module in walk.modules.items()):
        return False
    beyond = {each.key: (each.times_floor or 0.0) > each.limit for each in here}
    differing = {key.name for key, wrong in beyond.items() if wrong}
    name = walk.modules[key.name].class_name
    alike = {owner for owner in owners if owner in walk.modules and walk.modules[owner].class_name == name}
    return differing == alike != owners and all(wrong for key, wrong in beyond.items() if key.name in alike)
