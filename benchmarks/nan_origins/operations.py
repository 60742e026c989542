"""What a case puts into a model: operations without a finite result, and ones that are meant."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from benchmarks.nan_origins.models import draw_batch
from benchmarks.nan_origins.points import Operation


def log(x: torch.Tensor) -> torch.Tensor:
    """The logarithm, also of negative numbers."""
    return x.log()


def root(x: torch.Tensor) -> torch.Tensor:
    """The square root, also of negative numbers."""
    return x.sqrt()


def zero_by_zero(x: torch.Tensor) -> torch.Tensor:
    """Each number by its distance to itself, times that distance."""
    nothing = x - x.detach()
    return nothing / nothing


def by_zero(x: torch.Tensor) -> torch.Tensor:
    """A division of positive numbers by zero."""
    return (x.abs() + 1.0) / (x.detach() * 0.0)


def by_own_deviation(x: torch.Tensor) -> torch.Tensor:
    """Divided by the deviation of a single number."""
    return x / x[..., :1].std(-1, keepdim=True)


def log_of_nothing(x: torch.Tensor) -> torch.Tensor:
    """The logarithm of numbers of which half are zero."""
    return (x.abs() * (x > 0)).log()


def times(factor: float) -> Operation:
    """Multiplied by a number."""

    def multiply(x: torch.Tensor) -> torch.Tensor:
        return x * factor

    return multiply


def exponential(x: torch.Tensor) -> torch.Tensor:
    """The exponential."""
    return x.exp()


def hidden_root(x: torch.Tensor) -> torch.Tensor:
    """The root where it is positive; its derivative at zero is not left out."""
    squared = x * (x > 0)
    return torch.where(squared > 0, squared.sqrt(), torch.zeros_like(x))


def length_of_nothing(x: torch.Tensor) -> torch.Tensor:
    """Adds the length of a vector that is zero."""
    return x + (x - x).square().sum(-1, keepdim=True).sqrt()


def arc_cosine_of_one(x: torch.Tensor) -> torch.Tensor:
    """Adds the angle between equal vectors."""
    return x + torch.acos(x * 0.0 + 1.0)


class NanBackward(torch.autograd.Function):
    """Hands its input on, and a gradient with NaN back."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # noqa: ARG004 - torch's signature
        """Return the same values."""
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # noqa: ARG004 - torch's signature
        """Return zero by zero."""
        return gradient * 0.0 / 0.0


def nan_backward(x: torch.Tensor) -> torch.Tensor:
    """An operator of one's own with a wrong backward."""
    result: torch.Tensor = NanBackward.apply(x)  # type: ignore[no-untyped-call]
    return result


def masked_row(mask: torch.Tensor) -> torch.Tensor:
    """The mask with a row of which nothing is left."""
    mask = mask.clone()
    mask[2] = -math.inf
    return mask


def masked_keys(scores: torch.Tensor) -> torch.Tensor:
    """Scores of which the last keys, and so no whole row, are masked."""
    hidden = torch.zeros_like(scores, dtype=torch.bool)
    hidden[..., -2:] = True
    hidden[..., 0] = False
    return scores.masked_fill(hidden, -math.inf)


def nothing_left(scores: torch.Tensor) -> torch.Tensor:
    """Scores of which the first row is masked completely."""
    scores = scores.clone()
    scores[:, 0] = -math.inf
    return scores


def one_left(scores: torch.Tensor) -> torch.Tensor:
    """Scores of two experts of which the second is full."""
    scores = scores.clone()
    scores[..., 1] = -math.inf
    return scores


def last_forbidden(logits: torch.Tensor) -> torch.Tensor:
    """Logits of which the last class is not allowed."""
    logits = logits.clone()
    logits[..., -1] = -math.inf
    return logits


def one_missing(x: torch.Tensor) -> torch.Tensor:
    """One number that is marked as missing."""
    x = x.clone()
    x[0, 0] = math.nan
    return x


def without_missing(x: torch.Tensor) -> torch.Tensor:
    """Zero for what is missing."""
    return torch.where(torch.isnan(x), torch.zeros_like(x), x)


def entropy(x: torch.Tensor) -> torch.Tensor:
    """Adds an entropy in which the logarithm of zero is left out before it is taken."""
    shares = x.relu()
    return x + torch.where(shares > 0, shares, torch.ones_like(x)).log() * shares


def spoil(path: str, value: float) -> Any:
    """Set the first number of a parameter or buffer."""

    def change(model: nn.Module) -> None:
        owner, _, name = path.rpartition(".")
        getattr(model.get_submodule(owner), name).data.view(-1)[0] = value

    return change


def enlarge(path: str, factor: float) -> Any:
    """Multiply a parameter."""

    def change(model: nn.Module) -> None:
        owner, _, name = path.rpartition(".")
        getattr(model.get_submodule(owner), name).data.mul_(factor)

    return change


def bad_batch(step: int, value: float) -> Any:
    """A batch in which one number is not finite."""

    def change(now: int, batch: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        x, target = batch
        if now == step:
            x = x.clone()
            x.view(-1)[1] = value
        return x, target

    return change


def bad_micro(now: int, batch: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """NaN in the second batch of step 1."""
    x, target = batch
    if now == 1 and torch.equal(x, draw_batch("regressor", 3)[0]):
        x = x * math.nan
    return x, target
