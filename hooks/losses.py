"""The scalars that backward is called on, and the targets that loss functions are given."""

from __future__ import annotations

import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import torch

from align.hooks.timeline import number_from
from align.records import Phase

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder

LOSS = "loss"
MAXIMUM_REMEMBERED = 32
NODES_SEARCHED = 256


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

    def backward_begins(self, tensors: list[torch.Tensor]) -> None:
        """Record each tensor that a top-level backward was called on, before the loss scale."""
        recorder = self._recorder
        if recorder.recording and Phase.LOSS in recorder.trace.phases:
            self._see_targets(tensors)
        for tensor in tensors:
            value = next((value for reference, value in self._unscaled if reference() is tensor), tensor)
            recorder.timeline.row.losses.append(number_from(value))
            if recorder.recording and Phase.LOSS in recorder.trace.phases:
                sighting = recorder.trace.see(Phase.LOSS, LOSS, "value", value)
                sighting.number = recorder.trace.next_number(LOSS, "value")

    def _see_targets(self, tensors: list[torch.Tensor]) -> None:
        """Record the targets that the loss functions of these losses have kept for their backward."""
        trace = self._recorder.trace
        for target in targets_of(tensors):
            sighting = trace.see(Phase.LOSS, LOSS, "target", target, equal=not target.is_floating_point())
            sighting.number = trace.next_number(LOSS, "target")


def targets_of(losses: list[torch.Tensor]) -> list[torch.Tensor]:
    """The targets that loss functions saved in the graphs of these losses, the last function's first.

    Only what was saved as it is: unpacking a value that the user's saved-tensor hooks have packed (offloading,
    activation checkpointing) would run their code. torch versions that do not tell the two apart give nothing.
    """
    found: list[torch.Tensor] = []
    pending = deque(loss.grad_fn for loss in losses if loss.grad_fn is not None)
    seen: set[Any] = set()
    while pending and len(seen) < NODES_SEARCHED:
        node = pending.popleft()
        if node in seen:
            continue
        seen.add(node)
        saved = getattr(node, "_raw_saved_target", None)
        if saved is not None and getattr(saved, "unpack_hook", saved) is None and not saved.data.requires_grad:
            found.append(saved.data)
        pending.extend(following for following, _ in node.next_functions if following is not None)
    return found
