"""Whether ranks that train as one also hold the same weights: before step 0, and after each captured step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from align.equality import Answer, judge_equality
from align.hyperparameters import compare_settings, group_of
from align.inspection.ranks import Held, Holdings, Likeness, Taken, records_of
from align.optimizer_replay import groups_of
from align.pairing import Pair
from align.records import INIT_STEP, FactValue, Owner, Phase, TensorRecord


@dataclass(frozen=True, slots=True)
class Unlike:
    """Tensors that differ between ranks although they should be one.

    `step` is INIT_STEP or the step after which the parameters differ. `ranks` are the places of those that differ from
    the most, `of` how many such tensors there are. `distance` is the largest relative L2 difference. `settings` are
    the settings of the optimizer that differ, by name, with the values of the ranks. `trained` is False for buffers
    and frozen weights.
    """

    step: int
    owners: tuple[Owner, ...]
    of: int
    ranks: tuple[int, ...]
    distance: float | None
    settings: Mapping[str, tuple[FactValue, ...]]
    trained: bool = True


def unlike(holdings: Holdings) -> Unlike | None:
    """What should be one on all ranks and is not, the first that holds."""
    return initial_unlike(holdings) or updated_unlike(holdings) or idle_unlike(holdings)


def initial_unlike(holdings: Holdings) -> Unlike | None:
    """Trained parameters that begin with other values though all ranks take the very same gradients of them.

    None where the gradients of any of them differ too: then they may be parts of something larger.
    """
    trained = [held for held in holdings.held.values() if held.owner in holdings.trained and not held.split]
    differing = {held.owner: held for held in trained if not held.equal}
    taken = [each for each in holdings.taken_by_all if each.owner in differing and each.nonzero]
    if not taken or any(each.likeness is Likeness.APART for each in taken):
        return None
    proven = {each.owner for each in taken if each.likeness is Likeness.SAME}
    found = [held for owner, held in differing.items() if owner in proven]
    return _unlike(INIT_STEP, found, len(trained)) if found else None


def idle_unlike(holdings: Holdings) -> Unlike | None:
    """Buffers and frozen weights that begin with other values on ranks that are replicas in all that they train."""
    if not holdings.replicas or not holdings.taken or any(each.likeness is Likeness.APART for each in holdings.taken):
        return None
    idle = [
        held
        for held in holdings.held.values()
        if held.owner not in holdings.trained and not held.split and len(held.records) == len(holdings.views)
    ]
    found = [held for held in idle if not held.equal]
    return _unlike(INIT_STEP, found, len(idle), trained=False) if found else None


def updated_unlike(holdings: Holdings) -> Unlike | None:
    """Parameters that an equal step leads to other values: equal before it, of equal gradients to the bit."""
    for step in holdings.steps:
        equal = [each for each in holdings.taken if each.step == step and each.nonzero and each.distance == 0.0]
        compared = {each.owner: one for each in equal if (one := _after(holdings, each)) is not None}
        apart = {owner: one for owner, one in compared.items() if one[0] is Answer.UNEQUAL}
        if apart:
            ranks = tuple(sorted({rank for _, places, _ in apart.values() for rank in places}))
            distances = [distance for _, _, distance in apart.values() if distance is not None]
            largest = max(distances, default=None)
            return Unlike(
                step, tuple(apart), len(compared), ranks, largest, _settings(holdings, step, next(iter(apart)))
            )
    return None


def _after(holdings: Holdings, taken: Taken) -> tuple[Answer, tuple[int, ...], float | None] | None:
    """Whether the parameter is one after the step, the places of other ranks, how far; None if it was not before."""
    before = _before(holdings, taken)
    after = {
        rank: record
        for rank in taken.records
        if (record := records_of(holdings.views[rank], taken.step, Phase.PARAM).get(taken.owner)) is not None
    }
    if len(before) < len(taken.records) or len(after) < len(taken.records):
        return None
    first = min(after)
    if any(judge_equality(Pair(before[first], before[rank])).answer is not Answer.EQUAL for rank in after):
        return None
    judged = {rank: judge_equality(Pair(after[first], after[rank])) for rank in after if rank != first}
    apart = {rank: one for rank, one in judged.items() if one.answer is Answer.UNEQUAL}
    if not apart:
        return Answer.EQUAL, (), 0.0
    distances = [one.relative_l2 for one in apart.values() if one.relative_l2 is not None]
    return Answer.UNEQUAL, tuple(apart), max(distances, default=None)


def _before(holdings: Holdings, taken: Taken) -> dict[int, TensorRecord]:
    """The parameter before the step, by place of the rank; of a step in the middle the one after the step before."""
    if taken.step == 0:
        held = holdings.held[taken.owner].records
        return {rank: held[rank] for rank in taken.records}
    found = {}
    for rank in taken.records:
        view = holdings.views[rank]
        if taken.step - 1 in view.steps:
            record = records_of(view, taken.step - 1, Phase.PARAM).get(taken.owner)
            if record is not None:
                found[rank] = record
    return found


def _settings(holdings: Holdings, step: int, owner: Owner) -> dict[str, tuple[FactValue, ...]]:
    """The settings of the optimizer for one parameter that are not the same on all ranks."""
    groups = [groups_of(view.step(step).facts) for view in holdings.views]
    differing = {
        each.name: None
        for other in groups[1:]
        for each in compare_settings(step, groups[0], other, {owner: owner}).differences
    }
    return {name: tuple((group_of(owner, each) or {}).get(name) for each in groups) for name in differing}


def _unlike(step: int, found: list[Held], of: int, *, trained: bool = True) -> Unlike:
    ranks = tuple(sorted({rank for held in found for rank in held.differing}))
    distances = [distance for held in found if (distance := _distance(held)) is not None]
    return Unlike(step, tuple(held.owner for held in found), of, ranks, max(distances, default=None), {}, trained)


def _distance(held: Held) -> float | None:
    first = held.records[held.groups[0][0]]
    found = [judge_equality(Pair(first, held.records[group[0]])).relative_l2 for group in held.groups[1:]]
    return max((each for each in found if each is not None), default=None)
