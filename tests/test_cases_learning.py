"""Cases of learning, each with its right answer: between two runs, in one, and under a device's benign noise."""

from __future__ import annotations

from pathlib import Path

import pytest

from align.records import Origin, Phase, Severity, Verdict
from tests.running import BENIGN, CASES, capture_all, diff
from tests.said import accused, inspected

PRECISIONS = ("fp32", "bf16")
STEPS = {
    ("bf16_embedding", "good"): "0:32",
    ("bf16_embedding", "bad"): "0:3,8,16,24,32,40,48,56,64,72,80,88,96",
    ("rmsprop_eps", "good"): "0:2",
    ("rmsprop_eps", "bad"): "0:2",
}
LENGTHS = {("bf16_embedding", "good"): ("--steps", "32")}
"""No step of the good run is looked at after the last that is captured."""
NAMES = ("bf16_embedding", "rmsprop_eps")
FIRST = {
    "bf16_embedding": (0, Phase.GRADIENT, "embed", "weight", Origin.MODULE),
    "rmsprop_eps": (0, Phase.PARAM, "fc", "weight", Origin.OPTIMIZER),
}
LABELS = {
    "bf16_embedding": {"origin-module", "backward-operator-differs"},
    "rmsprop_eps": {"optimizer-formula-differs"},
}
RECOMPUTE = "recompute_rng"


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every case good and bad on the CPU and on the simulated NPU with its benign noise."""
    folder = tmp_path_factory.mktemp("learning")
    for device in ("cpu", "npu"):
        runs: list[tuple[Path, list[str | Path]]] = [
            (
                folder / f"{name}.{variant}.{precision}.{device}.h5",
                ["--steps", STEPS[name, variant], CASES / f"{name}.py", "--variant", variant, "--precision", precision,
                 "--device", device, *LENGTHS.get((name, variant), ())],
            )
            for name in NAMES
            for variant in ("good", "bad")
            for precision in PRECISIONS
        ]  # fmt: skip
        runs += [
            (
                folder / f"{RECOMPUTE}.{variant}.{device}.h5",
                ["--steps", "0:2", CASES / f"{RECOMPUTE}.py", "--variant", variant, "--device", device],
            )
            for variant in ("good", "bad")
        ]
        capture_all(device, runs, BENIGN if device == "npu" else None)
    return folder


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("name", NAMES)
def test_two_runs_part_where_the_fault_is(captures: Path, name: str, device: str, precision: str) -> None:
    result = diff(captures / f"{name}.good.{precision}.cpu.h5", captures / f"{name}.bad.{precision}.{device}.h5")
    first = result.first_divergence
    assert result.verdict is Verdict.DIVERGED
    assert first is not None
    assert (first.step, first.phase, first.name, first.slot, first.origin) == FIRST[name]
    assert result.findings[0].label in LABELS[name]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", NAMES)
def test_the_good_variant_is_aligned_and_accused_of_nothing(captures: Path, name: str, precision: str) -> None:
    good = captures / f"{name}.good.{precision}.npu.h5"
    result = diff(captures / f"{name}.good.{precision}.cpu.h5", good)
    assert result.verdict is Verdict.ALIGNED, result.summary
    assert accused(good) == []


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_the_row_that_grows_is_found_in_one_run(captures: Path, device: str, precision: str) -> None:
    findings = accused(captures / f"bf16_embedding.bad.{precision}.{device}.h5")
    jump = next(one for one in findings if one.label == "loss-spike")
    assert (jump.where.phase, jump.where.name, jump.where.slot) == ("gradient", "embed", "weight")
    assert 8 <= (jump.where.step or 0) <= 56
    assert "The gradient of embed weight grew before" in jump.summary
    assert "Sum it in fp32, clip it" in jump.advice


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_the_place_of_epsilon_is_found(captures: Path, device: str, precision: str) -> None:
    bad = captures / f"rmsprop_eps.bad.{precision}.{device}.h5"
    explained = "All of it is explained by eps (0.001) inside the square root instead of behind it."
    result = inspected(bad)
    assert (result.findings[0].label, result.findings[0].severity) == ("optimizer-formula-differs", Severity.ERROR)
    assert result.summary.endswith(explained)
    assert explained in diff(captures / f"rmsprop_eps.good.{precision}.cpu.h5", bad).summary


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_a_mask_that_is_drawn_anew_is_the_cause(captures: Path, device: str) -> None:
    bad = captures / f"{RECOMPUTE}.bad.{device}.h5"
    result = inspected(bad)
    assert (result.findings[0].label, result.findings[0].where.name) == ("recompute-differs", "layers.1.drop")
    assert accused(captures / f"{RECOMPUTE}.good.{device}.h5") == []
    # The masks of the simulated device are its own: two runs are compared on one device.
    pair = diff(captures / f"{RECOMPUTE}.good.{device}.h5", bad)
    first = pair.first_divergence
    assert first is not None
    assert (first.step, first.phase, first.name, first.slot) == (0, Phase.BACKWARD, "layers.1.drop", "grad_output.0")
    assert (pair.findings[0].label, pair.findings[0].severity) == ("recompute-differs", Severity.ERROR)
