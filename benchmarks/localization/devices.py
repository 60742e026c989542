"""Devices with nothing wrong that compute otherwise: knobs of the simulated NPU, and whose autocast lists rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TF32_BITS, HF32_BITS = 10, 11


@dataclass(frozen=True, slots=True)
class Device:
    """One way to compute; `lists` are the operators that autocast shortens: of the NPU, or of the CPU."""

    name: str
    knobs: Mapping[str, Any] = field(default_factory=dict)
    lists: str = "npu"


_ALL = {
    "k_chunk": 32, "k_reverse": True, "flip_reduce": True, "online_softmax": True, "one_pass_norm": True,
    "fused_batch_norm": True, "gelu_formula": True, "ulp": 1,
}  # fmt: skip

DEVICES = (
    Device("reduction order", {"k_reverse": True, "flip_reduce": True}),
    Device("chunks", {"k_chunk": 16, "online_softmax": True, "hf32_truncate": True}),
    Device("one-pass norms", {"one_pass_norm": True, "fused_batch_norm": True, "k_reverse": True}),
    Device("late affine", {"norm_affine_late": True, "fused_batch_norm": True, "k_chunk": 8}),
    Device("formulas and ulp", {"gelu_formula": True, "ulp": 2}),
    Device("rounding points", {"k_reverse": True, "ulp": 1}, lists="cpu"),
    Device("everything", _ALL),
    Device("everything, CPU lists", {**_ALL, "k_chunk": 8, "norm_affine_late": True}, lists="cpu"),
)


def knobs_of(device: Device, precision: str) -> dict[str, Any]:
    """The knobs of a candidate in this class of precision."""
    shortened = precision == "tf32"
    return {**device.knobs, "hf32_matmul": shortened, "hf32_conv": shortened, "hf32_bits": HF32_BITS}


TF32_REFERENCE = {"hf32_matmul": True, "hf32_conv": True, "hf32_bits": TF32_BITS}
"""A GPU with TF32: the reference of the class tf32 runs on the simulated device too, as the CPU has no such format."""
