"""The unit roundoff of the precision that a run works in, which may be coarser than the dtypes that it stores."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch

from align.hooks.autocast import autocast_dtype
from align.records import RunInfo


class Working(NamedTuple):
    """A unit roundoff and what sets it."""

    unit: float
    by: str

    @property
    def text(self) -> str:
        """`+-2^-8 (bf16 autocast)`."""
        return f"{power(self.unit)} ({self.by})"


OWN = {
    torch.float64: Working(2.0**-53, "fp64"),
    torch.float32: Working(2.0**-24, "fp32"),
    torch.float16: Working(2.0**-11, "fp16"),
    torch.bfloat16: Working(2.0**-8, "bf16"),
}
"""Half the distance from 1 to the next number: IEEE 754 with 53, 24 and 11 significant bits, bfloat16 with 8."""

AUTOCAST = {"float16": Working(2.0**-11, "fp16 autocast"), "bfloat16": Working(2.0**-8, "bf16 autocast")}
TF32 = Working(2.0**-11, "TF32")
HF32 = Working(2.0**-11, "HF32")
"""Both keep 10 or 11 bits behind the leading one; the units are those of `align.tolerance`, which hooks may not see."""


def power(unit: float) -> str:
    """`+-2^-8`."""
    return f"+-2^{round(math.log2(unit))}"


def under_autocast(device_type: str) -> Working | None:
    """What autocast makes the run work in now, None where it is off."""
    return AUTOCAST.get(autocast_dtype(device_type) or "")


def shortened(run: RunInfo, *, conv: bool) -> Working | None:
    """What matrix products, or convolutions, shorten float32 to; None where they do not."""
    flags = run.flags
    if run.device_type == "npu":
        if str(flags.get("acl_precision_mode", "")).lower() == "allow_fp32_to_fp16":
            return Working(2.0**-11, "fp16")
        allowed = flags.get("npu_conv_allow_hf32") is not False if conv else flags.get("npu_matmul_allow_hf32") is True
        return HF32 if allowed else None
    if run.device_type == "cuda" and conv:
        return TF32 if flags.get("cudnn_allow_tf32") is not False else None
    precision = flags.get("float32_matmul_precision")
    if run.device_type == "cpu" and precision == "medium" and not conv:
        return Working(2.0**-8, "bf16 products")
    if conv or (precision not in {"high", "medium"} and flags.get("matmul_allow_tf32") is not True):
        return None
    return TF32


def working_unit(dtype: torch.dtype, run: RunInfo, autocast: Working | None, *, conv: bool) -> Working:
    """The coarsest of the dtype's own unit, autocast's, and what float32 is shortened to; `dtype` is one of OWN.

    Autocast leaves float64 as it is.
    """
    found = [OWN[dtype]]
    if autocast is not None and dtype is not torch.float64:
        found.append(autocast)
    if dtype is torch.float32 and (short := shortened(run, conv=conv)) is not None:
        found.append(short)
    return coarsest(found)


def coarsest(found: Iterable[Working]) -> Working:
    """The one with the largest unit."""
    return max(found, key=lambda working: working.unit)
