"""Which operators the NPU left to the CPU in the first captured step, and how often.

They are counted in module calls and updates only. Under a dispatch mode torch takes other formulas in some backwards
(of `prod`, and of `masked_fill` by a tensor, in torch 2.13), so the mode is lifted wherever the autograd engine runs:
of a backward only the device's own warnings tell. No forward came out other by a bit (5,046 calls of 2.13's operators).
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode

from align.hooks.npu_flags import READER_ERRORS
from align.hooks.replacements import Replacements
from align.hooks.warned import WarnedOperators

KEY = "PrivateUse1"
"""The dispatch key of torch_npu."""
STRUCTURED = "CompositeExplicitAutogradNonFunctional"
"""An operator with a kernel for this key calls its `out` variant, so that one must be on the device."""


class FallbackWatch:
    """Counts calls of operators that have no kernel for the NPU, and reads what the NPU itself says of them.

    `watching` is entered around a module call or an update of the first captured step; it may be entered again inside
    itself. What ran in a backward or inside another operator's kernel is not seen, only told by the device.
    """

    def __init__(self) -> None:
        self._counting: _Counting | None = None
        self._warned = WarnedOperators()
        self._told: set[str] = set()
        self._over = False

    def open(self) -> None:
        """Begin to listen for the device's own warnings."""
        self._warned.open()

    def watching(self, *, wanted: bool = True) -> AbstractContextManager[None]:
        """Count while this is entered; a null context without `wanted`, without an NPU and after the first step."""
        if self._over or not wanted or "torch_npu" not in sys.modules:
            return nullcontext()
        if self._counting is None:
            self._counting = _Counting()
        return nullcontext() if _place(self._counting) is not None else _entered(self._counting)

    def first_step_over(self) -> None:
        """The first captured step is over: stop counting, and read the warnings."""
        if not self._over:
            self._over = True
            self._told = self._warned.read() if "torch_npu" in sys.modules else set()

    def found(self) -> dict[str, int]:
        """The calls of each operator, most first; 0 where only the device's warning told."""
        calls = dict.fromkeys(self._told, 0) | (self._counting.calls if self._counting is not None else {})
        return dict(sorted(calls.items(), key=lambda item: (-item[1], item[0])))

    def close(self) -> None:
        """The run is over."""
        self.first_step_over()


