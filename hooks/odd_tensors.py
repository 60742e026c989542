"""What can be measured of tensors that are not plain: sparse, nested, quantised, distributed ones."""

from __future__ import annotations

import sys
from typing import Any

import torch

from align.hooks.identity import is_plain

SPARSE = tuple(
    getattr(torch, name)
    for name in ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
    if hasattr(torch, name)
)
UNREADABLE = frozenset(
    getattr(torch, name)
    for name in (
        "float4_e2m1fn_x2",
        *(f"{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)),
        *(f"bits{bits}" for bits in ("1x8", "2x4", "4x2", "8", "16")),
    )
    if hasattr(torch, name)
)
"""Dtypes of torch that no operator turns into numbers."""


def values_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """The numbers that a tensor holds as a plain tensor of real or complex numbers, None where there are none to read.

    Of a sparse tensor the stored elements, of a nested one those of all its parts, of a distributed one this rank's
    shard, of a quantised one what its integers stand for. Meta, fake, lazy and functorch-wrapped tensors, and
    subclasses that we do not know, have none.
    """
    if is_plain(tensor):
        return None if tensor.dtype in UNREADABLE else tensor
    inner = None if is_wrapped(tensor) else _inner(tensor)
    if inner is None or inner.dtype in UNREADABLE or is_wrapped(inner):
        return None
    return inner if inner.dtype is torch.complex32 or is_plain(inner) else None


def local_of(tensor: torch.Tensor) -> torch.Tensor:
    """This rank's shard of a distributed tensor; any other tensor itself."""
    if type(tensor) in (torch.Tensor, torch.nn.Parameter) or placements(tensor) is None:
        return tensor
    local: torch.Tensor = tensor._local_tensor  # type: ignore[attr-defined]
    return local


def is_wrapped(tensor: torch.Tensor) -> bool:
    """Whether functorch stands between us and the values."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))


def placements(tensor: torch.Tensor) -> tuple[Any, ...] | None:
    """How a distributed tensor lies on its devices; None for others."""
    module = sys.modules.get("torch.distributed.tensor") or sys.modules.get("torch.distributed._tensor")
    kind = getattr(module, "DTensor", None)
    return tuple(tensor.placements) if kind is not None and isinstance(tensor, kind) else None


def _inner(tensor: torch.Tensor) -> torch.Tensor | None:
    """The tensor inside that holds the numbers."""
    if placements(tensor) is not None:
        local: torch.Tensor = tensor._local_tensor  # type: ignore[attr-defined]
        return local
    if tensor.is_nested:
        return tensor.values()
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.is_meta:
        return None
    if tensor.layout in SPARSE:
        # An uncoalesced tensor may not be asked for its values by the public name.
        return tensor._values() if tensor.layout is torch.sparse_coo else tensor.values()
    if tensor.is_quantized:
        return tensor.dequantize()
    return tensor if tensor.dtype is torch.complex32 else None
