"""One batch that was handed out, from then on until its step is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from align.hashing import hash_bytes
from align.hooks.batch_source import BATCH_SLOT, CALL_SLOT, BatchSource
from align.hooks.values import as_array
from align.records import Phase

if TYPE_CHECKING:
    from align.hooks.facts import FactLog
    from align.hooks.trace import Call, Seen, Sighting


@dataclass(slots=True, eq=False)
class HandedOut:
    """One batch of a loader as it was measured.

    `offered` says that a forward came after it, `placed` that it has its step, `noted` that the file shall say which
    batch it is. `source` is where it was to be taken from, if anywhere, `why_not` why it was not.
    """

    name: str
    ordinal: int
    sightings: list[Sighting]
    offered: bool = False
    placed: bool = False
    noted: bool = True
    source: BatchSource | None = None
    why_not: str = ""

    def place(self, call: Call, facts: FactLog, position: int) -> list[Sighting]:
        """It belongs to this outermost call, as the `position`-th batch of its loader; returns its records."""
        self.placed = True
        for sighting in self.sightings:
            sighting.call = call
        if self.noted:
            facts.note(Phase.INPUT, self.name, BATCH_SLOT, self.ordinal, micro=call.micro, call=call.number + position)
        self.count()
        return self.sightings

    def count(self) -> None:
        """It belongs to a captured step: whether it was taken counts."""
        if self.source is not None:
            self.source.count(self.why_not)

    def is_among(self, hashes: set[int]) -> bool:
        """Whether its largest tensor is one of these."""
        largest = max(self.sightings, key=lambda sighting: math.prod(sighting.shape), default=None)
        return largest is not None and hash_of(largest.seen) in hashes

    def likeness(self, hashes: set[int]) -> int:
        """How many of its tensors are among these."""
        return sum(hash_of(sighting.seen) in hashes for sighting in self.sightings)


@dataclass(slots=True, eq=False)
class Given(HandedOut):
    """What one outermost call was given, in the place of a batch: `name` is the module's, `ordinal` counts calls."""

    def place(self, call: Call, facts: FactLog, position: int) -> list[Sighting]:  # noqa: ARG002  there is one
        """Its forward has its step: the file says which call of its module it was."""
        self.placed = True
        if self.noted:
            which = f"{self.name} {self.ordinal}"
            facts.note(Phase.INPUT, call.name, CALL_SLOT, which, micro=call.micro, call=call.number)
        self.count()
        return []


def hash_of(seen: Seen) -> int | None:
    """The hash of what was seen; the copy of a device's tensor that waits for it is hashed now."""
    if seen.hash is None and seen.waiting_copy is not None:
        seen.hash = hash_bytes(as_array(seen.waiting_copy))
    return seen.hash
