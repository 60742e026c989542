"""AL403: all that is known of a module agrees, and its output does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from align import wording
from align.diagnosis.pair.forward import invariants
from align.pairing import Pair
from align.records import (
    Comparison,
    DiffResult,
    Fact,
    Phase,
    RunInfo,
    Severity,
    Status,
    TensorKey,
    TensorRecord,
)
from tests.builders import Array, diff_files, record_of
from tests.numpy_run import Fault, make
from tests.said import told

TORCH = {"code": "torch", "random": False}
OWN = {"code": "0123456789abcdef", "random": False}
RUN = RunInfo(outcome="finished", device_type="cuda", classes={"Linear": TORCH, "ReLU": OWN})
NPU = replace(RUN, device_type="npu", flags={"npu_conv_allow_hf32": False})


def larger(array: Array) -> Array:
    return array * 1.5


def diff(
    folder: Path,
    point: str,
    fault: Fault = larger,
    *,
    step: int = 0,
    ours: Mapping[str, Any] | None = None,
    theirs: Mapping[str, Any] | None = None,
) -> DiffResult:
    """A run and one with a fault; `ours` and `theirs` are options of one of them."""
    steps = step + 1
    # The plain reference is the same in nearly all tests.
    reference = (folder.parent if ours is None else folder) / f"gpu{steps}.h5"
    if not reference.exists():
        make(reference, steps=steps, **{"run": RUN, **(ours or {})})
    candidate = folder / f"npu{len(list(folder.iterdir()))}.h5"
    return diff_files(
        reference, make(candidate, steps=steps, faults={(step, point): fault}, **{"run": NPU, **(theirs or {})})
    )


OPERATOR = [("operator-differs", Severity.ERROR)]
MODULE = [("origin-module", Severity.ERROR)]


def test_the_operator_of_a_module_of_torch_is_named(tmp_path: Path) -> None:
    result = diff(tmp_path, "forward blocks.0.mlp.fc")
    finding = result.findings[0]
    error, times = finding.evidence["relative_l2"], finding.evidence["times_floor"]
    assert told(result) == OPERATOR
    assert result.summary == (
        f"Step 0, forward: blocks.0.mlp.fc output.0 is the first tensor that differs: relative L2 "
        f"{wording.relative(error)}, {wording.times(times)} the floor, 1.5 times the reference. The class (Linear), "
        "settings, parameters and inputs of blocks.0.mlp.fc agree, so the operator behind it gives another result on "
        "npu than on cuda."
    )
    assert finding.advice == (
        "Run blocks.0.mlp.fc (Linear) with another implementation in one run (the plain operators instead of a fused "
        "one, or on the CPU, with its inputs moved there and its output back) and compare again; if the runs then "
        "agree, update or report the operator, with its shapes and dtypes. Check the versions of torch_npu and CANN, "
        "and try `TORCH_NPU_USE_COMPATIBLE_IMPL=1`. To see its values, run `align capture --detail tensors --modules "
        "'blocks.0.mlp.fc'` on both sides, then `align show RUN.h5 'blocks.0.mlp.fc'`."
    )
    assert (finding.where.phase, finding.where.name) == ("forward", "blocks.0.mlp.fc")


def test_code_of_ones_own_may_branch(tmp_path: Path) -> None:
    result = diff(tmp_path, "forward blocks.0.mlp.act")
    assert told(result) == OPERATOR
    assert result.summary.endswith(
        "The class (ReLU), settings, parameters and inputs of blocks.0.mlp.act agree, so what its code runs gives "
        "another result on npu than on cuda: an operator, or a branch or state of the code that no capture sees."
    )


@pytest.mark.parametrize(
    "classes",
    [
        {},
        {"ReLU": {"code": "fedcba9876543210", "random": False}},
        {"ReLU": {"code": "", "random": False}},
        {"ReLU": {"code": OWN["code"], "random": True}},
    ],
    ids=["older file", "other code", "unknown code", "may draw"],
)
def test_what_is_not_known_to_be_equal_stays_a_module(tmp_path: Path, classes: Mapping[str, Any]) -> None:
    run = replace(NPU, classes=classes)
    assert told(diff(tmp_path, "forward blocks.0.mlp.act", theirs={"run": run})) == MODULE


def test_settings_come_first(tmp_path: Path) -> None:
    result = diff(
        tmp_path,
        "forward blocks.0.mlp.act",
        ours={"configs": {"blocks.0.mlp.act": {"slope": 0.0}}},
        theirs={"configs": {"blocks.0.mlp.act": {"slope": 0.1}}},
    )
    assert told(result) == [("module-config-differs", Severity.ERROR), *MODULE]


def test_a_setting_of_code_of_ones_own_that_one_run_lacks_is_unknown(tmp_path: Path) -> None:
    configs = {"blocks.0.mlp.act": {"slope": 0.0}}
    assert told(diff(tmp_path, "forward blocks.0.mlp.act", theirs={"configs": configs})) == MODULE


def test_the_mode_comes_first(tmp_path: Path) -> None:
    def mode(*, training: bool) -> dict[str, Any]:
        return {"facts": {0: [Fact(TensorKey(0, Phase.FORWARD, "<Net>", "training"), training)]}}

    result = diff(tmp_path, "forward blocks.0.mlp.act", ours=mode(training=True), theirs=mode(training=False))
    labels = [finding.label for finding in result.findings]
    assert "operator-differs" not in labels
    assert "train-eval-mode" in labels


@pytest.mark.parametrize(
    ("point", "expected"), [("forward blocks.0.mlp.fc", MODULE), ("forward blocks.0.mlp.act", OPERATOR)]
)
def test_later_the_parameters_are_not_known(tmp_path: Path, point: str, expected: list[tuple[str, Severity]]) -> None:
    assert told(diff(tmp_path, point, step=1)) == expected


def test_code_between_modules_is_no_operator_of_one(tmp_path: Path) -> None:
    assert told(diff(tmp_path, "between blocks.0.attn")) == [("origin-functional", Severity.ERROR)]
    assert told(diff(tmp_path, "backward blocks.0.mlp.fc"))[0][0] != "operator-differs"


def test_a_repeat_of_one_run_accuses_no_operator(tmp_path: Path) -> None:
    run = replace(RUN, device_name="H200", script_hash="ab", seeds={"torch": 1}, command=("train.py",))
    assert told(diff(tmp_path, "forward blocks.0.mlp.act", ours={"run": run}, theirs={"run": run})) == MODULE


def test_noise_is_none(tmp_path: Path) -> None:
    result = diff(tmp_path, "forward blocks.0.mlp.act", lambda array: array * (1 + 2.0**-23))
    assert told(result) == [("within-noise", Severity.NOTE)]


def test_operands_shortened_by_a_switch_that_is_not_recorded_are_hinted_at(tmp_path: Path) -> None:
    def shorten(array: Array) -> Array:
        noise = np.random.default_rng(5).normal(size=array.shape)
        return np.asarray(array + 2.0**-11 * noise * np.sqrt(np.mean(array**2)))

    hint = "The difference is as large as TF32 or HF32 make it (about 4.9e-4): check `allow_tf32` and `allow_hf32`."
    assert hint in diff(tmp_path, "forward blocks.0.mlp.fc", shorten).findings[0].advice
    assert hint not in diff(tmp_path, "forward blocks.0.mlp.act", shorten).findings[0].advice
    assert hint not in diff(tmp_path, "forward blocks.0.mlp.fc").findings[0].advice


# ---- what an operation keeps

KEY = TensorKey(0, Phase.FORWARD, "op", "output.0")
RANDOM = np.random.default_rng(0)
SHARES = np.exp(RANDOM.normal(size=(4, 6, 8)))
SHARES /= SHARES.sum(-1, keepdims=True)
VECTORS = RANDOM.normal(size=(4, 6, 8))


def compared(ours: Array, theirs: Array) -> Comparison:
    def record(array: Array) -> TensorRecord:
        return record_of(KEY, array.astype(np.float32))

    return Comparison(record(ours), record(theirs), Status.ORIGIN, 0.1, 2.0**-24, 2.0**-24)


def given(array: Array) -> list[Pair]:
    record = record_of(TensorKey(0, Phase.FORWARD, "op", "input.0"), array.astype(np.float32))
    return [Pair(record, record)]


def masked(array: Array, every: int) -> Array:
    return np.where(np.arange(array.size).reshape(array.shape) % every == 0, 0.0, array)


@pytest.mark.parametrize(
    ("ours", "theirs", "sentence"),
    [
        (VECTORS[..., ::-1], VECTORS * 1.25,
         " It keeps the length of input.0 in the reference; in the candidate it makes it 1.25 times as long."),
        (VECTORS[..., ::-1], -VECTORS, ""),
        (VECTORS * 2.0, VECTORS * 2.5, ""),
        (SHARES, SHARES * 0.9, " Its rows sum to 1 in the reference, and to 0.9000 on average in the candidate."),
        (SHARES, SHARES[..., ::-1], ""),
        (masked(SHARES, 4) * 1.3, masked(SHARES, 2) * 1.3,
         " 48 of its 192 elements are zero in the reference and 96 in the candidate: other elements are masked."),
        (masked(SHARES, 4) * 1.3, masked(SHARES, 4) * 1.5, ""),
    ],
    ids=["length", "length kept", "never kept", "sums", "sums kept", "zeros", "zeros kept"],
)  # fmt: skip
def test_what_is_kept_in_one_run_only_is_told(ours: Array, theirs: Array, sentence: str) -> None:
    assert invariants.broken(compared(ours, theirs), given(VECTORS)) == sentence
