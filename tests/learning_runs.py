"""Captures for the tests of learning: curves without tensors, parameters that an SGD in numpy moves, real training."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.capture_file import open_capture
from align.inspection import Inspection, RunView
from align.records import (
    INIT_STEP,
    Fact,
    FactValue,
    Finding,
    ModuleInfo,
    Phase,
    Reply,
    RunInfo,
    Severity,
    TensorKey,
    TensorRecord,
    TimelineRow,
)
from tests.builders import Array, record_of, write_capture
from tests.numpy_run import to_bfloat16

Rule = Callable[[Inspection], Iterable[Finding]]


def row(step: int, loss: float, **more: Any) -> TimelineRow:
    """A row of a healthy run but for what is given."""
    usual: dict[str, Any] = {
        "learning_rate": 0.1, "loss_scale": math.nan, "gradient_norm": math.nan, "seconds": 0.1, "skipped": False,
        "nonfinite": False, "micros": 1, "optimizer": "SGD",
    }  # fmt: skip
    return TimelineRow(step, loss, **{**usual, **more})


def curve(losses: Sequence[float] | NDArray[np.float64], **more: Any) -> list[TimelineRow]:
    """A timeline with these losses; what else is given is one value, or one for each step."""
    return [
        row(
            step,
            float(loss),
            **{name: value[step] if isinstance(value, list) else value for name, value in more.items()},
        )
        for step, loss in enumerate(losses)
    ]


def falling(
    steps: int, noise: float = 0.03, seed: int = 0, start: float = 2.3, end: float = 0.5
) -> NDArray[np.float64]:
    """The losses of a healthy run: they fall, with the noise of batches."""
    random = np.random.default_rng(seed)
    losses = end + (start - end) * np.exp(-np.arange(steps) / (steps / 4))
    return np.asarray(losses * (1.0 + noise * random.standard_normal(steps)))


def found(path: Path, rule: Rule) -> list[Finding]:
    """What one rule finds in a capture."""
    with open_capture(path) as capture:
        return list(rule(Inspection(RunView(capture))))


def told(path: Path, rule: Rule) -> list[tuple[Severity, str]]:
    """The severity and sentence of each finding."""
    return [(finding.severity, finding.summary) for finding in found(path, rule)]


def answer(path: Path, question: Callable[[Inspection], Reply]) -> Reply:
    """The reply to one question."""
    with open_capture(path) as capture:
        return question(Inspection(RunView(capture)))


@dataclass(frozen=True)
class Training:
    """A model of two layers that SGD trains, as a capture holds it, with whatever goes wrong.

    `gradient` gives the gradient of a parameter in a step, `update` what is added to it. Names in `loose` get gradients
    and are in no group, those in `owned` are in the group and get none.
    """

    steps: int = 3
    rate: float = 0.1
    dtype: str = "float32"
    gradient: Callable[[str, int, Array], Array] = lambda _name, _step, draw: draw
    update: Callable[[str, Array], Array] = lambda _name, change: change
    loose: frozenset[str] = frozenset()
    owned: Sequence[str] = ()
    losses: Sequence[float] = (2.0, 1.9, 1.8)
    facts: Mapping[tuple[str, str], FactValue] = field(default_factory=dict)
    decay: Mapping[str, float] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> Path:
        """Train, and write the capture."""
        random = np.random.default_rng(0)
        shapes = {"fc.weight": (30, 20), "fc.bias": (30,), "head.weight": (4, 30), "norm.weight": (30,)}
        parameters = {name: self._rounded(0.1 * random.standard_normal(shape)) for name, shape in shapes.items()}
        steps: dict[int, list[TensorRecord]] = {INIT_STEP: []}
        facts: dict[int, list[Fact]] = {}
        for name, value in parameters.items():
            steps[INIT_STEP].append(self._record(INIT_STEP, Phase.INIT, name, value))
        for step in range(self.steps):
            draws = {name: random.standard_normal(value.shape) for name, value in parameters.items()}
            made = {name: self.gradient(name, step, draw) for name, draw in draws.items() if name not in self.owned}
            steps[step] = [self._record(step, Phase.GRADIENT, name, value) for name, value in made.items()]
            taken = {name: value for name, value in made.items() if name not in self.loose}
            steps[step] += [self._record(step, Phase.UPDATE, name, value) for name, value in taken.items()]
            for name, value in taken.items():
                change = self.update(name, -self.rate * value)
                parameters[name] = self._rounded(parameters[name] + change)
            grouped = [*taken, *self.owned]
            steps[step] += [self._record(step, Phase.PARAM, name, parameters[name]) for name in grouped]
            facts[step] = self._facts(step, grouped)
        timeline = curve(self.losses, **{"learning_rate": self.rate, **self.more})
        modules = [ModuleInfo("fc", "Linear"), ModuleInfo("head", "Linear"), ModuleInfo("norm", "RMSNorm")]
        run = RunInfo(outcome="finished", detail="sketch")
        return write_capture(path, steps, modules=modules, run=run, timeline=timeline, facts=facts)

    def _rounded(self, value: Array) -> Array:
        return to_bfloat16(value) if self.dtype == "bfloat16" else value.astype(np.float32)

    def _record(self, step: int, phase: Phase, name: str, value: Array) -> TensorRecord:
        module, _, slot = name.rpartition(".")
        dtype = self.dtype if phase in {Phase.INIT, Phase.PARAM} else "float32"
        return record_of(TensorKey(step, phase, module, slot), value.astype(np.float32), dtype=dtype)

    def _facts(self, step: int, grouped: Sequence[str]) -> list[Fact]:
        decays = sorted({self.decay.get(name, 0.0) for name in grouped})
        values: dict[tuple[str, str], FactValue] = {("optimizers", "count"): 1}
        for number, decay in enumerate(decays):
            settings: dict[str, FactValue] = {"class": "SGD", "lr": self.rate, "momentum": 0.0, "weight_decay": decay}
            values |= {(f"group{number}", slot): value for slot, value in settings.items()}
        for name in grouped:
            module, _, slot = name.rpartition(".")
            values[module, f"{slot}.group"] = f"group{decays.index(self.decay.get(name, 0.0))}"
        values |= self.facts
        return [Fact(TensorKey(step, Phase.OPTIMIZER, name, slot), value) for (name, slot), value in values.items()]
