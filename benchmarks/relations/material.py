"""Real tensors to work on: weights of small models before and after training, and gradients with benign noise.

Noise is that of a healthy device: the same gradient computed once more with every weight moved by at most one unit
roundoff of the class (2^-24, 2^-11, 2^-8), bf16 under autocast too. The largest of three such pairs calibrates the
noise of a tensor, what is judged is a fourth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from benchmarks.localization import models

Array = NDArray[np.float32]
Tensors = Mapping[str, Array]

RATE = 3e-3
CALIBRATIONS = (2, 3, 4)
MODELS = tuple(models.BUILDERS)
UNITS = {"fp32": 2.0**-24, "tf32": 2.0**-11, "bf16": 2.0**-8}


@dataclass(frozen=True, slots=True)
class Gradients:
    """The gradients of one class: reference, two benign candidates, the reference and a candidate of a step before."""

    reference: Tensors
    candidate: Tensors
    calibrations: tuple[Tensors, ...]
    before: Tensors
    candidate_before: Tensors

    def noise(self, name: str) -> float:
        """The largest relative L2 of the pairs that calibrate."""
        ours = self.reference[name].astype(np.float64)
        norm = float(np.linalg.norm(ours))
        away = max(float(np.linalg.norm(other[name].astype(np.float64) - ours)) for other in self.calibrations)
        return away / norm if norm > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class Material:
    """All of one model; weights include buffers.

    `seeds` are the initial weights of two seeds, `trained` what the first became, `before` and `later` one step off,
    `other` what the second became.
    """

    model: str
    seeds: tuple[Tensors, Tensors]
    trained: Tensors
    before: Tensors
    later: Tensors
    other: Tensors
    gradients: Mapping[str, Gradients]


def make(model: str, steps: int) -> Material:
    """Train the model from two seeds and take what is needed on the way."""
    torch.set_num_threads(1)
    initial, states = [], []
    for seed in (1, 2):
        torch.manual_seed(seed)
        network = models.BUILDERS[model]()
        initial.append(_tensors(network))
        states.append(_trained(model, network, steps))
    torch.manual_seed(1)
    network = models.BUILDERS[model]()
    gradients = {name: _gradients(model, network, states[0][-2:], name) for name in UNITS}
    before, trained, later = states[0][-3:]
    return Material(model, (initial[0], initial[1]), trained, before, later, states[1][-2], gradients)


def _trained(model: str, network: nn.Module, steps: int) -> list[Tensors]:
    """The last three states of a training."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE)
    generator = torch.Generator().manual_seed(3)
    states = []
    for step in range(steps):
        inputs, targets = models.batch(model, generator)
        output = network(inputs)
        models.loss_of(model, getattr(output, "logits", output), targets).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step >= steps - 3:
            states.append(_tensors(network))
    return states


def _gradients(model: str, network: nn.Module, states: list[Tensors], precision: str) -> Gradients:
    """Of two states of the weights, each computed as a reference and as benign candidates do."""
    before, now = (_computing(model, network, state, precision, batch) for batch, state in enumerate(states))
    return Gradients(now(None), now(1), tuple(now(seed) for seed in CALIBRATIONS), before(None), before(1))


def _computing(
    model: str, network: nn.Module, state: Tensors, precision: str, batch: int
) -> Callable[[int | None], Tensors]:
    def compute(seed: int | None) -> Tensors:
        _load(network, state)
        if seed is not None:
            _perturb(network, UNITS[precision], seed)
        inputs, targets = models.batch(model, torch.Generator().manual_seed(100 + batch))
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            output = network(inputs)
            loss = models.loss_of(model, getattr(output, "logits", output), targets)
        loss.backward()
        found = {
            name: parameter.grad.numpy().copy()
            for name, parameter in network.named_parameters()
            if parameter.grad is not None
        }
        network.zero_grad()
        return found

    return compute


def _perturb(network: nn.Module, unit: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(1.0 + unit * (2.0 * torch.rand(parameter.shape, generator=generator) - 1.0))


def _load(network: nn.Module, state: Tensors) -> None:
    network.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in state.items()})


def _tensors(network: nn.Module) -> Tensors:
    return {name: tensor.detach().numpy().copy() for name, tensor in network.state_dict().items()}
