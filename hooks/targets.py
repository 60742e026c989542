"""How many targets of a batch count: those that hold the ignore index do not."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from align.hooks.facts import Source
from align.hooks.identity import is_plain
from align.records import Phase

IGNORE_INDEX = -100
"""What torch's cross_entropy leaves out unless told otherwise."""

TARGETS = ("label", "target")


def target_facts(name: str, slot: str, tensor: torch.Tensor) -> Iterator[tuple[Phase, str, str, Source]]:
    """`valid_targets` and `ignored_targets` of an integer tensor whose argument is named like targets."""
    place = f"{name}.{slot}".lower()
    if not any(word in place for word in TARGETS) or not is_plain(tensor):
        return
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool or not tensor.dim():
        return
    ignored = (tensor == IGNORE_INDEX).sum()
    yield Phase.INPUT, name, "valid_targets", tensor.numel() - ignored
    yield Phase.INPUT, name, "ignored_targets", ignored
