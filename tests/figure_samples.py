"""Results that show every figure: loss scales, exponents, curves of acceptance; the same numbers every time."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from align.acceptance_records import (
    Acceptance,
    AcceptResult,
    Criterion,
    Limit,
    Measure,
    Outcome,
    PolicyInfo,
)
from align.curve_records import CurveKind, Curves, Quantity
from align.records import (
    Comparison,
    DiffResult,
    Exponents,
    InspectResult,
    Magnitudes,
    Phase,
    Status,
    TensorKey,
    TensorRecord,
    TensorStats,
    TimelineRow,
)
from tests import inspect_samples, report_samples

FP16_CODES, FP32_CODES = 32, 256


def fp16(zeros: int, subnormals: int, infs: int = 0, centre: int = 12) -> Magnitudes:
    """A thousand elements of float16, those that are normal in five octaves."""
    codes = [0] * FP16_CODES
    codes[0], codes[-1] = zeros + subnormals, infs
    normal = 1000 - zeros - subnormals - infs
    for place in range(5):
        codes[centre - 2 + place] = normal // 5 + (normal % 5 if place == 2 else 0)
    return Magnitudes("float16", 1000, zeros, subnormals, infs, 2.0 ** (centre - 13), tuple(codes))


def fp32() -> Magnitudes:
    """A hundred elements of float32 in two octaves."""
    codes = [0] * FP32_CODES
    codes[120], codes[121] = 60, 40
    return Magnitudes("float32", 100, 0, 0, 0, 2.0**-5, tuple(codes))


def uncounted() -> Magnitudes:
    """A thousand elements of bfloat16 whose exponents were not counted."""
    return Magnitudes("bfloat16", 1000, 100, 0, 0, 3.0)


def magnitudes(name: str, candidate: Magnitudes, reference: Magnitudes | None, step: int = 0) -> Exponents:
    return Exponents(TensorKey(step, Phase.GRADIENT, name, "weight"), candidate, reference)


def scaled_pair() -> DiffResult:
    """Two fp16 runs with loss scaling; the candidate overflows twice in captured steps, and once later."""
    reference = tuple(dataclasses.replace(row, learning_rate=1e-3) for row in rows((), grows=(10, 20)))
    pairs = [*report_samples.comparisons(2, 2), *(overflow(step) for step in (0, 1))]
    return dataclasses.replace(
        report_samples.aligned(),
        reference_timeline=reference,
        candidate_timeline=rows((0, 1, 7), grows=(20,)),
        comparisons=tuple(sorted(pairs, key=lambda pair: pair.key.step)),
        exponents=(
            magnitudes("layers.0.attn", fp16(300, 120), fp16(20, 30)),
            magnitudes("layers.1.mlp.fc1", fp16(0, 0, infs=20), fp16(0, 0)),
            magnitudes("layers.1.mlp.fc2", fp32(), fp32(), step=1),
            magnitudes("layers.1.attn", uncounted(), uncounted()),
        ),
    )


def rows(skipped: tuple[int, ...], grows: tuple[int, ...], steps: int = 30) -> tuple[TimelineRow, ...]:
    """A timeline whose scale halves in skipped steps and doubles in others."""
    scale, made = 65536.0, []
    for row in report_samples.timeline(steps):
        after = scale * (0.5 if row.step in skipped else 2.0 if row.step in grows else 1.0)
        made.append(dataclasses.replace(row, loss_scale=scale, loss_scale_after=after, skipped=row.step in skipped))
        scale = after
    return tuple(made)


def overflow(step: int) -> Comparison:
    """A gradient with Inf in the candidate."""
    key = TensorKey(step, Phase.BACKWARD, "layers.1.mlp.fc2", "grad_output.0")
    finite, infinite = TensorStats(count=16, maximum=1.0), TensorStats(count=16, maximum=1.0, positive_infs=3)
    reference, candidate = (TensorRecord(key, 900, "float16", (16,), stats) for stats in (finite, infinite))
    return Comparison(reference, candidate, status=Status.NONFINITE)


def scaled_run() -> InspectResult:
    """One run with loss scaling whose skips have a cause, and gradients near the end of fp16."""
    return dataclasses.replace(
        inspect_samples.collapse(),
        exponents=(magnitudes("layers.0.attn", fp16(300, 120), None), magnitudes("head", uncounted(), None)),
    )


def curves(steps: int, seed: int, drift: float = 0.0, lost: int | None = None) -> Curves:
    """A noisy loss that falls and drifts away, and a gradient norm."""
    noise = np.random.default_rng(seed)
    numbers = np.arange(steps)
    falling = 8.0 * np.exp(-6.0 * numbers / steps) + 2.0 + 0.05 * np.random.default_rng(9).standard_normal(steps)
    loss = falling * (1.0 + 0.004 * noise.standard_normal(steps) + drift * numbers / steps)
    gone = numbers == (-1 if lost is None else lost)
    return Curves(
        path=f"run{seed}.csv",
        kind=CurveKind.CSV,
        steps=numbers.astype(np.int64),
        columns={
            Quantity.LOSS: np.where(gone, math.nan, loss),
            Quantity.GRADIENT_NORM: np.exp(0.5 * noise.standard_normal(steps)),
        },
        nonfinite=gone,
        skipped=np.zeros(steps, dtype=np.bool_),
    )


def criterion(code: str, limit: float, measure: Measure = Measure.PERCENT) -> Criterion:
    return Criterion(
        code, Outcome.PASS, 0.001, measure, Limit(limit, "at most", "measured"), required=True, sentence=""
    )


def accepted(steps: int = 2000) -> AcceptResult:
    """An acceptance with a drift of 1.2 % in the end and one step whose loss is NaN."""
    return AcceptResult(
        reference=curves(steps, 1),
        candidate=curves(steps, 2, drift=0.012, lost=steps // 2),
        policy=PolicyInfo("default", "", "", 1000),
        verdict=Acceptance.PASS,
        summary="",
        criteria=(
            criterion("first-loss", 0.005),
            criterion("mean-error", 0.01),
            criterion("worst-window", 0.02),
            criterion("divergence", 0.01),
            criterion("gradient-norm", 0.1),
        ),
        steps=steps,
        preliminary=False,
        window=100,
    )
