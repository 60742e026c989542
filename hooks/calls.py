"""Watch module calls: arguments, keywords, results and exceptions of every module, installed globally."""

from __future__ import annotations

import inspect
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.utils.parametrize import ParametrizationList

from align.hooks.autocast import autocast_dtype
from align.hooks.class_code import code_facts, merged
from align.hooks.configuration import changed_rates, configuration_of
from align.hooks.graph import Exploration, edge_of, explore, sequence_now
from align.hooks.nesting import call_tensors, result_tensors, tensors_in, with_tensors
from align.hooks.roots import class_name, parallel_wrappers, unwrapped
from align.hooks.targets import target_facts
from align.hooks.trace import KEEP_BATCHES, RECOMPUTED, Call, Forward
from align.hooks.values import dtype_name
from align.records import ModuleInfo, Phase

if TYPE_CHECKING:
    from align.hooks.recorder import Recorder
    from align.hooks.roots import Root

UNIT_BITS = {
    "float64": 53, "float32": 24, "float16": 11, "bfloat16": 8, "float8_e4m3fn": 4, "float8_e4m3fnuz": 4,
    "float8_e5m2": 3, "float8_e5m2fnuz": 3,
}  # fmt: skip
"""Significant bits of each floating dtype, the hidden one included."""


class Frame:
    """One open module call."""

    __slots__ = ("born", "call", "edges", "given", "inputs", "module", "recompute", "result", "root")

    def __init__(self, module: nn.Module, root: Root | None, call: Call | None, *, recompute: bool) -> None:
        self.module = module
        self.root = root
        self.call = call
        self.recompute = recompute
        self.inputs: list[tuple[str, torch.Tensor]] = []
        self.edges: dict[str, Any] = {}
        self.given: Mapping[int, torch.Tensor] = {}
        self.result: Mapping[int, torch.Tensor] = {}
        self.born = 0

    def called_with(self, args: tuple[Any, ...], kwargs: Any) -> tuple[Any, Any]:
        """The arguments and keywords, with other tensors where a replay has put some in their place."""
        return (with_tensors(args, self.given), with_tensors(kwargs, self.given)) if self.given else (args, kwargs)

    def returned(self, result: Any) -> Any:
        """The same for the result."""
        return with_tensors(result, self.result) if self.result else result


