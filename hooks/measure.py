"""Statistics, sketch and exponent counts of one tensor, whatever it is and wherever it lies, without waiting.

On the host the numbers are there at once. On other devices they stay there until `Measurements.fetch` brings all of
them over in one copy.
"""

from __future__ import annotations

import numpy as np
import torch

from align.hooks.bit_patterns import COUNTED, FORMS
from align.hooks.measure_device import DeviceKernel
from align.hooks.measure_host import HostKernel
from align.hooks.measured import Measured
from align.hooks.odd_tensors import values_of
from align.records import TensorStats

__all__ = ["Measured", "Measurements"]


class Measurements:
    """Measures tensors; holds working memory and the numbers that have not been fetched yet."""

    def __init__(self, *, with_sketch: bool) -> None:
        self.with_sketch = with_sketch
        self._host = HostKernel()
        self._devices = DeviceKernel()

    def measure(self, tensor: torch.Tensor, *, exponents: bool = False) -> Measured | None:
        """Measure a tensor of any dtype and layout; None where it has no values that can be read.

        Integers and bools get statistics only. So does a sparse, nested, distributed or quantised tensor: its count
        is that of the elements which `values_of` finds in it. `exponents` asks for the
        number of elements of each exponent code (the raw exponent field: 0 holds zeros and subnormals, the last one
        Inf and NaN): 32 of float16, 256 of bfloat16 and float32; others have none.
        """
        values = values_of(tensor)
        if values is None:
            return None
        real = _real(values.detach())
        with_sketch = self.with_sketch and real.is_floating_point() and values is tensor
        if real.numel() == 0:
            counted = exponents and values.dtype in COUNTED
            counts = np.zeros(FORMS[values.dtype].codes, np.int64) if counted else None
            return Measured(TensorStats(0), np.zeros(0, np.float32) if with_sketch else None, exponents=counts)
        exponents = exponents and not values.is_complex()
        kernel = self._host if real.device.type == "cpu" else self._devices
        return kernel.measure(real, with_sketch=with_sketch, exponents=exponents)

    def fetch(self) -> None:
        """Bring the waiting numbers to the host: one copy for each device."""
        self._devices.fetch()

    def still_has(self, tensor: torch.Tensor, measured: Measured) -> bool:
        """Whether a plain host tensor gives exactly the sums again that were measured."""
        if measured.seal is None:
            return tensor.numel() == 0
        return self._host.seal(_real(tensor.detach()), with_sketch=measured.sketch is not None) == measured.seal


def _real(tensor: torch.Tensor) -> torch.Tensor:
    """Complex numbers as pairs of real ones; negations that have been put off are made."""
    if tensor.is_complex():
        return torch.view_as_real(tensor.resolve_conj().resolve_neg())
    return tensor.resolve_neg()
