"""Faults in a backward: activations and parameters get wrong gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.localization.fault import (
    ACTIVATIONS,
    NORMS,
    WEIGHTED,
    Fault,
    kind_of_fault,
    lots,
    one_channel,
    one_weight,
    residual_site,
    rms,
    scaled,
    with_argument,
)
from benchmarks.localization.intercept import Site, plus_nothing, round_bits, set_forward, with_gradient


def _change_input_gradient(module: nn.Module, change: Callable[[Tensor], Tensor]) -> None:
    forward = module.forward
    set_forward(module, lambda x, *args, **kwargs: forward(with_gradient(x, change), *args, **kwargs))


@kind_of_fault("norm_backward")
def _norm_backward(fault: Fault) -> None:
    module: Any = fault.one_module({"LayerNorm", "LlamaRMSNorm"}, "backward")
    forward, share = module.forward, fault.size(1.0, 0.01)

    def wrong(x: Tensor) -> Tensor:
        wide = x.detach().float()
        variance = wide.pow(2).mean(-1, keepdim=True)
        if isinstance(module, nn.LayerNorm):
            variance = variance - wide.mean(-1, keepdim=True).square()
        found: Tensor = forward(with_gradient(x, lambda g: g * (1 - share)))
        return plus_nothing(found, x.float(), share * torch.rsqrt(variance + 1e-5) * module.weight.detach())

    set_forward(module, wrong)


@kind_of_fault("input_gradient")
def _input_gradient(fault: Fault) -> None:
    module = fault.one_module(WEIGHTED | ACTIVATIONS | NORMS, "backward", inner=True)
    _change_input_gradient(module, lambda g: scaled(g, fault.size(2.0, 1.01)))


@kind_of_fault("gradient_channel")
def _gradient_channel(fault: Fault) -> None:
    module = fault.one_module(WEIGHTED | ACTIVATIONS, "backward", inner=True)
    seed = fault.random.random()
    _change_input_gradient(module, lambda g: scaled(g, one_channel(g, fault.size(2.0, 1.05), lots(seed))))


@kind_of_fault("gradient_flush")
def _gradient_flush(fault: Fault) -> None:
    module = fault.one_module(WEIGHTED | ACTIVATIONS, "backward", inner=True)
    _change_input_gradient(module, lambda g: g.masked_fill(g.abs() < fault.size(0.3, 0.03) * rms(g).to(g.dtype), 0.0))


@kind_of_fault("residual_gradient")
def _residual_gradient(fault: Fault) -> None:
    module, site, branch = residual_site(fault, "backward")
    factor = fault.size(2.0, 1.01)
    fault.replace(
        module,
        site,
        lambda f, args, kw: f(
            *with_argument(args, branch, lambda x: with_gradient(x, lambda g: scaled(g, factor))), **kw
        ),
    )


@kind_of_fault("softmax_backward")
def _softmax_backward(fault: Fault) -> None:
    module, code = fault.attention("backward")
    share = fault.size(1.0, 0.01)

    def wrong(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        scores = args[0]
        found: Tensor = func(with_gradient(scores, lambda g: g * (1 - share)), *args[1:], **kwargs)
        finite = scores.float().masked_fill(scores.detach() < -1e4, 0.0)
        return plus_nothing(found, finite, share * found.detach().float())

    fault.replace(module, Site("softmax", code), wrong)


@kind_of_fault("weight_gradient")
def _weight_gradient(fault: Fault) -> None:
    parameter = one_weight(fault, "gradient")
    parameter.register_hook(lambda g: g * fault.size(2.0, 1.01))


@kind_of_fault("weight_gradient_short")
def _weight_gradient_short(fault: Fault) -> None:
    parameter = one_weight(fault, "gradient")
    parameter.register_hook(lambda g: round_bits(g, fault.few_bits))


@kind_of_fault("all_gradients")
def _all_gradients(fault: Fault) -> None:
    for parameter in fault.model.parameters():
        parameter.register_hook(lambda g: g * fault.size(2.0, 1.01))
    fault.answers.append(("gradient", "*"))
