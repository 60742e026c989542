"""Say in a word how a tensor lies in memory."""

from __future__ import annotations

import sys

import torch

from align.hooks.odd_tensors import is_wrapped, placements

PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)
FOUR, FIVE = 4, 5
BASE_FORMATS = {-1: "UNDEFINED", 0: "NCHW", 1: "NHWC", 2: "ND", 27: "NDHWC", 30: "NCDHW"}
"""Formats of torch_npu in which elements lie as their strides say, by number."""
PRIVATE_FORMATS = {3: "NC1HWC0", 4: "FRACTAL_Z", 29: "FRACTAL_NZ", 32: "NDC1HWC0", 33: "FRACTAL_Z_3D"}
"""Names of formats where torch_npu itself gives a number only."""


def layout_of(tensor: torch.Tensor) -> str:
    """How a tensor lies in memory: empty for a plain one whose elements stand in row-major order.

    `channels_last`, `channels_last_3d`, or `strided` for any other order; `sparse_coo` and the like by torch's names;
    `nested`, `quantized`, `meta`, `fake`, `lazy`, `functorch`, `dtensor(Shard(0), Replicate())`; on an NPU the name of
    a private format (`FRACTAL_NZ`). Waits for no device.
    """
    kind = "" if type(tensor) in PLAIN_TYPES and not is_wrapped(tensor) else _kind(tensor)
    if kind:
        return kind
    if tensor.layout is not torch.strided or tensor.is_nested:
        name = str(tensor.layout).removeprefix("torch.").removeprefix("_")
        return "nested" if tensor.is_nested else name
    if tensor.is_quantized or tensor.is_meta:
        return "quantized" if tensor.is_quantized else "meta"
    private = _private_format(tensor) if tensor.device.type == "npu" else ""
    return private or _order(tensor)


def _kind(tensor: torch.Tensor) -> str:
    """The kind of a subclass or of a wrapped tensor; empty for one that lies like any other."""
    if is_wrapped(tensor):
        return "functorch"
    if torch.nn.parameter.is_lazy(tensor):
        return "lazy"
    placed = placements(tensor)
    if placed is not None:
        return f"dtensor({', '.join(_placement(placement) for placement in placed)})"
    fake = getattr(sys.modules.get("torch._subclasses.fake_tensor"), "FakeTensor", None)
    return "fake" if fake is not None and isinstance(tensor, fake) else ""


def _placement(placement: object) -> str:
    """`Shard(0)`, `Replicate()`, `Partial(sum)`, the same for all versions of torch."""
    name = type(placement).__name__.removeprefix("_")
    given = getattr(placement, "dim", None)
    if given is None:
        given = getattr(placement, "reduce_op", None)
    return f"{name}({'' if given is None else given})"


def _order(tensor: torch.Tensor) -> str:
    """The order of the elements of a strided tensor."""
    if tensor.is_contiguous():
        return ""
    if tensor.dim() == FOUR and tensor.is_contiguous(memory_format=torch.channels_last):
        return "channels_last"
    if tensor.dim() == FIVE and tensor.is_contiguous(memory_format=torch.channels_last_3d):
        return "channels_last_3d"
    return "strided"


def _private_format(tensor: torch.Tensor) -> str:
    """The name of the format in which an NPU keeps the elements; empty for the base formats."""
    module = sys.modules.get("torch_npu")
    get_format = getattr(module, "get_npu_format", None)
    if get_format is None:
        return ""
    number = get_format(tensor)
    name = getattr(number, "name", None) or PRIVATE_FORMATS.get(int(number), f"format {int(number)}")
    return "" if int(number) in BASE_FORMATS else str(name)
