"""The facts of the open step: numbers and words that are no tensors, gathered until the step is written."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import torch

from align.hooks.identity import is_plain
from align.records import Fact, FactValue, Phase, TensorKey

Source: TypeAlias = FactValue | torch.Tensor

LONGEST_TEXT = 200


class FactLog:
    """Facts in the order in which they were noted; a number on a device is fetched when the step is written."""

    def __init__(self) -> None:
        self._noted: dict[tuple[Phase, str, str, int, int], Source] = {}

    def note(self, phase: Phase, name: str, slot: str, value: Source, *, micro: int = 0, call: int = 0) -> None:
        """Note one fact; a later one of the same place replaces it. Of a tensor its present value counts."""
        if isinstance(value, torch.Tensor):
            value = _present(value)
        self._noted[phase, name, slot, micro, call] = value

    def take(self, step: int) -> list[Fact]:
        """All facts as those of this step; the log is empty then. Waits for each device at most once."""
        noted, self._noted = self._noted, {}
        numbers = _fetched([value for value in noted.values() if isinstance(value, torch.Tensor)])
        return [
            Fact(
                TensorKey(step, phase, name, slot, micro, call),
                numbers[id(value)] if isinstance(value, torch.Tensor) else value,
            )
            for (phase, name, slot, micro, call), value in noted.items()
        ]

    def clear(self) -> None:
        """Forget everything."""
        self._noted = {}


def plain_fact(value: Any) -> Source:
    """A setting of any kind as a fact: numbers and words as they are, all else as its text.

    >>> plain_fact(0.1), plain_fact(None), plain_fact((1, 2))
    (0.1, None, '(1, 2)')
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.Tensor) and value.numel() == 1 and is_plain(value):
        return value
    return (str(value) if isinstance(value, torch.dtype) else repr(value))[:LONGEST_TEXT]


def _present(value: torch.Tensor) -> Source:
    """The number that a tensor holds now: at once on the host, as a copy of its own on a device."""
    if value.numel() != 1 or not is_plain(value):
        return None
    if value.device.type == "cpu":
        number: bool | int | float = value.item()
        return number
    return value.detach().reshape(()).clone()


def _fetched(tensors: list[torch.Tensor]) -> dict[int, float]:
    """The numbers of single-element tensors, one copy for each device; float32 holds all that is asked of them."""
    found: dict[int, float] = {}
    for device in {tensor.device for tensor in tensors}:
        there = [tensor for tensor in tensors if tensor.device == device]
        numbers = torch.stack([tensor.float() for tensor in there]).tolist()
        for tensor, number in zip(there, numbers, strict=True):
            whole = not tensor.is_floating_point() and math.isfinite(number)
            found[id(tensor)] = number > 0 if tensor.dtype is torch.bool else int(number) if whole else number
    return found
