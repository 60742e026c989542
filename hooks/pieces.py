"""Cut a tensor into pieces that fit a cache, in logical order."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

FEWEST_TO_TURN = 60 * 60
"""Elements from which on torch copies a transposed matrix in tiles."""
SHORTEST_RUN = 32
"""Elements side by side from which on copying a piece as it lies is fast."""


def pieces(tensor: torch.Tensor, block: int, offset: int = 0) -> Iterator[tuple[torch.Tensor, int]]:
    """Cut into views of at most `block` elements in logical order, each with its logical offset; copies nothing."""
    numel = tensor.numel()
    if numel <= block:
        yield tensor, offset
    elif tensor.is_contiguous():
        flat = tensor.view(-1)
        for start in range(0, numel, block):
            yield flat[start : start + block], offset + start
    elif tensor.shape[0] == 1:
        yield from pieces(tensor[0], block, offset)
    else:
        inner = numel // tensor.shape[0]
        rows = max(block // inner, 1)
        for start in range(0, tensor.shape[0], rows):
            part = tensor[start] if rows == 1 else tensor[start : start + rows]
            yield from pieces(part, block, offset + start * inner)


def in_storage_order(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements as a contiguous view where there is one, for numbers that do not depend on the order."""
    if tensor.is_contiguous():
        return tensor
    strides = tensor.stride()
    view = tensor.permute(sorted(range(tensor.dim()), key=strides.__getitem__, reverse=True))
    return view if view.is_contiguous() else tensor


def gather(view: torch.Tensor, place: torch.Tensor, spare: torch.Tensor) -> None:
    """Copy a view to `place` in logical order; all three are of one dtype, `spare` is working memory as large.

    Where the last dimensions come first in memory (a transposed matrix, the channels of an image that come last), the
    view is first copied as it lies, then turned as one matrix: 3 times as fast as element by element.
    """
    strides = view.stride()
    order = sorted(range(view.dim()), key=strides.__getitem__, reverse=True)
    first = order[0]
    rows = math.prod(view.shape[:first])
    turned = order == [*range(first, view.dim()), *range(first)] and rows >= SHORTEST_RUN
    if not turned or view.numel() < FEWEST_TO_TURN:
        place.view(view.shape).copy_(view)
        return
    lying = view.permute(order)
    spare.view(lying.shape).copy_(lying)
    place.view(rows, -1).copy_(spare.view(-1, rows).t())
