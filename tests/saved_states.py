"""Compare what two runs of an example script saved: weights, losses and generator states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch


def same(ours: Any, theirs: Any) -> bool:
    """Whether two saved states are equal bit for bit."""
    if isinstance(ours, torch.Tensor):
        return ours.dtype == theirs.dtype and bytes(ours.reshape(-1).view(torch.uint8).numpy()) == bytes(
            theirs.reshape(-1).view(torch.uint8).numpy()
        )
    if isinstance(ours, dict):
        return list(ours) == list(theirs) and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, (list, tuple)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return repr(ours) == repr(theirs)


def differing_parts(plain: Path, captured: Path) -> list[str]:
    """The parts of two saved states that are not the same bit for bit; raises KeyError where one is missing."""
    one = torch.load(plain, weights_only=False)
    other = torch.load(captured, weights_only=False)
    assert set(one) >= {"model", "losses", "rng"}
    return [part for part in one if not same(one[part], other[part])]
