"""One training with a known answer: what is done in it, and where it must be found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn import functional

from benchmarks.nan_origins.points import Operation

Batch: TypeAlias = tuple[torch.Tensor, torch.Tensor]
Where: TypeAlias = tuple[int, str, str]
"""Step, phase and name; -1 is before step 0, an empty name the script."""


def cross_entropy(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The mean over all targets, in float32."""
    return functional.cross_entropy(prediction.float().flatten(0, -2), target.flatten())


def adam(model: nn.Module) -> torch.optim.Optimizer:
    """AdamW as most people set it."""
    return torch.optim.AdamW(model.parameters(), lr=1e-3)


@dataclass(frozen=True)
class Case:
    """One training; `where` is None where nothing may be accused, `label` else what the error must be called.

    `points` are operations at places in the model, `prepare` changes the model before step 0, `batch` what it is
    given, `before_update` what happens between backward and the optimizer (True: the step is given up).
    """

    name: str
    model: str
    where: Where | None = None
    label: str = "nan-origin"
    precision: str = "fp32"
    points: Mapping[str, Operation] = field(default_factory=dict)
    prepare: Callable[[Any], None] | None = None
    batch: Callable[[int, Batch], Batch] | None = None
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = cross_entropy
    optimizer: Callable[[nn.Module], torch.optim.Optimizer] = adam
    before_update: Callable[[nn.Module, torch.optim.Optimizer, int], bool] | None = None
    init_scale: float = 256.0
    micros: int = 1
    steps: int = 3
    capture: tuple[str, ...] = ()
