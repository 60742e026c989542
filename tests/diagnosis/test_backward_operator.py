"""AL501: a module whose forward and settings agree makes other gradients of what agrees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from align.depth import growth_of
from align.records import Comparison, DiffResult, Phase, RunInfo, Severity, Status, TensorKey
from tests.builders import Array, diff_files, record_of
from tests.numpy_run import Fault, make
from tests.said import told

TORCH = {"code": "torch", "random": False}
RUN = RunInfo(outcome="finished", device_type="cuda", classes={"Linear": TORCH, "LayerNorm": TORCH})
NPU = replace(RUN, device_type="npu")
OPERATOR = [("backward-operator-differs", Severity.ERROR)]
MODULE = [("origin-module", Severity.ERROR)]
NORMS = tuple(f"blocks.{block}.norm{number}" for block in (0, 1) for number in (1, 2))


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("reference") / "a.h5", steps=1, run=RUN)


def diff(reference: Path, folder: Path, faults: Mapping[tuple[int, str], Fault], run: RunInfo = NPU) -> DiffResult:
    return diff_files(reference, make(folder / "b.h5", steps=1, pieces=3, run=run, faults=faults))


def bent(array: Array) -> Array:
    return array * np.linspace(0.5, 1.5, array.shape[-1], dtype=np.float32)


def test_the_backward_of_a_module_of_torch_is_named(reference: Path, tmp_path: Path) -> None:
    result = diff(reference, tmp_path, {(0, "backward blocks.1.mlp.fc"): bent})
    assert told(result) == OPERATOR
    assert result.findings[0].where.name == "blocks.1.mlp.fc"
    assert result.summary.endswith(
        "The gradient of its output agrees, and so do its class (Linear) and settings: its backward gives another "
        "result on npu than on cuda."
    )


def test_code_that_is_not_known_to_be_equal_stays_the_origin(reference: Path, tmp_path: Path) -> None:
    run = replace(NPU, classes={"Linear": {"code": "0123456789abcdef", "random": False}})
    assert told(diff(reference, tmp_path, {(0, "backward blocks.1.mlp.fc"): bent}, run)) == MODULE


def test_gradients_of_the_parameters_of_all_norms(reference: Path, tmp_path: Path) -> None:
    faults = {(0, f"gradient {norm}.{slot}"): bent for norm in NORMS for slot in ("weight", "bias")}
    result = diff(reference, tmp_path, faults)
    assert result.findings[0].label == "backward-operator-differs"
    assert result.findings[0].summary.endswith(
        "Forward agrees, and so does the gradient of its input: the part of the backward of blocks.1.norm2 (LayerNorm) "
        "that makes the gradient of weight and bias gives another result on npu than on cuda."
    )


@pytest.mark.parametrize("names", [NORMS[:1], NORMS[:3]])
def test_gradients_of_some_norms_are_no_operators(reference: Path, tmp_path: Path, names: tuple[str, ...]) -> None:
    faults = {(0, f"gradient {norm}.{slot}"): bent for norm in names for slot in ("weight", "bias")}
    assert diff(reference, tmp_path, faults).findings[0].label == "origin-module"


def test_a_reduction_between_ranks_is_no_operator(tmp_path: Path) -> None:
    reference = make(tmp_path / "a.h5", steps=1, run=replace(RUN, world_size=2))
    faults = {(0, f"gradient {norm}.{slot}"): bent for norm in NORMS for slot in ("weight", "bias")}
    assert diff(reference, tmp_path, faults, replace(NPU, world_size=2)).findings[0].label == "origin-module"


def test_noise_is_none(reference: Path, tmp_path: Path) -> None:
    result = diff(reference, tmp_path, {(0, "backward blocks.1.mlp.fc"): lambda array: array * (1 + 2.0**-23)})
    assert [finding.label for finding in result.findings] == ["within-noise"]


def layers(ratios: Mapping[int, float], name: str = "layers.{}.act") -> list[Comparison]:
    random = np.random.default_rng(0)
    found = []
    for layer, ratio in ratios.items():
        array = random.normal(size=(8, 8)).astype(np.float32)
        key = TensorKey(0, Phase.BACKWARD, name.format(layer), "grad_input.0")
        sides = record_of(key, array), record_of(key, array * np.float32(ratio))
        found.append(Comparison(*sides, Status.ORIGIN, floor=1e-6))
    return found


def test_a_gain_in_each_layer_is_a_growth() -> None:
    comparisons = layers({5: 1.1, 4: 1.21, 3: 1.331, 2: 1.4641})
    found = growth_of(comparisons[0], 1.0, comparisons)
    assert found is not None
    assert (found.layers, found.last, found.first) == (4, "layers.5.act", "layers.2.act")
    assert found.gain == pytest.approx(1.1, rel=1e-5)
    assert (found.nearest, found.furthest) == pytest.approx((1.1, 1.4641), rel=1e-5)


@pytest.mark.parametrize(
    "ratios",
    [
        {5: 1.1, 4: 1.1, 3: 1.1, 2: 1.1},
        {5: 1.1, 4: 1.5, 3: 1.55, 2: 1.6},
        {5: 1.1, 4: 1.21},
        {5: 1.1, 4: 1.21, 2: 1.331},
        {5: 1.1, 4: 1.0, 3: 0.91, 2: 0.83},
    ],
    ids=["one factor", "unsteady", "two layers", "a gap", "back again"],
)
def test_what_does_not_grow_with_each_layer_is_none(ratios: dict[int, float]) -> None:
    comparisons = layers(ratios)
    assert growth_of(comparisons[0], 1.0, comparisons) is None


def test_other_modules_of_a_layer_are_not_mixed_in() -> None:
    comparisons = layers({5: 1.1, 4: 1.21}) + layers({3: 1.331, 2: 1.4641}, "layers.{}.fc")
    assert growth_of(comparisons[0], 1.0, comparisons) is None
