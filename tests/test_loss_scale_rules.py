"""Gradients too small for fp16, clipping under a loss scale, updates that had to be skipped: each rule by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from align.records import INIT_STEP, DiffResult, Fact, FactValue, InspectResult, Phase, Severity, TensorRecord
from tests.builders import Array, diff_files, write_capture
from tests.scale_samples import SCALER, fact, half, inspected, labels, replies, row, single, told

QUANTUM = 2.0**-24
SHAPE = (64, 32)


def normal(size: float, seed: int = 0, shape: tuple[int, ...] = SHAPE) -> Array:
    return np.random.default_rng(seed).normal(0.0, size, shape)


# ---- gradients too small for fp16


def backward(sizes: Sequence[float], *, step: int = 0, flush: bool = False) -> list[TensorRecord]:
    """The backward through layers whose gradients have these sizes, the last layer first, and their weights."""
    records = [single(step, Phase.LOSS, "loss", "value", np.ones(()))]
    layers = list(enumerate(sizes))[::-1]
    for number, size in layers:
        gradient = normal(size, number)
        records.append(half(step, f"layers.{number}", "grad_output.0", gradient, flush=flush))
    for number, size in layers:
        lost = float(np.abs(normal(size, number)).max()) < QUANTUM / 2
        made = np.zeros(SHAPE) if lost else normal(size, number)
        records.append(single(step, Phase.GRADIENT, f"layers.{number}", "weight", made))
    return records


def of_sizes(path: Path, sizes: Sequence[float], scale: float = math.nan, **more: bool) -> InspectResult:
    return inspected(path, [row(0, scale, scale)], {0: backward(sizes, **more)})


def test_gradients_that_fade_away_are_an_error(tmp_path: Path) -> None:
    result = of_sizes(tmp_path / "a.h5", [1e-9, 5e-8, 1e-6, 1e-4])
    (finding,) = told(result, "gradient-underflow")
    assert finding.severity is Severity.ERROR
    assert (finding.where.phase, finding.where.name, finding.where.slot) == ("backward", "layers.1", "grad_output.0")
    assert finding.summary == (
        "Step 0: without a loss scale gradients are too small for fp16: from layers.1 grad_output.0 on, which is "
        "rounded by 24.1 % with 44.6 % zeros in it, they are about the smallest fp16 number (6.0e-8). The gradients of "
        "1 of 4 parameters are all 0 (layers.0 weight). Scales up to 16,777,216 (2^24) leave room above."
    )
    assert finding.advice == (
        "Scale the loss: scaler = torch.amp.GradScaler(init_scale=2.0**16), scaler.scale(loss).backward(), "
        "scaler.step(optimizer), scaler.update(); or train in bf16."
    )
    assert replies(result)["fp16 range"][0] == "bad"


def test_a_scale_that_is_too_small_is_to_be_raised(tmp_path: Path) -> None:
    result = of_sizes(tmp_path / "a.h5", [5e-8, 5e-8, 1e-2], scale=64.0)
    (finding,) = told(result, "gradient-underflow")
    assert finding.severity is Severity.ERROR
    assert finding.summary.startswith("Step 0: at a loss scale of 64 (2^6) gradients are too small for fp16: from ")
    assert finding.summary.endswith(
        " 66.7 % of the parameters get gradients that are made of such numbers. Loss scales from 512 (2^9) to "
        "16,777,216 (2^24) would hold these gradients."
    )
    assert finding.advice.startswith("Raise the loss scale: torch.amp.GradScaler(init_scale=2.0**16), ")


def test_no_scale_holds_gradients_of_too_many_sizes(tmp_path: Path) -> None:
    result = of_sizes(tmp_path / "a.h5", [5e-8, 5e-8, 5e3])
    (finding,) = told(result, "gradient-underflow")
    assert finding.advice == (
        "No loss scale will do: the largest gradients allow at most 1 (2^0) and the smallest need 8 (2^3). Train in "
        "bf16 (torch.autocast(..., dtype=torch.bfloat16)), whose range is that of fp32."
    )


WHOLE: dict[str, Callable[[], Array]] = {
    "subnormal, all of it": lambda: normal(2e-6),
    "half of it zeros of a ReLU": lambda: normal(1e-3) * (np.random.default_rng(1).random(SHAPE) < 0.5),
    "subnormal behind a ReLU": lambda: normal(2e-6) * (np.random.default_rng(1).random(SHAPE) < 0.5),
    "rows of an embedding without tokens": lambda: normal(1e-3) * (np.arange(64) % 16 == 0)[:, None],
    "all zeros: a branch whose gate is 0": lambda: np.zeros(SHAPE),
    "a few elements only": lambda: normal(1e-8) * (np.arange(64 * 32).reshape(SHAPE) < 40),
    "one large element among many small ones": lambda: np.where(np.arange(64 * 32).reshape(SHAPE) == 5, 1.0, 1e-7),
}


@pytest.mark.parametrize("name", WHOLE)
def test_zeros_that_are_meant_are_no_underflow(tmp_path: Path, name: str) -> None:
    gradient = WHOLE[name]()
    records = [
        single(0, Phase.FORWARD, "fc", "input.0", normal(1.0)),
        half(0, "head", "grad_output.0", normal(1e-2)),
        half(0, "fc", "grad_output.0", gradient),
        single(0, Phase.GRADIENT, "fc", "weight", np.zeros(SHAPE) if not gradient.any() else gradient),
        single(0, Phase.GRADIENT, "head", "weight", normal(1e-2)),
    ]
    result = inspected(tmp_path / "a.h5", [row(0, 65536.0, 65536.0)], {0: records})
    assert told(result, "gradient-underflow") == []
    assert replies(result)["fp16 range"][0] == "good"


def test_a_weight_that_was_given_zeros_has_lost_nothing(tmp_path: Path) -> None:
    records = [
        single(0, Phase.FORWARD, "fc", "input.0", np.zeros(SHAPE)),
        half(0, "head", "grad_output.0", normal(1e-2)),
        half(0, "fc", "grad_output.0", normal(5e-7)),
        single(0, Phase.GRADIENT, "fc", "weight", np.zeros(SHAPE)),
        *(single(0, Phase.GRADIENT, f"head.{number}", "weight", normal(1e-2)) for number in range(30)),
    ]
    result = inspected(tmp_path / "a.h5", [row(0, 65536.0, 65536.0)], {0: records})
    assert told(result, "gradient-underflow") == []


def test_a_run_without_the_backward_is_not_judged(tmp_path: Path) -> None:
    result = inspected(
        tmp_path / "a.h5", [row(0, 1.0, 1.0)], {0: [single(0, Phase.LOSS, "loss", "value", np.ones(()))]}
    )
    assert replies(result)["fp16 range"][0] == "unknown"
    assert replies(result)["fp16 range"][1] == (
        "Whether gradients are too small for fp16 cannot be told: the capture has no phase backward; capture with "
        "--phases all."
    )


# ---- a device without subnormals


def test_a_device_that_flushes_is_noted_and_judged_by_its_own_smallest_number(tmp_path: Path) -> None:
    rather = of_sizes(tmp_path / "a.h5", [1e-3, 1e-3, 1e-3], scale=1024.0, flush=True)
    assert told(rather, "denormal-flush") == []  # too few lie just above
    result = of_sizes(tmp_path / "b.h5", [1e-4] * 4, scale=1024.0, flush=True)
    found = told(result, "denormal-flush", "gradient-underflow")
    assert labels(found) == [("gradient-underflow", "error"), ("denormal-flush", "note")]
    assert labels(told(of_sizes(tmp_path / "c.h5", [1e-4] * 4, scale=1024.0), "denormal-flush")) == []


# ---- clipping


def clip_facts(**values: FactValue) -> list[Fact]:
    return [fact(0, Phase.OPTIMIZER, "clip", slot, value) for slot, value in values.items()]


def clipped(
    path: Path, facts: Sequence[Fact], *, scale: float, gradient: Array, update: Array, by_hand: bool = False
) -> InspectResult:
    records = [
        single(0, Phase.GRADIENT, "fc", "weight", gradient),
        single(0, Phase.UPDATE, "fc", "weight", update),
    ]
    scaler = [] if by_hand else [fact(0, Phase.SCALER, SCALER, "scale", scale)]
    timeline = [row(0, scale, math.nan if by_hand else scale)]
    return inspected(path, timeline, {0: records}, {0: [*scaler, *facts]})


GRADIENT = normal(1.0)
NORM = float(np.linalg.norm(GRADIENT))


def test_clipping_of_scaled_gradients_is_an_error(tmp_path: Path) -> None:
    facts = clip_facts(norm=NORM * 4096, limit=1.0, norm_type=2.0, scaled=True)
    result = clipped(tmp_path / "a.h5", facts, scale=4096.0, gradient=GRADIENT * 4096, update=GRADIENT / NORM / 4096)
    (finding,) = told(result, "clip-before-unscale")
    assert finding.severity is Severity.ERROR
    assert (finding.where.phase, finding.where.name, finding.where.slot) == ("update", "fc", "weight")
    assert finding.summary == (
        f"Step 0: gradients are clipped to a norm of 1.000 while they carry the loss scale of 4,096 (2^12): their norm "
        f"is {NORM * 4096:,.0f} then, without the scale {NORM:.2f}. Gradients of norm 2.4e-4 reach the optimizer."
    )
    assert finding.advice.startswith("Call scaler.unscale_(optimizer) before clip_grad_norm_; with accelerate or ")
    assert replies(result)["clipping"] == (
        "bad",
        "In step 0 gradients are clipped while they carry the loss scale.",
    )


def test_clipping_of_scaled_gradients_by_value_is_an_error(tmp_path: Path) -> None:
    facts = clip_facts(value_limit=1.0, scaled=True)
    cut = np.clip(GRADIENT * 4096, -1.0, 1.0)
    result = clipped(tmp_path / "a.h5", facts, scale=4096.0, gradient=GRADIENT * 4096, update=cut / 4096)
    (finding,) = told(result, "clip-before-unscale")
    assert finding.summary.startswith("Step 0: gradients are cut at 1.000 while they carry the loss scale of 4,096 ")
    assert "clip_grad_value_" in finding.advice


def test_a_scale_by_hand_that_is_clipped_before_it_is_taken_out_is_an_error(tmp_path: Path) -> None:
    facts = clip_facts(norm=NORM * 1024, limit=1.0, norm_type=2.0, scaled=None)
    result = clipped(
        tmp_path / "a.h5", facts, scale=1024.0, gradient=GRADIENT * 1024, update=GRADIENT / NORM / 1024, by_hand=True
    )
    (finding,) = told(result, "clip-before-unscale")
    assert finding.advice == "Divide the gradients by 1,024 (2^10) first, clip them then."


RIGHT: dict[str, tuple[dict[str, FactValue], float, Array, bool]] = {
    "after unscaling": ({"norm": NORM, "limit": 1.0, "scaled": False}, 4096.0, GRADIENT / NORM, False),
    "a limit that was multiplied by the scale": (
        {"norm": NORM * 4096, "limit": 4096.0, "scaled": True},
        4096.0,
        GRADIENT / NORM,
        False,
    ),
    "nothing was cut": ({"norm": NORM * 4096, "limit": 1e9, "scaled": True}, 4096.0, GRADIENT, False),
    "a scale of 1": ({"norm": NORM, "limit": 1.0, "scaled": True}, 1.0, GRADIENT / NORM, False),
    "an overflow": ({"norm": math.inf, "limit": 1.0, "scaled": True}, 4096.0, GRADIENT, False),
    "by value, nothing cut": ({"value_limit": 1e9, "scaled": True}, 4096.0, GRADIENT, False),
    "by hand, taken out first": (
        {"norm": NORM, "limit": 1.0, "norm_type": 2.0, "scaled": None},
        1024.0,
        GRADIENT / NORM,
        True,
    ),
    "by hand, never taken out": (
        {"norm": NORM * 1024, "limit": 1.0, "norm_type": 2.0, "scaled": None},
        1024.0,
        GRADIENT / NORM,
        True,
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_clipping_that_does_no_harm_is_not_accused(tmp_path: Path, name: str) -> None:
    values, scale, update, by_hand = RIGHT[name]
    result = clipped(
        tmp_path / "a.h5",
        clip_facts(**values),
        scale=scale,
        gradient=GRADIENT * scale,
        update=update,
        by_hand=by_hand,
    )
    assert told(result, "clip-before-unscale") == []
    assert replies(result)["clipping"][0] == "good"


# ---- updates in steps that had to be skipped

WEIGHT = normal(0.1, 7)
MOMENT = normal(1e-3, 8)
INFINITE = np.where(np.arange(64 * 32).reshape(SHAPE) == 3, np.inf, 1.0)


def skipping(
    path: Path, after: Array, moment: Array, *, gradient: Array = INFINITE, found: float = 1.0, before: bool = True
) -> InspectResult:
    """Two steps, of which the second overflows: its parameter and its moment are given."""
    steps = {
        INIT_STEP: [single(INIT_STEP, Phase.INIT, "fc", "weight", WEIGHT)],
        0: [
            single(0, Phase.GRADIENT, "fc", "weight", normal(1.0)),
            single(0, Phase.OPTIMIZER, "fc", "weight.exp_avg", MOMENT),
            *([single(0, Phase.PARAM, "fc", "weight", WEIGHT)] if before else []),
        ],
        1: [
            single(1, Phase.GRADIENT, "fc", "weight", gradient),
            single(1, Phase.OPTIMIZER, "fc", "weight.exp_avg", moment),
            single(1, Phase.PARAM, "fc", "weight", after),
        ],
    }
    facts = {
        0: [fact(0, Phase.SCALER, SCALER, "found_inf", 0.0)],
        1: [fact(1, Phase.SCALER, SCALER, "found_inf", found)],
    }
    timeline = [row(0, 64.0, 64.0), row(1, 64.0, 32.0, skipped=found > 0.0)]
    return inspected(path, timeline, steps, facts)


def test_a_step_that_moved_its_state_was_applied(tmp_path: Path) -> None:
    result = skipping(tmp_path / "a.h5", WEIGHT * 1.01, MOMENT * 0.9)
    (finding,) = told(result, "skipped-step-applied")
    assert (finding.where.step, finding.where.phase, finding.where.name) == (1, "param", "fc")
    assert finding.summary == (
        "Step 1: the gradient scaler found an overflow, so that the step had to be skipped, but the optimizer moved 1 "
        "of 1 parameter (fc weight first), by up to 1.0 %, and its own state moved with them."
    )
    assert finding.advice.startswith("Build Adam without fused=True (or with foreach=True), so that the scaler itself ")
    assert replies(result)["skipped steps"][0] == "bad"


def test_a_step_whose_parameters_are_not_finite_since_was_applied(tmp_path: Path) -> None:
    broken = np.where(np.isinf(INFINITE), np.nan, WEIGHT)
    (finding,) = told(skipping(tmp_path / "a.h5", broken, MOMENT), "skipped-step-applied")
    assert finding.evidence["proof"] == "nonfinite"


def test_a_step_along_its_gradient_was_applied(tmp_path: Path) -> None:
    gradient = normal(1.0, 9)
    result = skipping(tmp_path / "a.h5", WEIGHT - 0.01 * gradient, MOMENT, gradient=gradient)
    (finding,) = told(result, "skipped-step-applied")
    assert finding.evidence["proof"] == "gradient"


SKIPPED: dict[str, tuple[Array, Array, dict[str, float | bool]]] = {
    "as it should be": (WEIGHT, MOMENT, {}),
    "weights that the script clamps": (np.clip(WEIGHT, -0.1, 0.1), MOMENT, {}),
    "weights that the script copies": (normal(0.1, 11), MOMENT, {}),
    "no overflow": (WEIGHT * 1.01, MOMENT * 0.9, {"found": 0.0}),
    "not known before": (WEIGHT * 1.01, MOMENT, {"before": False}),
}


@pytest.mark.parametrize("name", SKIPPED)
def test_a_step_that_was_skipped_is_not_accused(tmp_path: Path, name: str) -> None:
    after, moment, more = SKIPPED[name]
    assert told(skipping(tmp_path / "a.h5", after, moment, **more), "skipped-step-applied") == []  # type: ignore[arg-type]


# ---- gradients divided by another scale


def unscaled(path: Path, divisors: Sequence[float], scales: Sequence[float]) -> InspectResult:
    steps = {
        step: [
            single(step, Phase.GRADIENT, "fc", "weight", normal(1.0, step) * scales[step]),
            single(step, Phase.UPDATE, "fc", "weight", normal(1.0, step) * scales[step] / divisor),
        ]
        for step, divisor in enumerate(divisors)
    }
    return inspected(path, [row(step, scale) for step, scale in enumerate(scales)], steps)


SCALES = (64.0, 64.0, 128.0, 128.0, 256.0)


def test_a_step_that_is_divided_by_the_next_scale_is_an_error(tmp_path: Path) -> None:
    result = unscaled(tmp_path / "a.h5", (64.0, 128.0, 128.0, 256.0, 256.0), SCALES)
    (finding,) = told(result, "gradient-scaled")
    assert finding.where.step == 1
    assert finding.summary == (
        "Step 1: the loss was multiplied by 64 (2^6), and its gradients are divided by 128 (2^7), the loss scale of "
        "the step after: the optimizer takes 0.5 times the true gradients. In the other captured steps both are equal. "
        "So it is in steps 1, 3."
    )


@pytest.mark.parametrize(
    "divisors",
    [SCALES, tuple(4 * scale for scale in SCALES), (1.0,) * 5, (64.0, 128.0), (64.0, 37.0, 128.0, 256.0, 256.0)],
    ids=["right", "and by 4 micro-steps", "never", "too few steps", "by anything"],
)
def test_other_divisors_are_not_accused(tmp_path: Path, divisors: tuple[float, ...]) -> None:
    result = unscaled(tmp_path / "a.h5", divisors, SCALES[: len(divisors)])
    assert told(result, "gradient-scaled") == []


# ---- two runs


def new(folder: Path) -> Path:
    """A file that does not exist yet."""
    return folder / f"{len(list(folder.iterdir()))}.h5"


def pair(
    tmp_path: Path, ours: list[TensorRecord], theirs: list[TensorRecord], scales: tuple[float, float] = (1.0, 1.0)
) -> DiffResult:
    given = normal(1.0, 5).astype(np.float32)
    files = []
    for records, scale in zip((ours, theirs), scales, strict=True):
        seen = [single(0, Phase.FORWARD, "<Net>", "output.0", given)]
        timeline = [row(0, math.nan if scale == 1.0 else scale)]
        files.append(write_capture(new(tmp_path), {0: [*seen, *records]}, timeline=timeline))
    return diff_files(*files)


def test_the_run_that_loses_gradients_is_told(tmp_path: Path) -> None:
    sizes = [1e-9, 5e-8, 1e-6, 1e-4]
    ours = [
        replace(one, dtype="float32") if one.key.phase is Phase.BACKWARD else one
        for one in backward([size * 65536 for size in sizes])
    ]
    result = pair(tmp_path, ours, backward(sizes), (65536.0, 1.0))
    first = result.first_divergence
    assert first is not None
    assert (first.phase, first.name, first.slot) == (Phase.BACKWARD, "layers.1", "grad_output.0")
    assert labels(result.findings)[0] == ("gradient-underflow", "error")
    assert result.findings[0].summary == (
        "Step 0, backward: with no loss scale (the reference: 65,536 (2^16)) the gradients of the candidate are too "
        "small for fp16, first layers.1 grad_output.0: 44.6 % of it are 0, in the reference 0.0 %. The gradients of 1 "
        "of 4 parameters are all 0 there only (layers.0 weight)."
    )


def test_gradients_that_fade_in_both_runs_part_nothing(tmp_path: Path) -> None:
    sizes = [5e-8, 1e-6, 1e-4]
    result = pair(tmp_path, backward(sizes), backward(sizes))
    assert "gradient-underflow" not in [finding.label for finding in result.findings]


def test_a_gradient_that_a_fault_makes_small_is_no_underflow(tmp_path: Path) -> None:
    # The other run's would not be small: something else took it away.
    result = pair(tmp_path, backward([1e-3, 1e-3, 1e-3]), backward([1e-9, 5e-8, 1e-3]))
    assert "gradient-underflow" not in [finding.label for finding in result.findings]


def test_zeros_where_the_other_run_has_subnormals_are_told(tmp_path: Path) -> None:
    ours, theirs = (backward([1e-4] * 3, flush=flush) for flush in (False, True))
    result = pair(tmp_path, ours, theirs, (64.0, 64.0))
    (finding,) = [one for one in result.findings if one.label == "denormal-flush"]
    assert finding.summary.startswith("The candidate makes 0 of the smallest numbers: in 3 tensors it has ")
    assert finding.evidence["zeros_more"] == finding.evidence["subnormals_of_other"]
    same = pair(tmp_path, ours, ours, (64.0, 64.0))
    assert "denormal-flush" not in [one.label for one in same.findings]


def test_steps_that_one_run_alone_skips_are_told_from_the_third_on(tmp_path: Path) -> None:
    def compared(skips: Sequence[int]) -> DiffResult:
        records = [single(0, Phase.FORWARD, "<Net>", "output.0", normal(1.0))]
        files = []
        for skipped in ((), skips):
            timeline = [row(step, 64.0, skipped=step in skipped) for step in range(100)]
            files.append(write_capture(new(tmp_path), {0: records}, timeline=timeline))
        return diff_files(*files)

    assert "loss-scale-unstable" not in [one.label for one in compared((3, 5, 60, 70)).findings]
    (finding,) = [one for one in compared((60, 70, 80)).findings if one.label == "loss-scale-unstable"]
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "The candidate alone skips 3 steps at a loss scale that both runs have, step 60 first; the reference alone "
        "skips 0."
    )
