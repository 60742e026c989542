"""The dropout masks of the ranks: each its own for other data, one for a tensor that several ranks hold alike."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from align import metrics
from align.inspection.ranks import Holdings, of_two_ranks
from align.inspection.ranks_data import same_inputs
from align.inspection.view import RunView
from align.pairing import Pair
from align.records import Phase, TensorKey, TensorRecord

DROPOUT = "Dropout"
"""In the names of classes that set elements to zero."""

CPU, TORCH, DEVICE = "cpu", "torch", "device"

CHANCE = 1e-6
"""Counts of zeros that agree on two ranks are no accident below this chance: the product over all dropouts of the
largest probability that two counts of n draws agree, 1 / (2 sqrt(pi n p (1 - p)))."""


@dataclass(frozen=True, slots=True)
class Mask:
    """The output of a dropout on two ranks, and whether both were given the same tensor.

    `zeros` are the elements that were dropped on each. `counted` says that they are the mask's alone.
    """

    key: TensorKey
    numel: int
    zeros: tuple[int, int]
    same_input: bool
    same_output: bool
    counted: bool

    @property
    def chance(self) -> float:
        """How likely two masks drawn apart have as many zeros, at most."""
        share = self.zeros[0] / self.numel
        spread = self.numel * share * (1.0 - share)
        return min(1.0, 0.5 / math.sqrt(math.pi * spread)) if spread > 0.0 else 1.0


@dataclass(frozen=True, slots=True)
class Draws:
    """Two ranks that draw what they should not: `key` is the first dropout that shows it.

    `ranks` are their places. `masks` counts the dropouts that show it, `steps` are those in which they do. `generator`
    is the generator whose states were equal (`duplicated`) or not as the step began, empty where that is not known;
    `seeds` says whether it was seeded alike.
    """

    key: TensorKey
    ranks: tuple[int, int]
    masks: int
    steps: tuple[int, ...]
    numel: int
    zeros: tuple[int, int]
    generator: str
    seeded_alike: bool


def duplicated_draws(holdings: Holdings) -> Draws | None:
    """Two ranks that drop the same elements of different tensors, made from different batches."""
    return of_two_ranks(holdings, _duplicated)


def _duplicated(holdings: Holdings, ranks: tuple[int, int]) -> Draws | None:
    one, other = (holdings.views[rank] for rank in ranks)
    steps = [step for step in holdings.steps if not same_inputs(one, other, step)]
    masks = [mask for step in steps for mask in masks_of(one, other, step) if mask.counted and not mask.same_input]
    if not masks or any(mask.zeros[0] != mask.zeros[1] for mask in masks):
        return None
    generator = _equal_generator(one, other, masks[0].key.step)
    if not generator and math.prod(mask.chance for mask in masks) > CHANCE:
        return None
    return _draws(masks, ranks, generator, one, other)


def parted_draws(holdings: Holdings) -> Draws | None:
    """Two ranks that drop other elements of the same tensor while each holds a part of the model.

    Only where a weight of theirs differs, so that they are no replicas that were given one batch.
    """
    if not _has_parts(holdings):
        return None
    return of_two_ranks(holdings, _parted)


def _parted(holdings: Holdings, ranks: tuple[int, int]) -> Draws | None:
    one, other = (holdings.views[rank] for rank in ranks)
    steps = [step for step in holdings.steps if same_inputs(one, other, step)]
    masks = [mask for step in steps for mask in masks_of(one, other, step)]
    apart = [mask for mask in masks if mask.same_input and not mask.same_output]
    if not apart:
        return None
    # What draws for a device may begin from a number of torch's own generator.
    names = dict.fromkeys((_generator(one), TORCH))
    name = next((name for name in names if _states_differ(one, other, apart[0].key.step, name)), "")
    return _draws(apart, ranks, name, one, other)


def _states_differ(one: RunView, other: RunView, step: int, name: str) -> bool:
    states = [_state(view, step, name) for view in (one, other)]
    return None not in states and states[0] != states[1]


def masks_of(one: RunView, other: RunView, step: int) -> Iterator[Mask]:
    """The dropouts of a step that drop on both ranks, with what they were given."""
    left, right = one.step(step).by_key, other.step(step).by_key
    for key, record in left.items():
        module = one.modules.get(key.name)
        if key.phase is not Phase.FORWARD or not key.slot.startswith("output") or module is None:
            continue
        if DROPOUT not in module.class_name or key not in right or right[key].shape != record.shape:
            continue
        mask = _mask(key, (record, right[key]), (_input(left, key), _input(right, key)))
        if mask is not None:
            yield mask


def _mask(
    key: TensorKey, outputs: tuple[TensorRecord, TensorRecord], inputs: tuple[TensorRecord | None, TensorRecord | None]
) -> Mask | None:
    ours, theirs = inputs
    if ours is None or theirs is None or any(each.stats is None for each in (*outputs, ours, theirs)):
        return None
    before = [each.stats.zeros for each in (ours, theirs) if each.stats is not None]
    after = [each.stats.zeros for each in outputs if each.stats is not None]
    if any(late <= early for early, late in zip(before, after, strict=True)):
        return None  # It drops nothing: in evaluation mode, or at rate 0.
    return Mask(
        key, outputs[0].numel, (after[0], after[1]), metrics.identical(Pair(ours, theirs)),
        metrics.identical(Pair(*outputs)), not any(before),
    )  # fmt: skip


def _input(records: object, key: TensorKey) -> TensorRecord | None:
    found = TensorKey(key.step, key.phase, key.name, "input.0", key.micro, key.call)
    return records.get(found) if hasattr(records, "get") else None


def _has_parts(holdings: Holdings) -> bool:
    """Whether a trained weight is held in parts: other values, shapes or names on each rank."""
    trained = [held for held in holdings.held.values() if held.owner in holdings.trained]
    return any(held.split or not held.equal or len(held.records) < len(holdings.views) for held in trained)


def _generator(view: RunView) -> str:
    """The generator that masks are drawn from."""
    return TORCH if view.run.parameters_on in {CPU, ""} else DEVICE


def _state(view: RunView, step: int, name: str) -> int | None:
    record = view.step(step).by_key.get(TensorKey(step, Phase.RNG, name, "state"))
    return record.hash if record is not None else None


def _equal_generator(one: RunView, other: RunView, step: int) -> str:
    name = _generator(one)
    state = _state(one, step, name)
    return name if state is not None and state == _state(other, step, _generator(other)) else ""


def _draws(masks: list[Mask], ranks: tuple[int, int], generator: str, one: RunView, other: RunView) -> Draws:
    first, name = masks[0], generator or _generator(one)
    seeds = [view.run.seeds.get(name) for view in (one, other)]
    steps = tuple(sorted({mask.key.step for mask in masks}))
    alike = seeds[0] is not None and seeds[0] == seeds[1]
    return Draws(first.key, ranks, len(masks), steps, first.numel, first.zeros, generator, alike)
