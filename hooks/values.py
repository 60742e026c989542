"""Bring a tensor's values to the host as numpy sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

BITS = {
    torch.bfloat16: torch.int16,
    **{
        getattr(torch, name): torch.uint8
        for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
        if hasattr(torch, name)
    },
}
"""Dtypes that numpy lacks, with the integer that holds the same bits."""


def dtype_name(dtype: torch.dtype) -> str:
    """`torch.bfloat16` -> `bfloat16`."""
    return str(dtype).removeprefix("torch.")


def as_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The values in logical order; bfloat16 and float8 as unsigned integers with the same bits.

    Private device formats are undone by the copy to the host.
    """
    host = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    bits = BITS.get(host.dtype)
    if bits is None:
        return np.asarray(host.numpy())
    array = np.asarray(host.view(bits).numpy())
    return array.view(np.uint16) if bits is torch.int16 else array
