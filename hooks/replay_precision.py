"""Compute in a higher precision than the script says, operator by operator, without changing the script.

A dispatch mode below autograd: every operator gets its float operands in the higher dtype and leaves its results in
it, so that what a cast or autocast shortens is not shortened. What is written into an existing tensor is rounded to
that tensor's dtype: parameters, and gradients on their way to them, stay what the optimizer expects.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

PRECISIONS = {"fp32": torch.float32, "fp64": torch.float64}

LOWER = {
    torch.float32: (torch.float16, torch.bfloat16),
    torch.float64: (torch.float16, torch.bfloat16, torch.float32),
}

PLAIN = frozenset({
    "aten::copy_", "aten::set_", "aten::resize_", "aten::detach_", "aten::_local_scalar_dense", "aten::item",
    "aten::requires_grad_", "aten::is_pinned", "aten::record_stream", "aten::equal",
})  # fmt: skip
"""Operators that compute nothing."""

GATHERING = frozenset({"aten::embedding"})
"""Operators that only pick values of a large table: exact in the table's own dtype, which need not be copied."""

ONE_DTYPE = frozenset({
    *(f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)), "bilinear", "scaled_dot_product_attention",
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "rms_norm", "multi_head_attention_forward",
    "gru", "lstm", "rnn_tanh", "rnn_relu", "gru_cell", "lstm_cell", "rnn_tanh_cell", "rnn_relu_cell",
})  # fmt: skip
"""Functions that ask for operands of one dtype before any operator runs."""

CASTS = frozenset({"aten::_to_copy", "aten::to"})


