"""Read the autograd graph that one module call has built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

NODE_LIMIT = 20_000

MATMUL_NODES = ("mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "mv", "addmv", "addbmm", "dot")
ATTENTION = "scaleddotproduct"
PIECEWISE_NODES = (
    "relu", "leakyrelu", "threshold", "hardtanh", "prelu", "rrelu", "relu6", "maxpool", "adaptivemaxpool", "max",
    "min", "amax", "amin", "topk", "sort", "clamp", "abs", "where", "median", "kthvalue", "hardswish", "hardsigmoid",
    "hardshrink", "softshrink", "maximum", "minimum", "fmax", "fmin", "gather",
)  # fmt: skip

NORM_WORDS = ("layernorm", "groupnorm", "batchnorm", "instancenorm", "rmsnorm")
"""In the names of nodes that take a mean out or divide by a deviation, whatever the class of their module is called."""

CHOOSING_NODES = ("topk", "sort", "kthvalue", "mode")
"""Their results are other elements when two numbers change their order."""

Edge = tuple[Any, int]
"""(node, output number) as autograd's `next_functions` has it."""


@dataclass(slots=True)
class Exploration:
    """What lies between the outputs and the inputs of one call.

    `entries` maps each input slot to the (node, position) pairs through which its gradient leaves the call.
    """

    entries: dict[str, list[tuple[Any, int]]] = field(default_factory=dict)
    dtypes: set[torch.dtype] = field(default_factory=set)
    matmul: bool = False
    conv: bool = False
    piecewise: bool = False
    chooses: bool = False
    normalises: bool = False


def edge_of(tensor: torch.Tensor) -> Edge | None:
    """The autograd edge that a use of this tensor points to; None where no gradient flows."""
    if not tensor.requires_grad:
        return None
    if tensor.grad_fn is None:
        return (tensor, -1)
    return (tensor.grad_fn, tensor.output_nr)


def explore(outputs: Iterable[torch.Tensor], inputs: Mapping[str, Edge], born_after: int) -> Exploration:
    """Walk from the outputs back to the inputs, through the nodes made since `born_after`."""
    found = Exploration()
    targets = {(id(node), number): slot for slot, (node, number) in inputs.items()}
    pending = [output.grad_fn for output in outputs if output.grad_fn is not None]
    seen = {id(node) for _, (node, number) in inputs.items() if number >= 0}
    keep_alive = list(pending)
    while pending and len(seen) < NODE_LIMIT:
        node = pending.pop()
        if id(node) in seen or _sequence_number(node) < born_after:
            continue
        seen.add(id(node))
        keep_alive.append(node)
        _classify(node, found)
        for position, (following, number) in enumerate(node.next_functions):
            if following is None:
                continue
            variable = getattr(following, "variable", None)
            key = (id(following), number) if variable is None else (id(variable), -1)
            if key in targets:
                found.entries.setdefault(targets[key], []).append((node, position))
            elif variable is None:
                pending.append(following)
    return found


def sequence_now() -> int:
    """The sequence number that the next autograd node of this thread gets; 0 where torch does not tell."""
    reader = getattr(torch._C._autograd, "_get_sequence_nr", None)
    return int(reader()) if reader is not None else 0


def _sequence_number(node: Any) -> int:
    reader = getattr(node, "_sequence_nr", None)
    return int(reader()) if reader is not None else 0


def _classify(node: Any, found: Exploration) -> None:
    """Note the dtypes that this node made and what kind of operator it was."""
    for meta in getattr(node, "_input_metadata", ()):
        found.dtypes.add(meta.dtype)
    name = node.name().lower()
    kind = name.rstrip("0123456789").removesuffix("backward")
    if kind in MATMUL_NODES or ATTENTION in kind:
        found.matmul = True
    elif "conv" in kind:
        found.conv = True
    elif kind.split("with")[0] in PIECEWISE_NODES or "maxpool" in kind:
        found.piecewise = True
    found.chooses = found.chooses or kind in CHOOSING_NODES
    found.normalises = found.normalises or any(word in kind for word in NORM_WORDS)
