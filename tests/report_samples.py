"""Comparisons made by hand for the tests of the reports: the same numbers every time, no capture behind them."""

from __future__ import annotations

import dataclasses
import math
import random
from dataclasses import dataclass
from typing import Any

from align.records import (
    INIT_STEP,
    Comparison,
    DiffResult,
    Divergence,
    Finding,
    Kind,
    ModuleInfo,
    Origin,
    Phase,
    Place,
    Resolution,
    RunInfo,
    Severity,
    Status,
    TensorKey,
    TensorRecord,
    TensorStats,
    TimelineRow,
    Verdict,
)

UNIT = 2.0**-24
LIMIT = 7.0
JUMP = 0.031
"""The relative L2 difference that the faulty module of the samples brings in."""

GPU = RunInfo(
    align_version="0.1.0",
    format_version=1,
    device_type="cuda",
    device_name="NVIDIA A100-SXM4-80GB",
    device_count=1,
    parameters_on="cuda",
    phases=tuple(str(phase) for phase in Phase),
    steps_requested="0:3",
    versions={"python": "3.11.2", "torch": "2.1.0", "cuda": "12.1", "numpy": "1.26.4"},
    environment={"CUBLAS_WORKSPACE_CONFIG": ":4096:8"},
    flags={"deterministic": True, "matmul_allow_tf32": False, "cudnn_allow_tf32": True},
    seeds={"torch": 1234, "numpy": 1234},
    command=("train.py", "--steps", "12"),
    script_hash="3f9a12c0be77",
    optimizers=("AdamW",),
    started="2026-01-07 10:31:05+08:00",
    ended="2026-01-07 10:31:22+08:00",
    outcome="finished",
    steps_seen=12,
)
NPU = dataclasses.replace(
    GPU,
    device_type="npu",
    device_name="Ascend910B3",
    parameters_on="npu",
    simulated=True,
    versions={"python": "3.11.2", "torch": "2.1.0", "torch_npu": "2.1.0.post8", "numpy": "1.26.4"},
    environment={"ACL_PRECISION_MODE": "must_keep_origin_dtype"},
    flags={"deterministic": True, "matmul_allow_tf32": False, "npu_conv_allow_hf32": True},
    started="2026-01-07 11:02:40+08:00",
    ended="2026-01-07 11:03:31+08:00",
)


@dataclass(frozen=True)
class Seen:
    """One tensor of the sample model."""

    phase: Phase
    name: str
    slot: str
    shape: tuple[int, ...]
    dtype: str = "float32"


def model_tensors(layers: int, width: int = 96) -> list[Seen]:
    """The tensors of one step of a small transformer, in execution order."""
    wide, flat = (4, 64, 4 * width), (4, 64, width)
    seen = [Seen(Phase.INPUT, "input_ids", "value", (4, 64), "int64"), Seen(Phase.FORWARD, "wte", "output.0", flat)]
    blocks = [f"layers.{number}" for number in range(layers)]
    inner = (
        ("ln_1", flat),
        ("attn", flat),
        ("ln_2", flat),
        ("mlp.fc1", wide),
        ("mlp.act", wide),
        ("mlp.fc2", flat),
        ("mlp", flat),
    )
    for block in blocks:
        for part, shape in inner:
            entry = flat if shape == wide and part == "mlp.fc1" else shape
            seen.append(Seen(Phase.FORWARD, f"{block}.{part}", "input.0", entry))
            seen.append(Seen(Phase.FORWARD, f"{block}.{part}", "output.0", shape))
    seen.append(Seen(Phase.FORWARD, "<GPT>", "output.logits", (4, 64, 512)))
    seen.append(Seen(Phase.LOSS, "loss", "target", (4, 64), "int64"))
    seen.append(Seen(Phase.LOSS, "loss", "value", ()))
    for block in reversed(blocks):
        for part, shape in reversed(inner):
            seen.append(Seen(Phase.BACKWARD, f"{block}.{part}", "grad_output.0", shape))
            if part not in {"attn", "mlp"}:
                seen.append(Seen(Phase.BACKWARD, f"{block}.{part}", "grad_input.0", shape))
    for block in blocks:
        for part in ("attn", "mlp.fc1", "mlp.fc2"):
            seen.append(Seen(Phase.GRADIENT, f"{block}.{part}", "weight", (width, width)))
            seen.append(Seen(Phase.UPDATE, f"{block}.{part}", "weight", (width, width)))
            seen.append(Seen(Phase.PARAM, f"{block}.{part}", "weight", (width, width)))
    return seen