class HighPrecision(TorchDispatchMode):
    """Promotes the operands of all operators while `active`; `refused` names those that do not take the dtype."""

    def __init__(self, dtype: torch.dtype, trouble: Callable[[str], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.dtype = dtype
        self.lower = LOWER[dtype]
        self.active = False
        self.refused: set[str] = set()
        self._trouble = trouble
        self._functions = _Functions(self)
        self._check_input: Any = None

    @classmethod
    def named(cls, precision: str, trouble: Callable[[str], None]) -> HighPrecision | None:
        """The mode for `fp32` or `fp64`; None for `same`."""
        dtype = PRECISIONS.get(precision)
        return cls(dtype, trouble) if dtype is not None else None

    def install(self) -> None:
        """Put it below all that the script does."""
        self._functions.__enter__()  # type: ignore[no-untyped-call]
        self.__enter__()  # type: ignore[no-untyped-call]
        self._check_input = check = nn.RNNBase.check_input

        def check_input(module: Any, values: torch.Tensor, *args: Any) -> None:
            check(module, values.to(module._flat_weights[0].dtype) if self.active else values, *args)

        setattr(nn.RNNBase, "check_input", check_input)  # noqa: B010 - its type is that of a method

    def remove(self) -> None:
        """Take it away."""
        setattr(nn.RNNBase, "check_input", self._check_input)  # noqa: B010
        self.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self._functions.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operator in the higher precision."""
        kwargs = kwargs or {}
        if not self.active:
            return func(*args, **kwargs)
        name = func._schema.name
        kind = _kind_of(func)
        if name in PLAIN or kind is _view or not self._concerns((args, kwargs)):
            return func(*args, **kwargs)
        return kind(self, func, args, kwargs)

    def _concerns(self, operands: Any) -> bool:
        """Whether an operator works with floats. What makes tensors of nothing makes them as the script says.

        In autograd's own computations what has no operand of the higher dtype are gradients on their way to
        parameters, which keep their parameter's.
        """
        dtypes = {one.dtype for one in tree_leaves(operands) if isinstance(one, torch.Tensor)}
        return self.dtype in dtypes or (not in_backward() and not dtypes.isdisjoint(self.lower))

    # ---- kinds of operators

    def promoted(self, value: Any) -> Any:
        """A tensor of a lower float dtype in the higher one; anything else as it is."""
        if isinstance(value, torch.Tensor) and value.dtype in self.lower:
            return value.to(self.dtype)
        return value

    def computed(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator on promoted operands; in its own dtype where it refuses them."""
        try:
            return func(*tree_map(self.promoted, args), **self._keywords(tree_map(self.promoted, kwargs)))
        except (RuntimeError, NotImplementedError) as error:
            if "not implemented for" not in str(error) and not isinstance(error, NotImplementedError):
                raise
            self.refused.add(func._schema.name)
            self._trouble(f"{func._schema.name} does not take {str(self.dtype)[6:]}: it was computed in float32")
            lowered = tree_map(_lowered, (args, kwargs))
            return func(*lowered[0], **lowered[1])

    def _keywords(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        if kwargs.get("dtype") in self.lower:
            return {**kwargs, "dtype": self.dtype}
        return kwargs


class _Functions(TorchFunctionMode):
    """Gives functions that ask for it operands of one dtype; parameters are cast inside the graph."""

    def __init__(self, mode: HighPrecision) -> None:
        super().__init__()
        self._mode = mode

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one function."""
        kwargs = kwargs or {}
        if self._mode.active and getattr(func, "__name__", "") in ONE_DTYPE:
            args, kwargs = tree_map(self._mode.promoted, (args, kwargs))
        return func(*args, **kwargs)


def in_backward() -> bool:
    """Whether autograd itself computes; what a checkpoint computes again is a forward."""
    return torch._C._current_graph_task_id() != -1 and not torch.is_grad_enabled()


def _lowered(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype is torch.float64:
        return value.to(torch.float32)
    return torch.float32 if value is torch.float64 else value


def _view(mode: HighPrecision, func: Any, args: Any, kwargs: Any) -> Any:  # noqa: ARG001 - one signature for all kinds
    return func(*args, **kwargs)


def _random(mode: HighPrecision, func: Any, args: Any, kwargs: Any) -> Any:
    """Random numbers are drawn as they would be without us, then promoted."""
    result = func(*args, **kwargs)
    return result if func._schema.is_mutable else tree_map(mode.promoted, result)


def _cast(mode: HighPrecision, func: Any, args: Any, kwargs: Any) -> Any:
    """A cast to a lower dtype keeps the higher one; that of a gradient on its way to a parameter is made."""
    wanted = kwargs.get("dtype")
    if in_backward() or wanted not in mode.lower:
        return func(*args, **kwargs)
    return func(*args, **{**kwargs, "dtype": mode.dtype})


def _functional(mode: HighPrecision, func: Any, args: Any, kwargs: Any) -> Any:
    names = [argument.name for argument in func._schema.arguments]
    if "half_to_float" in names:
        args = (*args[: names.index("half_to_float")], False)
    return tree_map(mode.promoted, mode.computed(func, args, kwargs))


def _gathering(mode: HighPrecision, func: Any, args: Any, kwargs: Any) -> Any:
    return tree_map(mode.promoted, func(*args, **kwargs))


def _writing(mode: HighPrecision, func: Any, args: Any, kwargs: Any) -> Any:
    """What is written into a lower tensor is computed in a copy of it in the higher dtype, and rounded once."""
    copies: list[tuple[torch.Tensor, torch.Tensor]] = []

    def stand_in(value: Any) -> Any:
        high = mode.promoted(value)
        if high is not value:
            copies.append((value, high))
        return high

    written = _written(func)
    own_args = [tree_map(stand_in, one) if place in written else one for place, one in enumerate(args)]
    own_kwargs = {key: tree_map(stand_in, one) if key in written else one for key, one in kwargs.items()}
    result = mode.computed(func, tuple(own_args), own_kwargs)
    for low, high in copies:
        low.copy_(high)
    back = {id(high): low for low, high in copies}
    return tree_map(lambda one: back.get(id(one), one) if isinstance(one, torch.Tensor) else one, result)


@lru_cache(maxsize=4096)
def _written(func: Any) -> frozenset[int | str]:
    """Positions and names of the arguments that an operator writes into."""
    found: set[int | str] = set()
    for place, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found |= {place, argument.name}
    return frozenset(found)


@lru_cache(maxsize=4096)
def _kind_of(func: Any) -> Callable[[HighPrecision, Any, Any, Any], Any]:
    schema = func._schema
    if schema.name in CASTS:
        return _cast
    if torch.Tag.nondeterministic_seeded in func.tags and "dropout" not in schema.name:
        return _random
    if _written(func):
        return _writing
    if any(one.alias_info is not None for one in schema.returns):
        return _view
    return _gathering if schema.name in GATHERING else _functional
