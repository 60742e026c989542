"""A tap for tensors that no hook can see."""

from __future__ import annotations

import sys
from typing import TypeVar

Value = TypeVar("Value")


def tap(name: str, tensor: Value) -> Value:
    """Record a tensor inside a captured forward under a name of your own, and give it back.

    In the capture it is the output of a module of that name, with its gradient. Nothing happens when the run is not
    captured, outside the captured steps, or outside a module call; torch is not imported.

    >>> scores = tap("scores", 3.0)
    """
    recorder = sys.modules.get("align.hooks.recorder")
    if recorder is not None:
        recorder.tap(name, tensor)
    return tensor