def record(seen: Seen, step: int, order: int, rms: float = 1.0) -> TensorRecord:
    """The record of one side."""
    count = math.prod(seen.shape)
    if seen.dtype == "int64":
        stats = TensorStats(count=count, maximum=511.0, total=255.0 * count, total_squares=9e4 * count, zeros=1)
    else:
        total, squares = 0.01 * rms * count, rms * rms * count
        stats = TensorStats(count=count, minimum=-3.0 * rms, maximum=3.5 * rms, total=total, total_squares=squares)
    key = TensorKey(step=step, phase=seen.phase, name=seen.name, slot=seen.slot)
    digest = 0x3F9A12C0BE77 if seen.dtype == "int64" else None
    return TensorRecord(key=key, order=order, dtype=seen.dtype, shape=seen.shape, stats=stats, hash=digest)


class Pairs:
    """Makes the comparisons of one run: benign noise that grows slowly, and one jump where it is asked for."""

    def __init__(self, jump_at: tuple[int, str, str] | None = None) -> None:
        self.random = random.Random(7)
        self.jump_at = jump_at
        self.inherited = UNIT
        self.jumped = False

    def pair(self, seen: Seen, step: int, order: int) -> Comparison:
        """One comparison."""
        sides = (record(seen, step, order), record(seen, step, order))
        if seen.dtype == "int64":
            return Comparison(*sides, status=Status.EQUAL)
        if seen.phase is Phase.PARAM:
            return Comparison(*sides, status=Status.NOT_JUDGED, relative_l2=2e-4, unit=UNIT)
        floor = max(self.inherited, UNIT)
        if (step, seen.name, seen.slot) == self.jump_at:
            self.jumped, self.inherited = True, JUMP
            return self._judged(sides, JUMP, floor, Status.ORIGIN)
        factor = self.random.uniform(0.6, 1.15) if self.jumped else self.random.uniform(0.7, 1.6)
        relative = floor * factor
        self.inherited = min(max(relative, 0.9 * floor), 0.3 if self.jumped else 40 * UNIT)
        return self._judged(sides, relative, floor, Status.PROPAGATED if self.jumped else Status.WITHIN)

    @staticmethod
    def _judged(sides: tuple[TensorRecord, TensorRecord], relative: float, floor: float, status: Status) -> Comparison:
        return Comparison(
            *sides,
            status=status,
            relative_l2=relative,
            unit=UNIT,
            floor=floor,
            times_floor=relative / floor,
            limit=LIMIT,
        )


def comparisons(steps: int, layers: int, jump_at: tuple[int, str, str] | None = None) -> tuple[Comparison, ...]:
    """The comparisons of a whole run, the initial weights first."""
    pairs = Pairs(jump_at)
    weights = [
        Seen(Phase.INIT, f"layers.{n}.{part}", "weight", (96, 96))
        for n in range(layers)
        for part in ("attn", "mlp.fc1")
    ]
    made = [
        Comparison(record(seen, INIT_STEP, order, 0.02), record(seen, INIT_STEP, order, 0.02), status=Status.EQUAL)
        for order, seen in enumerate(weights)
    ]
    for step in range(steps):
        if not pairs.jumped:
            pairs.inherited = UNIT
        made.extend(pairs.pair(seen, step, order) for order, seen in enumerate(model_tensors(layers)))
    return tuple(made)


def too_close(pair: Comparison) -> Comparison:
    """The pair with a difference below what its sketches can show."""
    sides = (dataclasses.replace(side, resolution=4.2e-8) for side in (pair.reference, pair.candidate))
    reference, candidate = sides
    return dataclasses.replace(pair, reference=reference, candidate=candidate, relative_l2=0.0, times_floor=0.0)


def timeline(steps: int, drift: float = 0.0) -> tuple[TimelineRow, ...]:
    """A loss that falls, and drifts away when asked to."""
    return tuple(
        TimelineRow(
            step=step,
            loss=2.3 * math.exp(-0.08 * step) + 1.1 + drift * step,
            learning_rate=3e-4,
            loss_scale=math.nan,
            gradient_norm=1.5 - 0.02 * step,
            seconds=0.318,
            skipped=False,
            nonfinite=False,
            micros=1,
            optimizer="AdamW",
        )
        for step in range(steps)
    )


def scaled(rows: tuple[TimelineRow, ...], after: float) -> tuple[TimelineRow, ...]:
    """The same steps with a loss scaler and clipping; the first step was skipped where the scale fell after it."""
    return tuple(
        dataclasses.replace(
            row,
            loss_scale=65536.0 if row.step == 0 else after,
            loss_scale_after=after,
            clip_norm=1.9 - 0.02 * row.step,
            clip_limit=1.0,
            skipped=row.step == 0 and after < 65536.0,
            overflow=row.step == 1 and after < 65536.0,
        )
        for row in rows
    )


