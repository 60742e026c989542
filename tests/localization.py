"""A part of the benchmark of benchmarks/localization, small enough for every run of the tests."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.localization import models, plan
from benchmarks.localization.capturing import capture_job
from benchmarks.localization.plan import Capture, Pair
from tests.running import BENIGN, run_python

ONE_STEP = ("--steps", "1")


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
        replace(plan.first_step(each), arguments=(*each.arguments, *ONE_STEP))
        for pair, captures in chosen
        for each in captures
        if each.path in {pair.reference, pair.candidate}
    )
    _capture([each for each in wanted if not each.lists], folder)
    # Each run sets all knobs of the device, whatever it started with.
    _capture([each for each in wanted if each.lists], folder, simulator=BENIGN)
    return {pair.name: plan.with_answers(pair, folder) for pair, _ in chosen}


def _capture(captures: Sequence[Capture], folder: Path, **options: Any) -> None:
    """Make the captures in one process, whose device has the lists of its own for autocast."""
    jobs = [capture_job(each, folder) for each in captures]
    assert all(each.lists in {"", "npu"} for each in captures)
    done = run_python(
        "-m", "benchmarks.localization.many_runs", given=json.dumps(jobs), cwd=folder, timeout=600, **options
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"path"')]
    assert [(each["path"], each["code"], each["said"]) for each in found if each["code"]] == []
    assert len(found) == len(jobs), done.stderr[-2000:]
