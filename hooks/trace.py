"""Keep what was seen until it is known which step it belongs to, then hand the step to the file.

A forward is kept by the first backward that reaches it: only then is its step, its micro-step and the
number of each call known. What no backward reaches (validation, sanity checks) is dropped.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.parameter import is_lazy

from align.capture_file import CaptureWriter
from align.hashing import hash_bytes, row_hashes
from align.hooks.facts import FactLog, Source
from align.hooks.identity import Identities, is_plain
from align.hooks.layout import layout_of
from align.hooks.measure import Measured, Measurements
from align.hooks.odd_tensors import local_of
from align.hooks.options import Options
from align.hooks.values import TensorSource, as_array, dtype_name, repeats_itself
from align.records import INIT_STEP, Detail, Phase, TensorKey, TensorRecord

if TYPE_CHECKING:
    from align.hooks.handed_out import HandedOut
    from align.hooks.replay import Replay
    from align.hooks.roots import Root

AFTER_BACKWARD = (Phase.UPDATE, Phase.PARAM, Phase.OPTIMIZER)
"""Phases that belong to the step as a whole, hence to no micro-step."""

MAXIMUM_RECORDS = 250_000
"""How many records of one step are kept: about 300 MB."""

TOO_MANY = f"A step has more than {MAXIMUM_RECORDS:,} records: the rest of it is not kept"

GRADIENTS = (Phase.BACKWARD, Phase.GRADIENT, Phase.UPDATE)
"""Phases whose 16-bit tensors get exponent counts: where a loss scale is too small shows there."""

SIXTEEN_BITS = (torch.float16, torch.bfloat16)

KEEP_BATCHES = "batches"
"""The word of `Options.keep` for the values of batches."""

RECOMPUTED = ".recomputed"
"""Behind the slot of an output that an activation checkpoint computed again inside the backward."""

MAXIMUM_TEACHER_CALLS = 8
"""How many calls of modules without gradient are held while no backward has come."""


@dataclass(slots=True, eq=False)
class Call:
    """One call of one module; `number` and `micro` are known once its forward is kept."""

    name: str
    parent: Call | None
    forward: Forward
    number: int = 0
    micro: int = 0
    has_graph: bool = False
    recomputed: bool = False
    had_children: bool = False
    training: bool = True
    rates: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Seen:
    """What is known of one tensor's values; shared by all records of the very same tensor."""

    measured: Measured | None
    hash: int | None = None
    rows: NDArray[np.uint64] | None = None
    wants_rows: bool = False
    waiting_copy: torch.Tensor | None = None
    handle: Any = None
    computed: bool = False
    replaced: bool = False


@dataclass(slots=True, eq=False)
class Sighting:
    """One tensor at one point, not yet placed in a step."""

    sequence: int
    phase: Phase
    name: str
    slot: str
    dtype: str
    shape: tuple[int, ...]
    seen: Seen
    call: Call | None = None
    micro: int = 0
    number: int = 0
    total: bool = False
    recomputed: bool = False
    layout: str = ""
    instead: torch.Tensor | None = None

    def take_instead(self) -> torch.Tensor | None:
        """What is to flow on in the place of a gradient; not held any longer."""
        instead, self.instead = self.instead, None
        return instead

    def key(self, step: int) -> TensorKey:
        """The key under which the file knows it."""
        if self.call is not None and self.phase is not Phase.BACKWARD:
            return TensorKey(step, self.phase, self.name, self.slot, self.call.micro, self.call.number)
        number = self.call.number if self.call is not None else self.number
        return TensorKey(step, self.phase, self.name, self.slot, self.micro, number)


@dataclass(slots=True, eq=False)
class Forward:
    """One outermost call of a root and all that happened in it."""

    root: Root | None = None
    teacher: bool = False
    after_attempt: bool = False
    calls: list[Call] = field(default_factory=list)
    batches: list[HandedOut] = field(default_factory=list)
    facts: list[tuple[Phase, str, str, Source]] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)
    sentinels: list[weakref.ref[Any]] = field(default_factory=list)
    born: int = 0
    reached: bool = False
    numbered: bool = False

    @property
    def alive(self) -> bool:
        """Whether a backward could still come through its graph."""
        return any(sentinel() is not None for sentinel in self.sentinels)