def counted(pairs: tuple[Comparison, ...]) -> dict[str, int]:
    """The counts of a result."""
    counts = {str(status): sum(pair.status is status for pair in pairs) for status in Status}
    return {**counts, "paired": len(pairs), "only_reference": 0, "only_candidate": 0}


def modules(layers: int) -> tuple[ModuleInfo, ...]:
    """The modules of the sample model."""
    classes = {
        "ln_1": "LayerNorm",
        "attn": "Attention",
        "mlp": "MLP",
        "mlp.fc1": "Linear",
        "mlp.act": "GELU",
        "mlp.fc2": "Linear",
    }
    blocks = [
        ModuleInfo(f"layers.{n}.{part}", name, leaf=part not in {"attn", "mlp"})
        for n in range(layers)
        for part, name in classes.items()
    ]
    return (ModuleInfo("<GPT>", "GPT", leaf=False), ModuleInfo("wte", "Embedding"), *blocks)


PRECISION_NOTE = Finding(
    code="AL102",
    label="precision-mode-differs",
    severity=Severity.WARNING,
    summary="Convolutions may use TF32 in the reference and HF32 in the candidate.",
    advice="Set both runs to full float32 and capture again.",
    evidence={"reference": "cudnn_allow_tf32", "candidate": "npu_conv_allow_hf32"},
)


def diverged() -> DiffResult:
    """One module of layer 2 differs at step 0, and everything after it inherits that."""
    pairs = comparisons(2, 4, jump_at=(0, "layers.2.mlp.act", "output.0"))
    origin = next(pair for pair in pairs if pair.status is Status.ORIGIN)
    summary = (
        "Step 0, forward: layers.2.mlp.act output.0 is the first tensor that differs: relative L2 0.031, "
        f"{origin.times_floor:,.0f}x the floor. Its inputs agree, so it starts here."
    )
    finding = Finding(
        code="AL401",
        label="origin-module",
        severity=Severity.ERROR,
        summary=summary,
        advice="Compare the configuration of layers.2.mlp.act (GELU) in both runs, above all `approximate=`.",
        where=Place(step=0, phase="forward", name="layers.2.mlp.act", slot="output.0"),
        evidence={
            "relative_l2": JUMP,
            "floor": origin.floor,
            "times_floor": origin.times_floor,
            "inputs_times_floor": 0.84,
            "dtype": "float32",
            "unit": UNIT,
        },
        arguments={"name": "layers.2.mlp.act", "slot": "output.0", "step": 0},
    )
    return DiffResult(
        reference_path="runs/gpu.h5",
        candidate_path="runs/npu.h5",
        reference=GPU,
        candidate=dataclasses.replace(NPU, outcome="unfinished", steps_seen=3),
        verdict=Verdict.DIVERGED,
        summary=summary,
        first_divergence=Divergence(
            step=0,
            micro=0,
            phase=Phase.FORWARD,
            name="layers.2.mlp.act",
            slot="output.0",
            call=0,
            kind=Kind.VALUE,
            origin=Origin.MODULE,
            relative_l2=JUMP,
            floor=origin.floor,
            times_floor=origin.times_floor,
        ),
        findings=(finding, PRECISION_NOTE),
        resolution=Resolution(smallest_visible_effect=1.5e-6, precision="fp32"),
        comparisons=pairs,
        only_candidate=(TensorKey(0, Phase.FORWARD, "layers.0.attn.dropout", "output.0"),),
        counts={**counted(pairs), "only_candidate": 1},
        reference_timeline=timeline(12),
        candidate_timeline=timeline(3, drift=0.02),
        modules=modules(4),
    )


def aligned() -> DiffResult:
    """Two runs that differ by rounding only; two tensors are too close for their sketches to tell."""
    pairs = tuple(
        too_close(pair) if pair.key.name == "layers.1.ln_1" and pair.key.phase is Phase.FORWARD else pair
        for pair in comparisons(2, 3)
    )
    judged = [pair for pair in pairs if pair.times_floor is not None]
    largest = max(judged, key=lambda pair: pair.times_floor or 0.0)
    summary = (
        f"Aligned: {len(judged)} tensors over steps 0-1 stay below the limit of 7x the floor; the largest is "
        f"{largest.times_floor:.1f}x at {largest.key.name}."
    )
    finding = Finding(
        code="AL406",
        label="within-noise",
        severity=Severity.NOTE,
        summary="Rounding explains every difference; an effect above 1.5e-6 of a module's output would have been seen.",
        advice="Nothing to do. Compare more steps, or the losses of a longer run, to be sure of the training.",
        evidence={"times_floor": largest.times_floor, "smallest_visible_effect": 1.5e-6},
    )
    return DiffResult(
        reference_path="gpu.h5",
        candidate_path="npu.h5",
        reference=GPU,
        candidate=dataclasses.replace(NPU, simulated=False),
        verdict=Verdict.ALIGNED,
        summary=summary,
        first_divergence=None,
        findings=(finding,),
        resolution=Resolution(smallest_visible_effect=1.5e-6, precision="fp32"),
        comparisons=pairs,
        counts=counted(pairs),
        reference_timeline=timeline(12),
        candidate_timeline=timeline(12),
        modules=modules(3),
    )


