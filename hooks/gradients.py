"""Watch gradients where they pass autograd's nodes, without a hook on any module or tensor of the user."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch

from align.hooks.graph import Exploration
from align.hooks.trace import Call
from align.records import Phase

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder


class OutputGradient:
    """Runs before the node that made a module's output: the gradient of that output."""

    __slots__ = ("__weakref__", "call", "number", "slot", "total", "watch")

    def __init__(self, watch: GradientWatch, call: Call, slot: str, number: int, *, total: bool = False) -> None:
        self.watch = watch
        self.call = call
        self.slot = slot
        self.number = number
        self.total = total

    def __call__(self, gradients: tuple[torch.Tensor | None, ...]) -> tuple[torch.Tensor | None, ...] | None:
        """Take the gradient of this output from those of the node; returns others where a capture is replayed."""
        gradient = gradients[self.number] if self.number < len(gradients) else None
        if gradient is None:
            return None
        return _exchanged(gradients, self.number, self.watch.arrived(self.call, self.slot, gradient, total=self.total))


class InputGradient:
    """Runs after a node whose edge enters a leaf module's input: one part of the gradient through the module.

    Where several edges enter the same input (x * sigmoid(x)), the parts are added up.
    """

    __slots__ = ("call", "expected", "parts", "slot", "watch")

    def __init__(self, watch: GradientWatch, call: Call, slot: str, expected: int) -> None:
        self.watch = watch
        self.call = call
        self.slot = slot
        self.expected = expected
        self.parts: list[torch.Tensor] = []

    def add(self, part: torch.Tensor) -> torch.Tensor | None:
        """Take one part; report when it was the last. Returns what is to flow on in its place, None for itself."""
        self.parts.append(part)
        if len(self.parts) == self.expected:
            return self.report()
        if len(self.parts) == 1:
            self.watch.unfinished.append(self)
        return None

    def report(self) -> torch.Tensor | None:
        """Record the sum of the parts that came; returns what is to flow on in the place of the last."""
        parts, self.parts = self.parts, []
        if not parts:
            return None
        gradient = parts[0]
        for part in parts[1:]:
            gradient = gradient + part
        instead = self.watch.arrived(self.call, self.slot, gradient)
        if instead is None or len(parts) == 1:
            return instead
        # The other parts are on their way already; where the sum is right to the bit, so is the last part.
        return None if torch.equal(instead, gradient) else parts[-1] + (instead - gradient)


class InputGradientPart:
    """The hook on one such node."""

    __slots__ = ("gradient", "position")

    def __init__(self, gradient: InputGradient, position: int) -> None:
        self.gradient = gradient
        self.position = position

    def __call__(
        self, into_inputs: tuple[torch.Tensor | None, ...], _: tuple[torch.Tensor | None, ...]
    ) -> tuple[torch.Tensor | None, ...] | None:
        """Take the part that flows along our edge; returns others where a capture is replayed."""
        part = into_inputs[self.position] if self.position < len(into_inputs) else None
        if part is None:
            return None
        instead = self.gradient.watch.recorder.guarded(self.gradient.add, part)
        return _exchanged(into_inputs, self.position, instead)


class GradientWatch:
    """Attaches the hooks of one call and records the gradients that come through them."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.unfinished: list[InputGradient] = []

    def attach(
        self,
        call: Call,
        inputs: list[tuple[str, torch.Tensor]],
        outputs: list[tuple[str, torch.Tensor]],
        found: Exploration | None,
    ) -> None:
        """Hook the nodes of one call; `found` only for leaf modules, whose input gradients are recorded."""
        for slot, tensor in outputs:
            self.watch_output(call, "grad_" + slot, tensor)
        if found is None:
            return
        outside = {id(tensor) for _, tensor in outputs}
        for slot, tensor in inputs:
            entries = found.entries.get(slot, [])
            if entries:
                gradient = InputGradient(self, call, "grad_" + slot, len(entries))
                for node, position in entries:
                    node.register_hook(InputGradientPart(gradient, position))
            elif tensor.grad_fn is not None and id(tensor) not in outside:
                hook = OutputGradient(self, call, "grad_" + slot, tensor.output_nr, total=True)
                tensor.grad_fn.register_prehook(hook)

    def watch_output(self, call: Call, slot: str, tensor: torch.Tensor) -> None:
        """Hook the node that made an output; while the hook lives, a backward may still come."""
        hook = OutputGradient(self, call, slot, tensor.output_nr)
        node: Any = tensor.grad_fn
        node.register_prehook(hook)
        call.forward.sentinels.append(weakref.ref(hook))

    def arrived(self, call: Call, slot: str, gradient: torch.Tensor, *, total: bool = False) -> torch.Tensor | None:
        """A gradient came: its forward is part of this step. Returns what is to flow on instead, None for itself."""
        instead: torch.Tensor | None = self.recorder.guarded(self._record, call, slot, gradient, total=total)
        return instead

    def finish(self) -> None:
        """A backward is over: report the input gradients of which only some parts came."""
        unfinished, self.unfinished = self.unfinished, []
        for gradient in unfinished:
            gradient.report()

    def _record(self, call: Call, slot: str, gradient: torch.Tensor, *, total: bool) -> torch.Tensor | None:
        recorder = self.recorder
        if recorder.closed or not recorder.clock.wanted:
            return None
        recorder.trace.reach(call.forward)
        if slot and Phase.BACKWARD in recorder.trace.phases and recorder.wants(call.name):
            return recorder.trace.see(Phase.BACKWARD, call.name, slot, gradient, call=call, total=total).take_instead()
        return None


def _exchanged(
    gradients: tuple[torch.Tensor | None, ...], place: int, instead: torch.Tensor | None
) -> tuple[torch.Tensor | None, ...] | None:
    """The gradients with another one at a place; None, which leaves them as they are, where there is no other."""
    if instead is None:
        return None
    return (*gradients[:place], instead, *gradients[place + 1 :])
