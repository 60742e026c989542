"""Replay another capture: every float tensor, once it has been measured, gets the values that the capture has for it.

Each record of a replay then differs from that of the capture by what its own code made of the same inputs, and by
nothing that came before: the local error.

Forward tensors are overwritten where they lie. Whoever holds the memory sees the same values then, views, containers
and what autograd has saved of it included, and no graph changes: the derivative of a softmax is taken at the captured
probabilities. The version counter stays, since autograd would otherwise take the overwritten tensors for damaged ones.
Where one tensor stands for two records of different values (the captured run has changed it in between, this one has
not) the second gets a tensor of its own. Gradients are never overwritten, since one may be on its way to several
places: the hooks on autograd's nodes hand on another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from align.capture_file import open_capture
from align.hooks.identity import Identities, is_plain
from align.hooks.replay_options import ReplayOptions
from align.hooks.replay_precision import HighPrecision
from align.hooks.replay_source import AGAIN, OF_A_CALL, ReplayedCall, ReplaySource, root_order
from align.records import Phase, TensorKey, TensorRecord

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder
    from align.hooks.trace import Call, Seen

FORCED = frozenset(
    {Phase.INPUT, Phase.FORWARD, Phase.LOSS, Phase.BACKWARD, Phase.GRADIENT, Phase.UPDATE, Phase.PARAM, Phase.OPTIMIZER}
)
"""Phases whose tensors are replaced. Initial values are loaded before; generators belong to their device."""

WITHIN_A_CALL = OF_A_CALL | {Phase.BACKWARD}
OF_A_STEP = frozenset({Phase.UPDATE, Phase.PARAM, Phase.OPTIMIZER})
"""Phases that belong to no micro-step."""

NOT_THERE = "not in the capture"
NO_VALUES = "values not kept"
OTHER_SHAPE = "another shape"
OTHER_DTYPE = "another kind of number"
UNWRITABLE = "sparse, sharded or otherwise not to be written"


@dataclass(frozen=True, slots=True)
class _Forced:
    """Which record a tensor has got the values of, and what had been seen of it before."""

    record: tuple[int, int]
    seen: Seen


class _Replaced(torch.autograd.Function):
    """Other values in the place of a tensor's own; gradients pass through."""

    @staticmethod
    def forward(ctx: Any, own: torch.Tensor, other: torch.Tensor) -> torch.Tensor:  # noqa: ARG004 - torch's signature
        return other.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:  # noqa: ARG004
        return gradients[0], None


