"""AL401 and AL402: whose code a difference starts in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from align import wording
from align.diagnosis import telling
from align.pairing import Pair
from align.records import DiffResult, Phase, Severity, TensorKey
from tests.builders import diff_files, record_of
from tests.numpy_run import Fault, make


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("reference") / "gpu.h5", steps=1)


def _diff(reference: Path, directory: Path, point: str, fault: Fault) -> DiffResult:
    return diff_files(reference, make(directory / "npu.h5", steps=1, faults={(0, point): fault}))


@pytest.mark.parametrize(
    ("point", "label", "owner", "summary"),
    [
        (
            "forward blocks.0.mlp.fc",
            "origin-module",
            "blocks.0.mlp.fc",
            (
                "Step 0, forward: blocks.0.mlp.fc output.0 is the first tensor that differs: relative L2 {e}, {z} the "
                "floor, 1.5 times the reference. Its inputs agree, so it starts here."
            ),
        ),
        (
            "between blocks.1.attn",
            "origin-functional",
            "blocks.1.attn",
            (
                "Step 0, forward: input.0 of blocks.1.attn.o already differs (relative L2 {e}, {z} the floor, 1.5 "
                "times the reference) while blocks.1.attn.v agrees: the code of blocks.1.attn between blocks.1.attn.v "
                "and blocks.1.attn.o is the cause."
            ),
        ),
        (
            "forward blocks.0",
            "origin-functional",
            "blocks.0",
            (
                "Step 0, forward: blocks.0 output.0 is the first tensor that differs: relative L2 {e}, {z} the floor, "
                "1.5 times the reference. Its inputs and children agree: the code of blocks.0 after blocks.0.mlp is "
                "the cause."
            ),
        ),
        (
            "loss",
            "origin-functional",
            "loss",
            (
                "Step 0, loss: the loss is the first value that differs: relative L2 {e}, {z} the floor, 1.5 times the "
                "reference. The outputs it is made from agree."
            ),
        ),
        (
            "backward blocks.1.attn.k",
            "origin-module",
            "blocks.1.attn.k",
            (
                "Forward agrees; step 0, backward of blocks.1.attn.k: grad_input.0 is the first gradient that differs: "
                "relative L2 {e}, {z} the floor, 1.5 times the reference."
            ),
        ),
        (
            "gradient blocks.0.mlp.fc.weight",
            "origin-module",
            "blocks.0.mlp.fc",
            (
                "Step 0, gradient: weight of blocks.0.mlp.fc is the first that differs: relative L2 {e}, {z} the "
                "floor, 1.5 times the reference. What its gradient is made from agrees."
            ),
        ),
    ],
)
def test_the_sentence_names_the_code_the_difference_and_the_relation(
    reference: Path, tmp_path: Path, point: str, label: str, owner: str, summary: str
) -> None:
    result = _diff(reference, tmp_path, point, lambda array: array * 1.5)
    first = result.findings[0]
    error, times = first.evidence["relative_l2"], first.evidence["times_floor"]
    assert (first.label, first.severity, first.where.name) == (label, Severity.ERROR, owner)
    assert first.summary == summary.format(e=wording.relative(error), z=wording.times(times)) == result.summary
    assert error == pytest.approx(0.5, rel=0.15)
    assert times > 1000
    assert first.advice


@pytest.mark.parametrize(("step", "point", "told"), [(0, "head", 0), (1, "head", 1), (1, "blocks.0.mlp.act", 0)])
def test_weights_may_have_changed_between_the_steps(tmp_path: Path, step: int, point: str, told: int) -> None:
    faults: dict[tuple[int, str], Fault] = {(step, f"forward {point}"): lambda array: array * 1.5}
    result = diff_files(make(tmp_path / "gpu.h5"), make(tmp_path / "npu.h5", faults=faults))
    assert (result.findings[0].label, result.findings[0].where.name) == ("origin-module", point)
    changed = (
        " Its weights may have been changed between the steps, too (clamped, averaged, copied, broadcast): they are "
        "captured after optimizer.step, not at the begin of a step. "
    )
    assert result.findings[0].advice.count(changed) == told


@pytest.mark.parametrize("factor", [1.0001, 1.5])
def test_one_finding_says_it_all(reference: Path, tmp_path: Path, factor: float) -> None:
    result = _diff(reference, tmp_path, "forward head", lambda array: array * factor)
    assert [finding.label for finding in result.findings] == ["origin-module"]
    assert f"{factor} times the reference" in result.summary


def test_what_agrees_within_the_floor_has_no_origin(reference: Path, tmp_path: Path) -> None:
    result = _diff(reference, tmp_path, "forward head", lambda array: array * (1 + 2.0**-23))
    assert [finding.label for finding in result.findings] == ["within-noise"]


def test_zeroed_tensors_are_told_as_such(reference: Path, tmp_path: Path) -> None:
    result = _diff(reference, tmp_path, "forward head", lambda array: array * 0)
    assert ", all zeros in the candidate. Its inputs agree" in result.summary


def test_rounding_is_no_other_order_of_the_same_values() -> None:
    random = np.random.default_rng(0)
    array = np.clip(random.normal(size=(64, 64)), -2, 2).astype(np.float32)
    rounded = np.clip(array * (1 + random.normal(0, 3e-7, array.shape)), -2, 2).astype(np.float32)
    key = TensorKey(0, Phase.FORWARD, "fc", "output.0")
    ours = record_of(key, array)
    assert telling.reordered(Pair(ours, record_of(key, np.roll(array, 1, axis=0))))
    assert not telling.reordered(Pair(ours, record_of(key, rounded)))
    assert not telling.reordered(Pair(ours, record_of(key, -array)))