class Trace:
    """The sightings of the current step and of the forwards that no backward has reached yet."""

    def __init__(self, writer: CaptureWriter, options: Options, facts: FactLog, trouble: Callable[[str], None]) -> None:
        self.writer = writer
        self._trouble = trouble
        self.options = options
        self.detail = options.detail
        self.phases = frozenset(options.phases)
        self.facts = facts
        self.measurements = Measurements(with_sketch=self.detail is not Detail.STATS)
        self.pending: list[Forward] = []
        self.reached: list[Forward] = []
        self.micro = 0
        self.records_written = 0
        self._kept: list[Sighting] = []
        self._reached_records = 0
        self._told_too_many = False
        self._identities: Identities[Seen] = Identities()
        self.replay: Replay | None = None
        self._sequence = 0
        self._numbers: Counter[tuple[str, str]] = Counter()

    # ---- seeing

    def see(  # noqa: PLR0913  what, where, and how it is to be known
        self,
        phase: Phase,
        name: str,
        slot: str,
        tensor: torch.Tensor,
        *,
        call: Call | None = None,
        equal: bool = False,
        shared: bool = True,
        total: bool = False,
        recomputed: bool = False,
        keep: bool = False,
        rows: bool = False,
        same: Seen | None = None,
        aside: bool = False,
    ) -> Sighting:
        """Record a tensor as it is now.

        `equal` adds the hash, `shared` lets it refer to an earlier record of the very same tensor, `same` is what is
        known of these very values already, `keep` keeps the values whatever the detail, `rows` adds one hash for each
        `tensor[i]`, `aside` leaves it to the caller to place the sighting.
        """
        layout, tensor = layout_of(tensor), local_of(tensor)
        exponents = self.options.exponents or (phase in GRADIENTS and tensor.dtype in SIXTEEN_BITS)
        equal = equal or rows or not tensor.is_floating_point()
        record = self._replayed(phase, name, slot, call)
        if record is not None and self.replay is not None:
            same = same or self.replay.seen_before(record, tensor)
            if phase is Phase.INPUT:
                self.replay.give(record, tensor)
        seen = same or self._seen(tensor, equal=equal, shared=shared, exponents=exponents, rows=rows)
        if keep and seen.measured is not None and seen.handle is None and is_plain(tensor):
            self._keep_values(seen, tensor)
        seen.computed = seen.computed or slot.startswith("output")
        sighting = self._sighting(phase, name, slot, tensor, seen)
        sighting.layout = layout
        sighting.call, sighting.total, sighting.recomputed = call, total, recomputed
        if record is not None:
            self._replace(sighting, record, tensor)
        if phase in AFTER_BACKWARD:
            sighting.micro = 0
        if aside:
            return sighting
        if call is not None and phase is not Phase.BACKWARD and not call.forward.numbered:
            call.forward.sightings.append(sighting)
        elif len(self._kept) < MAXIMUM_RECORDS:
            self._kept.append(sighting)
        else:
            self._tell_too_many()
        return sighting

    def _replayed(self, phase: Phase, name: str, slot: str, call: Call | None) -> TensorRecord | None:
        """The record of a replayed capture that a tensor stands for."""
        if self.replay is None:
            return None
        number = self._numbers[name, slot] if phase is Phase.LOSS else 0
        return self.replay.record_of(phase, name, slot.removesuffix(RECOMPUTED), call, number)

    def _replace(self, sighting: Sighting, record: TensorRecord, tensor: torch.Tensor) -> None:
        """Give a tensor the values of the replayed capture; those of a gradient flow on in another tensor."""
        if self.replay is None:
            return
        if sighting.phase is Phase.BACKWARD:
            sighting.instead = self.replay.gradient(record, tensor, sighting.seen)
        elif self.replay.put(record, tensor, sighting.seen):
            self._identities.remember(tensor, Seen(None, computed=sighting.seen.computed, replaced=True))

    def initial(self, name: str, slot: str, tensor: torch.Tensor, *, keep: bool) -> Sighting:
        """A parameter or buffer before step 0, hashed at once so that no copy of it waits on the device."""
        layout, tensor = layout_of(tensor), local_of(tensor)
        plain = is_plain(tensor)
        seen = self._new_seen(tensor, plain=plain)
        if plain:
            seen.hash = hash_bytes(as_array(tensor))
        if keep and plain and seen.handle is None:
            self._keep_values(seen, tensor)
        sighting = self._sighting(Phase.INIT, name, slot, tensor, seen)
        sighting.layout = layout
        return sighting

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether this very tensor was seen before in this step."""
        return is_plain(tensor) and self._identities.find(tensor) is not None

    def computed(self, tensor: torch.Tensor) -> bool:
        """Whether this very tensor came out of a module in this step."""
        known = self._identities.find(tensor) if is_plain(tensor) else None
        return known is not None and known.computed

    def take_back(self, sightings: list[Sighting]) -> None:
        """These were no part of the step after all."""
        gone = {id(sighting) for sighting in sightings}
        self._kept = [sighting for sighting in self._kept if id(sighting) not in gone]
        for sighting in sightings:
            self._numbers[sighting.name, sighting.slot] = max(0, self._numbers[sighting.name, sighting.slot] - 1)

    def next_number(self, name: str, slot: str) -> int:
        """Count the sightings of one name and slot within a micro-step."""
        number = self._numbers[name, slot]
        self._numbers[name, slot] += 1
        return number

    def _seen(
        self, tensor: torch.Tensor, *, equal: bool, shared: bool, exponents: bool = False, rows: bool = False
    ) -> Seen:
        if not is_plain(tensor):
            return self._new_seen(tensor, plain=False)
        known = self._identities.find(tensor) if shared else None
        if known is None or known.replaced or not self.still_has(tensor, known):
            before, known = known, self._new_seen(tensor, exponents=exponents)
            known.computed = before is not None and before.replaced and before.computed
            if shared:
                self._identities.remember(tensor, known)
        known.wants_rows = known.wants_rows or (rows and tensor.dim() > 0)
        if equal and (known.hash is None or known.wants_rows) and known.waiting_copy is None:
            if tensor.device.type == "cpu":
                _hash(known, tensor)
            else:
                known.waiting_copy = tensor.detach().clone()
        return known

    def still_has(self, tensor: torch.Tensor, seen: Seen) -> bool:
        """Whether a tensor on the host still has the values that were seen.

        Edits through `.data` or numpy leave no trace in its version. On other devices looking would wait.
        """
        if tensor.device.type != "cpu" or seen.measured is None or seen.measured.stats is None:
            return True
        if seen.hash is not None:
            return seen.hash == hash_bytes(as_array(tensor))
        return self.measurements.still_has(tensor, seen.measured)

    def _new_seen(self, tensor: torch.Tensor, *, exponents: bool = False, plain: bool = True) -> Seen:
        try:
            seen = Seen(self.measurements.measure(tensor, exponents=exponents))
        except (RuntimeError, NotImplementedError, TypeError) as error:
            # A kind of tensor that we do not know: what is known of it is kept, and that there was trouble.
            self._trouble(f"Cannot measure a {dtype_name(tensor.dtype)} tensor: {error}")
            return Seen(None)
        if self.detail is Detail.TENSORS and plain:
            self._keep_values(seen, tensor)
        return seen

    def _keep_values(self, seen: Seen, tensor: torch.Tensor) -> None:
        try:
            if repeats_itself(tensor):
                shape = list(tensor.shape)
                self._trouble(f"The values of an expanded {dtype_name(tensor.dtype)} tensor of {shape} are not kept")
                return
            seen.handle = self.writer.keep(TensorSource(tensor))
        except (RuntimeError, NotImplementedError, TypeError) as error:
            self._trouble(f"Cannot keep the values of a {dtype_name(tensor.dtype)} tensor: {error}")

    def _sighting(self, phase: Phase, name: str, slot: str, tensor: torch.Tensor, seen: Seen) -> Sighting:
        self._sequence += 1
        shape = () if is_lazy(tensor) or tensor.is_nested else tuple(int(size) for size in tensor.shape)
        dtype = dtype_name(tensor.dtype)
        return Sighting(self._sequence, phase, name, slot, dtype, shape, seen, micro=self.micro)

    # ---- keeping

    def begin(self, forward: Forward) -> None:
        """Hold a new forward; forget those whose graph is gone."""
        self.pending = [held for held in self.pending if held.teacher or held.alive]
        teachers = [held for held in self.pending if held.teacher]
        for surplus in teachers[: max(0, len(teachers) + forward.teacher - MAXIMUM_TEACHER_CALLS)]:
            self.pending.remove(surplus)
        forward.born = self._sequence
        self.pending.append(forward)

    def reach(self, forward: Forward) -> None:
        """A backward came through this forward: it belongs to the step and micro-step of now."""
        if forward.reached:
            return
        forward.reached = True
        if forward.root is not None:
            forward.root.kept = True
        self._reached_records += len(forward.sightings)
        if self._reached_records > MAXIMUM_RECORDS:
            # A script that takes gradients without ever updating: what it does is one step without an end.
            self._tell_too_many()
            forward.calls, forward.sightings = [], []
        else:
            self.reached.append(forward)
        if forward in self.pending:
            self.pending.remove(forward)

    def end_backward(self) -> None:
        """A top-level backward is over: teachers called before it are kept, the next micro-step begins."""
        for forward in [held for held in self.pending if held.teacher]:
            self.reach(forward)
        self._number_calls()
        self.micro += 1
        self._numbers.clear()
        self._identities.clear()
        self._limit()

    def _number_calls(self) -> None:
        """Number the calls of the forwards that were reached since the last time, in the order they were made."""
        counts: Counter[str] = Counter()
        fresh = [forward for forward in self.reached if not forward.numbered]
        for forward in sorted(fresh, key=lambda forward: forward.born):
            forward.numbered = True
            for call in forward.calls:
                call.micro, call.number = self.micro, counts[call.name]
                counts[call.name] += 1
            self._note_modes(forward)
            self._place_batches(forward)
            self._kept.extend(forward.sightings)
            forward.sightings = []

    def _place_batches(self, forward: Forward) -> None:
        """The batches that were handed out for this forward, and what is known of its inputs."""
        if not forward.calls:
            return
        outermost = forward.calls[0]
        positions: Counter[str] = Counter()
        for batch in forward.batches:
            if not batch.placed:
                self._kept.extend(batch.place(outermost, self.facts, positions[batch.name]))
                positions[batch.name] += 1
        for phase, name, slot, value in forward.facts:
            self.facts.note(phase, name, slot, value, micro=outermost.micro, call=outermost.number)
        forward.batches, forward.facts = [], []

    def _note_modes(self, forward: Forward) -> None:
        """Whether the root was in training mode, modules whose mode is another one, and rates that have changed."""
        if Phase.FORWARD not in self.phases or not forward.calls:
            return
        outermost = forward.calls[0]
        for call in forward.calls:
            if call.name and (call is outermost or call.training != outermost.training):
                self.facts.note(Phase.FORWARD, call.name, "training", call.training, micro=call.micro, call=call.number)
            for attribute, rate in call.rates.items():
                self.facts.note(Phase.FORWARD, call.name, attribute, rate, micro=call.micro, call=call.number)

    def _limit(self) -> None:
        """A step that never ends (backward after backward, no update) must not fill the memory."""
        if len(self._kept) > MAXIMUM_RECORDS:
            del self._kept[MAXIMUM_RECORDS:]
            self._tell_too_many()

    def _tell_too_many(self) -> None:
        if not self._told_too_many:
            self._told_too_many = True
            self._trouble(TOO_MANY)

    # ---- writing

    def commit(self, step: int) -> None:
        """Write the step's records in execution order and begin the next step."""
        self._number_calls()
        kept = sorted(self._kept, key=lambda sighting: sighting.sequence)
        self.forget()
        self.write(step, kept)

    def write(self, step: int, sightings: list[Sighting]) -> None:
        """Write these sightings, given in execution order, as one step."""
        self.measurements.fetch()
        records: list[TensorRecord] = []
        values: dict[int, Any] = {}
        first_of: dict[int, int] = {}
        taken: set[TensorKey] = set()
        for order, sighting in enumerate(sightings):
            seen = sighting.seen
            if seen.waiting_copy is not None:
                _hash(seen, seen.waiting_copy)
                seen.waiting_copy = None
            key = _free_key(sighting.key(step), taken)
            taken.add(key)
            same_as = first_of.setdefault(id(seen), order) if seen.measured is not None else order
            if same_as == order and seen.handle is not None:
                values[order] = seen.handle
            records.append(_record(sighting, key, order, same_as if same_as < order else None))
        facts = [] if step == INIT_STEP else self.facts.take(step)
        self.writer.commit(step, records, values, facts)
        self.records_written += len(records)

    def forget(self) -> None:
        """Begin a new step: drop what was kept, hold on to the forwards that may still be reached."""
        self._kept = []
        self.reached = []
        self._reached_records = 0
        self._told_too_many = False
        self.pending = [held for held in self.pending if held.alive or (held.teacher and held.after_attempt)]
        for held in self.pending:
            held.after_attempt = False
        self._identities.clear()
        self._numbers.clear()
        self.micro = 0


