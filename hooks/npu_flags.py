"""The switches of an NPU that change numbers, read without changing any of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from enum import Enum
from typing import Any

import torch

READER_ERRORS = (AttributeError, TypeError, ValueError, OSError, RuntimeError, AssertionError)
"""What a reader of another version, or of a device in trouble, may raise; such a flag is not known."""

SILENT_CHECKS = ("NPU_ASD_CONFIG", "NPU_ASD_ENABLE")
"""The switches of torch_npu's search for silent data corruption, from torch_npu 7.1 on and before."""


def npu_flags() -> dict[str, Any]:
    """The flags of the NPU, None for those that this build does not have.

    Where no NPU is in use, only what can be told without the device: many of the readers would start it.
    """
    flags = {
        "acl_precision_mode": _option("ACL_PRECISION_MODE") or os.environ.get("ACL_PRECISION_MODE"),
        "npu_silent_check": _silent_check(),
        "transfer_to_npu": True if "torch_npu.contrib.transfer_to_npu" in sys.modules else None,
    }
    if not npu_in_use():
        return flags
    npu: Any = torch.npu  # type: ignore[attr-defined]
    return flags | {
        "npu_matmul_allow_hf32": _read(lambda: _known(npu.matmul.allow_hf32, bool)),
        "npu_conv_allow_hf32": _read(lambda: _known(npu.conv.allow_hf32, bool)),
        "npu_cube_math_type": _read(lambda: _named(npu.matmul.cube_math_type)),
        "npu_deterministic_level": _read(_deterministic_level),
        "npu_allow_internal_format": _enabled("ALLOW_INTERNAL_FORMAT"),
        "npu_matmul_format_nd": _read(lambda: _known(npu.get_mm_bmm_format_nd(), bool)),
        "npu_compatible_kernels": _enabled("COMPATIBLE_IMPL"),
        "npu_jit_compile": _read(lambda: not npu.is_jit_compile_false()),
        "npu_soc_version": _read(_soc_version),
        "inf_nan_mode": _read(makes_infinities),
    }


def npu_in_use() -> bool:
    """Whether torch_npu is loaded and has started its device in this process."""
    npu = getattr(torch, "npu", None)
    return npu is not None and "torch_npu" in sys.modules and bool(_read(npu.is_initialized))


def makes_infinities() -> bool:
    """Whether the device computes with Inf and NaN; one that does not saturates, and sets an overflow flag."""
    npu: Any = torch.npu  # type: ignore[attr-defined]
    return bool(npu.utils.is_support_inf_nan())


def _read(reader: Callable[[], Any]) -> Any:
    try:
        return reader()
    except READER_ERRORS:
        return None


def _known(value: Any, kind: Callable[[Any], Any]) -> Any:
    return None if value is None else kind(value)


def _named(value: Any) -> Any:
    """A member of an enumeration by its name."""
    return value.name if isinstance(value, Enum) else _known(value, str)


def _option(name: str) -> str | None:
    """An option of torch_npu as text; None where it was never set, or cannot be asked for."""
    torch_npu: Any = sys.modules.get("torch_npu")
    value = _read(lambda: torch_npu._C._npu_getOption(name))
    return value.decode(errors="replace") if isinstance(value, bytes) and value else None


def _enabled(name: str) -> bool | None:
    value = _option(name)
    return None if value is None else value.strip().lower() == "enable"


def _deterministic_level() -> int:
    """The level in force.

    `torch.npu._get_deterministic_level` is left alone: it sets the level while it reads it.
    """
    level = int(sys.modules["torch_npu"]._C._npu_get_deterministic_level())
    return max(level, 1) if torch.are_deterministic_algorithms_enabled() else 0


def _soc_version() -> int:
    npu: Any = torch.npu  # type: ignore[attr-defined]
    home = getattr(npu, "_backends", None)
    reader = getattr(home, "get_soc_version", None) or npu.get_soc_version
    return int(reader())


def _silent_check() -> str | None:
    """How the search for silent data corruption is switched on; it wraps matmul and module hooks."""
    found = [f"{name}={os.environ[name]}" for name in SILENT_CHECKS if name in os.environ]
    wanted = [text for text in found if "enable:true" in text.lower() or text.rpartition("=")[2] in {"1", "2", "3"}]
    return "; ".join(wanted) or None
