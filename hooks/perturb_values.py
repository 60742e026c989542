"""Move the elements of a tensor by a rounding error, up or down at random, and touch no generator of the script.

The signs come from a generator of their own that is seeded by a number and a name, so that they depend neither on the
order in which tensors are met, nor on the device, nor on the rank.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch

BLOCK = 1 << 20
"""How many elements are moved at once: 8 MB in float64."""

BITS = {
    torch.float64: torch.int64,
    torch.float32: torch.int32,
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
}
"""The dtypes that can be moved, with the integer of the same bits."""


class Signs:
    """Which elements grow in size and which shrink: one random bit for each, from a seed and a name."""

    def __init__(self, seed: int, name: str) -> None:
        digest = np.frombuffer(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest(), "<u4")
        self._generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *digest.tolist()])))

    def take(self, count: int) -> torch.Tensor:
        """The next `count` bits as bool [count]; asked for in the same portions, they are the same."""
        packed = np.frombuffer(self._generator.bytes((count + 7) // 8), dtype=np.uint8)
        return torch.from_numpy(np.unpackbits(packed, count=count).astype(np.bool_))


def moved(values: torch.Tensor, grows: torch.Tensor, unit: float, already: float = 0.0) -> torch.Tensor:
    """`values` times 1 + unit where `grows`, times 1 - unit elsewhere, rounded to their dtype: a fresh tensor.

    `values` is on the host, of a dtype in BITS and any shape; `grows` is bool of the same shape; `already` is the part
    of `unit` that these signs have moved them by before. An element moves by at least one representable step, hence by
    one to two unit roundoffs where `unit` is that of its own dtype. Zeros, NaN and infinite elements stay; a step that
    would reach zero or overflow is made to the other side.
    """
    wide = values.to(torch.float64)
    change = wide * (unit - already)
    target = (wide + torch.where(grows, change, -change)).to(values.dtype)
    bits = values.contiguous().view(BITS[values.dtype])
    # Floats hold sign and magnitude: the next greater magnitude is the next greater integer, for both signs.
    step = torch.where(grows, 1, -1).to(bits.dtype)
    result = target if already else torch.where(target == values, (bits + step).view(values.dtype), target)
    lost = (result == 0) | ~torch.isfinite(result)
    result = torch.where(lost, (bits - step).view(values.dtype), result)
    return torch.where((values == 0) | ~torch.isfinite(values), values, result)


def move_flat(flat: torch.Tensor, signs: Signs, unit: float, already: float = 0.0) -> None:
    """Move a flat host tensor in place, block by block."""
    for start in range(0, flat.numel(), BLOCK):
        part = flat[start : start + BLOCK]
        part.copy_(moved(part, signs.take(part.numel()), unit, already))


def move(tensor: torch.Tensor, signs: Signs, unit: float, already: float = 0.0) -> None:
    """Move a tensor of any device and layout in place, without a trace in its version.

    A graph that holds it is none the wiser: its backward goes on with values that differ by rounding only.
    """
    inside = tensor.data
    if inside.device.type == "cpu" and inside.is_contiguous():
        move_flat(inside.view(-1), signs, unit, already)
        return
    host = inside.cpu().contiguous()
    host = host.clone() if host.data_ptr() == inside.data_ptr() else host
    move_flat(host.view(-1), signs, unit, already)
    inside.copy_(host)


def moved_copy(tensor: torch.Tensor, signs: Signs, unit: float) -> torch.Tensor:
    """A moved tensor of its own, where and how the given one lies."""
    fresh = torch.empty_like(tensor)
    fresh.copy_(tensor)
    move(fresh, signs, unit)
    return fresh


def is_mask(tensor: torch.Tensor) -> bool:
    """Whether a float tensor holds nothing but 0, 1, -1 and the ends of its format: a mask or a one-hot code.

    No format rounds these, and code such as `(1 - mask) * -1e38` would turn a moved one into another mask.
    """
    limits = torch.finfo(tensor.dtype)
    plain = (tensor == 0) | (tensor.abs() == 1) | (tensor.abs() >= limits.max)
    return bool(plain.all())
