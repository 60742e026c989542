"""Statistics and sketch of one tensor, without waiting for its device.

On the host the numbers are there at once. On other devices they stay there until `Measurements.fetch`
brings all of them over in one copy each for floats and integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from align import sketch as sketches
from align.records import TensorStats

HOST_ROWS = 1024
BLOCK = 1 << 18
DEVICE_ROWS = 8 * 1024
CHAIN = 32
DOUBLE_RESOLUTION = 0.7 * 2.0**-24
"""Own error of a sketch summed in float64 (measured 0.36 to 0.72 u, u = 2^-24)."""
CHAIN_RESOLUTION = 2.0 * 2.0**-24
"""Chains of 32 in float32, finished in float64 (measured 1.3 to 1.5 u)."""
TREE_RESOLUTION = 3.5 * 2.0**-24
"""An explicit float32 tree of chains of 32 (measured 1.8 to 3.5 u for 1e4 to 1e8 elements)."""

WITHOUT_FLOAT64 = ("npu", "mps")
FLOATS = 4
COUNTS = 5
SUBNORMAL_DTYPES = (torch.float16, torch.bfloat16)


@dataclass(slots=True)
class Measured:
    """The numbers of one tensor; `stats` is None until they have been fetched from the device."""

    stats: TensorStats | None = None
    sketch: np.ndarray[Any, np.dtype[np.float32]] | None = None
    resolution: float = 0.0


@dataclass(slots=True)
class _OnDevice:
    """Numbers that are still on their device."""

    target: Measured
    floats: torch.Tensor
    counts: torch.Tensor
    numel: int


class Measurements:
    """Measures tensors; holds its scratch memory and the numbers that have not been fetched yet."""

    def __init__(self, *, with_sketch: bool) -> None:
        self.with_sketch = with_sketch
        self._scratch: dict[torch.device, torch.Tensor] = {}
        self._signs: dict[torch.device, torch.Tensor] = {}
        self._waiting: list[_OnDevice] = []
        self._block = np.empty(0, np.float32)
        self._used = 0

    def measure(self, tensor: torch.Tensor) -> Measured:
        """Measure a real, strided tensor of any dtype; integers and bools get statistics only."""
        whole = tensor.detach()
        tensor = _real(whole)
        if tensor.numel() == 0:
            return Measured(TensorStats(0), np.zeros(0, np.float32) if self._sketched(tensor) else None)
        if not whole.is_floating_point() and not whole.is_complex():
            return self._measure(tensor, with_sketch=False)
        return self._measure(tensor, with_sketch=self.with_sketch)

    def fetch(self) -> None:
        """Bring the waiting numbers to the host: one copy of floats and one of integers for each device."""
        waiting, self._waiting = self._waiting, []
        for device in {item.floats.device for item in waiting}:
            items = [item for item in waiting if item.floats.device == device]
            floats = torch.cat([item.floats for item in items]).cpu().numpy()
            counts = torch.cat([item.counts for item in items]).cpu().numpy()
            position = 0
            for row, item in enumerate(items):
                size = item.floats.numel()
                numbers = floats[position : position + size]
                position += size
                _fill(item.target, numbers, counts[row * COUNTS : (row + 1) * COUNTS], item.numel)

    def still_has(self, tensor: torch.Tensor, stats: TensorStats) -> bool:
        """Whether a host tensor gives exactly these sums when they are taken in the same order again."""
        tensor = _real(tensor.detach())
        block = HOST_ROWS * sketches.bucket_count(tuple(tensor.shape))
        scratch = self._scratch_for(tensor.device, HOST_ROWS)
        total, squares = 0.0, 0.0
        for view, _ in pieces(tensor, block):
            flat, _ = _flat_float(view, scratch, 0)
            total += flat.sum().item()
            squares += torch.dot(flat, flat).item()
        return (total, squares) == (stats.total, stats.total_squares)

    def _sketched(self, tensor: torch.Tensor) -> bool:
        return self.with_sketch and tensor.is_floating_point()

    def _measure(self, tensor: torch.Tensor, *, with_sketch: bool) -> Measured:
        if tensor.device.type == "cpu":
            return self._on_host(tensor, with_sketch=with_sketch)
        return self._on_device(tensor, with_sketch=with_sketch)

    # ---- host

    def _on_host(self, tensor: torch.Tensor, *, with_sketch: bool) -> Measured:
        buckets = sketches.bucket_count(tuple(tensor.shape))
        block = HOST_ROWS * buckets
        lowest, highest, total, squares, nonzero = np.inf, -np.inf, 0.0, 0.0, 0
        partial = torch.zeros(buckets, dtype=torch.float64) if with_sketch else None
        scratch = self._scratch_for(tensor.device, HOST_ROWS)
        for view, offset in pieces(tensor, block):
            flat, in_scratch = _flat_float(view, scratch, offset % buckets)
            low, high = torch.aminmax(flat)
            lowest, highest = min(lowest, low.item()), max(highest, high.item())
            total += flat.sum().item()
            squares += torch.dot(flat, flat).item()
            nonzero += int(torch.count_nonzero(flat).item())
            if partial is not None:
                partial += self._partial_sketch(flat, offset, buckets, scratch, in_place=in_scratch)
        stats = TensorStats(tensor.numel(), lowest, highest, total, squares, tensor.numel() - nonzero)
        if not np.isfinite(squares) or not np.isfinite(total):
            stats = _careful_stats(tensor)
        if tensor.dtype in SUBNORMAL_DTYPES:
            stats = _with_subnormals(stats, _count_subnormals(tensor))
        if partial is None:
            return Measured(stats)
        sketch = self._row(min(tensor.numel(), buckets))
        sketch[:] = partial.numpy()[: len(sketch)]
        return Measured(stats, sketch, CHAIN_RESOLUTION)

    def _partial_sketch(
        self, flat: torch.Tensor, offset: int, buckets: int, scratch: torch.Tensor, *, in_place: bool
    ) -> torch.Tensor:
        """The bucket sums of one piece in float64; `flat` may already lie at its place in the scratch."""
        numel, first = flat.numel(), offset % buckets
        end = -(-(first + numel) // (CHAIN * buckets)) * CHAIN * buckets
        if first + numel <= CHAIN * buckets:
            end = -(-(first + numel) // buckets) * buckets
        start = offset % sketches.PERIOD
        signs = self._signs_for(flat.device)[start : start + numel]
        place = scratch[first : first + numel]
        if in_place:
            place.mul_(signs)
        else:
            torch.mul(flat, signs, out=place)
        scratch[:first].zero_()
        scratch[first + numel : end].zero_()
        rows = scratch[:end].view(-1, buckets)
        if rows.shape[0] <= CHAIN:
            return rows.sum(0).double()
        return rows.view(-1, CHAIN, buckets).sum(1).sum(0, dtype=torch.float64)

    # ---- other devices

    def _on_device(self, tensor: torch.Tensor, *, with_sketch: bool) -> Measured:
        buckets = sketches.bucket_count(tuple(tensor.shape))
        block = DEVICE_ROWS * buckets
        double = tensor.device.type not in WITHOUT_FLOAT64
        scratch = self._scratch_for(tensor.device, DEVICE_ROWS)
        numbers: list[torch.Tensor] = []
        counts: list[torch.Tensor] = []
        partials: list[torch.Tensor] = []
        for view, offset in pieces(tensor, block):
            flat, _ = _flat_float(view, scratch, 0)
            finite = flat.isfinite()
            clean = torch.where(finite, flat, torch.zeros((), dtype=flat.dtype, device=flat.device))
            low, high = _extremes(flat, finite)
            numbers.append(
                torch.stack(
                    [low, high, _chained_sum(clean, double=double), _chained_sum(clean * clean, double=double)]
                ).float()
            )
            counts.append(_device_counts(flat, tensor.dtype))
            if with_sketch:
                partials.append(self._device_sketch(flat, offset, buckets, double=double))
        floats, tally = _joined(numbers), torch.stack(counts).sum(0)
        target = Measured(resolution=DOUBLE_RESOLUTION if double else TREE_RESOLUTION)
        if with_sketch:
            sketch = torch.stack(partials).sum(0).float() if len(partials) > 1 else partials[0].float()
            floats = torch.cat([floats, sketch[: min(tensor.numel(), buckets)]])
        self._waiting.append(_OnDevice(target, floats, tally, tensor.numel()))
        return target

    def _device_sketch(self, flat: torch.Tensor, offset: int, buckets: int, *, double: bool) -> torch.Tensor:
        numel, first = flat.numel(), offset % buckets
        start = offset % sketches.PERIOD
        signs = self._signs_for(flat.device)
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

    # ---- memory that is made once

    def _row(self, size: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Room for one sketch in a large block: thousands of small ones would scatter the user's heap."""
        if self._used + size > len(self._block):
            self._block, self._used = np.empty(BLOCK, np.float32), 0
        self._used += size
        return self._block[self._used - size : self._used]

    def _scratch_for(self, device: torch.device, rows: int) -> torch.Tensor:
        if device not in self._scratch:
            self._scratch[device] = torch.empty((rows + CHAIN + 2) * 269, dtype=torch.float32, device=device)
        return self._scratch[device]

    def _signs_for(self, device: torch.device) -> torch.Tensor:
        if device not in self._signs:
            self._signs[device] = torch.tensor(sketches.signs(), device=device)
        return self._signs[device]


