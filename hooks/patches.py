"""Put our wrappers around torch's entry points, and take every one of them away again.

Installed globally, never on a module or tensor of the user, so that saved, pickled and copied models stay
clean.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.utils import clip_grad, stateless
from torch.optim import optimizer as optimizers
from torch.utils import checkpoint
from torch.utils.data import dataloader

from align.hooks.batches import fetched_ahead
from align.hooks.quiet import transformed
from align.hooks.replacements import Replacements

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder


class Patches:
    """Owns every replaced attribute and every hook handle."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._replaced = Replacements()
        self._handles: list[Any] = []

    def install(self) -> None:
        """Replace torch's entry points by ours."""
        recorder = self._recorder
        self._wrap(nn.Module, "_call_impl", self._module_call)
        self._wrap(stateless, "_functional_call", self._functional_call)
        self._wrap(torch.autograd, "backward", self._backward)
        self._wrap(optimizers.Optimizer, "__init__", self._optimizer_made)
        self._wrap(torch, "compile", self._compile)
        self._wrap(nn.Module, "load_state_dict", self._load_state_dict)
        self._shadow(checkpoint.CheckpointFunction, "apply", self._checkpoint_apply)
        if hasattr(checkpoint, "_checkpoint_without_reentrant_generator"):
            self._wrap(checkpoint, "_checkpoint_without_reentrant_generator", self._checkpoint_generator)
        self._wrap(dataloader._BaseDataLoaderIter, "__init__", self._loader_begun)
        self._wrap(dataloader._BaseDataLoaderIter, "__next__", self._loader_next)
        for scaler in _scaler_classes():
            self._wrap(scaler, "scale", self._scale)
            self._wrap(scaler, "step", self._scaler_step)
            self._wrap(scaler, "update", self._scaler_update)
        if hasattr(clip_grad, "_clip_grads_with_norm_"):
            # Inside clip_grad_norm_, which many modules have imported by name.
            self._wrap(clip_grad, "_get_total_norm", self._total_norm)
            self._wrap(clip_grad, "_clip_grads_with_norm_", self._clip_with_norm)
            for public in ("get_total_norm", "clip_grads_with_norm_"):
                if hasattr(nn.utils, public):
                    self._replaced.put(nn.utils, public, getattr(clip_grad, f"_{public}"))
        else:
            self._wrap_both(clip_grad, nn.utils, "clip_grad_norm_", self._clip_norm)
        self._wrap_both(clip_grad, nn.utils, "clip_grad_value_", self._clip_value)
        self._handles = [
            optimizers.register_optimizer_step_pre_hook(recorder.optimizers.before_step),
            optimizers.register_optimizer_step_post_hook(recorder.optimizers.after_step),
        ]

    def remove(self) -> None:
        """Put everything back as it was."""
        self._replaced.put_back()
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _wrap(self, owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        self._replace(owner, name, lambda original: functools.wraps(original)(make(original)))

    def _replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = owner.__dict__[name] if isinstance(owner, type) else getattr(owner, name)
        self._replaced.put(owner, name, make(original))

    def _shadow(self, owner: type, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Put our own before a method that a class inherits."""
        self._replaced.put(owner, name, staticmethod(make(getattr(owner, name))))

    def _wrap_both(self, home: Any, package: Any, name: str, make: Callable[..., Callable[..., Any]]) -> None:
        """Replace a function where it is defined and where its package offers it, by one wrapper."""
        self._wrap(home, name, make)
        self._replaced.put(package, name, getattr(home, name))

    def _module_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder
        calls = recorder.calls
        run = calls.run

        def call_impl(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if recorder.closed or calls.unwatched or not recorder.in_training_thread() or transformed():
                return original(module, *args, **kwargs)
            return run(original, module, args, kwargs)

        return call_impl

    def _functional_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def functional_call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if recorder.closed or not recorder.in_training_thread() or transformed():
                return original(module, *args, **kwargs)
            with recorder.calls.swapped(module):
                return original(module, *args, **kwargs)

        return functional_call

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if recorder.closed or torch._C._current_graph_task_id() != -1 or not recorder.joins_training():
                return original(tensors, *args, **kwargs)
            given = (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors)
            recorder.backward_begins(list(given))
            try:
                result = original(given, *args, **kwargs)
            except BaseException as error:
                recorder.guarded(recorder.losses.take_back)
                recorder.start.explain(error)
                raise
            finally:
                recorder.thread.in_backward = False
            recorder.guarded(recorder.backward_ended)
            return result

        return backward

    def _optimizer_made(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            recorder.guarded(recorder.optimizer_seen, optimizer)
            if not recorder.closed and "torch_npu" in sys.modules:
                self._watch_updates(type(optimizer))

        return init

    def _load_state_dict(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def load_state_dict(module: nn.Module, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
            answer = original(module, state_dict, *args, **kwargs)
            if not recorder.closed and recorder.in_training_thread():
                recorder.guarded(recorder.loads.loaded, module, state_dict, answer)
            return answer

        return load_state_dict

    def _watch_updates(self, kind: type) -> None:
        """Wrap the method that torch has wrapped for its own hooks, where it is defined; once for each class."""
        owner = next((base for base in kind.__mro__ if "step" in vars(base)), None)
        if owner is not None and not self._replaced.has(owner, "step"):
            self._wrap(owner, "step", self._update)

    def _update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            # A closure is the script's own code, and watched by its own module calls.
            wanted = recorder.recording and not args and kwargs.get("closure") is None
            with recorder.fallbacks.watching(wanted=wanted and recorder.in_training_thread()):
                return original(optimizer, *args, **kwargs)

        return step

    def _loader_begun(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def init(iterator: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            original(iterator, loader, *args, **kwargs)
            recorder.guarded(recorder.batches.begun, iterator, loader)

        return init

    def _loader_next(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def next_(iterator: Any) -> Any:
            if recorder.closed:
                return original(iterator)
            try:
                data = original(iterator)
            except StopIteration:
                recorder.guarded(recorder.batches.ended, iterator)
                raise
            ahead = fetched_ahead(sys._getframe(1))
            given = recorder.guarded(recorder.batches.handed_out, iterator, data, ahead=ahead)
            return data if given is None else given[0]

        return next_

    def _scale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def scale(scaler: Any, outputs: Any) -> Any:
            if recorder.replay is not None:
                recorder.guarded(recorder.replay.scale, scaler)
            result = original(scaler, outputs)
            if recorder.in_training_thread():
                recorder.guarded(recorder.scalers.scaled, scaler, outputs, result)
            return result

        return scale

    def _scaler_update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def update(scaler: Any, *args: Any, **kwargs: Any) -> None:
            original(scaler, *args, **kwargs)
            if recorder.in_training_thread():
                recorder.guarded(recorder.scalers.updated, scaler)

        return update

    def _total_norm(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def total_norm(tensors: Any, norm_type: float = 2.0, *args: Any, **kwargs: Any) -> Any:
            if recorder.in_training_thread():
                recorder.clips.norm_type = float(norm_type)
            return original(tensors, norm_type, *args, **kwargs)

        return total_norm

    def _clip_with_norm(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def clip(parameters: Any, max_norm: float, total_norm: torch.Tensor, *args: Any, **kwargs: Any) -> None:
            if recorder.in_training_thread():
                recorder.guarded(recorder.clips.clipped, total_norm, max_norm)
            original(parameters, max_norm, total_norm, *args, **kwargs)

        return clip

    def _clip_norm(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """For versions of torch whose clip_grad_norm_ is one function."""
        recorder = self._recorder

        def clip(parameters: Any, max_norm: float, norm_type: float = 2.0, *args: Any, **kwargs: Any) -> Any:
            norm = original(parameters, max_norm, norm_type, *args, **kwargs)
            if recorder.in_training_thread():
                recorder.clips.norm_type = float(norm_type)
                recorder.guarded(recorder.clips.clipped, norm, max_norm)
            return norm

        return clip

    def _clip_value(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self._recorder

        def clip(parameters: Any, clip_value: float, *args: Any, **kwargs: Any) -> None:
            if recorder.in_training_thread():
                recorder.guarded(recorder.clips.clipped_by_value, clip_value)
            original(parameters, clip_value, *args, **kwargs)

        return clip

    def _scaler_step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder, watch = self._recorder, self._recorder.scalers

        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if recorder.closed or not recorder.in_training_thread():
                return original(scaler, optimizer, *args, **kwargs)
            return watch.step(original, scaler, optimizer, *args, **kwargs)

        return step

    def _checkpoint_apply(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A reentrant checkpoint, which keeps the function for its backward and runs it without grad."""
        recorder = self._recorder

        def apply(function: Any, *args: Any) -> Any:
            if recorder.recording and recorder.in_training_thread():
                function = recorder.checkpoints.region(function)
            return original(function, *args)

        return apply

    def _checkpoint_generator(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """What runs around the first call of any other checkpoint, and keeps the function for its recomputation."""
        recorder = self._recorder

        def generator(fn: Any, *args: Any, **kwargs: Any) -> Any:
            if not (recorder.recording and recorder.in_training_thread()):
                yield from original(fn, *args, **kwargs)
                return
            region = recorder.checkpoints.region(fn)
            region.begin()
            try:
                yield from original(region, *args, **kwargs)
            finally:
                region.end()

        return generator

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
        if isinstance(scaler, type) and {"scale", "step", "update"} <= set(vars(scaler)) and scaler not in found:
            found.append(scaler)
    return found
