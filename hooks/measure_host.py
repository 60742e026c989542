"""Statistics, sketch and exponent counts of tensors on the host.

A tensor is read from memory once, in blocks that stay in a core's cache while every number is taken of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from align import sketch as sketches
from align.hashing import hash_bytes
from align.hooks.bit_patterns import COUNTED, FORMS, SHORT, Array, ExponentCounter, Form, bits_of, extremes
from align.hooks.measured import Measured, Seal
from align.hooks.pieces import gather, in_storage_order, pieces
from align.records import TensorStats

ROWS = 1024
"""Rows of K elements in a block: 1 MB of float32, the second-level cache of usual cores. Fewer rows were slower,
as each block costs about 10 us whatever its size (96 to 1024 rows measured)."""
CHAIN = 32
"""Terms in one float32 chain of a sketch."""
CHAIN_RESOLUTION = 2.0 * 2.0**-24
"""Error of a sketch from chains of 32 in float32, finished in float64 (measured 1.3 to 1.5 u, u = 2^-24)."""
FEW = 1e-31
"""A float32 sum of squares is taken again in float64 when the mean square is below this: what single squares can have
lost below 1.2e-38, the least normal number, is then more than 1e-7 of it."""
ROOM = 1 << 18
"""Sketch numbers in one allocation."""


class HostKernel:
    """Measures tensors on the host; holds the memory that it works in."""

    def __init__(self) -> None:
        size = (ROWS + CHAIN + 2) * sketches.BUCKET_COUNTS[-1]
        self._wide = torch.empty(size, dtype=torch.float32)
        self._signed = torch.empty(size, dtype=torch.float32)
        self._signed_array: Array = self._signed.numpy()
        self._gathered = torch.empty(size, dtype=torch.float64)
        self._spare = torch.empty(size, dtype=torch.float64)
        self._bytes = np.empty(4 * size, np.uint8)
        self._mask = np.empty(size, np.bool_)
        self._exponents = ExponentCounter()
        self._room = np.empty(0, np.float32)
        self._used = 0

    def measure(self, tensor: torch.Tensor, *, with_sketch: bool, exponents: bool = False) -> Measured:
        """Measure a strided tensor of real numbers that has elements; only floats have sketches and exponents."""
        tally = _Tally()
        counted = FORMS[tensor.dtype] if exponents and tensor.dtype in COUNTED else None
        if counted is not None:
            self._exponents.begin(counted)
        buckets = sketches.bucket_count(tuple(tensor.shape)) if with_sketch else 0
        partial: Array | None = None
        with np.errstate(all="ignore"):
            for flat, offset in self._pieces(tensor, buckets):
                wide = self._widened(flat)
                form = FORMS.get(flat.dtype, FORMS[wide.dtype])
                values: Array = wide.numpy()
                block = _Block(flat, wide, values, bits_of(flat) if flat.dtype in SHORT else bits_of(wide), form)
                self._add(tally, block)
                if counted is not None:
                    self._exponents.add(block.bits, counted, self._bytes[: block.bits.nbytes].view(block.bits.dtype))
                if buckets:
                    sums = self._bucket_sums(values, offset, buckets)
                    partial = sums if partial is None else partial + sums
            measured = Measured(tally.stats(tensor.numel()), seal=tally.seal)
            if counted is not None:
                measured.exponents = self._exponents.result()
            if partial is not None:
                measured.sketch = self._row(min(tensor.numel(), buckets))
                measured.sketch[:] = partial[: len(measured.sketch)]
                measured.resolution = CHAIN_RESOLUTION
        return measured

    def seal(self, tensor: torch.Tensor, *, with_sketch: bool) -> Seal:
        """The seal alone, as `measure` makes it."""
        tally = _Tally()
        buckets = sketches.bucket_count(tuple(tensor.shape)) if with_sketch else 0
        for flat, _ in self._pieces(tensor, buckets):
            wide = self._widened(flat)
            tally.add_sums(wide.sum().item(), torch.dot(wide, wide).item(), flat)
        return tally.seal

    # ---- pieces

    def _pieces(self, tensor: torch.Tensor, buckets: int) -> Iterator[tuple[torch.Tensor, int]]:
        """Contiguous flat pieces in their own dtype and their offsets; in logical order where a sketch is taken."""
        block = ROWS * (buckets or sketches.BUCKET_COUNTS[0])
        if not buckets:
            tensor = in_storage_order(tensor)
        for view, offset in pieces(tensor, block):
            if view.is_contiguous():
                yield view.view(-1), offset
            else:
                numel = view.numel()
                place, spare = self._gathered.view(view.dtype)[:numel], self._spare.view(view.dtype)[:numel]
                gather(view, place, spare)
                yield place, offset

    def _widened(self, flat: torch.Tensor) -> torch.Tensor:
        """The piece as it is added up: smaller floats in float32, integers and bools in float64, others as they are."""
        if flat.dtype is torch.float32 or flat.dtype is torch.float64:
            return flat
        if flat.is_floating_point():
            return self._wide[: flat.numel()].copy_(flat)
        return self._spare[: flat.numel()].copy_(flat)

    # ---- one block

    def _add(self, tally: _Tally, block: _Block) -> None:
        """Add the statistics of one block."""
        wide = block.wide
        total, squares = wide.sum().item(), torch.dot(wide, wide).item()
        tally.add_sums(total, squares, block.flat)
        zeros, subnormals = self._zeros_and_subnormals(block)
        tally.zeros += zeros
        tally.subnormals += subnormals
        if not math.isfinite(total) or not math.isfinite(squares):
            tally.add_finite(wide.double())
            return
        if squares < FEW * len(wide) and zeros < len(wide):
            double = wide.double()
            squares = torch.dot(double, double).item()
        tally.total += total
        tally.squares += squares
        tally.add_extremes(*extremes(block.bits, block.form))

    def _zeros_and_subnormals(self, block: _Block) -> tuple[int, int]:
        if block.flat.dtype not in SHORT:
            return self._zeros(block.values), 0
        exponents = self._bytes[: block.bits.nbytes].view(block.bits.dtype)
        np.bitwise_and(block.bits, block.form.as_unsigned(block.form.infinity), out=exponents)
        small = self._zeros(exponents)
        if not small:
            return 0, 0
        zeros = self._zeros(block.values)
        return zeros, small - zeros

    def _zeros(self, values: Array) -> int:
        """How many are zero. Both functions that count what is not zero at once take four times as long."""
        mask = np.equal(values, values.dtype.type(0), out=self._mask[: len(values)])
        return int(np.count_nonzero(mask))

    # ---- the sketch

    def _bucket_sums(self, values: Array, offset: int, buckets: int) -> Array:
        """The bucket sums of one piece in float64; the signed elements themselves where the tensor has no more."""
        numel, first = len(values), offset % buckets
        start = offset % sketches.PERIOD
        signs = sketches.signs()[start : start + numel]
        if not offset and numel <= buckets:
            signed_elements: Array = np.multiply(values, signs)
            return signed_elements
        chained = first + numel > CHAIN * buckets
        step = CHAIN * buckets if chained else buckets
        end = -(-(first + numel) // step) * step
        signed = self._signed_array
        np.multiply(values, signs, out=signed[first : first + numel], casting="same_kind")
        signed[:first] = 0.0
        signed[first + numel : end] = 0.0
        rows = self._signed[:end].view(-1, CHAIN, buckets) if chained else self._signed[:end].view(1, -1, buckets)
        chains: Array = rows.sum(1).numpy()
        sums: Array = np.add.reduce(chains, axis=0, dtype=np.float64)
        return sums

    def _row(self, size: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Room for one sketch in a large block: thousands of small ones would scatter the user's heap."""
        if self._used + size > len(self._room):
            self._room, self._used = np.empty(ROOM, np.float32), 0
        self._used += size
        return self._room[self._used - size : self._used]


