"""Whether a loss differs by how it is averaged: by one factor, by weights of micro-batches, by what counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.backward.backward_cause import common_of, numbers_of
from align.flow import is_grad_output
from align.records import Comparison, Fact, FactValue, Kind, Origin, Phase, Word
from align.relations import Factor
from align.relations.factors import snapped
from align.units import SCRIPT

LOSS, VALUE, TARGET = "loss", "value", "target"

SMALLEST_UNCERTAINTY = 1e-3
BEYOND_FLOOR = 3.0
LARGEST_UNCERTAINTY = 0.02
"""A loss and its gradients have one factor where they agree within three times what rounding may part the loss by; at
least 1e-3, as gradients in float32 of 12 healthy pairs do by far (1e-6), at most 2 %."""


class LossKind(Word):
    """What differs in how a loss is made of equal outputs and targets."""

    FACTOR = "factor"
    WEIGHTS = "weights"
    COUNTED = "counted"


@dataclass(frozen=True, slots=True)
class MicroLoss:
    """The loss of one micro-step: the factor to the reference's, and how many of its targets count (-1: not known)."""

    micro: int
    factor: float
    counting: int = -1


@dataclass(frozen=True, slots=True)
class LossCause:
    """Why a loss differs.

    `losses` are those of each micro-step. `factor` is what all of them have in common; `constants` are the numbers by
    which both runs multiply their loss last of all, where those make the factor. `by_counts` is 1 where the reference
    weights micro-batches by their targets that count and the candidate alike, -1 the other way round, 0 where neither
    is known. `ignored` and `counting` are the index that both losses leave out and the targets that count.
    """

    kind: LossKind
    losses: tuple[MicroLoss, ...]
    factor: Factor | None = None
    constants: tuple[float, float] | None = None
    by_counts: int = 0
    ignored: tuple[FactValue, FactValue] = (None, None)
    counting: tuple[FactValue, FactValue] = (None, None)


@lru_cache(maxsize=1)
def cause_of(walk: Walk) -> LossCause | None:
    """Why the loss differs, None where it is not the first difference, or the cause is not known."""
    first = walk.first
    if first is None or (first.kind, first.origin) != (Kind.VALUE, Origin.LOSS) or first.statistics_only:
        return None
    key = first.comparison.key
    if (key.phase, key.slot) != (Phase.LOSS, VALUE):
        return None
    return _counted(walk, first.comparison) or _averaged(walk, first.comparison)


def _averaged(walk: Walk, loss: Comparison) -> LossCause | None:
    """Where the loss of each micro-step is a number times the reference's, and so are its gradients."""
    step = loss.key.step
    losses = list(_losses(walk, step))
    uncertain = min(max(BEYOND_FLOOR * loss.floor, SMALLEST_UNCERTAINTY), LARGEST_UNCERTAINTY)
    if all(_near(each.factor, 1.0, uncertain) for each in losses):
        return None
    if not _gradients_follow(walk, step, losses, uncertain):
        return None
    if all(_near(each.factor, losses[0].factor, uncertain) for each in losses):
        numbers = numbers_of(walk, step) | _counts(walk, loss)
        factor = snapped(losses[0].factor, numbers, uncertain)
        return LossCause(LossKind.FACTOR, tuple(losses), factor, _constants(walk, loss, factor, uncertain))
    return LossCause(LossKind.WEIGHTS, tuple(losses), by_counts=_by_counts(losses, uncertain))


def is_known(walk: Walk) -> bool:
    """Whether `loss-normalization` tells the first difference."""
    return cause_of(walk) is not None


def _near(one: float, other: float, uncertain: float) -> bool:
    return math.isclose(one, other, rel_tol=uncertain)


def _losses(walk: Walk, step: int) -> Iterator[MicroLoss]:
    """The factor of each micro-step that has one loss; nothing where one has several, or none that can be divided."""
    found: dict[int, Comparison] = {}
    for each in _of_loss(walk, step, VALUE):
        if each.key.micro in found:
            return
        found[each.key.micro] = each
    factors = {micro: _factor(each) for micro, each in found.items()}
    if any(factor is None for factor in factors.values()):
        return
    for micro, each in found.items():
        counting = _facts(walk.reference_facts.get(step, ()), each, "valid_targets")
        yield MicroLoss(micro, factors[micro] or 1.0, counting if isinstance(counting, int) else -1)


def _of_loss(walk: Walk, step: int, slot: str) -> Iterator[Comparison]:
    return (
        each
        for each in walk.comparisons
        if (each.key.step, each.key.phase, each.key.name, each.key.slot) == (step, Phase.LOSS, LOSS, slot)
    )


