"""Ask torch about autocast, in the words of every version since 2.1."""

from __future__ import annotations

import torch

from align.hooks.values import dtype_name


def autocast_dtype(device_type: str) -> str | None:
    """The dtype that autocast gives to matrix products on this kind of device now; None when it is off."""
    try:
        if not torch.is_autocast_enabled(device_type):
            return None
        return dtype_name(torch.get_autocast_dtype(device_type))
    except (TypeError, AttributeError):
        return _before_2_4(device_type)


def _before_2_4(device_type: str) -> str | None:
    """The same for torch 2.1 to 2.3, whose questions take no device."""
    if device_type == "cpu":
        return dtype_name(torch.get_autocast_cpu_dtype()) if torch.is_autocast_cpu_enabled() else None
    if device_type == "cuda":
        return dtype_name(torch.get_autocast_gpu_dtype()) if torch.is_autocast_enabled() else None
    module = getattr(torch, device_type, None)
    enabled = getattr(module, "is_autocast_enabled", None)
    return dtype_name(module.get_autocast_dtype()) if module is not None and enabled and enabled() else None