def pieces(tensor: torch.Tensor, block: int, offset: int = 0) -> Iterator[tuple[torch.Tensor, int]]:
    """Cut into views of at most `block` elements in logical order, each with its logical offset; copies nothing."""
    numel = tensor.numel()
    if tensor.is_contiguous():
        flat = tensor.view(-1)
        for start in range(0, numel, block):
            yield flat[start : start + block], offset + start
    elif numel <= block:
        yield tensor, offset
    elif tensor.shape[0] == 1:
        yield from pieces(tensor[0], block, offset)
    else:
        inner = numel // tensor.shape[0]
        rows = max(block // inner, 1)
        for start in range(0, tensor.shape[0], rows):
            part = tensor[start] if rows == 1 else tensor[start : start + rows]
            yield from pieces(part, block, offset + start * inner)


def _real(tensor: torch.Tensor) -> torch.Tensor:
    """Complex numbers as pairs, integers and bools as floats."""
    if tensor.is_complex():
        return torch.view_as_real(tensor.resolve_conj())
    if tensor.is_floating_point():
        return tensor
    return tensor.to(torch.float32 if tensor.device.type in WITHOUT_FLOAT64 else torch.float64)


def _flat_float(view: torch.Tensor, scratch: torch.Tensor, first: int) -> tuple[torch.Tensor, bool]:
    """The piece as flat float32 (float64 stays), copied into the scratch at `first` where it must be."""
    if view.dtype is torch.float64:
        return view.reshape(-1), False
    if view.dtype is torch.float32 and view.is_contiguous():
        return view.view(-1), False
    numel = view.numel()
    place = scratch[first : first + numel] if first + numel <= scratch.numel() else scratch.new_empty(numel)
    place.view(view.shape).copy_(view)
    return place, True


def _careful_stats(tensor: torch.Tensor) -> TensorStats:
    """Statistics over the finite elements in float64, for tensors with NaN, Inf or sums beyond float32."""
    nans, positive, negative, zeros, finite_count = 0, 0, 0, 0, 0
    lowest, highest, total, squares = np.inf, -np.inf, 0.0, 0.0
    for view, _ in pieces(tensor, 1 << 18):
        values = view.reshape(-1).double()
        nans += int(values.isnan().sum())
        positive += int(values.isposinf().sum())
        negative += int(values.isneginf().sum())
        finite = values[values.isfinite()]
        finite_count += finite.numel()
        if finite.numel():
            zeros += int((finite == 0).sum())
            lowest, highest = min(lowest, finite.min().item()), max(highest, finite.max().item())
            total += finite.sum().item()
            squares += torch.dot(finite, finite).item()
    if not finite_count:
        lowest = highest = 0.0
    return TensorStats(tensor.numel(), lowest, highest, total, squares, zeros, nans, positive, negative)


def _count_subnormals(tensor: torch.Tensor) -> int:
    """How many elements of a 16-bit tensor lie below its smallest normal number without being 0."""
    tiny = torch.finfo(tensor.dtype).tiny
    small = tensor.abs() < tiny
    return int(torch.count_nonzero(small & (tensor != 0)))


def _with_subnormals(stats: TensorStats, subnormals: int) -> TensorStats:
    return TensorStats(
        stats.count, stats.minimum, stats.maximum, stats.total, stats.total_squares, stats.zeros, stats.nans,
        stats.positive_infs, stats.negative_infs, subnormals,
    )  # fmt: skip


def _extremes(flat: torch.Tensor, finite: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Least and greatest finite element (+Inf and -Inf where there is none)."""
    infinity = torch.full((), float("inf"), dtype=flat.dtype, device=flat.device)
    return torch.where(finite, flat, infinity).amin(), torch.where(finite, flat, -infinity).amax()


def _chained_sum(values: torch.Tensor, *, double: bool) -> torch.Tensor:
    """The sum of a flat tensor, in float64 or over short float32 chains."""
    if double:
        return values.sum(dtype=torch.float64).float()
    while values.numel() > 1:
        rest = -values.numel() % CHAIN
        if rest:
            values = torch.cat([values, values.new_zeros(rest)])
        values = values.view(-1, CHAIN).sum(1)
    return values[0]


def _tree(rows: torch.Tensor) -> torch.Tensor:
    """Column sums of (rows, K) by float32 chains of at most 32 rows a level."""
    while rows.shape[0] > 1:
        rest = -rows.shape[0] % CHAIN
        if rest and rows.shape[0] > CHAIN:
            rows = torch.cat([rows, rows.new_zeros(rest, rows.shape[1])])
        rows = rows.view(-1, min(CHAIN, rows.shape[0]), rows.shape[1]).sum(1)
    return rows[0]


def _device_counts(flat: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Zeros, NaN, +Inf, -Inf and subnormals as int64."""
    counts = [flat == 0, flat.isnan(), flat == float("inf"), flat == float("-inf")]
    if dtype in SUBNORMAL_DTYPES:
        counts.append((flat.abs() < torch.finfo(dtype).tiny) & (flat != 0))
    else:
        counts.append(torch.zeros((1,), dtype=torch.bool, device=flat.device))
    return torch.stack([count.sum() for count in counts])


def _joined(numbers: list[torch.Tensor]) -> torch.Tensor:
    """Minimum, maximum, sum and sum of squares over all pieces."""
    if len(numbers) == 1:
        return numbers[0]
    table = torch.stack(numbers)
    return torch.stack([table[:, 0].amin(), table[:, 1].amax(), table[:, 2].sum(), table[:, 3].sum()])


def _fill(target: Measured, floats: Any, counts: Any, numel: int) -> None:
    lowest, highest, total, squares = (float(number) for number in floats[:FLOATS])
    zeros, nans, positive, negative, subnormals = (int(count) for count in counts)
    if nans + positive + negative == numel:
        lowest = highest = 0.0
    target.stats = TensorStats(numel, lowest, highest, total, squares, zeros, nans, positive, negative, subnormals)
    if len(floats) > FLOATS:
        target.sketch = np.array(floats[FLOATS:], np.float32)
