"""The capture that a run replays, found call by call: which of its records a tensor of this run stands for."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from align.capture_file import Capture
from align.hooks.batch_source import LOADER
from align.hooks.stored_values import as_tensor
from align.records import Phase, TensorKey, TensorRecord

AGAIN = ".again"
"""Behind the slot of a gradient that came a second time through one call in one backward."""

OF_A_CALL = frozenset({Phase.FORWARD, Phase.INPUT})
"""Phases whose records are found through the call that they belong to; of others the key is known at once."""

CallPlace = tuple[int, str, int]
"""Micro-step, module and number of a call, within its step."""
Slot = tuple[Phase, str, str]
"""Phase, name and slot of a record within its call."""


@dataclass(slots=True, eq=False)
class ReplayedCall:
    """One module call of the capture: its records, and the calls that its code made, those of each module in order."""

    step: int
    place: CallPlace
    records: dict[Slot, TensorRecord] = field(default_factory=dict)
    children: dict[str, deque[ReplayedCall]] = field(default_factory=lambda: defaultdict(deque))

    def next_child(self, name: str) -> ReplayedCall | None:
        """The first call of this module by this call's code that has not been replayed yet."""
        waiting = self.children.get(name)
        return waiting.popleft() if waiting else None


class ReplaySource:
    """The steps of a capture that are replayed, as trees of calls."""

    def __init__(self, capture: Capture, steps: Sequence[int]) -> None:
        self._capture = capture
        self._steps = tuple(steps)
        self._outermost: dict[int, deque[ReplayedCall]] = {}
        self._by_key: dict[TensorKey, TensorRecord] = {}
        self._scales = {row.step: row.loss_scale for row in capture.timeline}
        for step in self._steps:
            self._read(step)

    def _read(self, step: int) -> None:
        calls: dict[CallPlace, ReplayedCall] = {}
        parents: dict[CallPlace, CallPlace] = {}
        for record in self._capture.records(step):
            key = record.key
            if record.recomputed or key.name.startswith(LOADER):
                continue
            if key.phase not in OF_A_CALL:
                self._by_key[key] = record
                continue
            caller = (key.micro, record.within, record.within_call)
            place = caller if key.phase is Phase.INPUT else (key.micro, key.name, key.call)
            call = calls.setdefault(place, ReplayedCall(step, place))
            call.records[key.phase, key.name, key.slot] = record
            if key.phase is Phase.FORWARD:
                parents.setdefault(place, caller)
        self._outermost[step] = deque(_rooted(calls, parents))

    def next_outermost(self, step: int, name: str) -> ReplayedCall | None:
        """The first outermost call of a module that has not been replayed yet, in this step or a later one.

        A forward is recorded in the step of its backward, which may be a later one (a generator's).
        """
        for later in self._steps:
            waiting = self._outermost[later] if later >= step else ()
            for call in waiting:
                if call.place[1] == name:
                    self._outermost[later].remove(call)
                    return call
        return None

    def record(self, key: TensorKey) -> TensorRecord | None:
        """The record of a gradient, a loss, a parameter or an optimizer's state."""
        return self._by_key.get(key)

    def loss_scale(self, step: int) -> float | None:
        """The loss scale of a step; None where there was none."""
        scale = self._scales.get(step, math.nan)
        return scale if math.isfinite(scale) and scale > 0.0 else None

    def values(self, record: TensorRecord) -> torch.Tensor | None:
        """The values of a record on the host; None where this torch has no such dtype."""
        return as_tensor(self._capture.raw_values(record), record.dtype)

    def close(self) -> None:
        """Close the capture."""
        self._capture.close()


def root_order(record: TensorRecord) -> tuple[int, int]:
    """The step and order under which the very same tensor was recorded first."""
    return record.key.step, record.order if record.same_as is None else record.same_as


def _rooted(calls: dict[CallPlace, ReplayedCall], parents: dict[CallPlace, CallPlace]) -> Iterator[ReplayedCall]:
    """Hang every call below its caller, in the order of the records; yield those that the script made."""
    for place, call in calls.items():
        caller = parents.get(place)
        if caller is None:
            continue
        if not caller[1]:
            yield call
        elif caller in calls:
            calls[caller].children[place[1]].append(call)
