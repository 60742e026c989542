"""Dropout switched off while a run is watched, without touching a module: the functions that drop let all through.

Modules keep saying that they train, and keep their probabilities, so what is saved from the run is what it would be.
What is let through is a new tensor wherever dropping makes one: scripts change it in place, and must not change the
input by that. What calls `torch.ops.aten` itself, as exported programs do, goes on dropping: torch finds its operators
by what would have to be replaced there.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.jit import _builtins
from torch.nn import functional

from align.hooks.replacements import Replacements

DROPPED_PATHS = ("DropPath", "StochasticDepth", "DropBlock2d", "DropBlock3d")
"""How the names of module classes end that drop whole branches or blocks at random, in timm, torchvision,
transformers and those who copied from them. A module of such a name that has parameters or children computes as well,
and keeps doing all that it does."""

FUNCTIONS = ("dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d")
OPERATORS = ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout")
RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
ATTENTION_DROPOUT = 4
"""The position of `dropout_p` in scaled_dot_product_attention."""
KEEP_PROBABILITY = 9
"""The position of `keep_prob` in torch_npu.npu_fusion_attention."""
BEHIND_WEIGHTS = 3
"""How far behind the list of weights the probability stands in torch's recurrent functions; the switch of the biases
and the number of layers stand between them."""


class NoDropout:
    """While installed, no dropout drops anything; what imported one of the functions then drops again afterwards."""

    def __init__(self) -> None:
        self._replaced = Replacements()
        self._compiled: list[Callable[..., Any]] = []

    def install(self) -> None:
        """Replace every function that drops at random."""
        for name in FUNCTIONS:
            self._replaced.put(functional, name, _let_through(getattr(functional, name)))
        for name in OPERATORS:
            self._replaced.put(torch, name, _let_through_operator(getattr(torch, name)))
            self._replaced.put(torch, f"{name}_", _let_through_in_place(getattr(torch, f"{name}_")))
        self._replaced.put(torch, "native_dropout", self._without_training(torch.native_dropout))
        self._replaced.put(
            functional,
            "scaled_dot_product_attention",
            self._with_argument(functional.scaled_dot_product_attention, "dropout_p", ATTENTION_DROPOUT, 0.0),
        )
        for name in RECURRENT:
            self._replaced.put(torch._VF, name, self._recurrent(getattr(torch._VF, name)))
        torch_npu = sys.modules.get("torch_npu")
        for name in ("npu_fusion_attention", "npu_fusion_attention_v2"):
            if hasattr(torch_npu, name):
                fused = self._with_argument(getattr(torch_npu, name), "keep_prob", KEEP_PROBABILITY, 1.0)
                self._replaced.put(torch_npu, name, fused)
        self._replaced.put(nn.Module, "_call_impl", self._module_call(nn.Module._call_impl))
        _SWITCH.append(self)

    def remove(self) -> None:
        """Put everything back as it was."""
        if self in _SWITCH:
            _SWITCH.remove(self)
        self._replaced.put_back()
        for ours in self._compiled:
            _builtins._get_builtin_table().pop(id(ours), None)
        self._compiled = []

    def _keep_scriptable(self, original: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
        """TorchScript knows operators by the identity of their functions; what it compiles keeps its dropout."""
        operator = _builtins._find_builtin(original)
        if operator is not None:
            _builtins._register_builtin(ours, operator)
            self._compiled.append(ours)
        return ours

    def _with_argument(
        self, original: Callable[..., Any], name: str, position: int, value: float
    ) -> Callable[..., Any]:
        """A function whose probability is the one that drops nothing, whatever it is given."""

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self in _SWITCH:
                if len(args) > position:
                    args = (*args[:position], value, *args[position + 1 :])
                elif name in kwargs:
                    kwargs[name] = value
            return original(*args, **kwargs)

        return self._keep_scriptable(original, call)

    def _without_training(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(input: Tensor, p: float, train: Any) -> Any:  # noqa: A002  torch's own name
            return original(input, p, False if self in _SWITCH else train)

        return self._keep_scriptable(original, call)

    def _recurrent(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """The weights are a list that a bool follows; the states of an LSTM may be a list too."""

        @functools.wraps(original)
        def call(*args: Any) -> Any:
            pairs = enumerate(itertools.pairwise(args))
            weights = next((at for at, (one, two) in pairs if isinstance(one, list) and isinstance(two, bool)), None)
            if self in _SWITCH and weights is not None and len(args) > weights + BEHIND_WEIGHTS:
                place = weights + BEHIND_WEIGHTS
                args = (*args[:place], 0.0, *args[place + 1 :])
            return original(*args)

        return self._keep_scriptable(original, call)

    def _module_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Modules that drop a whole branch do it with functions of their own."""

        @functools.wraps(original)
        def call_impl(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if self in _SWITCH and len(args) == 1 and not kwargs and _only_drops(module):
                return args[0].clone() if isinstance(args[0], Tensor) else args[0]
            return original(module, *args, **kwargs)

        return call_impl


_SWITCH: list[NoDropout] = []


def _only_drops(module: nn.Module) -> bool:
    """Whether a module that trains drops its input by chance and does nothing else."""
    named_so = type(module).__name__.endswith(DROPPED_PATHS)
    return named_so and module.training and not module._modules and next(module.parameters(), None) is None


def _let_through(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function of torch.nn.functional that lets its input through; TorchScript can compile it."""

    def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:  # noqa: A002, FBT001, FBT002
        passes = not training or p == 0.0
        if not torch.jit.is_scripting():  # noqa: SIM102  so that TorchScript leaves out what is inside
            if passes or not _SWITCH:
                return original(input, p, training, inplace)
        return input if passes or inplace else input.clone()

    dropout.__name__ = dropout.__qualname__ = original.__name__
    return dropout


def _let_through_operator(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same for the operators of the namespace torch."""

    def dropout(input: Tensor, p: float, train: bool) -> Tensor:  # noqa: A002, FBT001
        passes = not train or p == 0.0
        if not torch.jit.is_scripting():  # noqa: SIM102  so that TorchScript leaves out what is inside
            if passes or not _SWITCH:
                return original(input, p, train)
        return input if passes else input.clone()

    dropout.__name__ = dropout.__qualname__ = original.__name__
    return dropout


def _let_through_in_place(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same for those that change their input, which then gives back that."""

    def dropout(input: Tensor, p: float, train: bool) -> Tensor:  # noqa: A002, FBT001
        if not torch.jit.is_scripting():
            return input if _SWITCH else original(input, p, train)
        return input

    dropout.__name__ = dropout.__qualname__ = original.__name__
    return dropout
