"""What differs between the states that two optimizers begin a step with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from align import metrics
from align.optimizer_records import BEFORE
from align.pairing import Pair, PairedStep
from align.records import Fact, Owner, Phase, TensorRecord, Word

STEP = ".step"
"""Ends the slot of the number of updates."""

LOADED = 1e-3
"""States loaded from one checkpoint are equal; those that went through a 16-bit format part by 4e-3 at most."""


class StateKind(Word):
    """In which way states differ."""

    ONE_SIDE = "one side"
    COUNT = "count"
    OTHER_PARAMETERS = "other parameters"
    VALUES = "values"


@dataclass(frozen=True, slots=True)
class StateDifferences:
    """The states that differ, by module and slot as the reference calls them, of `compared` ones.

    `counts` are the numbers of updates of both runs, `relative_l2` the largest difference, `instead` the reference's
    state that the first of the candidate's is.
    """

    kind: StateKind
    owners: tuple[Owner, ...]
    compared: int
    missing_in_candidate: bool = False
    counts: tuple[float, float] | None = None
    relative_l2: float | None = None
    instead: str = ""


def state_differences(
    aside: PairedStep, facts: tuple[Sequence[Fact], Sequence[Fact]], *, first_of_run: bool
) -> StateDifferences | None:
    """How the states before a step differ, None where they agree or are not known.

    Values are held against each other in the first step of a run only: what was loaded must be equal, what was
    computed need not be.
    """
    pairs = [pair for pair in aside.pairs if _is_before(pair.reference)]
    alone = tuple(
        [record for record in side if _is_before(record) and not _is_empty(record)] for side in aside.unpaired
    )
    compared = len(pairs) + max(len(side) for side in alone)
    if bool(alone[0]) != bool(alone[1]) and not pairs:
        records = alone[0] or alone[1]
        return StateDifferences(StateKind.ONE_SIDE, tuple(map(_owner, records)), compared, bool(alone[0]))
    counts = [_counts(side) for side in facts]
    other = [owner for owner, count in counts[0].items() if counts[1].get(owner, count) != count]
    if other:
        return StateDifferences(
            StateKind.COUNT, tuple(other), compared, counts=(counts[0][other[0]], counts[1][other[0]])
        )
    if not first_of_run:
        return None
    errors = {_owner(pair.reference): metrics.relative_l2(pair) for pair in pairs}
    differing = {owner: error for owner, error in errors.items() if error is not None and error > LOADED}
    if not differing:
        return None
    moved = _moved(pairs, differing)
    owners, worst = tuple(differing), max(differing.values())
    if moved:
        return StateDifferences(StateKind.OTHER_PARAMETERS, owners, compared, relative_l2=worst, instead=moved)
    return StateDifferences(StateKind.VALUES, owners, compared, relative_l2=worst)


def _is_before(record: TensorRecord) -> bool:
    return record.key.phase is Phase.OPTIMIZER and record.key.slot.endswith(BEFORE)


def _is_empty(record: TensorRecord) -> bool:
    """Whether a state says nothing yet: some optimizers make theirs before the first step, of zeros."""
    return record.stats is None or record.stats.total_squares == 0.0


def _owner(record: TensorRecord) -> Owner:
    return record.key.name, record.key.slot.removesuffix(BEFORE)


def _counts(facts: Sequence[Fact]) -> dict[Owner, float]:
    """The number of updates that a step begins with, by parameter."""
    return {
        (fact.key.name, fact.key.slot.removesuffix(BEFORE)): float(fact.value)
        for fact in facts
        if fact.key.phase is Phase.OPTIMIZER
        and fact.key.slot.endswith(f"{STEP}{BEFORE}")
        and isinstance(fact.value, (int, float))
    }


def _moved(pairs: Sequence[Pair], differing: Mapping[Owner, float]) -> str:
    """The reference's state that the first differing state of the candidate is; empty where not all are moved."""
    ours = {_owner(pair.reference): pair.reference for pair in pairs}
    found: dict[Owner, Owner] = {}
    for pair in pairs:
        owner = _owner(pair.reference)
        if owner not in differing:
            continue
        instead = [
            other
            for other, record in ours.items()
            if other != owner and record.shape == pair.candidate.shape and _equal(record, pair.candidate)
        ]
        if len(instead) != 1:
            return ""
        found[owner] = instead[0]
    first = next(iter(differing))
    return " ".join(found[first])


def _equal(one: TensorRecord, other: TensorRecord) -> bool:
    return one.stats is not None and one.stats.total_squares > 0.0 and metrics.identical(Pair(one, other))
