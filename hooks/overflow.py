"""The overflow flag of an NPU that saturates instead of making infinities."""

from __future__ import annotations

import sys
from typing import Any

import torch

from align.hooks.npu_flags import makes_infinities, npu_in_use
from align.hooks.timeline import Number, number_from

STATUS_NUMBERS = 8
"""The size of the tensor that `npu_get_float_status` takes; the flag is the first of its numbers."""


class OverflowFlag:
    """Reads the flag, which stays set until training clears it; reading neither clears it nor waits.

    torch_npu's own `get_npu_overflow_flag` waits for the device, and raises where there are infinities.
    """

    def __init__(self) -> None:
        self._saturates: bool | None = None

    def read(self) -> Number | None:
        """Above 0 where a number has overflowed; None where the device makes infinities, or is no NPU."""
        if self._saturates is None:
            if not npu_in_use():
                return None
            self._saturates = not makes_infinities()
        if not self._saturates:
            return None
        reader: Any = getattr(sys.modules["torch_npu"], "npu_get_float_status", None)
        if reader is None:
            return None
        with torch.no_grad():
            status = reader(torch.zeros(STATUS_NUMBERS, device="npu"))
        return number_from(status[:1])
