"""Captures of the ranks of one job, made from numpy arrays: what each holds, is given, drops and takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from align.commands import inspect_files
from align.records import (
    INIT_STEP,
    Fact,
    FactValue,
    InspectResult,
    ModuleInfo,
    Phase,
    RunInfo,
    TensorKey,
    TensorRecord,
    TimelineRow,
)
from tests.builders import Array, record_of, write_capture

MODULES = (ModuleInfo("fc", "Linear"), ModuleInfo("drop", "Dropout", config={"p": 0.5}), ModuleInfo("head", "Linear"))


def random(seed: int, *shape: int) -> Array:
    """Normal numbers in float32."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def weights(seed: int = 0) -> dict[tuple[str, str], Array]:
    """Two matrices and a bias of zeros."""
    return {("fc", "weight"): random(seed, 6, 5), ("fc", "bias"): np.zeros(6, np.float32),
            ("head", "weight"): random(seed + 1, 3, 6)}  # fmt: skip


def gradients(seed: int) -> dict[tuple[str, str], Array]:
    """A gradient of each of the weights."""
    return {owner: random(seed + place, *value.shape) for place, (owner, value) in enumerate(weights().items())}


@dataclass(frozen=True)
class Rank:
    """What one rank does in step 0; `masked` is what its dropout is given and makes, `params` come after the step."""

    init: Mapping[tuple[str, str], Array] = field(default_factory=weights)
    updates: Mapping[tuple[str, str], Array] = field(default_factory=lambda: gradients(50))
    batch: Array = field(default_factory=lambda: random(90, 4, 5))
    masked: tuple[Array, Array] | None = None
    params: Mapping[tuple[str, str], Array] = field(default_factory=dict)
    buffers: Mapping[tuple[str, str], Array] = field(default_factory=dict)
    state: int = 0
    clip: tuple[float, float] | None = None
    settings: Mapping[str, FactValue] = field(default_factory=dict)
    run: RunInfo = field(default_factory=lambda: RunInfo(outcome="finished", parameters_on="cpu"))

    def write(self, path: Path, rank: int, world: int) -> Path:
        """Write the capture of this rank."""
        first = [record_of(TensorKey(INIT_STEP, Phase.INIT, *owner), value)
                 for owner, value in {**self.init, **self.buffers}.items()]  # fmt: skip
        norm, limit = self.clip or (math.nan, math.nan)
        row = TimelineRow(0, 1.0, 0.1, math.nan, 1.0, 0.1, False, False, 1, "SGD", clip_norm=norm, clip_limit=limit)
        run = replace(self.run, rank=rank, world_size=world)
        return write_capture(path, {INIT_STEP: first, 0: list(self._records())}, modules=MODULES, run=run,
                             timeline=[row], facts={0: self._facts()})  # fmt: skip

    def _records(self) -> list[TensorRecord]:
        found = [
            record_of(TensorKey(0, Phase.RNG, "torch", "state"), np.array([self.state], np.int64)),
            record_of(TensorKey(0, Phase.INPUT, "x", "value"), self.batch),
            record_of(TensorKey(0, Phase.FORWARD, "fc", "output.0"), self.batch @ self.init["fc", "weight"].T),
        ]
        if self.masked is not None:
            found += [record_of(TensorKey(0, Phase.FORWARD, "drop", slot), value)
                      for slot, value in zip(("input.0", "output.0"), self.masked, strict=True)]  # fmt: skip
        for phase, values in ((Phase.GRADIENT, self.updates), (Phase.UPDATE, self.updates), (Phase.PARAM, self.params)):
            found += [record_of(TensorKey(0, phase, *owner), value) for owner, value in values.items()]
        return found

    def _facts(self) -> list[Fact]:
        group = {"class": "SGD", **self.settings}
        facts = {("group0", slot): value for slot, value in group.items()}
        facts |= {(name, f"{slot}.group"): "group0" for name, slot in self.updates}
        if self.clip is not None:
            facts |= {("clip", slot): value for slot, value in zip(("norm", "limit"), self.clip, strict=True)}
            facts |= {("clip", "norm_type"): 2.0, ("clip", "scaled"): False}
        return [Fact(TensorKey(0, Phase.OPTIMIZER, *owner), value) for owner, value in facts.items()]


def inspect_ranks(folder: Path, ranks: Sequence[Rank], world: int | None = None) -> InspectResult:
    """Write the files of a job and inspect it."""
    for number, rank in enumerate(ranks):
        rank.write(folder / f"run.rank{number:04d}.h5", number, world or len(ranks))
    return inspect_files(str(folder / "run.h5"))
