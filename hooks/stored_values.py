"""Bring values that a capture kept back into tensors, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


def as_tensor(raw: NDArray[Any], dtype: str) -> torch.Tensor | None:
    """A new tensor on the host with the raw values of a record (see `Capture.raw_values`), in logical order.

    None where this torch has no dtype of that name.
    """
    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype):
        return None
    if not raw.size:
        return torch.empty(raw.shape, dtype=kind)
    data = bytearray(np.ascontiguousarray(raw.astype(raw.dtype.newbyteorder("="), copy=False)).tobytes())
    return torch.frombuffer(data, dtype=kind).reshape(raw.shape)
