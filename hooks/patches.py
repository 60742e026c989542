"""Put our wrappers around torch's entry points, and take every one of them away again.

Installed globally, never on a module or tensor of the user, so that saved, pickled and copied models stay
clean.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim import optimizer as optimizers

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder


class Patches:
    """Owns every replaced attribute and every hook handle."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._replaced: list[tuple[Any, str, Any]] = []
        self._handles: list[Any] = []

    def install(self) -> None:
        """Replace torch's entry points by ours."""
        recorder = self._recorder
        self._wrap(nn.Module, "_call_impl", self._module_call)
        self._wrap(torch.autograd, "backward", self._backward)
        self._wrap(optimizers.Optimizer, "__init__", self._optimizer_made)
        self._wrap(torch, "compile", self._compile)
        for scaler in _scaler_classes():
            self._wrap(scaler, "scale", self._scale)
            self._wrap(scaler, "step", self._scaler_step)
        self._handles = [
            optimizers.register_optimizer_step_pre_hook(recorder.optimizers.before_step),
            optimizers.register_optimizer_step_post_hook(recorder.optimizers.after_step),
        ]

    def remove(self) -> None:
        """Put everything back as it was."""
        for owner, name, original in reversed(self._replaced):
            setattr(owner, name, original)
        self._replaced = []
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _wrap(self, owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        original = owner.__dict__[name] if isinstance(owner, type) else getattr(owner, name)
        self._replaced.append((owner, name, original))
        setattr(owner, name, functools.wraps(original)(make(original)))

    def _module_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder
        calls = recorder.calls
        run = calls.run

        def call_impl(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if recorder.closed or calls.unwatched or torch.jit.is_tracing() or not recorder.in_training_thread():
                return original(module, *args, **kwargs)
            return run(original, module, args, kwargs)

        return call_impl

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if recorder.closed or torch._C._current_graph_task_id() != -1 or not recorder.joins_training():
                return original(tensors, *args, **kwargs)
            given = (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors)
            recorder.backward_begins(list(given))
            result = original(given, *args, **kwargs)
            recorder.guarded(recorder.backward_ended)
            return result

        return backward

    def _optimizer_made(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            recorder.guarded(recorder.optimizer_seen, optimizer)

        return init

    def _scale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def scale(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            if recorder.in_training_thread():
                recorder.guarded(recorder.optimizers.scaled, scaler, outputs, result)
            return result

        return scale

    def _scaler_step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder, watch = self._recorder, self._recorder.optimizers

        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if recorder.closed or not recorder.in_training_thread():
                return original(scaler, optimizer, *args, **kwargs)
            return watch.scaler_step(original, scaler, optimizer, *args, **kwargs)

        return step

    def _compile(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def compile_(*args: Any, **kwargs: Any) -> Any:
            recorder.compile_requested()
            # With compilation switched off, no frame is compiled, which fullgraph takes for an error.
            return original(*args, **{**kwargs, "fullgraph": False})

        return compile_


def _scaler_classes() -> list[type]:
    """Every class that defines its own GradScaler methods, in this version of torch and of torch_npu."""
    homes = [getattr(torch.amp, "grad_scaler", None), getattr(torch.cuda.amp, "grad_scaler", None)]
    homes.append(getattr(getattr(torch, "npu", None), "amp", None))
    found: list[type] = []
    for home in homes:
        scaler = getattr(home, "GradScaler", None)
        if isinstance(scaler, type) and {"scale", "step"} <= set(vars(scaler)) and scaler not in found:
            found.append(scaler)
    return found
