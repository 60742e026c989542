"""Places in the models' code where a case may put an operation of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch

Operation: TypeAlias = Callable[[torch.Tensor], torch.Tensor]


class Points:
    """The operations of the case that runs, by the name of their place, and the number of the step."""

    def __init__(self) -> None:
        self.operations: Mapping[str, Operation] = {}
        self.step = 0


POINTS = Points()


def at(name: str, x: torch.Tensor) -> torch.Tensor:
    """What the case makes of a tensor at this place: mostly the tensor itself."""
    operation = POINTS.operations.get(name)
    return x if operation is None else operation(x)


def from_step(step: int, operation: Operation) -> Operation:
    """An operation that begins at a step."""

    def delayed(x: torch.Tensor) -> torch.Tensor:
        return operation(x) if step <= POINTS.step else x

    return delayed


def in_step(step: int, operation: Operation) -> Operation:
    """An operation of one step."""

    def once(x: torch.Tensor) -> torch.Tensor:
        return operation(x) if step == POINTS.step else x

    return once
