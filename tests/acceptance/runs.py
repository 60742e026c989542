"""Runs for the tests of acceptance, made of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.acceptance import Extras, Policy, accept, read_policy
from align.acceptance_records import AcceptResult, Criterion
from align.curve_records import CurveKind, Curves, Quantity
from benchmarks.acceptance_simulation import course

Values = NDArray[np.float64]
DEFAULT = read_policy()
NOISE = 0.03


def run(
    loss: Sequence[float] | Values, path: str = "run.csv", first: int = 0, every: int = 1, **columns: Any
) -> Curves:
    """A run that recorded this loss at every n-th step; other columns by the names of their quantities."""
    values = np.asarray(loss, dtype=np.float64)
    steps = first + every * np.arange(len(values), dtype=np.int64)
    taken = {Quantity.LOSS: "loss"}
    recorded = {Quantity.LOSS: values}
    for name, column in columns.items():
        recorded[Quantity(name)] = np.asarray(column, dtype=np.float64)
        taken[Quantity(name)] = name
    lost = ~np.isfinite(values)
    return Curves(path, CurveKind.CSV, steps, recorded, lost, np.zeros(len(values), dtype=np.bool_), taken)


def pair(count: int = 1000, healthy: float = 0.001, seed: int = 0) -> tuple[Values, Values]:
    """The losses of two healthy runs on the same batches."""
    random = np.random.default_rng(seed)
    reference = course(count) * (1 + NOISE * random.standard_normal(count))
    return reference, reference * (1 + healthy * random.standard_normal(count))


def perturbed(reference: Values, size: float, seed: int, path: str = "repeat.csv") -> Curves:
    """A repeat of the reference that differs by so much."""
    random = np.random.default_rng(1000 + seed)
    return run(reference * (1 + size * random.standard_normal(len(reference))), path)


def judge(
    reference: Sequence[float] | Values | Curves, candidate: Sequence[float] | Values | Curves,
    policy: Policy = DEFAULT, floors: Sequence[Curves] = (), **extras: Any,
) -> AcceptResult:  # fmt: skip
    """Accept one run in place of another."""
    sides = [
        each if isinstance(each, Curves) else run(each, path)
        for each, path in ((reference, "gpu.csv"), (candidate, "npu.csv"))
    ]
    return accept(sides[0], sides[1], policy, floors=floors, extras=Extras(**extras) if extras else None)


def of(result: AcceptResult, code: str) -> Criterion:
    """One criterion of a result."""
    return next(each for each in result.criteria if each.code == code)


def outcomes(result: AcceptResult) -> dict[str, str]:
    """The outcome of every criterion."""
    return {each.code: str(each.outcome) for each in result.criteria}


def with_limit(code: str, **numbers: float) -> Policy:
    """The default policy with other numbers for one criterion."""
    settings = tuple(
        replace(each, numbers={**each.numbers, **numbers}, limit=numbers.get("limit", each.limit))
        if each.code == code
        else each
        for each in DEFAULT.settings
    )
    return replace(DEFAULT, settings=settings)


def write_csv(path: Path, columns: Mapping[str, Sequence[Any] | Values]) -> Path:
    """A CSV file with a column of steps that counts from 0, unless one is given."""
    named = {"step": range(len(next(iter(columns.values())))), **columns}
    lines = [",".join(named), *(",".join(map(str, row)) for row in zip(*named.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