class CallWatch:
    """Opens a frame for every call of interest and closes it when the call ends, in whatever way."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._local = threading.local()
        self.module_facts: dict[str, ModuleInfo] = {}
        self.classes: dict[str, dict[str, Any]] = {}
        self.wrappers: dict[str, None] = {}
        self._known_classes: set[type] = set()
        self.failed_in = ""

    @property
    def stack(self) -> list[Frame]:
        """The open frames of this thread."""
        stack: list[Frame] | None = getattr(self._local, "stack", None)
        if stack is None:
            stack = self._local.stack = []
        return stack

    @property
    def innermost(self) -> Call | None:
        """The call whose code is running, if it is recorded."""
        stack = self.stack
        return stack[-1].call if stack else None

    def run(self, original: Callable[..., Any], module: nn.Module, args: tuple[Any, ...], kwargs: Any) -> Any:
        """Run one module call and record it."""
        in_backward = torch._C._current_graph_task_id() != -1
        stack = self.stack
        if not stack and not in_backward:
            if isinstance(module, ParametrizationList) and not self._recorder.roots.has(module):
                return self._run_unseen(original, module, args, kwargs)
            args, kwargs = self._begins(module, args, kwargs)
        if not stack and not self._recorder.clock.next_forward_wanted:
            return self._run_unwatched(original, module, args, kwargs)
        self._local.gradient = self._recorder.trains_now()
        if in_backward:
            frame = self._recorder.guarded(self._open_recompute, module, args, kwargs)
        else:
            frame = self._recorder.guarded(self._open, module, args, kwargs)
        if frame is None:
            frame = Frame(module, None, None, recompute=in_backward)
        args, kwargs = frame.called_with(args, kwargs)
        outermost = not stack and not in_backward
        stack.append(frame)
        try:
            with self._recorder.fallbacks.watching(wanted=outermost):
                result = original(module, *args, **kwargs)
        except BaseException:
            if not in_backward and frame.call is not None and not self.failed_in:
                self.failed_in = frame.call.name
            raise
        finally:
            stack.pop()
        self.failed_in = ""
        if frame.call is not None:
            self._recorder.guarded(self._close, frame, result)
        return frame.returned(result)

    def _begins(self, module: nn.Module, args: tuple[Any, ...], kwargs: Any) -> tuple[Any, Any]:
        """An outermost call begins; returns what it is to be called with."""
        recorder = self._recorder
        recorder.outermost_call_begins(module)
        self.wrappers |= dict.fromkeys(parallel_wrappers(module))
        if recorder.replay is not None:
            recorder.replay.forward_begins()
        called_with = recorder.batches.called_with
        if called_with.follows:
            given = recorder.guarded(called_with.called, module, args, kwargs, gradient=recorder.trains_now())
            args, kwargs = given or (args, kwargs)
        if recorder.perturbation.asked:
            given = recorder.guarded(recorder.perturbation.inputs, module, args, kwargs, gradient=recorder.trains_now())
            args, kwargs = given or (args, kwargs)
        return args, kwargs

    def _run_unwatched(
        self, original: Callable[..., Any], module: nn.Module, args: tuple[Any, ...], kwargs: Any
    ) -> Any:
        """Run an outermost call outside the captured steps; the calls inside it are not even looked at."""
        self._recorder.batches.pass_by()
        return self._run_unseen(original, module, args, kwargs)

    def _run_unseen(self, original: Callable[..., Any], module: nn.Module, args: tuple[Any, ...], kwargs: Any) -> Any:
        """The same for what is no forward at all, as a weight that is computed while its model is being made."""
        self._local.unwatched = True
        try:
            return original(module, *args, **kwargs)
        finally:
            self._local.unwatched = False

    @contextmanager
    def swapped(self, module: nn.Module) -> Iterator[None]:
        """While other tensors stand in the place of a module's parameters; before, its own can still be seen."""
        recorder = self._recorder
        if not self.stack and not self.unwatched and torch._C._current_graph_task_id() == -1:
            recorder.guarded(recorder.roots.resolve, module)
            recorder.outermost_call_begins(module)
        recorder.initial.swaps += 1
        try:
            yield
        finally:
            recorder.initial.swaps -= 1

    @property
    def unwatched(self) -> bool:
        """Whether this thread is inside a call that is not captured."""
        return getattr(self._local, "unwatched", False)

    # ---- opening

    def _open(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Frame:
        stack = self.stack
        if stack:
            parent = stack[-1]
            frame = Frame(module, parent.root, None, recompute=False)
            if parent.root is None or parent.call is None:
                return frame
            frame.call = self._child_call(parent.root, module, parent.call)
        else:
            frame = self._outermost(module, args, kwargs)
        if frame.call is not None and frame.call.name:
            frame.call.training = module.training
            self._see_inputs(frame, args, kwargs)
        return frame

    def _outermost(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Frame:
        recorder = self._recorder
        root = recorder.roots.resolve(module)
        root.read()
        if type(module).__name__ == "OptimizedModule" and unwrapped(module) is not module:
            recorder.compile_requested()
        frame = Frame(module, root, None, recompute=False)
        gradient = self._local.gradient
        teacher = not root.trainable and not gradient and bool(root.owners)
        if not gradient and root.trainable:
            recorder.batches.evaluated()
        if not recorder.clock.next_forward_wanted or not (gradient or teacher):
            return frame
        forward = Forward(root=root, teacher=teacher, after_attempt=recorder.clock.attempted)
        recorder.trace.begin(forward)
        recorder.checkpoints.forward_begins(forward)
        frame.call = self._new_call(self._name(root, module, None), None, forward)
        if recorder.batches.called_with.now is not None:
            forward.batches.append(recorder.batches.called_with.now)
        if root.trainable:
            if Phase.INPUT in recorder.trace.phases:
                self._see_batch(module, frame.call, args, kwargs)
            recorder.batches.offer(forward)
        return frame

    def _child_call(self, root: Root, module: nn.Module, parent: Call) -> Call:
        parent.had_children = True
        name = self._name(root, module, parent)
        return self._new_call(name, parent, parent.forward)

    def _new_call(self, name: str, parent: Call | None, forward: Forward) -> Call:
        call = Call(name, parent, forward)
        forward.calls.append(call)
        if self._recorder.replay is not None:
            self._recorder.replay.call_begins(call)
        return call

    def _name(self, root: Root, module: nn.Module, parent: Call | None) -> str:
        """The module's name; a module that is no member is named by its class below its caller."""
        name = root.names.get(id(module))
        if name is not None:
            return name
        if unwrapped(module) is not module:
            return ""
        unnamed = f"{parent.name}.<{class_name(module)}>" if parent is not None and parent.name else ""
        if unnamed not in root.class_names:
            root.read()
            name = root.names.get(id(module))
        if name is None and unnamed:
            root.class_names[unnamed] = class_name(module)
        return name or unnamed

    def _open_recompute(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Frame:
        """A call inside a backward repeats an earlier one: its outputs are recorded as a repetition."""
        root = next((root for root in self._recorder.roots.known if id(module) in root.names), None)
        frame = Frame(module, root, None, recompute=True)
        if root is None:
            return frame
        parent = self.innermost
        frame.call = self._recorder.checkpoints.call_to_repeat(root.names[id(module)], parent)
        if frame.call is not None:
            frame.call.recomputed = True
            if self._recorder.replay is not None:
                for slot, tensor in call_tensors(args, kwargs):
                    self._recorder.replay.put_again(frame.call, slot, tensor)
            if not frame.call.has_graph:
                self._note_edges(frame, call_tensors(args, kwargs))
        return frame

    def tap(self, name: str, tensor: torch.Tensor) -> None:
        """Record a tensor of the running call as the output of a module of this name."""
        parent = self.innermost
        if parent is None:
            return
        repeats = torch._C._current_graph_task_id() != -1
        if repeats:
            repeated = self._recorder.checkpoints.call_to_repeat(name, parent)
            if repeated is None:
                return
            call = repeated
            call.recomputed = True
        else:
            call = self._new_call(name, parent, parent.forward)
        if Phase.FORWARD in self._recorder.trace.phases and self._recorder.wants(name):
            slot = "output.0" + (RECOMPUTED if repeats else "")
            self._recorder.trace.see(Phase.FORWARD, name, slot, tensor, call=call, recomputed=repeats)
        if tensor.grad_fn is not None and not call.has_graph:
            call.has_graph = True
            self._recorder.gradients.watch_output(call, "grad_output.0", tensor)

    # ---- what goes in and out

    def _see_inputs(self, frame: Frame, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        call = frame.call
        if call is None:
            return
        tensors = call_tensors(args, kwargs)
        trace = self._recorder.trace
        if Phase.FORWARD in trace.phases and self._recorder.wants(call.name):
            # What a model without gradient is given has no record as an input of its own.
            kept = KEEP_BATCHES in self._recorder.options.keep and call.parent is None and call.forward.teacher
            for slot, tensor in tensors:
                trace.see(Phase.FORWARD, call.name, slot, tensor, call=call, keep=kept and not trace.computed(tensor))
        if self._recorder.replay is not None:
            frame.given = self._recorder.replay.replacements()
            tensors = [(slot, frame.given.get(id(tensor), tensor)) for slot, tensor in tensors]
        self._note_edges(frame, tensors)

    def _note_edges(self, frame: Frame, tensors: list[tuple[str, torch.Tensor]]) -> None:
        frame.born = sequence_now()
        frame.inputs = [(slot, tensor) for slot, tensor in tensors if tensor.requires_grad]
        for slot, tensor in frame.inputs:
            frame.edges[slot] = edge_of(tensor)

    def _see_batch(self, module: nn.Module, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Record what the root received under the names of its arguments."""
        trace = self._recorder.trace
        keep = KEEP_BATCHES in self._recorder.options.keep
        for name, value in argument_names(unwrapped(module), args, kwargs):
            for path, tensor in tensors_in(value, ""):
                if not tensor.requires_grad and not trace.computed(tensor):
                    slot = path.removeprefix(".") or "value"
                    trace.see(Phase.INPUT, name, slot, tensor, call=call, equal=True, rows=True, keep=keep)
                    call.forward.facts.extend(target_facts(name, slot, tensor))

    def _close(self, frame: Frame, result: Any) -> None:
        call = frame.call
        if call is None or not call.name:
            return
        outputs = result_tensors(result)
        trace = self._recorder.trace
        if Phase.FORWARD in trace.phases and self._recorder.wants(call.name):
            mark = RECOMPUTED if frame.recompute else ""
            for slot, tensor in outputs:
                trace.see(Phase.FORWARD, call.name, slot + mark, tensor, call=call, recomputed=frame.recompute)
        if self._recorder.replay is not None:
            frame.result = self._recorder.replay.replacements()
            outputs = [(slot, frame.result.get(id(tensor), tensor)) for slot, tensor in outputs]
        in_graph = [(slot, tensor) for slot, tensor in outputs if tensor.grad_fn is not None]
        if frame.recompute and call.has_graph:
            return
        call.has_graph = bool(in_graph)
        leaf = not call.had_children
        found = None
        if in_graph and (leaf or call.name not in self.module_facts):
            found = explore([tensor for _, tensor in in_graph], _real_edges(frame.edges), frame.born)
        if in_graph:
            self._recorder.gradients.attach(call, frame.inputs, in_graph, found if leaf else None)
        self._recorder.guarded(self._learn, frame, call, found, outputs)

    def _learn(
        self, frame: Frame, call: Call, found: Exploration | None, outputs: list[tuple[str, torch.Tensor]]
    ) -> None:
        """Note once per module what its forward computes with."""
        known = self.module_facts.get(call.name)
        if known is not None:
            call.rates = changed_rates(frame.module, known.config)
            if known.compute_dtype is not None or found is None:
                return
        self._learn_class(frame.module)
        dtypes = {dtype_name(dtype) for dtype in found.dtypes} if found else set()
        dtypes |= {dtype_name(tensor.dtype) for _, tensor in (*frame.inputs, *outputs)}
        if found is None and outputs:
            dtypes |= {autocast_dtype(outputs[0][1].device.type) or ""}
        self.module_facts[call.name] = ModuleInfo(
            name=call.name,
            class_name=class_name(frame.module),
            leaf=not call.had_children,
            compute_dtype=coarsest(dtypes),
            matmul=found.matmul if found else False,
            conv=found.conv if found else False,
            piecewise=found.piecewise if found else False,
            chooses=found.chooses if found else False,
            normalises=found.normalises if found else False,
            config=self._recorder.guarded(configuration_of, frame.module, with_model=call.parent is None) or {},
        )

    def _learn_class(self, module: nn.Module) -> None:
        """Note once per class whose code its forward is."""
        kind = type(module)
        if kind not in self._known_classes:
            self._known_classes.add(kind)
            name = class_name(module)
            self.classes[name] = merged(self.classes.get(name), code_facts(kind))


def failed_module(error: BaseException | None) -> nn.Module | None:
    """The innermost module whose code was running when this was raised; outside the captured steps no call is seen."""
    frames = traceback.walk_tb(error.__traceback__) if error is not None else ()
    modules = [frame.f_locals.get("self") for frame, _ in frames if frame.f_code.co_name != "__init__"]
    return next((module for module in reversed(modules) if isinstance(module, nn.Module)), None)


def coarsest(names: set[str]) -> str | None:
    """The floating dtype with the fewest significant bits."""
    known = [name for name in names if name in UNIT_BITS]
    return min(known, key=lambda name: (UNIT_BITS[name], name)) if known else None


def _real_edges(edges: Mapping[str, Any]) -> dict[str, Any]:
    return {slot: edge for slot, edge in edges.items() if edge is not None}


def argument_names(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Pair every argument with the name that the module's forward gives it."""
    try:
        bound = inspect.signature(module.forward).bind_partial(*args, **kwargs)
    except (TypeError, ValueError):
        return [*((str(position), value) for position, value in enumerate(args)), *kwargs.items()]
    named: list[tuple[str, Any]] = []
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            named.extend(value.items())
        elif kind is inspect.Parameter.VAR_POSITIONAL:
            named.extend((f"{name}.{position}", item) for position, item in enumerate(value))
        else:
            named.append((name, value))
    return named
