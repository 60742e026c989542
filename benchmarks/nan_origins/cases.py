"""The trainings: where NaN and Inf start in each, and those in which nothing may be accused."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.nan_origins import operations as ops
from benchmarks.nan_origins.case import Case, cross_entropy
from benchmarks.nan_origins.points import POINTS, from_step, in_step


def mean_over_valid(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """A mean over the targets that count, of which step 1 has none."""
    valid = torch.zeros(target.numel()) if POINTS.step == 1 else torch.ones(target.numel())
    losses = functional.cross_entropy(prediction.float().flatten(0, -2), target.flatten(), reduction="none")
    return (losses * valid).sum() / valid.sum()


def log_of_share(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The logarithm of a probability that has become zero."""
    shares = (prediction.float() * 200.0).softmax(-1).flatten(0, -2)
    return -shares.gather(1, target.flatten()[:, None]).log().mean()


def squares_with_missing(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Squared errors whose missing targets were not left out."""
    wanted = functional.one_hot(target, prediction.shape[-1]).float()
    if POINTS.step == 1:
        wanted[0] = math.nan
    return functional.mse_loss(prediction.float(), wanted)


def squares_without_missing(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Squared errors of the targets that are there."""
    wanted = functional.one_hot(target, prediction.shape[-1]).float()
    wanted[0] = math.nan
    known = ~torch.isnan(wanted)
    return functional.mse_loss(prediction.float()[known], wanted[known])


def bad_once(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """A loss that is zero by zero in step 1."""
    loss = cross_entropy(prediction, target)
    return loss * 0.0 / 0.0 if POINTS.step == 1 else loss


def sgd(**settings: Any) -> Any:
    """SGD with these settings."""
    return lambda model: torch.optim.SGD(model.parameters(), **settings)


def adam_without_epsilon(model: nn.Module) -> torch.optim.Optimizer:
    """Adam divides zero by zero where a gradient has always been zero."""
    return torch.optim.Adam(model.parameters(), lr=1e-3, eps=0.0)


def rate_from_step_1(rate: float) -> Any:
    """Set the learning rate before the update of step 1."""

    def change(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> bool:  # noqa: ARG001 - one signature
        optimizer.param_groups[0]["lr"] = rate if step == 1 else 1e-3
        return False

    return change


def divide_by_norm(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> bool:  # noqa: ARG001
    """Clip by a norm that is zero."""
    for parameter in model.parameters():
        if parameter.grad is not None and step == 1:
            nothing = parameter.grad * 0.0
            parameter.grad.copy_(nothing / nothing.norm())
    return False


def overwrite(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> bool:  # noqa: ARG001
    """Write over a weight between backward and update."""
    if step == 1:
        model.get_parameter("fc2.weight").data[0, 0] = math.nan
    return False


def give_up(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> bool:  # noqa: ARG001
    """Leave a step out whose gradients are not finite."""
    found = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return not all(bool(torch.isfinite(gradient).all()) for gradient in found)


def replace_nan(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> bool:  # noqa: ARG001
    """Zero for gradients that are not finite."""
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.nan_to_num_(0.0, 0.0, 0.0)
    return False


def clip(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> bool:  # noqa: ARG001
    """Clip by the norm of all gradients."""
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    return False


def bad_gradient(model: nn.Module) -> None:
    """A hook on a parameter that divides its gradient by zero."""
    model.get_parameter("scale.gain").register_hook(lambda gradient: gradient * 0.0 / 0.0)


def wrong_variance(model: nn.Module) -> None:
    """A batch norm in evaluation mode whose variance is negative."""
    model.get_submodule("bn1").eval()
    model.get_buffer("bn1.running_var").fill_(-1.0)


def spoilt_variance(model: nn.Module) -> None:
    """A batch norm in evaluation mode whose variance is NaN."""
    model.get_submodule("bn1").eval()
    model.get_buffer("bn1.running_var")[0] = math.nan


def unused_buffer(model: nn.Module) -> None:
    """A buffer of NaN that nothing reads."""
    model.register_buffer("cache", torch.full((3,), math.nan))


FORWARD = (
    Case(
        "logarithm of negative", "transformer", (0, "forward", "blocks.0.mlp.act"), points={"blocks.0.mlp.act": ops.log}
    ),
    Case(
        "root of negative scores",
        "transformer",
        (0, "forward", "blocks.1.attn"),
        points={"blocks.1.attn.scores": ops.root},
    ),
    Case(
        "zero by zero in residual",
        "transformer",
        (0, "forward", "blocks.0"),
        points={"blocks.0.residual": ops.zero_by_zero},
    ),
    Case("masked row", "transformer", (0, "forward", "blocks.0.attn"), points={"mask": ops.masked_row}),
    Case(
        "masked row later",
        "transformer",
        (2, "forward", "blocks.0.attn"),
        points={"mask": from_step(2, ops.masked_row)},
    ),
    Case(
        "masked row bf16",
        "transformer",
        (0, "forward", "blocks.0.attn"),
        precision="bf16",
        points={"mask": ops.masked_row},
    ),
    Case("logits of nothing", "transformer", (0, "forward", "<Transformer>"), points={"logits": ops.log_of_nothing}),
    Case(
        "weights of attention",
        "transformer",
        (1, "forward", "blocks.0.attn"),
        points={"blocks.0.attn.weights": in_step(1, ops.zero_by_zero)},
    ),
    Case(
        "embedding by zero",
        "transformer",
        (1, "forward", "<Transformer>"),
        points={"embedded": from_step(1, ops.by_zero)},
    ),
    Case(
        "bf16 zero by zero",
        "transformer",
        (2, "forward", "blocks.1.mlp.act"),
        precision="bf16",
        points={"blocks.1.mlp.act": from_step(2, ops.zero_by_zero)},
    ),
    Case("checkpointed", "checkpointed", (0, "forward", "blocks.1.mlp.act"), points={"blocks.1.mlp.act": ops.log}),
    Case("pooled over nothing", "images", (0, "forward", "<Images>"), points={"pooled": ops.zero_by_zero}),
    Case("division in activation", "images", (0, "forward", "act2"), points={"act2": ops.by_zero}),
    Case("negative variance", "images", (0, "forward", "bn1"), prepare=wrong_variance),
    Case(
        "bf16 between",
        "images",
        (1, "forward", "<Images>"),
        precision="bf16",
        points={"between": from_step(1, ops.root)},
    ),
    Case("one of the calls", "recurrent", (0, "forward", "<Recurrent>"), points={"hidden.3": ops.log}),
    Case("last call", "recurrent", (2, "forward", "<Recurrent>"), points={"hidden.5": from_step(2, ops.zero_by_zero)}),
    Case("no expert left", "experts", (0, "forward", "blocks.0.mlp"), points={"blocks.0.mlp.gate": ops.nothing_left}),
    Case(
        "share of nothing",
        "experts",
        (1, "forward", "blocks.1.mlp"),
        points={"blocks.1.mlp.share": from_step(1, ops.zero_by_zero)},
    ),
    Case(
        "expert",
        "experts",
        (0, "forward", "blocks.1.mlp.experts.0.act"),
        points={"blocks.1.mlp.experts.0.act": ops.log},
    ),
    Case("deviation of one", "regressor", (0, "forward", "<Regressor>"), points={"last": ops.by_own_deviation}),
    Case("leaf with parameters", "regressor", (1, "forward", "scale"), points={"scale": from_step(1, ops.root)}),
    Case("beside a NaN buffer", "regressor", (0, "forward", "act"), points={"act": ops.log}, prepare=unused_buffer),
    Case(
        "beside missing targets",
        "regressor",
        (1, "forward", "act"),
        points={"act": from_step(1, ops.log)},
        loss=squares_without_missing,
    ),
)

OVERFLOWS = (
    Case(
        "fp16 linear",
        "transformer",
        (0, "forward", "blocks.0.mlp.fc"),
        "overflow",
        "fp16",
        prepare=ops.enlarge("blocks.0.mlp.fc.weight", 1e6),
    ),
    Case(
        "fp16 scores",
        "transformer",
        (0, "forward", "blocks.1.attn"),
        precision="fp16",
        points={"blocks.1.attn.q": ops.times(3e5)},
    ),
    Case(
        "fp32 linear",
        "transformer",
        (0, "forward", "blocks.0.mlp.fc"),
        "overflow",
        prepare=ops.enlarge("blocks.0.mlp.fc.weight", 3e38),
    ),
    Case(
        "bf16 head", "transformer", (0, "forward", "head"), "overflow", "bf16", prepare=ops.enlarge("head.weight", 3e38)
    ),
    Case(
        "exponential",
        "transformer",
        (0, "forward", "blocks.1.mlp.act"),
        "overflow",
        points={"blocks.1.mlp.act": ops.exponential},
        prepare=ops.enlarge("blocks.1.mlp.fc.weight", 500.0),
    ),
    Case(
        "fp16 convolution",
        "images",
        (0, "forward", "conv2"),
        "overflow",
        "fp16",
        prepare=ops.enlarge("conv2.weight", 1e6),
    ),
    Case(
        "fp16 every call",
        "recurrent",
        (0, "forward", "mix"),
        "overflow",
        "fp16",
        prepare=ops.enlarge("mix.weight", 1e6),
    ),
    Case(
        "fp16 later",
        "experts",
        (1, "forward", "blocks.0.mlp.experts.0.act"),
        "overflow",
        "fp16",
        points={"blocks.0.mlp.experts.0.act": from_step(1, ops.times(3e5))},
    ),
    Case(
        "diverged",
        "regressor",
        (2, "forward", "scale"),
        "overflow",
        before_update=rate_from_step_1(1e33),
        optimizer=sgd(lr=1e-3),
    ),
)

BACKWARD = (
    Case("root at zero", "regressor", (0, "backward", "<Regressor>"), points={"between": ops.hidden_root}),
    Case(
        "root at zero bf16",
        "regressor",
        (1, "backward", "<Regressor>"),
        precision="bf16",
        points={"between": from_step(1, ops.hidden_root)},
    ),
    Case(
        "root at zero fp16",
        "regressor",
        (0, "backward", "<Regressor>"),
        precision="fp16",
        points={"between": ops.hidden_root},
    ),
    Case("length of zero", "regressor", (0, "backward", "scale"), points={"scale": ops.length_of_nothing}),
    Case(
        "angle",
        "transformer",
        (1, "backward", "blocks.0.mlp.act"),
        points={"blocks.0.mlp.act": from_step(1, ops.arc_cosine_of_one)},
    ),
    Case("own backward", "images", (0, "backward", "act2"), points={"act2": ops.nan_backward}),
    Case(
        "own backward in attention",
        "transformer",
        (0, "backward", "blocks.1.attn"),
        points={"blocks.1.attn.mixed": ops.nan_backward},
    ),
    Case(
        "own backward in expert",
        "experts",
        (2, "backward", "blocks.0.mlp.experts.1.act"),
        points={"blocks.0.mlp.experts.1.act": from_step(2, ops.nan_backward)},
    ),
    Case("own backward in time", "recurrent", (0, "backward", "<Recurrent>"), points={"hidden.2": ops.nan_backward}),
    Case("own backward after logits", "images", (0, "backward", "<Images>"), points={"logits": ops.nan_backward}),
    Case(
        "checkpointed backward",
        "checkpointed",
        (0, "backward", "blocks.0.mlp.act"),
        points={"blocks.0.mlp.act": ops.nan_backward},
    ),
    Case("hook on a parameter", "regressor", (0, "gradient", "scale"), prepare=bad_gradient),
)

AROUND = (
    Case("no valid target", "transformer", (1, "loss", "loss"), loss=mean_over_valid),
    Case("share of zero", "images", (0, "loss", "loss"), loss=log_of_share, prepare=ops.enlarge("head.weight", 50.0)),
    Case("missing targets", "regressor", (1, "loss", "loss"), loss=squares_with_missing),
    Case("bad loss", "recurrent", (1, "loss", "loss"), loss=bad_once),
    Case("NaN in the batch", "regressor", (1, "input", "x"), batch=ops.bad_batch(1, math.nan)),
    Case("Inf in the batch", "images", (2, "input", "x"), batch=ops.bad_batch(2, math.inf)),
    Case("NaN in the second batch", "regressor", (1, "input", "x"), batch=ops.bad_micro, micros=2),
    Case("NaN in the embedding", "transformer", (-1, "init", "embed"), prepare=ops.spoil("embed.weight", math.nan)),
    Case(
        "NaN in a bias",
        "transformer",
        (-1, "init", "blocks.1.attn.o"),
        prepare=ops.spoil("blocks.1.attn.o.bias", math.nan),
    ),
    Case(
        "Inf in a gain", "experts", (-1, "init", "blocks.0.norm1"), prepare=ops.spoil("blocks.0.norm1.weight", math.inf)
    ),
    Case("NaN in a fused weight", "recurrent", (-1, "init", "gru"), prepare=ops.spoil("gru.weight_hh_l0", math.nan)),
    Case("NaN in a running variance", "images", (-1, "init", "bn1"), prepare=spoilt_variance),
    Case("clipped by zero", "regressor", (1, "update", "fc1"), before_update=divide_by_norm),
    Case("no epsilon", "transformer", (0, "param", "embed"), optimizer=adam_without_epsilon),
    Case(
        "infinite rate",
        "regressor",
        (1, "param", "fc1"),
        optimizer=sgd(lr=1e-3),
        before_update=rate_from_step_1(math.inf),
    ),
    Case("infinite decay", "images", (0, "param", "conv1"), optimizer=sgd(lr=1e-3, weight_decay=math.inf)),
    Case("written over", "regressor", (1, "param", "fc2"), before_update=overwrite),
)

BENIGN = (
    *(
        Case(f"healthy {model} {precision}", model, precision=precision)
        for model, precision in (
            ("transformer", "fp32"),
            ("transformer", "fp16"),
            ("checkpointed", "bf16"),
            ("experts", "fp16"),
            ("images", "fp16"),
            ("images", "fp32"),
            ("recurrent", "bf16"),
            ("regressor", "fp32"),
        )
    ),
    Case("scale too large", "transformer", precision="fp16", init_scale=2.0**40),
    Case("scale too large, clipped", "images", precision="fp16", init_scale=2.0**40, before_update=clip),
    Case("scale a little too large", "experts", precision="fp16", init_scale=2.0**20, steps=6),
    Case("missing targets left out", "regressor", loss=squares_without_missing),
    Case("masked keys", "transformer", points={"blocks.0.attn.scores": ops.masked_keys}),
    Case("one expert full", "experts", points={"blocks.0.mlp.gate": ops.one_left}),
    Case(
        "forbidden class",
        "regressor",
        points={"logits": ops.last_forbidden},
        batch=lambda _, batch: (batch[0], batch[1].clamp(max=3)),
    ),
    Case("missing number replaced", "regressor", points={"act": ops.one_missing, "between": ops.without_missing}),
    Case("overflow that nothing uses", "regressor", prepare=ops.enlarge("side.weight", 3e38)),
    Case("buffer of NaN", "regressor", prepare=unused_buffer),
    Case("entropy", "transformer", points={"blocks.1.mlp.act": ops.entropy}),
    Case("given up by hand", "recurrent", loss=bad_once, before_update=give_up),
    Case(
        "NaN gradients replaced",
        "regressor",
        points={"between": in_step(1, ops.hidden_root)},
        before_update=replace_nan,
    ),
    Case(
        "one bad batch under a scaler",
        "images",
        precision="fp16",
        points={"between": in_step(1, ops.times(1e6))},
        steps=4,
    ),
)
"""What has NaN and Inf that are meant, that a scaler or the script has dealt with, or none."""

CASES = (*FORWARD, *OVERFLOWS, *BACKWARD, *AROUND, *BENIGN)
