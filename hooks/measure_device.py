"""Statistics, sketch and exponent counts of tensors on an accelerator, without waiting for it.

All numbers of a tensor stay on its device until `fetch` brings those of all tensors over in one copy. Nothing here
has a shape that depends on values, or reads one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from align import sketch as sketches
from align.hooks.bit_patterns import COUNTED, FORMS, SHORT, Form
from align.hooks.measured import Measured
from align.hooks.pieces import in_storage_order, pieces
from align.records import TensorStats

Array = np.ndarray[Any, Any]

ROWS = 8 * 1024
"""Rows of K elements in a block: 2 million elements. Few kernels are launched, and each count is exact in float32."""
CHAIN = 32
"""Terms in one float32 chain of a sum."""
DOUBLE_RESOLUTION = 0.7 * 2.0**-24
"""Own error of a sketch summed in float64 (measured 0.36 to 0.72 u, u = 2^-24)."""
TREE_RESOLUTION = 3.5 * 2.0**-24
"""An explicit float32 tree of chains of 32 (measured 1.8 to 3.5 u for 1e4 to 1e8 elements)."""

WITHOUT_FLOAT64 = ("npu", "mps")
NUMBERS = 5
"""Floats of a block: least and greatest element, the factor of the sums, sum, sum of squares."""
COUNTS = 5
"""Counts of a block: zeros, NaN, +Inf, -Inf, subnormals."""
LARGE, SMALL = 2.0**50, 2.0**-40
"""Beyond these magnitudes sums of squares of a block may leave the range of float32, so its elements are scaled."""
SCALE = 2.0**80
FLOAT32_CODES = 256
LANES = 64
"""Each exponent has so many counters, one every so many elements: additions to one address wait for each other."""


@dataclass(slots=True)
class _Waiting:
    """Numbers that are still on their device: those of the blocks, their exponent counts, the sketch."""

    target: Measured
    numbers: torch.Tensor
    numel: int
    blocks: int
    codes: int


class DeviceKernel:
    """Measures tensors on accelerators; holds the numbers that have not been fetched yet.

    There is no working memory to be reused: training may use several streams, which do not wait for each other.
    """

    def __init__(self) -> None:
        self._signs: dict[torch.device, torch.Tensor] = {}
        self._waiting: list[_Waiting] = []

    def measure(self, tensor: torch.Tensor, *, with_sketch: bool, exponents: bool = False) -> Measured:
        """Begin to measure a strided tensor of real numbers that has elements."""
        device = tensor.device
        double = device.type not in WITHOUT_FLOAT64
        dtype = torch.float64 if double else torch.float32
        form = FORMS[tensor.dtype] if exponents and tensor.dtype in COUNTED else None
        buckets = sketches.bucket_count(tuple(tensor.shape)) if with_sketch else 0
        if not with_sketch:
            tensor = in_storage_order(tensor)
        blocks: list[torch.Tensor] = []
        codes: list[torch.Tensor] = []
        partials: list[torch.Tensor] = []
        for view, offset in pieces(tensor, ROWS * (buckets or sketches.BUCKET_COUNTS[0])):
            flat = _flat(view, double=double)
            blocks.append(_block_numbers(flat, tensor.dtype, double=double))
            if form is not None:
                codes.append(_exponents(flat, form))
            if with_sketch:
                partials.append(self._bucket_sums(flat, offset, buckets, double=double))
        parts = blocks + codes
        if partials:
            parts.append(torch.stack(partials).sum(0)[: min(tensor.numel(), buckets)])
        target = Measured(resolution=DOUBLE_RESOLUTION if double else TREE_RESOLUTION)
        self._waiting.append(
            _Waiting(
                target,
                torch.cat([part.to(dtype) for part in parts]),
                tensor.numel(),
                len(blocks),
                form.codes if form is not None else 0,
            )
        )
        return target

    def fetch(self) -> None:
        """Bring the waiting numbers to the host: one wait and one copy for each device."""
        waiting, self._waiting = self._waiting, []
        for device in dict.fromkeys(item.numbers.device for item in waiting):
            items = [item for item in waiting if item.numbers.device == device]
            _synchronize(device)
            numbers = torch.cat([item.numbers for item in items]).cpu().numpy().astype(np.float64)
            ends = np.cumsum([item.numbers.numel() for item in items])
            for item, part in zip(items, np.split(numbers, ends[:-1]), strict=True):
                _fill(item, part)

    def _bucket_sums(self, flat: torch.Tensor, offset: int, buckets: int, *, double: bool) -> torch.Tensor:
        numel, first = flat.numel(), offset % buckets
        start = offset % sketches.PERIOD
        signs = self._signs_on(flat.device)
        signed = torch.zeros(-(-(first + numel) // buckets) * buckets, dtype=torch.float32, device=flat.device)
        position = 0
        while position < numel:
            length = min(numel - position, sketches.PERIOD - start)
            torch.mul(
                flat[position : position + length],
                signs[start : start + length],
                out=signed[first + position : first + position + length],
            )
            position, start = position + length, 0
        rows = signed.view(-1, buckets)
        return rows.sum(0, dtype=torch.float64) if double else _tree(rows)

    def _signs_on(self, device: torch.device) -> torch.Tensor:
        if device not in self._signs:
            self._signs[device] = torch.tensor(sketches.signs(), device=device)
        return self._signs[device]


def _flat(view: torch.Tensor, *, double: bool) -> torch.Tensor:
    """The piece as flat float32 (float64 stays, integers become it)."""
    if view.dtype is torch.float64:
        return view.reshape(-1)
    if not view.is_floating_point():
        return view.reshape(-1).to(torch.float64 if double else torch.float32)
    return view.reshape(-1).float()


def _block_numbers(flat: torch.Tensor, dtype: torch.dtype, *, double: bool) -> torch.Tensor:
    """The NUMBERS and COUNTS of one block, in float64 where there is one."""
    finite = flat.isfinite()
    zero = torch.zeros((), dtype=flat.dtype, device=flat.device)
    # Not infinity: a device that saturates would set its overflow flag, by which training skips steps.
    bound = torch.full((), torch.finfo(flat.dtype).max, dtype=flat.dtype, device=flat.device)
    clean = torch.where(finite, flat, zero)
    low, high = torch.where(finite, flat, bound).amin(), torch.where(finite, flat, -bound).amax()
    counts = [flat == 0, flat.isnan(), flat == math.inf, flat == -math.inf]
    if dtype in SHORT:
        counts.append((flat.abs() < torch.finfo(dtype).tiny) & (flat != 0))
    else:
        counts.append(torch.zeros((1,), dtype=torch.bool, device=flat.device))
    tally = torch.stack([count.sum() for count in counts])
    if double:
        clean = clean.double()
        sums = [zero.double() + 1.0, clean.sum(), clean.square().sum()]
        return torch.cat([torch.stack([low.double(), high.double(), *sums]), tally.double()])
    peak = clean.abs().amax()
    factor = torch.where(peak > LARGE, zero + 1.0 / SCALE, torch.where(peak < SMALL, zero + SCALE, zero + 1.0))
    scaled = clean * factor
    return torch.cat(
        [torch.stack([low, high, factor, _chained_sum(scaled), _chained_sum(scaled * scaled)]), tally.float()]
    )


def _exponents(flat: torch.Tensor, form: Form) -> torch.Tensor:
    """The number of elements of each code, from the exponents that they have in float32."""
    codes = flat.abs().view(torch.int32) >> 23
    # 112 is the difference of both biases: subnormals and zeros of float16 come out at or below 0, Inf and NaN above.
    codes = codes if form.codes == FLOAT32_CODES else (codes - 112).clamp(0, form.codes - 1)
    lanes = torch.arange(LANES, device=flat.device).repeat(-(-flat.numel() // LANES))[: flat.numel()]
    counters = torch.zeros(form.codes * LANES, dtype=torch.float32, device=flat.device)
    counters.scatter_add_(0, codes.long() * LANES + lanes, torch.ones_like(flat))
    return counters.view(form.codes, LANES).sum(1)


def _chained_sum(values: torch.Tensor) -> torch.Tensor:
    """The sum of a flat tensor over short float32 chains."""
    return _tree(values.view(-1, 1))[0]


def _tree(rows: torch.Tensor) -> torch.Tensor:
    """Column sums of (rows, K) by float32 chains of at most 32 rows a level."""
    while rows.shape[0] > 1:
        rest = -rows.shape[0] % CHAIN
        if rest and rows.shape[0] > CHAIN:
            rows = torch.cat([rows, rows.new_zeros(rest, rows.shape[1])])
        rows = rows.view(-1, min(CHAIN, rows.shape[0]), rows.shape[1]).sum(1)
    return rows[0]


def _synchronize(device: torch.device) -> None:
    """Wait for all streams of a device: numbers that another stream makes may not be there yet for this one."""
    synchronize = getattr(getattr(torch, device.type, None), "synchronize", None)
    if synchronize is not None:
        synchronize()


def _fill(item: _Waiting, numbers: Array) -> None:
    """Put fetched numbers where they are waited for; sums over blocks are in float64."""
    width = NUMBERS + COUNTS
    blocks, rest = numbers[: item.blocks * width].reshape(-1, width), numbers[item.blocks * width :]
    low, high, factor, total, squares = blocks[:, :NUMBERS].T
    zeros, nans, positive, negative, subnormals = (int(count) for count in blocks[:, NUMBERS:].sum(axis=0))
    empty = nans + positive + negative == item.numel
    item.target.stats = TensorStats(
        item.numel, 0.0 if empty else float(low.min()), 0.0 if empty else float(high.max()),
        float((total / factor).sum()), float((squares / factor**2).sum()), zeros, nans, positive, negative, subnormals,
    )  # fmt: skip
    if item.codes:
        counted, rest = np.split(rest, [item.blocks * item.codes])
        item.target.exponents = counted.reshape(-1, item.codes).sum(axis=0).astype(np.int64)
    if len(rest):
        with np.errstate(all="ignore"):
            item.target.sketch = rest.astype(np.float32)
