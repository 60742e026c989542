"""Statistics, sketch and exponent counts of tensors on an accelerator, without waiting for it.

All numbers of a tensor stay on its device until `fetch` brings those of all tensors over in one copy. Each kernel costs
the host microseconds, however few elements it has; most tensors of a step are small. So a small tensor is only copied,
into a row beside others, and rows are measured together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from align import sketch as sketches
from align.hooks.bit_patterns import COUNTED, FORMS, Form
from align.hooks.device_numbers import NUMBERS, bucket_sums, exponent_counts, row_numbers, statistics, widened
from align.hooks.measured import Measured
from align.hooks.pieces import in_storage_order, pieces

Array = np.ndarray[Any, Any]

ROWS = 8 * 1024
"""Rows of K elements in a block: 2 million elements. Few kernels are launched, and each count is exact in float32."""
SMALL_ROWS = 1024
"""A tensor of at most so many rows of K elements (260,000) is measured together with others."""
GATHERED_ROWS = 4096
"""Rows of K elements of small tensors of one kind that are held at most before they are measured: 4 MB of float32."""
DOUBLE_RESOLUTION = 0.7 * 2.0**-24
"""Own error of a sketch summed in float64 (measured 0.36 to 0.72 u, u = 2^-24)."""
TREE_RESOLUTION = 3.5 * 2.0**-24
"""An explicit float32 tree of chains of 32 (measured 1.8 to 3.5 u for 1e4 to 1e8 elements)."""

WITHOUT_FLOAT64 = ("npu", "mps")


@dataclass(frozen=True, slots=True)
class _Kind:
    """What tensors have in common that are measured in one way: dtype, K (0 for no sketch), form of the exponents."""

    device: torch.device
    dtype: torch.dtype
    buckets: int
    form: Form | None

    @property
    def double(self) -> bool:
        """Whether sums are made in float64."""
        return self.device.type not in WITHOUT_FLOAT64

    @property
    def numbers(self) -> torch.dtype:
        """The format in which numbers wait: that of the sums, also for float64 on a device that hardly knows it."""
        return torch.float64 if self.double else torch.float32

    @property
    def row(self) -> int:
        """Elements of a row."""
        return self.buckets or sketches.BUCKET_COUNTS[0]


@dataclass(slots=True)
class _Target:
    """Where a tensor's numbers are waited for, its elements, and the zeros that were put behind them."""

    measured: Measured
    numel: int
    padding: int = 0


@dataclass(slots=True)
class _Waiting:
    """Numbers that are still on their device, for each target: those of its blocks, their exponents, the sketch."""

    kind: _Kind
    targets: list[_Target]
    blocks: int
    numbers: torch.Tensor


@dataclass(slots=True)
class _Gathered:
    """Small tensors of one kind: a row of `values` each, with zeros behind it."""

    values: torch.Tensor
    lengths: torch.Tensor
    targets: list[_Target] = field(default_factory=list)


