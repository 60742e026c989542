"""What the records of a whole step tell of one record: a comparison reads files, so it may look ahead.

The norms of the gradients around a module say how steep it is, which its forward alone does not.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from align.pairing import Pair
from align.records import Owner, Phase, TensorRecord
from align.tolerance import is_float

CallKey = tuple[int, str, int]
"""Micro, module and number of the call; the script is the module without a name."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """An index of the reference's records of one step.

    `norms` are those of the gradients, by call and slot, without gradients that hold other consumers' parts.
    `handed` are the tensors that a call hands to its children, `hashes` the integer ones among them. `containers`
    are the calls of which a tensor is the gradient of the output. `passed_on` is the norm of a parameter's gradient as
    the optimizer takes it over that after backward, the median of all: what undoing a loss scale and clipping leave.
    `others` are the candidate's tensors by the order of the reference's records. `outputs` are those of the forward, by
    call and slot; `made` is the order of the last tensor that the code of a call made for a child, `used` are the
    tensors that a child did something with.
    """

    norms: Mapping[tuple[CallKey, str], float] = field(default_factory=dict)
    handed: frozenset[tuple[CallKey, int]] = frozenset()
    hashes: frozenset[tuple[CallKey, int]] = frozenset()
    containers: Mapping[tuple[CallKey, int], TensorRecord] = field(default_factory=dict)
    passed_on: float = 1.0
    others: Mapping[int, int] = field(default_factory=dict)
    outputs: Mapping[tuple[CallKey, str], TensorRecord] = field(default_factory=dict)
    made: Mapping[CallKey, int] = field(default_factory=dict)
    used: frozenset[tuple[CallKey, int]] = frozenset()

    def gradient(self, record: TensorRecord) -> float | None:
        """The norm of the gradient of a forward tensor at this module, None where it was not captured."""
        return self.norms.get((call_of(record), f"grad_{record.key.slot}"))

    def slope(self, source: TensorRecord, result: TensorRecord) -> float | None:
        """How steeply a result answers to its source, from the gradients of both; None where it is not known."""
        before, after = self.gradient(source), self.gradient(result)
        return before / after if before is not None and after else None

    def hands_on(self, record: TensorRecord) -> bool:
        """Whether the code that an output belongs to hands the very same tensor to another child."""
        return (caller_of(record), tensor_of(record)) in self.handed

    def outermost(self, record: TensorRecord) -> TensorRecord:
        """The same gradient at the outermost module that ends in this one: its caller's code made it."""
        for around in self._holders(record):
            record = around
        return record

    def users(self, record: TensorRecord) -> tuple[str, ...]:
        """The modules (an empty name: the script) whose code can have made the gradient of an output, innermost first.

        The code around the outermost module that returns the output is the last. A module that returns it can use it
        itself, too: it hands it to a child, or makes another tensor once it has it. What it makes that of is not known.
        """
        found = []
        output = self._output(record)
        if output is not None and output.same_as is None and (call_of(record), output.order) in self.used:
            found.append(record.key.name)
        for around in self._holders(record):
            output = self._output(record)
            if output is not None and self._goes_on(caller_of(record), output):
                found.append(record.within)
            record = around
        return (*found, record.within)

    def _holders(self, record: TensorRecord) -> Iterator[TensorRecord]:
        """The same gradient at the module around, and so on outwards."""
        for _ in range(len(self.containers)):
            around = self.containers.get((caller_of(record), tensor_of(record)))
            if around is None or self.others.get(around.order) != self.others.get(record.order):
                return  # in the candidate the caller's code has changed it
            yield around
            record = around

    def _output(self, gradient: TensorRecord) -> TensorRecord | None:
        return self.outputs.get((call_of(gradient), gradient.key.slot.removeprefix("grad_")))

    def _goes_on(self, code: CallKey, output: TensorRecord) -> bool:
        """Whether the code of a call does something after a child gave it this output."""
        return (code, tensor_of(output)) in self.used or self.made.get(code, -1) > output.order


def look_ahead(pairs: Iterable[Pair]) -> Ahead:
    """Index the records of one step."""
    norms: dict[tuple[CallKey, str], float] = {}
    containers: dict[tuple[CallKey, int], TensorRecord] = {}
    others: dict[int, int] = {}
    forward = _Forward()
    taken: dict[Phase, dict[Owner, float]] = {Phase.GRADIENT: {}, Phase.UPDATE: {}}
    for pair in pairs:
        record = pair.reference
        if record.key.phase is Phase.BACKWARD:
            if record.stats is not None and not record.total:
                norms[(call_of(record), record.key.slot)] = record.stats.norm
            if record.key.slot.startswith("grad_output"):
                others[record.order] = tensor_of(pair.candidate)
                if record.same_as is not None:
                    containers[(call_of(record), record.same_as)] = record
        elif record.key.phase in taken:
            if record.stats is not None:
                taken[record.key.phase][record.key.owner] = record.stats.norm
        elif record.key.phase is Phase.FORWARD:
            forward.add(record)
    passed_on = _passed_on(taken[Phase.GRADIENT], taken[Phase.UPDATE])
    return Ahead(
        norms,
        frozenset(forward.handed),
        frozenset(forward.hashes),
        containers,
        passed_on,
        others,
        forward.outputs,
        forward.made,
        forward.used,
    )


@dataclass(frozen=True, slots=True)
class _Forward:
    """What is gathered of a forward pass."""

    handed: set[tuple[CallKey, int]] = field(default_factory=set)
    hashes: set[tuple[CallKey, int]] = field(default_factory=set)
    outputs: dict[tuple[CallKey, str], TensorRecord] = field(default_factory=dict)
    made: dict[CallKey, int] = field(default_factory=dict)

    takers: dict[tuple[CallKey, int], set[CallKey]] = field(default_factory=dict)
    passed: set[tuple[CallKey, int]] = field(default_factory=set)

    def add(self, record: TensorRecord) -> None:
        """Take a record, in execution order."""
        code, call = caller_of(record), call_of(record)
        if record.key.slot.startswith("input"):
            self.handed.add((code, tensor_of(record)))
            self.takers.setdefault((code, tensor_of(record)), set()).add(call)
            if record.hash is not None:
                self.hashes.add((code, record.hash))
            if record.same_as is None and is_float(record.dtype):
                self.made[code] = record.order
        else:
            self.outputs[call, record.key.slot] = record
            self.passed.add((call, tensor_of(record)))

    @property
    def used(self) -> frozenset[tuple[CallKey, int]]:
        """The tensors that a child did something with: a dropout that drops nothing hands back what it was given."""
        return frozenset(
            (code, tensor)
            for (code, tensor), calls in self.takers.items()
            if any((call, tensor) not in self.passed for call in calls)
        )


def _passed_on(gradients: Mapping[Owner, float], updates: Mapping[Owner, float]) -> float:
    shares = [norm / gradients[owner] for owner, norm in updates.items() if gradients.get(owner, 0.0) > 0.0]
    return statistics.median(shares) if shares else 1.0


def call_of(record: TensorRecord) -> CallKey:
    """The call that a record belongs to."""
    return (record.key.micro, record.key.name, record.key.call)


def caller_of(record: TensorRecord) -> CallKey:
    """The call whose code made the record."""
    return (record.key.micro, record.within, record.within_call if record.within else 0)


def tensor_of(record: TensorRecord) -> int:
    """The order under which the very same tensor was seen first."""
    return record.order if record.same_as is None else record.same_as
