"""The overflow flag of an NPU that saturates instead of making infinities."""

from __future__ import annotations

import sys
from typing import Any

import torch

from align.hooks.npu_flags import READER_ERRORS, makes_infinities, npu_in_use
from align.hooks.timeline import Number, number_from

STATUS_NUMBERS = 8
"""The size of the tensor that `npu_get_float_status` takes; the flag is the first of its numbers."""


class OverflowFlag:
    """Reads the flag, which stays set until training clears it; reading neither clears it nor waits.

    torch_npu's own `get_npu_overflow_flag` waits for the device, and raises where there are infinities. A scaler
    clears the flag when it has found it set, so a step looks at it before the scaler does, and at its end.
    """

    def __init__(self) -> None:
        self._saturates: bool | None = None
        self._seen: list[torch.Tensor] = []

    def look(self) -> None:
        """Note the flag as it is now: after each backward."""
        status = self._status()
        if status is not None:
            self._seen.append(status)

    def read(self) -> Number | None:
        """Above 0 where the flag is set or was at an earlier look of this step; None where there are infinities."""
        self.look()
        seen, self._seen = self._seen, []
        if not seen:
            return None
        with torch.no_grad():
            return number_from(torch.stack(seen).amax())

    def _status(self) -> torch.Tensor | None:
        if self._saturates is None:
            if not npu_in_use():
                return None
            self._saturates = self._asked()
        reader: Any = getattr(sys.modules["torch_npu"], "npu_get_float_status", None)
        if not self._saturates or reader is None:
            return None
        try:
            with torch.no_grad():
                status: torch.Tensor = reader(torch.zeros(STATUS_NUMBERS, device="npu"))
                return status[0]
        except READER_ERRORS:
            self._saturates = False  # it cannot be read here: ask no more
            return None

    @staticmethod
    def _asked() -> bool:
        """Whether the device says that it saturates; one that cannot be asked is left alone."""
        try:
            return not makes_infinities()
        except READER_ERRORS:
            return False