def _record(sighting: Sighting, key: TensorKey, order: int, same_as: int | None) -> TensorRecord:
    measured = sighting.seen.measured or Measured()
    parent = sighting.call.parent if sighting.call is not None and sighting.phase is not Phase.INPUT else sighting.call
    return TensorRecord(
        key=key, order=order, dtype=sighting.dtype, shape=sighting.shape, stats=measured.stats,
        hash=sighting.seen.hash, sketch=measured.sketch, resolution=measured.resolution, same_as=same_as,
        within=parent.name if parent else "", within_call=parent.number if parent else 0,
        total=sighting.total, recomputed=sighting.recomputed, layout=sighting.layout,
        has_values=sighting.seen.handle is not None, row_hashes=sighting.seen.rows, exponents=measured.exponents,
    )  # fmt: skip


def _hash(seen: Seen, tensor: torch.Tensor) -> None:
    """Hash the values, and each row where that was asked for."""
    array = as_array(tensor)
    if seen.hash is None:
        seen.hash = hash_bytes(array)
    if seen.wants_rows and seen.rows is None and array.ndim:
        seen.rows = row_hashes(array)


def _free_key(key: TensorKey, taken: set[TensorKey]) -> TensorKey:
    """The key, or one that is free: a second backward through one call, a second closure of one step."""
    while key in taken:
        if key.phase is Phase.BACKWARD:
            key = replace(key, slot=f"{key.slot}.again")
        else:
            key = replace(key, call=key.call + 1)
    return key
