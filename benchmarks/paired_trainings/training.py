"""Trains by a recipe and writes what people keep of a run: the loss and the gradient norm of each step, as CSV."""

from __future__ import annotations

import csv
import hashlib
import math
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.paired_trainings.models import Task
from benchmarks.paired_trainings.recipes import Recipe

BETAS = (0.9, 0.95)
WARM_UP = 20


class Recorded(NamedTuple):
    """One step."""

    loss: float
    gradient_norm: float


def train(task: Task, recipe: Recipe, steps: int, seed: int) -> list[Recorded]:
    """Train so many steps; the seed draws the weights and the order of the samples."""
    model = _model(task, recipe, seed)
    inputs, targets = task.data()
    targets = _mislabelled(targets, recipe.mislabelled, task.classes)
    optimizer = torch.optim.AdamW(
        model.parameters(), betas=BETAS, eps=recipe.eps, weight_decay=recipe.decay, fused=True
    )
    recorded = []
    for step, chosen in enumerate(_batches(len(inputs), task.batch, steps, 1000 * recipe.order + seed)):
        rate = recipe.rate * task.rate * min(1.0, (step + 1) / WARM_UP)
        for group in optimizer.param_groups:
            group["lr"] = rate
        scores = model(inputs[chosen])
        loss = functional.cross_entropy(scores.flatten(0, -2), targets[chosen].flatten())
        optimizer.zero_grad()
        loss.backward()
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        norm = float(nn.utils.clip_grad_norm_(trained, recipe.clip))
        lost = step == recipe.lost_at
        if not lost and (recipe.stalled_from is None or step < recipe.stalled_from):
            optimizer.step()
        recorded.append(Recorded(math.nan if lost else loss.item(), norm))
    return recorded


def _model(task: Task, recipe: Recipe, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    model = task.build(recipe.arithmetic).train()
    if recipe.moved_by:
        generator = torch.Generator().manual_seed(recipe.moved_seed)
        with torch.no_grad():
            for parameter in model.parameters():
                signs = torch.randint(0, 2, parameter.shape, generator=generator) * 2 - 1
                parameter.mul_(1 + recipe.moved_by * signs.double())
    if recipe.frozen:
        model.get_parameter(task.middle).requires_grad = False
    return model


def _mislabelled(targets: Tensor, share: float, classes: int) -> Tensor:
    """A share of the targets, drawn by lot, moved to the next class."""
    wrong = torch.rand(targets.shape, generator=torch.Generator().manual_seed(1)) < share
    return torch.where(wrong, (targets + 1) % classes, targets)


def _batches(samples: int, batch: int, steps: int, seed: int) -> list[Tensor]:
    """The samples of each step: each once, in a random order, then again."""
    generator = torch.Generator().manual_seed(seed)
    epochs = math.ceil(batch * steps / samples)
    order = torch.cat([torch.randperm(samples, generator=generator) for _ in range(epochs)])
    return list(order[: batch * steps].split(batch))


def write_run(file: Path, recorded: list[Recorded]) -> None:
    """Write one run, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    with part.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(("step", "loss", "grad_norm"))
        writer.writerows((step, repr(loss), repr(norm)) for step, (loss, norm) in enumerate(recorded))
    part.replace(file)


def run_name(recipe: Recipe) -> str:
    """A name that tells runs of one task and seed apart, as `bf16-autocast-1f0c9a3e`."""
    told = {name: getattr(recipe, name) for name in recipe.__slots__ if name != "arithmetic"}
    digest = hashlib.sha256(repr(sorted(told.items())).encode()).hexdigest()
    return f"{recipe.arithmetic.name.replace(',', '').replace(' ', '-')}-{digest[:8]}"
