"""Bring a tensor's values to the host as numpy sees them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from align.staging import page_aligned

BITS = {
    torch.bfloat16: torch.int16,
    **{
        getattr(torch, name): torch.uint8
        for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
        if hasattr(torch, name)
    },
}
"""Dtypes that numpy lacks, with the integer that holds the same bits."""

MOST_REPEATED = 256 << 20
"""So many bytes of an expanded tensor are kept whatever it repeats."""
MOST_REPEATS = 64
"""How often a larger one may repeat its memory: heads of attention are repeated up to 32 times, masks without end."""


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


def repeats_itself(tensor: torch.Tensor) -> bool:
    """Whether so few different places of memory appear so often that the values are not worth their bytes."""
    nbytes = tensor.numel() * tensor.element_size()
    if nbytes <= MOST_REPEATED:
        return False
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    places = math.prod(size for size, stride in pairs if stride) * tensor.element_size()
    return nbytes > MOST_REPEATS * min(places, tensor.untyped_storage().nbytes())


class TensorSource:
    """The values of a tensor of any device and layout, copied piece by piece and never as a whole.

    From a device the copies are only asked for, where its runtime has events and page-locked memory: they happen in
    the order of its stream, hence before anything that changes the tensor later, and whoever reads them waits for
    the event. The host does not.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor.detach()
        self.shape: tuple[int, ...] = tuple(tensor.shape)
        self.dtype = dtype_name(tensor.dtype)
        self.stored = _stored_dtype(tensor.dtype)
        self.nbytes: int = tensor.numel() * self.stored.itemsize

    def copy_into(self, room: memoryview, start: int) -> Any:
        """Fill the room with the bytes from `start` on; returns an event where that goes on."""
        target = torch.frombuffer(room, dtype=self._tensor.dtype)
        device = self._tensor.device
        runtime = None if device.type == "cpu" else getattr(torch, device.type, None)
        later = hasattr(runtime, "Event") and hasattr(runtime, "current_stream") and target.is_pinned()
        _copy_range(self._tensor, start // self.stored.itemsize, target, non_blocking=later)
        if runtime is None or not later:
            return None
        event = runtime.Event()
        event.record(runtime.current_stream(device))
        return event

    def allocate(self, size: int) -> memoryview:
        """Page-locked memory where a device is in use, else memory of the process."""
        if any(_in_use(name) for name in ("cuda", "npu")):
            try:
                return torch.empty(size, dtype=torch.uint8, pin_memory=True).numpy().data
            except (RuntimeError, TypeError):
                # The runtime refuses: copies stop on the way then, and are right all the same.
                return page_aligned(size)
        return page_aligned(size)


def _copy_range(tensor: torch.Tensor, start: int, target: torch.Tensor, *, non_blocking: bool) -> None:
    """Copy the elements from `start` on, in logical order, into a flat tensor, which says how many."""
    count = target.numel()
    if tensor.is_contiguous():
        target.copy_(tensor.view(-1)[start : start + count], non_blocking=non_blocking)
        return
    if start == 0 and count == tensor.numel():
        target.view(tensor.shape).copy_(tensor, non_blocking=non_blocking)
        return
    inner = tensor.numel() // tensor.shape[0]
    done = 0
    while done < count:
        row, offset = divmod(start + done, inner)
        rows = (count - done) // inner
        if offset or not rows:
            taken = min(inner - offset, count - done)
            _copy_range(tensor[row], offset, target[done : done + taken], non_blocking=non_blocking)
        else:
            taken = rows * inner
            part = tensor[row : row + rows]
            target[done : done + taken].view(part.shape).copy_(part, non_blocking=non_blocking)
        done += taken


@lru_cache(maxsize=64)
def _stored_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    """The numpy dtype of what `as_array` gives."""
    stored: np.dtype[Any] = as_array(torch.empty(0, dtype=dtype)).dtype
    return stored


def _in_use(runtime: str) -> bool:
    """Whether the training uses devices of this kind; asking must not start their runtime."""
    is_initialized = getattr(getattr(torch, runtime, None), "is_initialized", None)
    return is_initialized is not None and bool(is_initialized())