def prepared() -> DiffResult:
    """Two aligned runs that were made comparable, trained with a loss scaler and clipping."""
    whole = aligned()
    return dataclasses.replace(
        whole,
        reference=dataclasses.replace(GPU, same_start={"seed": 1, "no_dropout": True}, kept=("init", "batches")),
        candidate=dataclasses.replace(
            whole.candidate,
            same_start={"no_dropout": True, "init_from": "/data/runs/gpu.h5", "batches_from": "/data/runs/gpu.h5"},
            loaders=({"batch_size": 4, "num_workers": 0, "shuffle": True},),
            fallbacks={"aten::nonzero": 3},
        ),
        reference_timeline=scaled(timeline(25), after=65536.0),
        candidate_timeline=scaled(timeline(25), after=32768.0),
    )


def equality() -> DiffResult:
    """The initial weights differ: no module is judged."""
    pairs = _drawn_anew()
    summary = (
        "The initial weights differ in 6 of 9 tensors, as two seeds differ; no module can be blamed before they agree."
    )
    finding = Finding(
        code="AL201",
        label="seed-mismatch",
        severity=Severity.ERROR,
        summary=summary,
        advice="Seed both runs alike before the model is built, then capture both again.",
        where=Place(step=INIT_STEP, phase="init", name="layers.0.attn", slot="weight"),
        evidence={"differing": 6, "tensors": 9, "seeds": {"reference": 1234, "candidate": 4321}},
    )
    return DiffResult(
        reference_path="gpu.h5",
        candidate_path="npu.h5",
        reference=GPU,
        candidate=dataclasses.replace(NPU, seeds={"torch": 4321, "numpy": 1234}),
        verdict=Verdict.DIVERGED,
        summary=summary,
        first_divergence=Divergence(
            INIT_STEP,
            0,
            Phase.INIT,
            "layers.0.attn",
            "weight",
            0,
            Kind.EQUALITY,
            Origin.WEIGHTS,
            1.41,
            4 * UNIT,
            1.41 / (4 * UNIT),
        ),
        findings=(finding,),
        resolution=Resolution(smallest_visible_effect=None, precision="fp32"),
        comparisons=pairs,
        counts=counted(pairs),
    )


def _drawn_anew() -> tuple[Comparison, ...]:
    """The initial weights of three layers: all but the gains of the norms are of another draw."""
    seeds = [
        Seen(Phase.INIT, f"layers.{n}.{part}", "weight", (96, 96))
        for n in range(3)
        for part in ("attn", "mlp.fc1", "ln_1")
    ]
    pairs: list[Comparison] = []
    for order, seen in enumerate(seeds):
        sides = (record(seen, INIT_STEP, order, 0.02), record(seen, INIT_STEP, order, 0.02))
        if seen.name.endswith("ln_1"):
            pairs.append(Comparison(*sides, status=Status.EQUAL))
            continue
        status = Status.PROPAGATED if any(pair.status is Status.ORIGIN for pair in pairs) else Status.ORIGIN
        pairs.append(
            Comparison(
                *sides,
                status=status,
                relative_l2=1.41,
                unit=UNIT,
                floor=4 * UNIT,
                times_floor=1.41 / (4 * UNIT),
                limit=1.0,
            )
        )
    return tuple(pairs)


