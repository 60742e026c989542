"""The numbers of tensors on an accelerator, by few kernels that nobody waits for.

A tensor, or a piece of a large one, is a row of elements; several small tensors are measured together as rows of one
length, their ends filled with zeros. Nothing here has a shape that depends on values, or reads one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from align.hooks.bit_patterns import SHORT, Form
from align.records import TensorStats

Array = np.ndarray[Any, Any]

CHAIN = 32
"""Terms in one float32 chain of a sum."""
NUMBERS = 9
"""Numbers of a row: zeros and those below all normal numbers (both with those at its end), NaN, +Inf, -Inf; least and
greatest element, sum, sum of squares. Where sums are in float32 the factor that they were scaled by follows."""
LARGE, SMALL = 2.0**50, 2.0**-40
"""Beyond these magnitudes sums of squares of a row may leave the range of float32, so its elements are scaled."""
SCALE = 2.0**80
FLOAT32_CODES = 256
LANES = 64
"""Each exponent has so many counters, one every so many elements: additions to one address wait for each other."""


def widened(values: torch.Tensor, *, double: bool) -> torch.Tensor:
    """The elements as float32 (float64 stays, integers become it where the device has it)."""
    if values.dtype is torch.float64:
        return values
    if not values.is_floating_point():
        return values.to(torch.float64 if double else torch.float32)
    return values.float()


def row_numbers(rows: torch.Tensor, dtype: torch.dtype, lengths: torch.Tensor | None, *, double: bool) -> torch.Tensor:
    """The NUMBERS of each row of (n, width), as (n, 9), in float64; where the device has none (n, 10) in float32.

    `dtype` is that of the elements before they were widened, `lengths` their number in each row where some are full
    of zeros behind it.
    """
    zeros, nans, positive, negative = rows == 0, rows.isnan(), rows == math.inf, rows == -math.inf
    smaller = rows.abs() < torch.finfo(dtype).tiny if dtype in SHORT else zeros
    tally = torch.stack([zeros, smaller, nans, positive, negative]).sum(2).t()
    outside = nans | positive | negative
    if lengths is not None:
        outside = outside | (torch.arange(rows.shape[1], device=rows.device) >= lengths[:, None])
    # Not infinity: a device that saturates would set its overflow flag, by which training skips steps.
    bound = torch.finfo(rows.dtype).max
    low, high = rows.masked_fill(outside, bound).amin(1), rows.masked_fill(outside, -bound).amax(1)
    clean = rows.masked_fill(outside, 0.0)
    if double:
        clean = clean.double()
        found = [low, high, clean.sum(1), clean.square().sum(1)]
    else:
        peak = torch.maximum(-low, high)
        factor = torch.ones_like(peak).masked_fill(peak > LARGE, 1.0 / SCALE).masked_fill(peak < SMALL, SCALE)
        scaled = clean * factor[:, None]
        sums = _tree(torch.stack([scaled, scaled * scaled], 2))
        found = [low, high, sums[:, 0], sums[:, 1], factor]
    numbers = torch.stack([each.to(found[2].dtype) for each in found], 1)
    return torch.cat([tally.to(numbers.dtype), numbers], 1)


def statistics(rows: Array, numel: int, padding: int, *, double: bool) -> TensorStats:
    """The statistics of a tensor of so many elements from the numbers of its rows, with so many zeros behind them.

    `rows` are float64: (n, 9), or (n, 10) with the factors. Sums over rows are in float64.
    """
    zeros, smaller, nans, positive, negative = (int(count) for count in rows[:, :5].sum(axis=0))
    low, high, total, squares = rows[:, 5:NUMBERS].T
    factor = 1.0 if double else rows[:, NUMBERS]
    empty = nans + positive + negative == numel
    return TensorStats(
        numel, 0.0 if empty else float(low.min()), 0.0 if empty else float(high.max()),
        float((total / factor).sum()), float((squares / factor**2).sum()), zeros - padding, nans, positive, negative,
        smaller - zeros,
    )  # fmt: skip


def exponent_counts(rows: torch.Tensor, form: Form) -> torch.Tensor:
    """The number of elements of each code in each row of (n, width), from the exponents that they have in float32."""
    count, width = rows.shape
    codes = rows.abs().view(torch.int32) >> 23
    # 112 is the difference of both biases: subnormals and zeros of float16 come out at or below 0, Inf and NaN above.
    codes = codes if form.codes == FLOAT32_CODES else (codes - 112).clamp(0, form.codes - 1)
    lanes = max(LANES // count, 1)
    if lanes > 1:
        codes = codes * lanes + torch.arange(width, dtype=codes.dtype, device=rows.device) % lanes
    counters = torch.zeros(count, form.codes * lanes, dtype=torch.float32, device=rows.device)
    counters.scatter_add_(1, codes.long(), torch.ones_like(rows))
    return counters.view(count, form.codes, lanes).sum(2) if lanes > 1 else counters


def bucket_sums(signed: torch.Tensor, *, double: bool) -> torch.Tensor:
    """The sketch of each of n tensors from its signed elements in rows of K, (n, rows, K): (n, K)."""
    return signed.sum(1, dtype=torch.float64) if double else _tree(signed)


def _tree(rows: torch.Tensor) -> torch.Tensor:
    """(n, rows, K) summed to (n, K) by float32 chains of one length, at most CHAIN, over as few levels as it takes."""
    count, height, width = rows.shape
    levels = 1
    while CHAIN**levels < height:
        levels += 1
    chain = next(length for length in range(1, CHAIN + 1) if length**levels >= height)
    if chain**levels > height:
        rows = torch.cat([rows, rows.new_zeros(count, chain**levels - height, width)], 1)
    for _ in range(levels):
        rows = rows.view(count, -1, chain, width).sum(2)
    return rows[:, 0]
