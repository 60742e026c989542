"""Matrix products as devices compute them: what their inputs are shortened to, and in which order they are summed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

MANTISSA = 23
"""The bits of a float32 behind the leading one."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How products are computed: `shorten` rounds their inputs, `returned` what comes out; sums are in float32.

    With `halves` the second half of each sum is taken first, as another kernel may do.
    """

    name: str
    shorten: Callable[[Tensor], Tensor]
    returned: Callable[[Tensor], Tensor]
    halves: bool = False

    def product(self, first: Tensor, second: Tensor) -> Tensor:
        """The product of [..., m, k] and [..., k, n]."""
        first, second = self.shorten(first), self.shorten(second)
        if not self.halves:
            return self.returned(first @ second)
        half = first.shape[-1] // 2
        late = first[..., half:] @ second[..., half:, :]
        return self.returned(late + first[..., :half] @ second[..., :half, :])


def product(first: Tensor, second: Tensor, how: Arithmetic) -> Tensor:
    """The product of [..., m, k] and [..., k, n]; its gradients are computed the same way."""
    found: Tensor = _Product.apply(first, second, how)  # type: ignore[no-untyped-call]
    return found


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, how: Arithmetic) -> Tensor:
        ctx.save_for_backward(first, second)
        ctx.how = how
        return how.product(first, second)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        first, second = ctx.saved_tensors
        how: Arithmetic = ctx.how
        of_first = how.product(gradient, second.transpose(-2, -1)) if ctx.needs_input_grad[0] else None
        return of_first, how.product(first.transpose(-2, -1), gradient), None


def _as_it_is(values: Tensor) -> Tensor:
    return values


def _bf16(values: Tensor) -> Tensor:
    return values.bfloat16().float()


def _tf32(values: Tensor) -> Tensor:
    """Ten bits, rounded to the nearest."""
    return _cut(values, 10, 1 << (MANTISSA - 10 - 1))


def _hf32(values: Tensor) -> Tensor:
    """Eleven bits; the others are cut off."""
    return _cut(values, 11, 0)


def _cut(values: Tensor, bits: int, added: int) -> Tensor:
    """Values with so many bits behind the leading one, after `added` units of the last bit were added."""
    dropped = (1 << (MANTISSA - bits)) - 1
    return ((values.detach().contiguous().view(torch.int32) + added) & ~dropped).view(torch.float32)


@dataclass(frozen=True, slots=True)
class Precision:
    """A class of precision: the reference's device, a healthy other one, and the unit roundoff both work in."""

    reference: Arithmetic
    device: Arithmetic
    unit: float


PRECISIONS: Mapping[str, Precision] = {
    "fp32": Precision(
        Arithmetic("fp32", _as_it_is, _as_it_is),
        Arithmetic("fp32, other sums", _as_it_is, _as_it_is, halves=True),
        2.0**-24,
    ),
    "tf32": Precision(
        Arithmetic("TF32", _tf32, _as_it_is),
        Arithmetic("HF32, other sums", _hf32, _as_it_is, halves=True),
        2.0**-11,
    ),
    "bf16": Precision(
        Arithmetic("bf16 autocast", _bf16, _bf16),
        Arithmetic("bf16 autocast, other sums", _bf16, _bf16, halves=True),
        2.0**-8,
    ),
    "bf16, fused": Precision(
        Arithmetic("bf16 autocast", _bf16, _bf16),
        Arithmetic("bf16 autocast, fused", _bf16, _as_it_is, halves=True),
        2.0**-8,
    ),
}
"""By name. A fused kernel does not round what the next operation takes from it.

The units are those by which `align capture --perturb` moves weights.
"""
