"""Watch optimizers: attempts to update, gradients as taken, parameters and states after."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from align.hooks.identity import is_plain
from align.hooks.optimizer_state import OptimizerState
from align.hooks.roots import parameters_of
from align.records import Phase

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder
    from align.hooks.trace import Seen, Sighting


IMPLEMENTATION = ("params", "lr", "initial_lr", "foreach", "fused", "capturable", "differentiable", "param_names")
"""Keys of a parameter group that are no hyper-parameters of the method, or that the timeline follows (lr)."""

MAXIMUM_SETTINGS = 16
"""How many different settings of optimizers are kept: schedules may change any of them at every step."""


def settings_of(optimizer: torch.optim.Optimizer) -> str:
    """An optimizer and the hyper-parameters of its groups: `AdamW(betas=(0.9, 0.999), eps=1e-08, ...)`."""
    groups = []
    for group in optimizer.param_groups:
        chosen = {key: group[key] for key in sorted(group) if key not in IMPLEMENTATION}
        groups.append(", ".join(f"{key}={_plain(value)}" for key, value in chosen.items()))
    return f"{type(optimizer).__name__}({'; '.join(dict.fromkeys(groups))})"


def _plain(value: Any) -> str:
    """A hyper-parameter as text; a tensor on a device is not waited for."""
    if isinstance(value, torch.Tensor):
        return str(value.item()) if value.numel() == 1 and value.device.type == "cpu" else "tensor"
    return repr(value)


class OptimizerWatch:
    """Follows every optimizer's step; `called` says whether one was called since a scaler asked."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._running: list[torch.optim.Optimizer] = []
        self._state = OptimizerState(recorder)
        self.called = False
        self._before_due = False
        self._behind: Any = None
        self._gradient_seen: dict[int, Sighting] = {}
        self._left_over: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        self.updates: dict[int, Sighting] = {}

    # ---- gradients

    def backward_begins(self, parameters: list[torch.Tensor]) -> None:
        """Remember the gradients that lie there: what this backward does not change is none of it."""
        self._left_over = {
            id(parameter): (weakref.ref(gradient), gradient._version)
            for parameter in parameters
            if (gradient := parameter.grad) is not None and not gradient.is_inference()
        }

    def see_gradients(self, parameters: list[torch.Tensor]) -> None:
        """Record the gradients of these parameters that the backward has made or changed."""
        trace = self._recorder.trace
        if not self._recorder.recording or Phase.GRADIENT not in trace.phases:
            return
        for parameter in parameters:
            gradient = parameter.grad
            if gradient is None or self._is_left_over(parameter, gradient):
                continue
            name, slot = self._recorder.owner_of(parameter)
            if self._recorder.wants(name):
                sighting = trace.see(Phase.GRADIENT, name, slot, gradient)
                self._gradient_seen[id(parameter)] = sighting

    def _is_left_over(self, parameter: torch.Tensor, gradient: torch.Tensor) -> bool:
        known = self._left_over.get(id(parameter))
        return known is not None and known[0]() is gradient and known[1] == gradient._version

    def begin_step(self) -> None:
        """A new step: nothing of the step before counts as seen."""
        self._gradient_seen = {}
        self.updates = {}

    # ---- torch.optim.Optimizer

    def before_step(self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Global pre-hook of `Optimizer.step`; wraps a closure, if there is one."""
        if not self._recorder.joins_training():
            return None
        self.called = True
        if any(running is optimizer for running in self._running):
            self._running.clear()  # its last step ended by an exception
        self._running.append(optimizer)
        if len(self._running) > 1:
            return None
        self._recorder.attempt_begins(optimizer)
        self._recorder.guarded(self._recorder.optimizer_seen, optimizer)
        self._before_due = True
        itself, *rest = args  # torch hands its hooks the optimizer as the first argument
        closure = rest[0] if rest else kwargs.get("closure")
        if not callable(closure):
            own = getattr(optimizer, "_optimizer_step_pre_hooks", None)
            if own:
                # They run after ours and may change the gradients: see them behind the last of these.
                self._behind = optimizer.register_step_pre_hook(self._behind_own_hooks)
            else:
                self._recorder.guarded(self._see_update, optimizer)
            return None
        watched = self._watched_closure(closure, optimizer)
        return ((itself, watched, *rest[1:]), kwargs) if rest else (args, {**kwargs, "closure": watched})

    def after_step(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        """Global post-hook of `Optimizer.step`."""
        if not self._recorder.joins_training():
            return
        if self._behind is not None:
            self._behind.remove()
            self._behind = None
        if self._running:
            self._running.pop()
        if not self._running:
            self._recorder.guarded(self.see_after, optimizer)

    def _behind_own_hooks(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        self._recorder.guarded(self._see_update, optimizer)

    def _watched_closure(self, closure: Callable[[], Any], optimizer: torch.optim.Optimizer) -> Callable[[], Any]:
        def watched() -> Any:
            result = closure()
            self._recorder.guarded(self._see_update, optimizer)
            return result

        return watched

    def _see_update(self, optimizer: torch.optim.Optimizer) -> None:
        """Record the gradients as the optimizer takes them: unscaled, reduced, clipped; before it, its state.

        A closure has run by then: its forward belongs to this step, and has closed the one before.
        """
        if self._before_due:
            self._before_due = False
            self._state.see_before(optimizer)
        parameters = list(parameters_of(optimizer))
        in_backward = torch._C._current_graph_task_id() != -1
        self._left_over = {}  # whatever the optimizer takes belongs to its step
        self.see_gradients([p for p in parameters if in_backward or id(p) not in self._gradient_seen])
        trace = self._recorder.trace
        if not self._recorder.recording or Phase.UPDATE not in trace.phases:
            return
        scale = getattr(optimizer, "grad_scale", None)
        for parameter in parameters:
            if parameter.grad is None:
                continue
            name, slot = self._recorder.owner_of(parameter)
            if not self._recorder.wants(name):
                continue
            taken = parameter.grad
            if scale is not None and is_plain(taken):
                taken = taken.float() * scale.to(taken.device).float().reciprocal()
            before = self._unchanged(parameter) if scale is None else None
            self.updates[id(parameter)] = trace.see(Phase.UPDATE, name, slot, taken, shared=False, same=before)

    def _unchanged(self, parameter: torch.Tensor) -> Seen | None:
        """What was recorded of the gradient, if it still has those values.

        Edits through `.data` leave no trace in the version, so on the host the sums are compared; on other devices
        that would wait, so the gradient is measured again.
        """
        gradient = parameter.grad
        before = self._gradient_seen.get(id(parameter))
        if gradient is None or before is None or gradient.device.type != "cpu" or not is_plain(gradient):
            return None
        return before.seen if self._recorder.trace.still_has(gradient, before.seen) else None

    def see_after(self, optimizer: torch.optim.Optimizer) -> None:
        """An attempt is over: record its parameters and its state."""
        recorder = self._recorder
        recorder.attempt_made(optimizer)
        self._state.see_after(optimizer)
        if not recorder.recording or Phase.PARAM not in recorder.trace.phases:
            return
        for parameter in parameters_of(optimizer):
            name, slot = recorder.owner_of(parameter)
            if recorder.wants(name):
                recorder.trace.see(Phase.PARAM, name, slot, parameter, shared=False)
