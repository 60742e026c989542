"""The numbers of tensors on an accelerator, as kernels that nobody waits for.

A tensor, or a piece of a large one, is a row of elements; several small tensors are measured together as rows of one
length, their ends filled with zeros. Nothing here has a shape that depends on values, or reads one.
"""

from __future__ import annotations

import math

import torch

from align.hooks.bit_patterns import SHORT, Form

CHAIN = 32
"""Terms in one float32 chain of a sum."""
NUMBERS = 5
"""Floats of a row: least and greatest element, the factor of the sums, sum, sum of squares."""
COUNTS = 5
"""Counts of a row: zeros (those at its end too), NaN, +Inf, -Inf, subnormals."""
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
    """The NUMBERS and COUNTS of each row of (n, width), as (n, 10); in float64 where the device has it.

    `dtype` is that of the elements before they were widened, `lengths` their number in each row where some are full
    of zeros behind it.
    """
    inside = rows.isfinite()
    if lengths is not None:
        inside = inside & (torch.arange(rows.shape[1], device=rows.device) < lengths[:, None])
    zero = torch.zeros((), dtype=rows.dtype, device=rows.device)
    # Not infinity: a device that saturates would set its overflow flag, by which training skips steps.
    bound = torch.full((), torch.finfo(rows.dtype).max, dtype=rows.dtype, device=rows.device)
    clean = torch.where(inside, rows, zero)
    low, high = torch.where(inside, rows, bound).amin(1), torch.where(inside, rows, -bound).amax(1)
    counts = [rows == 0, rows.isnan(), rows == math.inf, rows == -math.inf]
    if dtype in SHORT:
        counts.append((rows.abs() < torch.finfo(dtype).tiny) & (rows != 0))
    tally = [count.sum(1) for count in counts]
    if dtype not in SHORT:
        tally.append(torch.zeros_like(tally[0]))
    if double:
        clean = clean.double()
        sums = [torch.ones_like(low).double(), clean.sum(1), clean.square().sum(1)]
    else:
        peak = clean.abs().amax(1)
        factor = torch.where(peak > LARGE, zero + 1.0 / SCALE, torch.where(peak < SMALL, zero + SCALE, zero + 1.0))
        scaled = clean * factor[:, None]
        sums = [factor, _chained_sums(scaled), _chained_sums(scaled * scaled)]
    numbers = torch.stack([low.to(sums[0].dtype), high.to(sums[0].dtype), *sums], 1)
    return torch.cat([numbers, torch.stack(tally, 1).to(numbers.dtype)], 1)


def exponent_counts(rows: torch.Tensor, form: Form) -> torch.Tensor:
    """The number of elements of each code in each row of (n, width), from the exponents that they have in float32."""
    count, width = rows.shape
    codes = rows.abs().view(torch.int32) >> 23
    # 112 is the difference of both biases: subnormals and zeros of float16 come out at or below 0, Inf and NaN above.
    codes = codes if form.codes == FLOAT32_CODES else (codes - 112).clamp(0, form.codes - 1)
    lanes = max(LANES // count, 1)
    lane = torch.arange(lanes, device=rows.device).repeat(-(-width // lanes))[:width]
    counters = torch.zeros(count, form.codes * lanes, dtype=torch.float32, device=rows.device)
    counters.scatter_add_(1, codes.long() * lanes + lane, torch.ones_like(rows))
    return counters.view(count, form.codes, lanes).sum(2)


def bucket_sums(signed: torch.Tensor, *, double: bool) -> torch.Tensor:
    """The sketch of each of n tensors from its signed elements in rows of K, (n, rows, K): (n, K)."""
    return signed.sum(1, dtype=torch.float64) if double else _tree(signed)


def _chained_sums(rows: torch.Tensor) -> torch.Tensor:
    """The sum of each row of (n, width) over short float32 chains."""
    return _tree(rows[:, :, None])[:, 0]


def _tree(rows: torch.Tensor) -> torch.Tensor:
    """(n, rows, K) summed to (n, K) by float32 chains of at most CHAIN rows a level."""
    while rows.shape[1] > 1:
        count, height, width = rows.shape
        rest = -height % CHAIN
        if rest and height > CHAIN:
            rows = torch.cat([rows, rows.new_zeros(count, rest, width)], 1)
        rows = rows.view(count, -1, min(CHAIN, height), width).sum(2)
    return rows[:, 0]
