"""Tell whether two tensors seen at different times are the very same values."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

import torch
from torch.multiprocessing.reductions import StorageWeakRef

Value = TypeVar("Value")

FEWEST_BEFORE_PRUNING = 64


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether the tensor has an ordinary strided storage whose values can be read now.

    Sparse, nested, quantised, meta, fake and functorch-wrapped tensors are known by dtype and shape only.
    """
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return False
        if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
            return False
    elif torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return False
    return (
        tensor.layout is torch.strided
        and not tensor.is_nested
        and tensor.dtype is not torch.complex32
        and not tensor.is_quantized
        and not tensor.is_meta
        and not torch.nn.parameter.is_lazy(tensor)
    )


class Identities(Generic[Value]):
    """Remembers tensors by identity without keeping their memory alive.

    The identity is (storage, offset, shape, stride, dtype, version). The storage is held weakly: its small
    header stays allocated while we remember it, hence its address cannot be given to another storage.
    Inference tensors have no version and are never shared.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[StorageWeakRef, Value]] = {}
        self._prune_at = FEWEST_BEFORE_PRUNING

    def find(self, tensor: torch.Tensor) -> Value | None:
        """What was remembered of this very tensor, unchanged since; None when it is new."""
        if tensor.is_inference():
            return None
        known = self._known.get(_identity(tensor, tensor.untyped_storage()._cdata))
        return known[1] if known else None

    def remember(self, tensor: torch.Tensor, value: Value) -> None:
        """Remember a value for this tensor as it is now."""
        if tensor.is_inference():
            return
        storage = tensor.untyped_storage()
        self._known[_identity(tensor, storage._cdata)] = (StorageWeakRef(storage), value)
        if len(self._known) >= self._prune_at:
            self._prune()

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()

    def _prune(self) -> None:
        """Forget tensors that are gone: the headers that we keep of them would scatter the user's heap."""
        self._known = {key: known for key, known in self._known.items() if not known[0].expired()}
        self._prune_at = max(FEWEST_BEFORE_PRUNING, 2 * len(self._known))


def _identity(tensor: torch.Tensor, storage: int) -> Hashable:
    return (storage, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype, tensor._version)
