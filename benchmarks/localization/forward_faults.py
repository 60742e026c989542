"""Faults in the forward of a module: its output is wrong."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.localization.fault import (
    ACTIVATIONS,
    EMBEDDINGS,
    NORMS,
    WEIGHTED,
    Fault,
    kind_of_fault,
    lots,
    one_channel,
    one_element,
    rms,
    scaled,
)
from benchmarks.localization.intercept import change_output, rounded, set_forward


@kind_of_fault("output_scale", "output_scale_fine")
def _output_scale(fault: Fault) -> None:
    factor = 1.0001 if fault.kind.endswith("fine") else fault.size(1.3, 1.01)
    module = fault.one_module(WEIGHTED | NORMS | ACTIVATIONS | EMBEDDINGS, "forward")
    change_output(module, lambda x: scaled(x, factor))


@kind_of_fault("channel_scale")
def _channel_scale(fault: Fault) -> None:
    module = fault.one_module(WEIGHTED | NORMS | ACTIVATIONS, "forward")
    seed = fault.random.random()
    change_output(module, lambda x: scaled(x, one_channel(x, fault.size(2.0, 1.05), lots(seed))))


@kind_of_fault("element_add")
def _element_add(fault: Fault) -> None:
    module = fault.one_module(WEIGHTED | NORMS, "forward")
    index, size = fault.random.randrange(1 << 30), fault.size(1.0, 0.03)
    change_output(module, lambda x: (x.float() + size * rms(x) * one_element(x, index)).to(x.dtype))


@kind_of_fault("norm_eps")
def _norm_eps(fault: Fault) -> None:
    module: Any = fault.one_module(NORMS, "forward")
    eps = fault.size(0.1, 0.001)

    def rms_norm(x: Tensor) -> Tensor:
        wide = x.float()
        normal = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
        found: Tensor = module.weight * normal.to(x.dtype)
        return found

    def batch_norm(x: Tensor) -> Tensor:
        module.num_batches_tracked.add_(1)
        return functional.batch_norm(
            x, module.running_mean, module.running_var, module.weight, module.bias, training=True,
            momentum=module.momentum, eps=eps,
        )  # fmt: skip

    def layer_norm(x: Tensor) -> Tensor:
        return functional.layer_norm(x, module.normalized_shape, module.weight, module.bias, eps)

    norms = {"LlamaRMSNorm": rms_norm, "BatchNorm2d": batch_norm, "LayerNorm": layer_norm}
    set_forward(module, norms[type(module).__name__])


def _apply(module: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A linear layer or convolution with other weights."""
    if isinstance(module, nn.Conv2d):
        return functional.conv2d(x, weight, bias, module.stride, module.padding)
    if isinstance(module, nn.Linear):
        return functional.linear(x, weight, bias)
    flat = x.reshape(-1, x.shape[-1])
    found = flat @ weight if bias is None else torch.addmm(bias, flat, weight)
    return found.view(*x.shape[:-1], weight.shape[1])


@kind_of_fault("bias_dropped")
def _bias_dropped(fault: Fault) -> None:
    found = [(n, m) for n, m in fault.modules(WEIGHTED) if getattr(m, "bias", None) is not None]
    name, module = fault.random.choice(found)
    chosen: Any = module
    fault.answers.append(("forward", name))
    set_forward(module, lambda x: _apply(chosen, x, chosen.weight, None if fault.large else scaled(chosen.bias, 0.9)))


@kind_of_fault("activation_formula")
def _activation_formula(fault: Fault) -> None:
    module: Any = fault.one_module(ACTIVATIONS, "forward")
    name = type(module).__name__

    def other(x: Tensor) -> Tensor:
        if name == "ReLU":
            return functional.leaky_relu(x, fault.size(0.1, 0.01))
        if name in {"SiLU", "SiLUActivation"}:
            return functional.gelu(x) if fault.large else x * torch.sigmoid(1.02 * x)
        if fault.large:
            return x * torch.sigmoid(1.702 * x)
        is_tanh = name == "NewGELUActivation" or getattr(module, "approximate", "none") == "tanh"
        return functional.gelu(x, approximate="none" if is_tanh else "tanh")

    set_forward(module, other)


@kind_of_fault("accumulation")
def _accumulation(fault: Fault) -> None:
    module: Any = fault.one_module({"Linear", "Conv1D"}, "forward")
    is_linear = isinstance(module, nn.Linear)

    def summed(x: Tensor) -> Tensor:
        weight = module.weight.t() if is_linear else module.weight
        inner = x.shape[-1]
        piece = 4 if fault.large else max(inner // 2, 1)
        total = rounded(torch.matmul(x[..., :piece], weight[:piece]), 7)
        for start in range(piece, inner, piece):
            part = torch.matmul(x[..., start : start + piece], weight[start : start + piece])
            total = rounded(total + part, 7)
        return total if module.bias is None else (total + module.bias).to(total.dtype)

    set_forward(module, summed)


@kind_of_fault("weight_cast")
def _weight_cast(fault: Fault) -> None:
    module: Any = fault.one_module(WEIGHTED, "forward")
    set_forward(module, lambda x: _apply(module, x, rounded(module.weight, fault.few_bits), module.bias))


@kind_of_fault("saturation")
def _saturation(fault: Fault) -> None:
    module = fault.one_module(WEIGHTED | NORMS, "forward")

    def cut(x: Tensor) -> Tensor:
        most = float(rms(x)) * fault.size(1.0, 2.5)
        return x.clamp(-most, most)

    change_output(module, cut)


@kind_of_fault("batch_norm_eval")
def _batch_norm_eval(fault: Fault) -> None:
    module: Any = fault.one_module({"BatchNorm2d"}, "forward")
    set_forward(
        module,
        lambda x: functional.batch_norm(
            x, module.running_mean, module.running_var, module.weight, module.bias, eps=module.eps
        ),
    )


@kind_of_fault("padding_mode")
def _padding_mode(fault: Fault) -> None:
    found = [(n, m) for n, m in fault.modules({"Conv2d"}) if getattr(m, "padding", (0,)) == (1, 1)]
    name, module = fault.random.choice(found)
    chosen: Any = module
    fault.answers.append(("forward", name))
    mode = "circular" if fault.large else "replicate"

    def padded(x: Tensor) -> Tensor:
        wide = functional.pad(x, (1, 1, 1, 1), mode=mode)
        return functional.conv2d(wide, chosen.weight, chosen.bias, chosen.stride)

    set_forward(module, padded)


@kind_of_fault("rope_base")
def _rope_base(fault: Fault) -> None:
    module: Any = fault.one_module({"LlamaRotaryEmbedding"}, "forward")
    forward, factor = module.forward, fault.size(1.3, 1.01)
    set_forward(module, lambda x, position_ids: forward(x, position_ids.float() * factor))
