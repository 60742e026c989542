"""Faults in the code between modules, forward."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from benchmarks.localization.fault import Fault, kind_of_fault, lots, one_channel, residual_site, scaled, with_argument
from benchmarks.localization.intercept import Site, rounded


@kind_of_fault("gate_formula")
def _gate_formula(fault: Fault) -> None:
    module = fault.one_module({"GruCell"}, "forward")
    if fault.large:
        fault.replace(module, Site("sub"), lambda f, args, kw: -f(*args, **kw))
    else:
        fault.replace(module, Site("sigmoid", nth=1), lambda f, args, kw: f(*args, **kw) * 1.01)


@kind_of_fault("attention_scale")
def _attention_scale(fault: Fault) -> None:
    module, code = fault.attention()
    # Leaving the scale out is the same as a factor of 1 in its place.
    fault.replace(module, Site("mul", code), lambda f, args, kw: args[0] if fault.large else f(*args, **kw) * 1.01)


@kind_of_fault("mask")
def _mask(fault: Fault) -> None:
    module, code = fault.attention()
    row = fault.random.randrange(4, 24)

    def opened(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        scores, mask = args
        if fault.large:
            return scores + torch.zeros_like(mask)
        mask = mask.clone()
        mask[..., row, row + 1] = 0.0
        return func(scores, mask, **kwargs)

    fault.replace(module, Site("add", code), opened)


@kind_of_fault("softmax_short")
def _softmax_short(fault: Fault) -> None:
    module, code = fault.attention()
    fault.replace(module, Site("softmax", code), lambda f, args, kw: rounded(f(*args, **kw), fault.few_bits))


@kind_of_fault("heads_swapped")
def _heads_swapped(fault: Fault) -> None:
    module, code = fault.attention()

    def swapped(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        found: Tensor = func(*args, **kwargs)
        other = found[:, [1, 0, *range(2, found.shape[1])]]
        return other if fault.large else torch.cat((other[:1], found[1:]))

    fault.replace(module, Site("matmul", code, 1), swapped)


@kind_of_fault("positions_off")
def _positions_off(fault: Fault) -> None:
    name = {"gpt2": "GPT2Model", "moe": "MixtureNet"}[fault.family]
    module = next(m for _, m in fault.modules({name}))
    fault.answers.append(("forward", "transformer" if fault.family == "gpt2" else "<MixtureNet>"))
    fault.replace(module, Site("arange"), lambda f, args, kw: f(*args, **kw) + 1)


@kind_of_fault("rope_interleaved")
def _rope_interleaved(fault: Fault) -> None:
    module = fault.one_module({"LlamaAttention"}, "forward")
    nth = fault.random.randrange(2)
    if not fault.large:
        fault.replace(module, Site("mul", "apply_rotary_pos_emb", 2 * nth), lambda f, args, kw: f(*args, **kw) * 1.01)
        return

    def interleaved(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        del func, kwargs
        first, second = args[0]
        whole = torch.cat((second.neg(), first), dim=-1)  # as it was before it was turned
        return torch.stack((-whole[..., 1::2], whole[..., ::2]), dim=-1).flatten(-2)

    fault.replace(module, Site("cat", "rotate_half", nth), interleaved)


@kind_of_fault("residual")
def _residual(fault: Fault) -> None:
    module, site, branch = residual_site(fault, "forward")
    factor = fault.size(2.0, 1.01)
    fault.replace(module, site, lambda f, args, kw: f(*with_argument(args, branch, lambda x: scaled(x, factor)), **kw))


@kind_of_fault("residual_channel")
def _residual_channel(fault: Fault) -> None:
    module, site, _ = residual_site(fault, "forward")
    seed = fault.random.random()

    def changed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        found = func(*args, **kwargs)
        return scaled(found, one_channel(found, fault.size(2.0, 1.05), lots(seed)))

    fault.replace(module, site, changed)


@kind_of_fault("pooling")
def _pooling(fault: Fault) -> None:
    fault.answers.append(("forward", "<ResidualNet>"))

    def pooled(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        found: Tensor = func(args[0][..., :-1, :], *args[1:], **kwargs) if fault.large else func(*args, **kwargs) * 1.01
        return found

    fault.replace(fault.model, Site("mean"), pooled)


@kind_of_fault("router_top_k")
def _router_top_k(fault: Fault) -> None:
    module = fault.one_module({"Mixture"}, "forward")
    token = fault.random.randrange(32)

    def taken(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        kept, which = func(*args, **kwargs)
        lost = torch.zeros_like(kept)
        if fault.large:
            lost[..., 1] = 1.0
        else:
            lost[0, token, 1] = 1.0
        return kept * (1 - lost), which

    fault.replace(module, Site("topk", "gates"), taken)


@kind_of_fault("gate_scale")
def _gate_scale(fault: Fault) -> None:
    module = fault.one_module({"Mixture"}, "forward")
    fault.replace(module, Site("div", "gates"), lambda f, args, kw: args[0] if fault.large else f(*args, **kw) * 1.01)


@kind_of_fault("loss_scale")
def _loss_scale(fault: Fault) -> None:
    fault.answers.append(("loss", "loss"))
    fault.of_loss = lambda loss: loss * fault.size(1.3, 1.001)
