"""The scalars that backward is called on, and the targets that loss functions are given."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch

from align.hooks.timeline import number_from
from align.hooks.trace import Call, Forward
from align.records import Phase

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder

LOSS = "loss"
TARGET_POSITION = 1
MAXIMUM_REMEMBERED = 32


class LossWatch:
    """Sees losses before their scale, and targets."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._unscaled: list[tuple[weakref.ref[torch.Tensor], torch.Tensor]] = []

    def remember(self, scaled: torch.Tensor, unscaled: torch.Tensor) -> None:
        """A scaler made `scaled` of `unscaled`; the value is kept, not the graph."""
        alive = [(reference, value) for reference, value in self._unscaled if reference() is not None]
        value = unscaled.detach().clone() if unscaled.numel() == 1 else unscaled.detach()
        self._unscaled = [*alive[-MAXIMUM_REMEMBERED:], (weakref.ref(scaled), value)]

    def backward_begins(self, tensors: Any) -> None:
        """Record each tensor that a top-level backward was called on, before the loss scale."""
        recorder = self._recorder
        for tensor in [tensors] if isinstance(tensors, torch.Tensor) else list(tensors):
            value = next((value for reference, value in self._unscaled if reference() is tensor), tensor)
            recorder.timeline.row.losses.append(number_from(value))
            if recorder.recording and Phase.LOSS in recorder.trace.phases:
                sighting = recorder.trace.see(Phase.LOSS, LOSS, "value", value)
                sighting.number = recorder.trace.next_number(LOSS, "value")

    def function_returned(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """A torch loss function ran: record its targets with the forward that its graph belongs to."""
        recorder = self._recorder
        target = args[TARGET_POSITION] if len(args) > TARGET_POSITION else kwargs.get("target")
        if not isinstance(target, torch.Tensor) or not isinstance(result, torch.Tensor) or result.grad_fn is None:
            return
        if not recorder.clock.next_forward_wanted or Phase.LOSS not in recorder.trace.phases or target.requires_grad:
            return
        stack = recorder.calls.stack
        inner = recorder.calls.innermost
        if inner is not None:
            call = Call(LOSS, inner, inner.forward)
            call.forward.calls.append(call)
        elif stack:
            return
        else:
            forward = Forward(after_attempt=recorder.clock.attempted)
            recorder.trace.begin(forward)
            call = Call(LOSS, None, forward)
            forward.calls.append(call)
            recorder.gradients.watch_output(call, "", result)
        recorder.trace.see(Phase.LOSS, LOSS, "target", target, call=call, equal=not target.is_floating_point())
