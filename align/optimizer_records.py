"""What one run recorded around one step of its optimizer, by what it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from align.records import Fact, Owner, Phase, TensorRecord

BEFORE = ".before"
"""Ends the slot of a state that a step began with, where the step before was not captured."""


class OptimizerRecords(NamedTuple):
    """The records of one run around one step, by owner, and what its optimizers were set to."""

    parameters_before: Mapping[Owner, TensorRecord]
    parameters_after: Mapping[Owner, TensorRecord]
    gradients: Mapping[Owner, TensorRecord]
    states_before: Mapping[Owner, TensorRecord]
    states_after: Mapping[Owner, TensorRecord]
    facts: Sequence[Fact]


def by_owner(records: Iterable[TensorRecord]) -> dict[Owner, TensorRecord]:
    """Records by module and slot, of several the last."""
    return {record.key.owner: record for record in records}


def states_before(records: Iterable[TensorRecord]) -> dict[Owner, TensorRecord]:
    """The states of the optimizer that a step says it began with, by the slot that they have after it."""
    found = _states(records).items()
    return {(name, slot.removesuffix(BEFORE)): state for (name, slot), state in found if slot.endswith(BEFORE)}


def states_after(records: Iterable[TensorRecord]) -> dict[Owner, TensorRecord]:
    """The states of the optimizer as a step left them."""
    return {owner: state for owner, state in _states(records).items() if not owner[1].endswith(BEFORE)}


def _states(records: Iterable[TensorRecord]) -> dict[Owner, TensorRecord]:
    return by_owner(record for record in records if record.key.phase is Phase.OPTIMIZER)