class DeviceKernel:
    """Measures tensors on accelerators; holds small tensors, and numbers that have not been fetched yet.

    Memory is not shared between streams: training may use several, which do not wait for each other.
    """

    def __init__(self) -> None:
        self._signs: dict[torch.device, torch.Tensor] = {}
        self._gathered: dict[tuple[_Kind, int, Any], _Gathered] = {}
        self._waiting: list[_Waiting] = []

    def measure(self, tensor: torch.Tensor, *, with_sketch: bool, exponents: bool = False) -> Measured:
        """Begin to measure a strided tensor of real numbers that has elements."""
        buckets = sketches.bucket_count(tuple(tensor.shape)) if with_sketch else 0
        form = FORMS[tensor.dtype] if exponents and tensor.dtype in COUNTED else None
        kind = _Kind(tensor.device, tensor.dtype, buckets, form)
        measured = Measured(resolution=DOUBLE_RESOLUTION if kind.double else TREE_RESOLUTION)
        if tensor.dtype in COUNTED and tensor.numel() <= SMALL_ROWS * kind.row:
            self._gather(tensor, kind, measured)
        else:
            self._waiting.append(self._measured(tensor, kind, measured))
        return measured

    def fetch(self) -> None:
        """Bring the waiting numbers to the host: one wait and one copy for each device."""
        devices = dict.fromkeys([kind.device for kind, *_ in self._gathered])
        devices.update(dict.fromkeys(item.kind.device for item in self._waiting))
        for device in devices:
            _synchronize(device)
        for key in list(self._gathered):
            self._measure_gathered(key)
        waiting, self._waiting = self._waiting, []
        for device in devices:
            items = [item for item in waiting if item.kind.device == device]
            numbers = torch.cat([item.numbers for item in items]).cpu().numpy().astype(np.float64)
            ends = np.cumsum([item.numbers.numel() for item in items])
            for item, part in zip(items, np.split(numbers, ends[:-1]), strict=True):
                for target, its in zip(item.targets, part.reshape(len(item.targets), -1), strict=True):
                    _fill(target, its, item.blocks, item.kind)

    def _gather(self, tensor: torch.Tensor, kind: _Kind, measured: Measured) -> None:
        numel = tensor.numel()
        rows = 1 << (-(-numel // kind.row) - 1).bit_length()
        width = rows * kind.row
        key = (kind, rows, _stream(kind.device))
        group = self._gathered.get(key)
        if group is None:
            with torch.inference_mode(mode=False):  # else these could not be written to in another mode
                group = self._gathered[key] = _Gathered(
                    torch.zeros(GATHERED_ROWS // rows, width, dtype=kind.dtype, device=kind.device),
                    torch.zeros(GATHERED_ROWS // rows, dtype=torch.int32, device=kind.device),
                )
        place = len(group.targets)
        group.targets.append(_Target(measured, numel, width - numel))
        group.values[place, :numel].view(tensor.shape).copy_(tensor)
        group.lengths[place].fill_(numel)
        if len(group.targets) == len(group.values):
            self._measure_gathered(key)

    def _measure_gathered(self, key: tuple[_Kind, int, Any]) -> None:
        kind, rows, _ = key
        group = self._gathered.pop(key)
        count = len(group.targets)
        values = widened(group.values[:count], double=kind.double)
        parts = [row_numbers(values, kind.dtype, group.lengths[:count], double=kind.double)]
        if kind.form is not None:
            parts.append(exponent_counts(values, kind.form))
        if kind.buckets:
            signed = values * self._signs_on(kind.device)[: values.shape[1]]
            parts.append(bucket_sums(signed.view(count, rows, kind.buckets), double=kind.double))
        numbers = torch.cat([part.to(kind.numbers) for part in parts], 1).reshape(-1)
        self._waiting.append(_Waiting(kind, group.targets, 1, numbers))

    def _measured(self, tensor: torch.Tensor, kind: _Kind, measured: Measured) -> _Waiting:
        if not kind.buckets:
            tensor = in_storage_order(tensor)
        blocks: list[torch.Tensor] = []
        codes: list[torch.Tensor] = []
        partials: list[torch.Tensor] = []
        for view, offset in pieces(tensor, ROWS * kind.row):
            flat = widened(view.reshape(-1), double=kind.double)
            blocks.append(row_numbers(flat[None], kind.dtype, None, double=kind.double)[0])
            if kind.form is not None:
                codes.append(exponent_counts(flat[None], kind.form)[0])
            if kind.buckets:
                partials.append(bucket_sums(self._signed(flat, offset, kind.buckets)[None], double=kind.double)[0])
        parts = blocks + codes
        if partials:
            parts.append(torch.stack(partials).sum(0))
        numbers = torch.cat([part.to(kind.numbers) for part in parts])
        return _Waiting(kind, [_Target(measured, tensor.numel())], len(blocks), numbers)

    def _signed(self, flat: torch.Tensor, offset: int, buckets: int) -> torch.Tensor:
        """A piece with the signs of its place, in rows of the buckets: (rows, K)."""
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
        return signed.view(-1, buckets)

    def _signs_on(self, device: torch.device) -> torch.Tensor:
        if device not in self._signs:
            self._signs[device] = torch.tensor(sketches.signs(), device=device)
        return self._signs[device]


def _stream(device: torch.device) -> Any:
    """The stream that kernels are launched on now, by which the order of writing and reading is kept."""
    current_stream = getattr(getattr(torch, device.type, None), "current_stream", None)
    return current_stream(device) if current_stream is not None else None


def _synchronize(device: torch.device) -> None:
    """Wait for all streams of a device: numbers that another stream makes may not be there yet for this one."""
    synchronize = getattr(getattr(torch, device.type, None), "synchronize", None)
    if synchronize is not None:
        synchronize()


def _fill(target: _Target, numbers: Array, block_count: int, kind: _Kind) -> None:
    """Put fetched numbers where they are waited for."""
    width = NUMBERS + (not kind.double)
    blocks, rest = numbers[: block_count * width].reshape(-1, width), numbers[block_count * width :]
    target.measured.stats = statistics(blocks, target.numel, target.padding, double=kind.double)
    if kind.form is not None:
        counted, rest = np.split(rest, [block_count * kind.form.codes])
        exponents = counted.reshape(-1, kind.form.codes).sum(axis=0).astype(np.int64)
        exponents[0] -= target.padding
        target.measured.exponents = exponents
    if kind.buckets:
        with np.errstate(all="ignore"):
            target.measured.sketch = rest[: target.numel].astype(np.float32)
