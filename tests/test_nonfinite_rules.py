"""The rules on NaN and Inf of one run, on captures made of arrays: what they say, and when they are silent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from align.commands import inspect_files
from align.diagnosis.run.nonfinite_telling import look_advice
from align.inspection.nonfinite_start import Start, masks_rows
from align.records import (
    INIT_STEP,
    Fact,
    Finding,
    InspectResult,
    ModuleInfo,
    Origin,
    Phase,
    RunInfo,
    Severity,
    State,
    TensorKey,
    TensorRecord,
    TimelineRow,
)
from tests.builders import Array, record_of, write_capture
from tests.said import reply

OURS = frozenset({"nan-origin", "overflow", "overflow-saturated", "little-headroom"})
MODULES = (
    ModuleInfo("<Net>", "Net", leaf=False),
    ModuleInfo("first", "Linear", matmul=True, compute_dtype="float32"),
    ModuleInfo("act", "Act"),
    ModuleInfo("last", "Linear", matmul=True, compute_dtype="float32"),
)
ALL = ("init", "input", "forward", "loss", "backward", "gradient", "update", "param")
GOOD = np.linspace(-2.0, 2.0, 12, dtype=np.float32).reshape(3, 4)
LOSS = np.array(0.5, dtype=np.float32)


def bad(value: float, number: int = 1, base: Array = GOOD) -> Array:
    """An array of which so many numbers are not finite."""
    array: Array = base.copy()
    array.reshape(-1)[:number] = value
    return array


def training(step: int, changed: Mapping[str, Array] | None = None) -> list[TensorRecord]:
    """One step of `first`, `act` and `last`, whose tensors are as usual but for what is changed, by `phase name slot`.

    What a module hands on is the very same tensor.
    """
    changed = dict(changed or {})
    found: list[TensorRecord] = []

    def see(phase: Phase, name: str, slot: str, array: Array, within: str = "", same: str = "") -> None:
        key = TensorKey(step, phase, name, slot)
        source = next((one for one in found if f"{one.key.phase} {one.key.name} {one.key.slot}" == same), None)
        array = changed.get(same, changed.get(f"{phase} {name} {slot}", array))
        found.append(
            record_of(key, array, len(found), within=within, same_as=source.order if source is not None else None)
        )

    see(Phase.INPUT, "x", "value", GOOD)
    see(Phase.FORWARD, "<Net>", "input.0", GOOD, same="input x value")
    see(Phase.FORWARD, "first", "input.0", GOOD, "<Net>", "input x value")
    see(Phase.FORWARD, "first", "output.0", GOOD, "<Net>")
    see(Phase.FORWARD, "act", "input.0", GOOD, "<Net>")
    see(Phase.FORWARD, "act", "output.0", GOOD, "<Net>")
    see(Phase.FORWARD, "last", "input.0", GOOD, "<Net>", "forward act output.0")
    see(Phase.FORWARD, "last", "output.0", GOOD, "<Net>")
    see(Phase.FORWARD, "<Net>", "output.0", GOOD, "", "forward last output.0")
    see(Phase.LOSS, "loss", "value", LOSS)
    see(Phase.BACKWARD, "last", "grad_output.0", GOOD, "<Net>")
    see(Phase.BACKWARD, "<Net>", "grad_output.0", GOOD, "", "backward last grad_output.0")
    see(Phase.BACKWARD, "last", "grad_input.0", GOOD, "<Net>")
    see(Phase.BACKWARD, "act", "grad_output.0", GOOD, "<Net>", "backward last grad_input.0")
    see(Phase.BACKWARD, "act", "grad_input.0", GOOD, "<Net>")
    see(Phase.BACKWARD, "first", "grad_output.0", GOOD, "<Net>")
    for phase in (Phase.GRADIENT, Phase.UPDATE, Phase.PARAM):
        for name in ("first", "last"):
            see(phase, name, "weight", GOOD)
    return found


def row(step: int, **more: Any) -> TimelineRow:
    """One step of a timeline."""
    return replace(TimelineRow(step, 0.5, 1e-3, math.nan, 1.0, 0.1, False, False, 1, "SGD"), **more)


def inspected(
    path: Path,
    steps: Mapping[int, Sequence[TensorRecord]],
    *,
    run: RunInfo | None = None,
    timeline: Sequence[TimelineRow] = (),
    modules: Sequence[ModuleInfo] = MODULES,
    facts: Mapping[int, Sequence[Fact]] | None = None,
) -> InspectResult:
    info = run or RunInfo(outcome="finished", phases=ALL)
    rows = list(timeline) or [row(step) for step in steps if step >= 0]
    capture = write_capture(path / "run.h5", steps, modules=modules, run=info, timeline=rows, facts=facts)
    return inspect_files(str(capture))


def ours(result: InspectResult) -> list[Finding]:
    return [finding for finding in result.findings if finding.label in OURS]


def only(result: InspectResult) -> Finding:
    (finding,) = ours(result)
    return finding


FINITE = "finite numbers"
NAN_LOSS = {"loss loss value": np.array(math.nan, dtype=np.float32)}
TO_THE_LOSS = {"forward last output.0": bad(math.nan, 4), **NAN_LOSS}
FROM_FIRST = {"forward act input.0": bad(math.nan, 4), "forward act output.0": bad(math.nan, 4), **TO_THE_LOSS}

# ---- AL601: the producer


def test_a_module_that_makes_nan_of_finite_numbers_is_named(tmp_path: Path) -> None:
    changed = {"forward act output.0": bad(math.nan, 2), "forward last output.0": bad(math.nan, 8), **NAN_LOSS}
    result = inspected(tmp_path, {0: training(0), 1: training(1, changed)}, timeline=[row(0), row(1, nonfinite=True)])
    finding = only(result)
    assert (finding.code, finding.severity) == ("AL601", Severity.ERROR)
    assert (finding.where.step, finding.where.phase, finding.where.name, finding.where.slot) == (
        1, "forward", "act", "output.0",
    )  # fmt: skip
    assert finding.summary == (
        "Step 1, forward: act output.0 is the first tensor with NaN (2 of 12 elements); what it is made from is "
        "finite, at most 2.000. It reaches the loss of step 1."
    )
    assert finding.advice == (
        "Look in act for 0/0, the logarithm or root of a negative number, Inf - Inf, or a row that is masked "
        "completely. To see its values, run `align capture --steps 1:2 --detail tensors --modules 'act'`, then `align "
        "show RUN.h5 'act'`."
    )
    assert reply(result, FINITE) == (State.BAD, "NaN starts in step 1, forward: act output.0.")


def test_code_between_modules_is_named_with_its_neighbours(tmp_path: Path) -> None:
    changed = {"forward act input.0": bad(math.nan), "forward act output.0": bad(math.nan, 2), **TO_THE_LOSS}
    finding = only(inspected(tmp_path, {0: training(0, changed)}))
    assert (finding.where.name, finding.where.slot) == ("<Net>", None)
    assert ": the code of <Net> between first and act made it." in finding.summary
    # The children of the whole model are all modules: the one that got it shows enough.
    assert "--modules 'act'`, then `align show RUN.h5 'act'`." in finding.advice


def test_the_values_of_code_between_modules_are_those_of_the_children() -> None:
    record = record_of(TensorKey(3, Phase.FORWARD, "blocks.0.attn.value", "input.0"), bad(math.nan))

    assert look_advice(Start(record, Origin.FUNCTIONAL, "blocks.0.attn")) == (
        "To see its values, run `align capture --steps 3:4 --detail tensors --modules 'blocks.0.attn*'`, then `align "
        "show RUN.h5 'blocks.0.attn*'`."
    )


def test_nan_of_which_nothing_comes_is_no_finding(tmp_path: Path) -> None:
    result = inspected(tmp_path, {0: training(0, {"forward act output.0": bad(math.nan, 2)})})
    assert ours(result) == []
    assert reply(result, FINITE) == (
        State.GOOD,
        (
            "Every loss, gradient and parameter of step 0 is finite; 1 other tensor with -Inf, Inf or NaN does no "
            "harm, as masks do none."
        ),
    )


def test_what_is_so_in_healthy_steps_too_is_not_accused_of_a_later_nan(tmp_path: Path) -> None:
    padded = {"forward first output.0": bad(math.nan)}
    broken = {**padded, "forward last output.0": bad(math.nan, 4), **NAN_LOSS}
    result = inspected(tmp_path, {0: training(0, padded), 1: training(1, broken)})
    assert (only(result).where.step, only(result).where.name) == (1, "last")


PLACES = {
    "batch": ("input x value", GOOD, (0, "input", "x"), "In step 0 the batch holds NaN (1 of 12 elements), in"),
    "loss": ("loss loss value", LOSS, (0, "loss", "loss"), "Every module output of step 0 is finite; the loss is NaN."),
    "backward of a module": (
        "backward act grad_input.0", GOOD, (0, "backward", "act"),
        ("Step 0, backward: act grad_input.0 is the first tensor with NaN (1 of 12 elements); what it is made from is "
        "finite, at most 2.000."),
    ),
    "backward of the code between": (
        "backward first grad_output.0", GOOD, (0, "backward", "<Net>"),
        ("Step 0, backward: first grad_output.0 is the first tensor with NaN (1 of 12 elements); what it is made from "
        "is finite, at most 2.000: the backward of the code of <Net> made it."),
    ),
    "gradient": (
        "gradient first weight", GOOD, (0, "gradient", "first"),
        ("In step 0 the gradients of all activations are finite; that of the parameter first weight has NaN (1 of 12 "
        "elements)."),
    ),
    "update": (
        "update last weight", GOOD, (0, "update", "last"),
        ("In step 0 every gradient is finite after backward; as the optimizer takes it that of last weight has NaN (1 "
        "of 12 elements): the code between backward and the optimizer made it."),
    ),
    "parameter": (
        "param first weight", GOOD, (0, "param", "first"),
        ("In step 0 every gradient that the optimizer takes is finite; after the update first weight has NaN (1 of 12 "
        "elements)."),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_each_kind_of_place_is_told_as_what_it_is(tmp_path: Path, name: str) -> None:
    key, base, where, begin = PLACES[name]
    later = {"param last weight": bad(math.nan)} if name != "parameter" else {}
    finding = only(
        inspected(
            tmp_path,
            {
                0: training(
                    0,
                    {key: bad(math.nan, 1, base), **NAN_LOSS, **later}
                    if name == "batch"
                    else {key: bad(math.nan, 1, base), **later},
                )
            },
        )
    )
    assert (finding.where.step, finding.where.phase, finding.where.name) == where
    assert finding.severity is Severity.ERROR
    assert finding.summary.startswith(begin), finding.summary


def test_weights_that_were_loaded_with_nan_are_named_before_their_module(tmp_path: Path) -> None:
    initial = [record_of(TensorKey(INIT_STEP, Phase.INIT, "first", "weight"), bad(math.nan))]
    changed = {"forward first output.0": bad(math.nan, 4), "param first weight": bad(math.nan), **FROM_FIRST}
    finding = only(inspected(tmp_path, {INIT_STEP: initial, 0: training(0, changed)}))
    assert (finding.where.step, finding.where.phase, finding.where.name) == (-1, "init", "first")
    assert finding.summary == (
        "Before step 0 first weight holds NaN (1 of 12 elements): it was initialized or loaded like that. It reaches "
        "the loss of step 0 and the parameters after step 0."
    )


def test_infinite_values_in_a_buffer_are_meant(tmp_path: Path) -> None:
    initial = [record_of(TensorKey(INIT_STEP, Phase.INIT, "act", "least"), bad(math.inf, 12))]
    changed = {"forward act output.0": bad(math.nan), **TO_THE_LOSS}
    finding = only(inspected(tmp_path, {INIT_STEP: initial, 0: training(0, changed)}))
    assert (finding.where.step, finding.where.name) == (0, "act")


def test_a_row_that_is_masked_completely_is_told_beside_the_mask(tmp_path: Path) -> None:
    changed = {"forward act input.0": bad(-math.inf, 4), "forward act output.0": bad(math.nan, 4), **TO_THE_LOSS}
    finding = only(inspected(tmp_path, {0: training(0, changed)}))
    assert (finding.where.name, finding.where.slot) == ("act", "output.0")
    assert finding.summary.startswith(
        "Step 0, forward: act output.0 is the first tensor with NaN (4 of 12 elements); what it is made from is "
        "finite, at most 2.000. 1 row of it is NaN throughout, as the softmax of a row is that is masked completely: "
        "4 of 12 elements of act input.0 are -Inf."
    )


def test_a_logarithm_of_zero_is_named_and_not_the_module_that_turns_it_into_nan(tmp_path: Path) -> None:
    changed = {"forward act output.0": bad(-math.inf), "forward last output.0": bad(math.nan, 4), **NAN_LOSS}
    finding = only(inspected(tmp_path, {0: training(0, changed)}))
    assert (finding.label, finding.where.name) == ("nan-origin", "act")
    assert "is the first tensor with -Inf (1 of 12 elements)" in finding.summary


# ---- What was not captured


def test_a_loss_that_breaks_in_a_step_that_was_not_captured_is_told_as_that(tmp_path: Path) -> None:
    rows = [row(step, nonfinite=step >= 7, loss=math.nan if step >= 7 else 0.5) for step in range(9)]
    result = inspected(tmp_path, {0: training(0), 1: training(1)}, timeline=rows)
    finding = only(result)
    assert finding.severity is Severity.ERROR
    assert finding.summary == (
        "The loss is not finite in step 7, for the first time; the captured steps 0-1 are finite. It stays so to the "
        "end of the run. Where it starts cannot be told: that step was not captured."
    )
    assert finding.advice == (
        "Capture it and the step before: `align capture --steps 6:8 --stop SCRIPT`, then inspect that."
    )


def test_a_loss_that_was_not_seen_is_no_nan(tmp_path: Path) -> None:
    rows = [row(step, loss=math.nan, gradient_norm=math.nan) for step in range(9)]
    result = inspected(tmp_path, {0: training(0)}, timeline=rows)
    assert ours(result) == []
    assert reply(result, FINITE)[0] is State.GOOD


def test_without_the_phases_before_it_is_not_claimed_that_they_are_finite(tmp_path: Path) -> None:
    records = [one for one in training(0, NAN_LOSS) if one.key.phase in {Phase.LOSS, Phase.GRADIENT}]
    finding = only(inspected(tmp_path, {0: records}))
    assert finding.summary == (
        "Step 0, loss: loss value is the first captured tensor with NaN. It may start earlier: the capture has no "
        "phase forward."
    )
    assert finding.advice == (
        "Capture it again without --phases: `align capture --steps 0:1 SCRIPT`, then inspect that."
    )


def test_a_capture_without_losses_gradients_and_parameters_cannot_tell(tmp_path: Path) -> None:
    records = [one for one in training(0) if one.key.phase is Phase.FORWARD]
    result = inspected(tmp_path, {0: records}, timeline=[row(0, loss=math.nan)])
    assert reply(result, FINITE) == (
        State.UNKNOWN,
        (
            "Whether all numbers are finite cannot be told: neither losses nor gradients nor parameters were captured; "
            "capture without --phases."
        ),
    )


# ---- AL602: overflow, and what a loss scaler expects


def halves(changed: Mapping[str, Array], step: int = 0) -> list[TensorRecord]:
    """A training in float16."""
    return [
        replace(one, dtype="float16") if one.key.phase in {Phase.FORWARD, Phase.BACKWARD} else one
        for one in training(step, changed)
    ]


FP16 = tuple(replace(module, compute_dtype="float16") for module in MODULES)


def test_an_overflow_is_told_with_the_limit_and_how_the_numbers_grow(tmp_path: Path) -> None:
    large = (GOOD * 20000.0).astype(np.float32)
    changed = {
        "forward act output.0": (GOOD * 400.0).astype(np.float32),
        "forward last output.0": bad(math.inf, 3, large), **NAN_LOSS, "param last weight": bad(math.nan),
    }  # fmt: skip
    finding = only(inspected(tmp_path, {0: halves(changed)}, modules=FP16))
    assert (finding.code, finding.where.name) == ("AL602", "last")
    assert finding.summary == (
        "Step 0, forward: last output.0 is the first tensor with Inf: 3 of 12 elements, beyond 65,504, the greatest "
        "fp16 number. The largest numbers before it: first 2.000, act 800.0. What entered reaches 800.0. It reaches "
        "the loss of step 0 and the parameters after step 0."
    )
    assert finding.advice == (
        "Run last in bf16 or fp32, whose range is wider (what was trained in bf16 may need it), or make what enters it "
        "smaller, with a normalization before it."
    )


def test_inf_of_a_division_in_float32_is_no_overflow(tmp_path: Path) -> None:
    changed = {"forward act output.0": bad(math.inf), "forward last output.0": bad(math.nan, 4), **NAN_LOSS}
    finding = only(inspected(tmp_path, {0: training(0, changed)}))
    assert (finding.label, finding.where.name) == ("nan-origin", "act")


SKIPPED = {"loss_scale": 65536.0, "loss_scale_after": 32768.0, "skipped": True}


def test_scaled_gradients_that_overflow_in_a_skipped_step_are_expected(tmp_path: Path) -> None:
    scaled = (GOOD * 10000.0).astype(np.float32)
    changed = {
        "backward last grad_output.0": scaled, "backward last grad_input.0": bad(math.inf, 2, scaled),
        "gradient first weight": bad(math.nan),
    }  # fmt: skip
    records = [one for one in halves(changed) if one.key.phase is not Phase.UPDATE]
    rows = [row(0, **SKIPPED), row(1, loss_scale=32768.0)]
    result = inspected(tmp_path, {0: records, 1: halves({}, 1)}, modules=FP16, timeline=rows)
    assert ours(result) == []
    assert reply(result, FINITE) == (
        State.GOOD,
        (
            "What the optimizer took is finite in steps 0-1; in step 0 scaled gradients overflowed, first in last "
            "grad_input.0, and the loss scaler skipped the step, as it does to find its scale."
        ),
    )


def test_a_forward_that_overflows_in_every_skipped_step_is_an_error(tmp_path: Path) -> None:
    changed = {"forward first output.0": bad(math.inf), **FROM_FIRST, "gradient first weight": bad(math.nan)}
    records = {
        step: [one for one in halves(changed, step) if one.key.phase is not Phase.UPDATE] for step in range(2)
    }  # fmt: skip
    rows = [row(step, nonfinite=True, **SKIPPED) for step in range(4)]
    finding = only(inspected(tmp_path, records, modules=FP16, timeline=rows))
    assert (finding.label, finding.severity, finding.where.step) == ("overflow", Severity.ERROR, 0)
    assert finding.summary.endswith(
        "The loss scaler skips every step from here on; no loss scale helps, since it does not come of a scaled "
        "gradient."
    )


def test_one_batch_that_overflows_and_is_skipped_is_a_warning(tmp_path: Path) -> None:
    changed = {"forward first output.0": bad(math.inf), **FROM_FIRST, "gradient first weight": bad(math.nan)}
    records = [one for one in halves(changed) if one.key.phase is not Phase.UPDATE]
    rows = [row(0, nonfinite=True, **SKIPPED), row(1, loss_scale=32768.0)]
    finding = only(inspected(tmp_path, {0: records, 1: halves({}, 1)}, modules=FP16, timeline=rows))
    assert (finding.label, finding.severity) == ("overflow", Severity.WARNING)
    assert finding.summary.endswith(" The loss scaler skipped the step, so the parameters are unharmed.")


def test_gradients_that_the_script_threw_away_are_a_warning(tmp_path: Path) -> None:
    changed = {"backward act grad_input.0": bad(math.nan), "gradient first weight": bad(math.nan)}
    finding = only(inspected(tmp_path, {0: training(0, changed)}))
    assert (finding.label, finding.severity, finding.where.name) == ("nan-origin", Severity.WARNING, "act")
    assert finding.summary.endswith(
        " The optimizer got other gradients, which are finite: the parameters are unharmed."
    )


# ---- AL603: at the limit

AT_LIMIT = np.where(GOOD > 1.9, np.float32(65504.0), GOOD).astype(np.float32)


def test_an_output_at_the_limit_of_fp16_is_a_warning(tmp_path: Path) -> None:
    finding = only(inspected(tmp_path, {0: halves({"forward act output.0": AT_LIMIT})}, modules=FP16))
    assert (finding.code, finding.severity, finding.where.name) == ("AL603", Severity.WARNING, "act")
    assert finding.summary == (
        "Step 0, forward: act output.0 reaches exactly 65,504, the greatest fp16 number: what overflows has been set "
        "to it, by a device without Inf or by the code (clamp, nan_to_num). The step was not skipped, so the update "
        "is made of wrong numbers."
    )


def test_on_a_device_that_saturates_it_is_an_error(tmp_path: Path) -> None:
    run = RunInfo(outcome="finished", phases=ALL, device_type="npu", flags={"inf_nan_mode": False})
    finding = only(inspected(tmp_path, {0: halves({"forward act output.0": AT_LIMIT})}, modules=FP16, run=run))
    assert finding.severity is Severity.ERROR
    assert "the device has no Inf and sets what overflows to it" in finding.summary


@pytest.mark.parametrize(
    "changed",
    [
        {"forward act input.0": AT_LIMIT},
        {"forward act output.0": -AT_LIMIT},
        {"forward act output.0": np.minimum(AT_LIMIT, np.float32(65472.0))},
    ],
    ids=["padding by the code between", "a mask of the least number", "just below"],
)
def test_masks_padding_and_large_numbers_do_not_saturate(tmp_path: Path, changed: Mapping[str, Array]) -> None:
    labels = [finding.label for finding in ours(inspected(tmp_path, {0: halves(changed)}, modules=FP16))]
    assert "overflow-saturated" not in labels


def test_a_step_that_the_scaler_skipped_for_its_flag_is_healthy(tmp_path: Path) -> None:
    run = RunInfo(outcome="finished", phases=ALL, device_type="npu", flags={"inf_nan_mode": False})
    rows = [row(0, overflow=True, **SKIPPED)]
    result = inspected(tmp_path, {0: halves({"forward act output.0": AT_LIMIT})}, modules=FP16, run=run, timeline=rows)
    assert ours(result) == []


# ---- AL611: before it breaks


def growing(sizes: Sequence[float]) -> dict[int, list[TensorRecord]]:
    return {
        step: halves({"forward act output.0": (GOOD * (size / 2.0)).astype(np.float32)}, step)
        for step, size in enumerate(sizes)
    }


def test_an_output_that_grows_is_told_with_the_steps_that_are_left(tmp_path: Path) -> None:
    result = inspected(tmp_path, growing([1024.0, 2048.0, 4096.0, 8192.0]), modules=FP16)
    finding = only(result)
    assert (finding.code, finding.severity, finding.where.step, finding.where.name) == (
        "AL611", Severity.WARNING, 3, "act",
    )  # fmt: skip
    assert finding.summary == (
        "act output.0 reaches 8,192 in step 3, 12.5 % of 65,504, the greatest fp16 number. It grew by 2 per step in "
        "steps 0-3; at this rate it overflows in about 3 steps."
    )
    assert reply(result, "headroom")[0] is State.ODD
    table = next(table for table in result.tables if table.name == "headroom")
    assert table.rows[0][:3] == ("act", "output.0", "fp16")


@pytest.mark.parametrize(
    "sizes", [[1024.0, 2048.0, 4096.0, 4000.0], [100.0, 200.0, 400.0], [8192.0, 8192.0, 8192.0]],
    ids=["it fell again", "still far away", "it stays"],
)  # fmt: skip
def test_growth_that_ends_or_is_far_from_the_limit_is_no_finding(tmp_path: Path, sizes: Sequence[float]) -> None:
    assert ours(inspected(tmp_path, growing(sizes), modules=FP16)) == []


def test_an_output_near_the_limit_is_told_without_growth(tmp_path: Path) -> None:
    finding = only(inspected(tmp_path, growing([30000.0]), modules=FP16))
    assert finding.summary == "act output.0 reaches 30,000 in step 0, 45.8 % of 65,504, the greatest fp16 number."


def test_float32_has_no_short_range(tmp_path: Path) -> None:
    assert reply(inspected(tmp_path, {0: training(0)}), "headroom") == (
        State.ABSENT, "No module computes in a format of a short range.",
    )  # fmt: skip


# ---- Rows that are masked


@given(rows=st.integers(1, 8), width=st.integers(2, 8), masked=st.data())
def test_rows_are_masked_exactly_where_a_softmax_of_the_scores_says_so(
    rows: int, width: int, masked: st.DataObject
) -> None:
    hidden = np.array(
        masked.draw(st.lists(st.lists(st.booleans(), min_size=width, max_size=width), min_size=rows, max_size=rows))
    )
    scores = np.where(hidden, -np.inf, 1.0).astype(np.float32)
    with np.errstate(invalid="ignore"):
        exponentials = np.exp(scores - scores.max(-1, keepdims=True))
        shares = exponentials / exponentials.sum(-1, keepdims=True)
    key = TensorKey(0, Phase.FORWARD, "softmax", "output.0")
    found = masks_rows(record_of(key, scores), record_of(key, shares))
    assert found == bool(hidden.all(-1).any())