class _Block(NamedTuple):
    """A piece of a tensor: in its own dtype, as it is added up, that as numpy sees it, and bits laid out by `form`."""

    flat: torch.Tensor
    wide: torch.Tensor
    values: Array
    bits: Array
    form: Form


class _Tally:
    """The statistics of one tensor while its blocks come in."""

    __slots__ = (
        "bits", "highest", "lowest", "nans", "negative_infs", "positive_infs", "sealed_squares", "sealed_total",
        "squares", "subnormals", "total", "zeros",
    )  # fmt: skip

    def __init__(self) -> None:
        self.zeros = self.subnormals = self.nans = self.positive_infs = self.negative_infs = self.bits = 0
        self.total = self.squares = self.sealed_total = self.sealed_squares = 0.0
        self.lowest, self.highest = math.inf, -math.inf

    def add_sums(self, total: float, squares: float, flat: torch.Tensor) -> None:
        """Add the rounded sums of a block to the seal, or the hash of a block whose sums are not finite."""
        if math.isfinite(total) and math.isfinite(squares):
            self.sealed_total += total
            self.sealed_squares += squares
        else:
            self.bits = hash((self.bits, hash_bytes(flat.view(torch.uint8).numpy())))

    def add_extremes(self, lowest: float, highest: float) -> None:
        """Add the least and the greatest element of a block."""
        self.lowest = min(self.lowest, lowest)
        self.highest = max(self.highest, highest)

    def add_finite(self, values: torch.Tensor) -> None:
        """Add the finite elements of a float64 block that has others too, or whose sums leave the range of float32."""
        self.nans += int(torch.count_nonzero(values.isnan()))
        self.positive_infs += int(torch.count_nonzero(values == math.inf))
        self.negative_infs += int(torch.count_nonzero(values == -math.inf))
        finite = values[values.isfinite()]
        if finite.numel():
            self.add_extremes(finite.min().item() + 0.0, finite.max().item() + 0.0)
            self.total += finite.sum().item()
            self.squares += torch.dot(finite, finite).item()

    @property
    def seal(self) -> Seal:
        """By what the tensor is known again."""
        return Seal(self.sealed_total, self.sealed_squares, self.bits)

    def stats(self, count: int) -> TensorStats:
        """The statistics of all blocks."""
        if count == self.nans + self.positive_infs + self.negative_infs:
            self.lowest = self.highest = 0.0
        return TensorStats(
            count, self.lowest, self.highest, self.total, self.squares, self.zeros, self.nans, self.positive_infs,
            self.negative_infs, self.subnormals,
        )  # fmt: skip
