"""A capture as one run: its steps one by one, and what is looked up in them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from align.capture_file import Capture
from align.records import INIT_STEP, Fact, FactValue, ModuleInfo, Phase, RunInfo, TensorKey, TensorRecord, TimelineRow


class StepView:
    """One captured step: its records in execution order, its facts."""

    def __init__(self, step: int, records: tuple[TensorRecord, ...], facts: tuple[Fact, ...]) -> None:
        self.step = step
        self.records = records
        self.facts = facts

    @cached_property
    def by_key(self) -> Mapping[TensorKey, TensorRecord]:
        """The records by their key; those that a checkpoint computed again are not here."""
        return {record.key: record for record in self.records if not record.recomputed}

    @cached_property
    def by_order(self) -> Mapping[int, TensorRecord]:
        """The records by their place in the execution order."""
        return {record.order: record for record in self.records}

    @cached_property
    def by_phase(self) -> Mapping[Phase, tuple[TensorRecord, ...]]:
        """The records of each phase, in execution order; those that were recomputed are not here."""
        parts: dict[Phase, list[TensorRecord]] = {phase: [] for phase in Phase}
        for record in self.records:
            if not record.recomputed:
                parts[record.key.phase].append(record)
        return {phase: tuple(part) for phase, part in parts.items()}

    def fact(self, phase: Phase, name: str, slot: str) -> FactValue:
        """One fact, None where it was not noted; of several calls the last."""
        found = [
            fact.value for fact in self.facts if (fact.key.phase, fact.key.name, fact.key.slot) == (phase, name, slot)
        ]
        return found[-1] if found else None


class RunView:
    """An open capture, read as far as it is asked."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._steps: dict[int, StepView] = {}
        self.path = str(capture.path)

    @property
    def run(self) -> RunInfo:
        """The facts of the run."""
        return self._capture.run

    @cached_property
    def modules(self) -> Mapping[str, ModuleInfo]:
        """The modules by name."""
        return self._capture.modules

    @cached_property
    def timeline(self) -> tuple[TimelineRow, ...]:
        """One row for every step of the run, captured or not."""
        return tuple(self._capture.timeline)

    @cached_property
    def initial(self) -> tuple[TensorRecord, ...]:
        """Parameters and buffers before step 0, empty where they were not captured."""
        return tuple(self._capture.records(INIT_STEP)) if self._capture.has_init else ()

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers of the captured steps."""
        return tuple(self._capture.steps)

    def step(self, number: int) -> StepView:
        """One captured step."""
        if number not in self._steps:
            records, facts = tuple(self._capture.records(number)), tuple(self._capture.facts(number))
            self._steps[number] = StepView(number, records, facts)
        return self._steps[number]

    def phases(self) -> frozenset[Phase]:
        """The phases of which any captured step has a record or a fact."""
        steps = [self.step(number) for number in self.steps]
        tensors = {record.key.phase for step in steps for record in step.records}
        return frozenset(tensors | {fact.key.phase for step in steps for fact in step.facts})

    def values(self, record: TensorRecord) -> NDArray[Any]:
        """The values of a record that has them (`has_values`), in its own shape."""
        return self._capture.values(record)
