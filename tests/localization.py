"""A part of the benchmark of benchmarks/localization, small enough for every run of the tests."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import torch

from benchmarks.localization import models, plan
from benchmarks.localization.capturing import make_captures
from benchmarks.localization.plan import Pair


def captured(names: Collection[str], folder: Path) -> dict[str, Pair]:
    """The pairs of these names, their first step captured into the folder.

    The weights are not trained as those of the benchmark are; gains and biases are not trivial either.
    """
    chosen = [(pair, captures) for pair, captures in plan.plan(plan.Choice()) if pair.name in names]
    for name in dict.fromkeys(pair.model for pair, _ in chosen):
        torch.manual_seed(0)
        model = models.BUILDERS[name]()
        models.stir(model)
        torch.save(model.state_dict(), folder / f"{name}.pt")
    wanted = plan.distinct(
        plan.first_step(each)
        for pair, captures in chosen
        for each in captures
        if each.path in {pair.reference, pair.candidate}
    )
    make_captures(wanted, folder, processes=1)
    return {pair.name: plan.with_answers(pair, folder) for pair, _ in chosen}