class Replay:
    """Puts the values of the capture in the place of those that were just measured.

    `forced` counts the tensors that have been replaced, `left` those that could not be, by the reason.
    """

    def __init__(self, recorder: Recorder, options: ReplayOptions) -> None:
        self._recorder = recorder
        self._source = ReplaySource(open_capture(options.path), range(options.steps))
        self._options = options
        self._calls: dict[Call, ReplayedCall] = {}
        self._known: Identities[_Forced] = Identities()
        self._conflicts: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._arrived: Counter[TensorKey] = Counter()
        self.forced = 0
        self.left: Counter[str] = Counter()
        self.precision = HighPrecision.named(options.precision, recorder.note_trouble)
        self.refused: set[str] = self.precision.refused if self.precision is not None else set()

    # ---- calls

    def call_begins(self, call: Call) -> None:
        """Find the call of the capture that a call of this run stands for."""
        if call.parent is None:
            found = self._source.next_outermost(self._step_of_forward, call.name)
        else:
            parent = self._calls.get(call.parent)
            found = parent.next_child(call.name) if parent is not None else None
        if found is not None:
            self._calls[call] = found

    @property
    def _step_of_forward(self) -> int:
        clock = self._recorder.clock
        return clock.step + int(clock.attempted)

    def step_ended(self) -> None:
        """Nothing of the step before is replayed any more."""
        step = self._recorder.clock.step
        self._calls = {call: found for call, found in self._calls.items() if found.step > step}
        self._arrived.clear()

    # ---- which record

    def record_of(self, phase: Phase, name: str, slot: str, call: Call | None, number: int = 0) -> TensorRecord | None:
        """The record of the capture that a tensor of this run stands for; None where it is not to be replaced."""
        if phase not in FORCED:
            return None
        trace, step = self._recorder.trace, self._recorder.clock.step
        replayed = self._calls.get(call) if call is not None else None
        if phase in WITHIN_A_CALL and replayed is None:
            return None  # of a loader, or of a call that the capture does not have
        found: TensorRecord | None = None
        if phase in OF_A_CALL and replayed is not None:
            found = replayed.records.get((phase, name, slot))
        elif phase is Phase.BACKWARD and replayed is not None:
            key = TensorKey(step, phase, name, slot, trace.micro, replayed.place[2])
            times, self._arrived[key] = self._arrived[key], self._arrived[key] + 1
            found = self._source.record(replace(key, slot=slot + AGAIN * times))
        else:
            micro = 0 if phase in OF_A_STEP else trace.micro
            found = self._source.record(TensorKey(step, phase, name, slot, micro, number))
        if found is None:
            self.left[NOT_THERE] += 1
        return found

    def seen_before(self, record: TensorRecord, tensor: torch.Tensor) -> Seen | None:
        """What is known of a tensor that has the values of this very record already."""
        known = self._known.find(tensor) if is_plain(tensor) else None
        return known.seen if known is not None and known.record == root_order(record) else None

    # ---- forward: where the tensor lies

    def give(self, record: TensorRecord, tensor: torch.Tensor) -> None:
        """Overwrite what a model is given before it is measured: a batch is no result."""
        value = self._value_for(record, tensor)
        if value is not None:
            _overwrite(tensor, value)

    def put(self, record: TensorRecord, tensor: torch.Tensor, seen: Seen) -> bool:
        """Overwrite a tensor that has just been measured; returns whether its values may be others now."""
        value = self._value_for(record, tensor)
        if value is None:
            return False
        known = self._known.find(tensor)
        if known is not None and known.record != root_order(record):
            if not _same_bits(tensor, value):
                self._conflicts[id(tensor)] = (tensor, value)
            return False
        _overwrite(tensor, value)
        self._known.remember(tensor, _Forced(root_order(record), seen))
        return True

    def put_again(self, call: Call, slot: str, tensor: torch.Tensor) -> None:
        """Overwrite what a checkpoint hands to a call that it repeats."""
        replayed = self._calls.get(call)
        record = replayed.records.get((Phase.FORWARD, call.name, slot)) if replayed is not None else None
        value = self._value_for(record, tensor) if record is not None else None
        if value is not None and record is not None and self._known.find(tensor) is None:
            _overwrite(tensor, value)

    def replacements(self) -> Mapping[int, torch.Tensor]:
        """Tensors of their own for those that stand for two records, by identity; empty as a rule."""
        conflicts, self._conflicts = self._conflicts, {}
        found = {}
        for number, (tensor, value) in conflicts.items():
            with torch.set_grad_enabled(tensor.requires_grad):
                found[number] = _Replaced.apply(  # type: ignore[no-untyped-call]
                    tensor, value.to(tensor.device, tensor.dtype)
                )
        return found

    # ---- backward: another tensor

    def gradient(self, record: TensorRecord, gradient: torch.Tensor, seen: Seen) -> torch.Tensor | None:
        """What is to flow on in the place of a gradient that has just been measured; None for itself."""
        value = self._value_for(record, gradient)
        if value is None:
            return None
        known = self._known.find(gradient)
        if known is not None and known.record == root_order(record):
            return None
        other = torch.empty_like(gradient).copy_(value)
        self._known.remember(other, _Forced(root_order(record), seen))
        return other

    # ---- what can be replaced

    def _value_for(self, record: TensorRecord, tensor: torch.Tensor) -> torch.Tensor | None:
        why_not = self._why_not(record, tensor)
        value = None if why_not else self._source.values(record)
        if value is None:
            self.left[why_not or OTHER_DTYPE] += 1
            return None
        self.forced += 1
        return value

    @staticmethod
    def _why_not(record: TensorRecord, tensor: torch.Tensor) -> str:
        if not is_plain(tensor) or tensor.is_inference():
            return UNWRITABLE
        if tuple(tensor.shape) != record.shape:
            return OTHER_SHAPE
        if not record.has_values:
            return NO_VALUES
        there = getattr(torch, record.dtype, None)
        floats = tensor.is_floating_point() and isinstance(there, torch.dtype) and there.is_floating_point
        return "" if floats or there is tensor.dtype else OTHER_DTYPE

    # ---- the rest of the run

    def scale(self, scaler: Any) -> None:
        """Give a gradient scaler the loss scale that the captured step had."""
        wanted = self._source.loss_scale(self._recorder.clock.step)
        if wanted is None or not getattr(scaler, "_enabled", True):
            return
        if getattr(scaler, "_scale", None) is None:
            scaler._init_scale = wanted
        else:
            scaler._scale.fill_(wanted)

    def install(self) -> None:
        """Put the mode that computes in a higher precision below everything that the script does."""
        if self.precision is not None:
            self.precision.install()

    def close(self) -> None:
        """Take the mode away and close the capture."""
        if self.precision is not None:
            self.precision.remove()
            self.precision = None
        self._source.close()

    def forward_begins(self) -> None:
        """From an outermost call on, to the end of its backward, operators compute in the higher precision."""
        if self.precision is not None:
            self.precision.active = True

    def backward_ended(self) -> None:
        """A backward is over: optimizers compute as they do; tensors of now are others than those before."""
        self._known.clear()
        if self.precision is not None:
            self.precision.active = False

    def facts(self) -> dict[str, Any]:
        """What was replayed and how much of it could not be, for the file."""
        facts: dict[str, Any] = {
            "replays": self._options.path,
            "replay_precision": self._options.precision,
            "replaced": self.forced,
        }
        if self.left:
            facts["not_replaced"] = dict(self.left)
        if self.refused:
            facts["replay_refused"] = sorted(self.refused)
        return facts


def _overwrite(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """Write values into a tensor behind autograd's back; an expanded one is written where its memory is."""
    target = tensor.data
    for dimension, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            target, value = target.narrow(dimension, 0, 1), value.narrow(dimension, 0, 1)
    target.copy_(value)


def _same_bits(tensor: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether a tensor has these values, NaN included."""
    own, other = tensor.data, value.to(tensor.device, tensor.dtype)
    return bool(((own == other) | ((own != own) & (other != other))).all())  # noqa: PLR0124 - NaN is not itself
