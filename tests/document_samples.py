"""Results of every command for the tests of saved results: acceptances of curves made here, and a checkpoint."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from align.acceptance import accept, read_policy
from align.acceptance_records import Acceptance, AcceptResult, Criterion, Limit, Measure, Outcome
from align.checkpoint_records import CheckpointResult, CheckpointSide, EntryRow
from align.curve_records import CurveKind, Curves, Quantity
from align.records import Finding, RunInfo, Severity, Verdict
from align.sentences import say
from tests.report_samples import GPU, NPU

MADE = "2026-01-07 10:31:00+08:00"
HOSTILE = "</td><script>alert(1)</script> | `x` @team #12 \u202egnp.exe $x$ [a](http://b)"


def losses(steps: int) -> NDArray[np.float64]:
    """A loss that falls from 3.1 to 0.9, with the noise of batches."""
    noise = np.random.default_rng(7).standard_normal(steps)
    return 2.3 * np.exp(-np.arange(steps) / 400.0) + 0.8 + 0.05 * noise


def curves(path: str, loss: NDArray[np.float64], digit: str, run: RunInfo | None = None) -> Curves:
    """A run of these losses; its hash is a few digits, again and again."""
    count = len(loss)
    return Curves(
        path=path,
        kind=CurveKind.CSV if run is None else CurveKind.CAPTURE,
        steps=np.arange(count, dtype=np.int64),
        columns={
            Quantity.LOSS: loss,
            Quantity.GRADIENT_NORM: 1.0 + 0.1 * loss,
            Quantity.SECONDS: np.full(count, np.nan),
        },
        nonfinite=np.zeros(count, bool),
        skipped=np.zeros(count, bool),
        taken={Quantity.LOSS: "loss", Quantity.GRADIENT_NORM: "grad_norm"},
        sha256=(digit * 64)[:64],
        run=run,
    )


def accepted(
    steps: int = 1200, shift: float = 0.0, runs: tuple[RunInfo, RunInfo] | None = None, **words: str
) -> AcceptResult:
    """A candidate that differs by small noise, from the middle on by a constant share too."""
    loss = losses(steps)
    noise = 0.001 * np.random.default_rng(8).standard_normal(steps)
    other = loss * (1.0 + noise + shift * (np.arange(steps) > steps // 2))
    ours, theirs = runs or (None, None)
    result = accept(
        curves("logs/gpu.csv" if ours is None else "runs/gpu.h5", loss, "3f", ours),
        curves("logs/npu.csv" if theirs is None else "runs/npu.h5", other, "b7", theirs),
        read_policy("default"),
        title=words.get("title", "GPT-2 345M pretraining"),
        project=words.get("project", "P-2026-017"),
    )
    policy = dataclasses.replace(result.policy, sha256="91ce" * 16)
    return dataclasses.replace(result, made=MADE, policy=policy)


def passing() -> AcceptResult:
    """All that can be measured is met."""
    return accepted()


def failing() -> AcceptResult:
    """The candidate's loss is 3 % higher from the middle on."""
    return accepted(shift=0.03)


def preliminary() -> AcceptResult:
    """200 steps, where the policy asks for 1,000."""
    return accepted(200)


def captured() -> AcceptResult:
    """Both runs are captures, the candidate's of a simulated NPU."""
    return accepted(runs=(dataclasses.replace(GPU, autocast="bfloat16", host="gpu-07", world_size=8), NPU))


def hostile_acceptance() -> AcceptResult:
    """Names that try to be more than names, wherever the document shows one."""
    result = accepted(title=HOSTILE, project=HOSTILE)
    bad = Criterion(
        "own", Outcome.FAIL, 1.0, Measure.NUMBER, Limit(0.5, "at most", HOSTILE), required=True, sentence=HOSTILE,
        advice=HOSTILE,
    )  # fmt: skip
    return dataclasses.replace(
        result,
        reference=dataclasses.replace(result.reference, path=HOSTILE, taken={Quantity.LOSS: HOSTILE}, notes=(HOSTILE,)),
        policy=dataclasses.replace(result.policy, name=HOSTILE, path=HOSTILE, text=HOSTILE),
        verdict=Acceptance.FAIL,
        summary=HOSTILE,
        criteria=(bad, *result.criteria),
        deviations=(HOSTILE,),
        not_covered=(HOSTILE,),
        notes=(HOSTILE,),
        floors=(HOSTILE,),
    )


ACCEPTANCES: dict[str, Callable[[], AcceptResult]] = {
    "passing": passing,
    "failing": failing,
    "preliminary": preliminary,
    "captured": captured,
    "hostile": hostile_acceptance,
}


def checkpoint(name: str = "layers.0.mlp.fc1.weight") -> CheckpointResult:
    """One entry is transposed, one is renamed, one is missing."""
    summary = say("{} of {} entries differ: {} is transposed.", 1, 3, name)
    finding = Finding(
        "AL305",
        "weight-transposed",
        Severity.ERROR,
        summary,
        say("Transpose {} when it is loaded.", name),
        evidence={"differing": 1, "tensors": 3},
        arguments={"name": name},
    )
    return CheckpointResult(
        reference=CheckpointSide("a.safetensors", "safetensors", 3, 123_456),
        candidate=CheckpointSide("b.pt", "torch file", 2, 98_765),
        verdict=Verdict.DIVERGED,
        summary=summary,
        findings=(finding,),
        rows=(
            EntryRow(name, f"model.{name}", "transposed", say("equal after transposing ({}, {})", 1, 0), "values",
                     0.031415926535, "float32", "bfloat16", (4, 8), (8, 4)),
            EntryRow("norm.weight", "model.norm.weight", "equal", "", "name", 0.0, "float32", "float32", (4,), (4,)),
        ),
        only_reference=(f"{name}.bias",),
        renamed=(("* -> model.*", 2),),
        counts={"equal": 1, "transposed": 1, "paired": 2, "only_reference": 1},
        notes=(say("The names differ by {}.", "model."),),
    )  # fmt: skip