def _factor(each: Comparison) -> float | None:
    ours, theirs = each.reference.stats, each.candidate.stats
    if ours is None or theirs is None or ours.nonfinite or theirs.nonfinite or each.reference.numel != 1:
        return None
    return theirs.total / ours.total if ours.total and theirs.total else None


def _gradients_follow(walk: Walk, step: int, losses: Sequence[MicroLoss], uncertain: float) -> bool:
    """Whether the gradients of the outputs have the factor of the loss in each micro-step.

    Where they were not captured, those of the parameters of a step with one micro-step.
    """
    entering = [
        each
        for each in walk.comparisons
        if (each.key.step, each.key.phase) == (step, Phase.BACKWARD)
        and is_grad_output(each.reference)
        and each.reference.within == SCRIPT
    ]
    if not entering:
        common = common_of(walk, Phase.GRADIENT) if len(losses) == 1 else None
        return common is not None and _near(common.factor.raw, losses[0].factor, uncertain)
    scales = telling.loss_scales(walk, entering[0].key)
    undone = scales[0] / scales[1] if scales is not None else 1.0
    factors = {each.micro: each.factor for each in losses}
    for each in entering:
        expected = factors.get(each.key.micro)
        if expected is None:
            return False
        if _near(expected, 1.0, uncertain):
            continue
        found = telling.scale_between(each, undone)
        if found is None or not _near(found, expected, uncertain):
            return False
    return True


def _by_counts(losses: Sequence[MicroLoss], uncertain: float) -> int:
    """Whether the factors are as the targets that count, or as one over them."""
    if any(each.counting < 1 for each in losses) or len({each.counting for each in losses}) < 2:  # noqa: PLR2004
        return 0
    times = [each.factor * each.counting for each in losses]
    if all(_near(number, times[0], uncertain) for number in times):
        return 1
    divided = [each.factor / each.counting for each in losses]
    return -1 if all(_near(number, divided[0], uncertain) for number in divided) else 0


def _counts(walk: Walk, loss: Comparison) -> dict[str, float]:
    """How many samples and targets the loss is made of."""
    key = loss.key
    target = next((each.reference for each in _of_loss(walk, key.step, TARGET) if each.key.micro == key.micro), None)
    found: dict[str, float] = {}
    counting = _facts(walk.reference_facts.get(key.step, ()), loss, "valid_targets")
    if isinstance(counting, int):
        found["targets that count"] = float(counting)
    if target is not None and target.shape:
        found.setdefault("targets", float(target.numel))
        if isinstance(counting, int) and 0 < counting < target.numel:
            found["targets / targets that count"] = target.numel / counting
    batch = next(
        (
            each.reference
            for each in walk.comparisons
            if (each.key.step, each.key.micro, each.key.phase) == (key.step, key.micro, Phase.INPUT)
            and each.reference.shape
        ),
        None,
    )
    if batch is not None:
        found["samples of the batch"] = float(batch.shape[0])
    return {name: number for name, number in found.items() if number > 1.0}


def _constants(walk: Walk, loss: Comparison, factor: Factor, uncertain: float) -> tuple[float, float] | None:
    """The numbers by which both runs multiply their loss last of all, where they make the factor."""
    step = loss.key.step
    found = [_facts(facts.get(step, ()), loss, "factor") for facts in (walk.reference_facts, walk.candidate_facts)]
    numbers = [float(each) if isinstance(each, (int, float)) else 1.0 for each in found]
    if not numbers[0] or not _near(numbers[1] / numbers[0], factor.raw, uncertain):
        return None
    return numbers[0], numbers[1]


def _counted(walk: Walk, loss: Comparison) -> LossCause | None:
    """Where both losses leave out other targets of those that they were both given."""
    step = loss.key.step
    sides: Mapping[str, list[FactValue]] = {
        slot: [_facts(facts.get(step, ()), loss, slot) for facts in (walk.reference_facts, walk.candidate_facts)]
        for slot in ("ignore_index", "valid_targets")
    }
    counting, ignored = sides["valid_targets"], sides["ignore_index"]
    if None in counting or counting[0] == counting[1]:
        return None
    return LossCause(
        LossKind.COUNTED,
        tuple(_losses(walk, step)),
        ignored=(ignored[0], ignored[1]),
        counting=(counting[0], counting[1]),
    )


def _facts(facts: Sequence[Fact], loss: Comparison, slot: str) -> FactValue:
    """What is known of the loss of a micro-step."""
    key = loss.key
    return next(
        (
            fact.value
            for fact in facts
            if (fact.key.phase, fact.key.name, fact.key.slot, fact.key.micro) == (Phase.LOSS, LOSS, slot, key.micro)
        ),
        None,
    )