class _Counting(TorchDispatchMode):
    """Passes every operator on as it came, and counts those that fall back."""

    supports_higher_order_operators = True  # else torch refuses operators that take functions, such as cond

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: Counter[str] = Counter()
        self._names: dict[Any, str] = {}
        self._device = torch._C._get_privateuse1_backend_name()
        if not hasattr(TorchDispatchMode, "supports_higher_order_operators"):
            _let_pass(type(self))

    def __torch_dispatch__(
        self, func: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = self._names.get(func)
        if name is None:
            name = self._names[func] = self._name(func)
        keywords = kwargs or {}
        if name and (self._on_device(args) or self._on_device(tuple(keywords.values()))):
            self.calls[name] += 1
        return func(*args, **keywords)

    @staticmethod
    def _name(func: Any) -> str:
        """What falls back when this is called; training goes on where the dispatcher cannot be asked."""
        try:
            return fallen_back(func)
        except READER_ERRORS:
            return ""

    def _on_device(self, values: tuple[Any, ...] | list[Any]) -> bool:
        for value in values:
            if isinstance(value, (list, tuple)) and self._on_device(value):
                return True
            where = value.device if isinstance(value, torch.Tensor) else value
            if isinstance(where, torch.device) and where.type == self._device:
                return True
        return False


def _let_pass(mode: type) -> None:
    """In older versions of torch each operator that takes functions needs a rule; the mode is off the stack in it."""
    for operator in getattr(torch._ops, "_higher_order_ops", {}).values():
        if mode not in getattr(operator, "python_key_table", {}):
            operator.py_impl(mode)(lambda _mode, *args, _operator=operator, **kwargs: _operator(*args, **kwargs))


def fallen_back(op: Any) -> str:
    """The operator, without its overload, that the dispatcher sends to the CPU when this one is called; else empty."""
    if not isinstance(op, torch._ops.OpOverload):
        return ""
    if _reaches_fallback(op.name()):
        return str(op._schema.name)
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    if has_kernel(op.name(), STRUCTURED) and not has_kernel(op.name(), KEY):
        variant = _out_variant(op)
        if variant is not None and _reaches_fallback(variant.name()):
            return str(variant._schema.name)
    return ""


def _reaches_fallback(name: str) -> bool:
    rows = torch._C._dispatch_dump_table(name).splitlines()
    row = next((row for row in rows if row.startswith(f"{KEY}:")), "")
    return "[backend fallback]" in row and "fallthrough" not in row


def _out_variant(op: Any) -> Any:
    """The overload that takes the same arguments and writes into `out`; for an in-place operator, of its twin."""
    space, _, name = op._schema.name.partition("::")
    packet = getattr(getattr(torch.ops, space), name.rstrip("_"), None)
    wanted = _inputs(op)
    for overload in packet.overloads() if packet is not None else ():
        variant = getattr(packet, overload)
        if len(variant._schema.arguments) > len(wanted) and _inputs(variant) == wanted:
            return variant
    return None


def _inputs(op: Any) -> list[tuple[str, str]]:
    """Names and types of the arguments that are no output."""
    return [
        (argument.name, str(argument.type))
        for argument in op._schema.arguments
        if not (argument.kwarg_only and argument.alias_info is not None and argument.alias_info.is_write)
    ]


# ---- on the stack of modes and off it


@contextmanager
def _entered(mode: TorchDispatchMode) -> Iterator[None]:
    """Enter a mode and take it off again, also where the code inside left a mode of its own on top."""
    mode.__enter__()
    shields = Replacements()
    for name in _engine():
        shields.put(torch.autograd, name, _without(mode, getattr(torch.autograd, name)))
    try:
        yield
    finally:
        shields.put_back()
        above = _lift(mode)
        if above is not None or not torch._C._len_torch_dispatch_stack():
            _push_mode(mode)  # so that its own exit takes it off
        mode.__exit__(None, None, None)
        _lay_back(above or [])


def _engine() -> tuple[str, ...]:
    """What starts the autograd engine: from torch 2.3 on both of torch.autograd's functions go through one."""
    return ("_engine_run_backward",) if hasattr(torch.autograd, "_engine_run_backward") else ("grad", "backward")


def _without(mode: TorchDispatchMode, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def without(*args: Any, **kwargs: Any) -> Any:
        above = _lift(mode)
        if above is None:
            return original(*args, **kwargs)
        _lay_back(above)
        try:
            return original(*args, **kwargs)
        finally:
            for upper in reversed(above):
                _take_off(upper)
            _lay_back([mode, *above])

    return without


def _place(mode: TorchDispatchMode) -> int | None:
    """Where a mode stands on this thread's stack; None where it is not on it."""
    height = torch._C._len_torch_dispatch_stack()
    return next((place for place in range(height) if torch._C._get_dispatch_stack_at(place) is mode), None)


def _lift(mode: TorchDispatchMode) -> list[Any] | None:
    """Take a mode off the stack; the modes that stood above it, from the lowest, are taken off too and returned."""
    place = _place(mode)
    if place is None:
        return None
    stack = [torch._C._get_dispatch_stack_at(height) for height in range(torch._C._len_torch_dispatch_stack())]
    for upper in reversed(stack[place:]):
        _take_off(upper)
    return stack[place + 1 :]


def _take_off(top: Any) -> None:
    _pop_mode(getattr(top, "_mode_key", None))


def _lay_back(modes: list[Any]) -> None:
    for mode in modes:
        _push_mode(mode)