def nonfinite() -> DiffResult:
    """A softmax of the candidate makes NaN at step 1."""
    pairs = list(comparisons(2, 2))
    place = next(
        i
        for i, pair in enumerate(pairs)
        if pair.key.step == 1 and pair.key.name == "layers.1.attn" and pair.key.slot == "output.0"
    )
    for index in range(place, len(pairs)):
        pair = pairs[index]
        if pair.status is Status.EQUAL:
            continue
        count = pair.candidate.numel
        broken = dataclasses.replace(pair.candidate, stats=TensorStats(count=count, nans=min(count, 512)))
        pairs[index] = Comparison(
            pair.reference,
            broken,
            status=Status.NONFINITE if index == place else Status.PROPAGATED,
            relative_l2=math.nan if index == place else None,
        )
    summary = "Step 1, forward: layers.1.attn output.0 is the first tensor with NaN; its inputs are finite."
    finding = Finding(
        code="AL601",
        label="nan-origin",
        severity=Severity.ERROR,
        summary=summary,
        advice="Run `align show npu.h5 layers.1.attn`, and look for rows of the mask that hide every position.",
        where=Place(step=1, phase="forward", name="layers.1.attn", slot="output.0"),
        evidence={"nans": 512, "elements": 24576},
    )
    return DiffResult(
        reference_path="gpu.h5",
        candidate_path="npu.h5",
        reference=GPU,
        candidate=dataclasses.replace(NPU, outcome="exception: ValueError: loss is nan"),
        verdict=Verdict.DIVERGED,
        summary=summary,
        first_divergence=Divergence(
            1, 0, Phase.FORWARD, "layers.1.attn", "output.0", 0, Kind.NONFINITE, Origin.MODULE, math.nan, None, None
        ),
        findings=(finding,),
        resolution=Resolution(smallest_visible_effect=1.5e-6, precision="fp32"),
        comparisons=tuple(pairs),
        counts=counted(tuple(pairs)),
        reference_timeline=timeline(2),
        candidate_timeline=(*timeline(1), dataclasses.replace(timeline(2)[1], loss=math.nan, nonfinite=True)),
    )


def incomparable() -> DiffResult:
    """Nothing could be judged."""
    return DiffResult(
        reference_path="gpu.h5",
        candidate_path="npu.h5",
        reference=dataclasses.replace(GPU, detail="stats", phases=("init", "forward", "loss")),
        candidate=dataclasses.replace(NPU, outcome="unfinished", steps_seen=0),
        verdict=Verdict.INCOMPARABLE,
        summary="These captures cannot be compared: the candidate holds no finished step (0 of 3).",
        first_divergence=None,
        findings=(),
        resolution=Resolution(smallest_visible_effect=None, precision="fp32"),
        comparisons=(),
    )


def huge(steps: int = 14, layers: int = 41) -> DiffResult:
    """More than 20,000 tensors, diverging in the middle."""
    pairs = comparisons(steps, layers, jump_at=(0, "layers.20.mlp.act", "output.0"))
    small = diverged()
    place = Place(step=0, phase="forward", name="layers.20.mlp.act", slot="output.0")
    first = dataclasses.replace(small.first_divergence, name="layers.20.mlp.act") if small.first_divergence else None
    return dataclasses.replace(
        small,
        comparisons=pairs,
        counts=counted(pairs),
        first_divergence=first,
        findings=(dataclasses.replace(small.findings[0], where=place), *small.findings[1:]),
        reference_timeline=timeline(3000),
        candidate_timeline=timeline(3000, drift=1e-4),
    )


def explained() -> DiffResult:
    """Another seed in the candidate, and what follows from it: other weights, masks and batches."""
    whole = equality()
    cause = whole.findings[0]

    def follows(code: str, label: str, summary: str, **more: Any) -> Finding:
        advice = "Seed both runs alike first."
        return Finding(code, label, Severity.ERROR, summary, advice, explained_by=cause.code, **more)

    consequences = (
        follows(
            "AL310",
            "initial-weights-differ",
            "The initial weights differ in 14 of 34 tensors.",
            where=Place(INIT_STEP, "init", "layers.0.attn", "weight"),
            evidence={"differing": 14, "tensors": 34},
        ),
        *(
            follows(
                "AL204",
                "dropout-mask-differs",
                f"The masks of layers.{n}.drop differ.",
                where=Place(0, "forward", f"layers.{n}.drop", "output.0"),
            )
            for n in range(2)
        ),
        follows("AL203", "data-order", "Both runs see the same samples in another order."),
    )
    return dataclasses.replace(whole, findings=(cause, *consequences, PRECISION_NOTE))


def crowded() -> DiffResult:
    """More findings and notes than a screen holds."""
    whole = diverged()
    others = tuple(
        dataclasses.replace(
            PRECISION_NOTE,
            summary=f"Setting {number} differs between both runs, and what that does is told in a long sentence here.",
        )
        for number in range(30)
    )
    notes = tuple(
        f"Note {number} on the pairing of names, which explains why two names are equal." for number in range(12)
    )
    return dataclasses.replace(
        whole, findings=(whole.findings[0], *others), pairing=dataclasses.replace(whole.pairing, notes=notes)
    )
