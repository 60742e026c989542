"""Healthy pairs of the ways in which people train, on two devices that differ in rounding only: none is accused."""

from __future__ import annotations

from pathlib import Path

import pytest

from align.records import Verdict
from tests.running import BENIGN, CASES, STEPS, WORKLOADS, capture_all, diff

WAYS = WORKLOADS / "ways"

RUNS: dict[str, tuple[Path, tuple[str, ...]]] = {
    "GAN": (WAYS / "gan.py", ()),
    "two optimizers": (STEPS / "two_optimizers.py", ()),
    "teacher": (STEPS / "teacher.py", ()),
    "mean teacher": (WAYS / "mean_teacher.py", ()),
    # Adam's first step turns the rounding of a gradient near 0 into a full step; the average follows it.
    **{
        f"momentum encoder {' '.join(options)}": (WAYS / "momentum_encoder.py", ("--average", *options))
        for options in (("copy",), ("wrapper",), ("copy", "--late"), ("wrapper", "--late"))
    },
    "accumulation, checkpointing": (WAYS / "accumulated_checkpointing.py", ()),
    "scaler and clipping": (WAYS / "scaler_clipping.py", ()),
    "structured arguments": (WAYS / "structured_outputs.py", ()),
    "in place": (WAYS / "inplace_residual.py", ()),
    "validation": (WAYS / "epochs_with_validation.py", ()),
    "shared weights": (STEPS / "weight_sharing.py", ()),
    "closure": (STEPS / "lbfgs_closure.py", ()),
    "optimizer in the backward": (STEPS / "optimizer_in_backward.py", ()),
    # In step 4 the average of two gradients is a thousandth of either, with the rounding of both.
    "averaged gradients that cancel": (CASES / "same_dropout_every_rank.py", ("--variant", "good", "--seed", "2")),
}


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each run on the CPU and on the simulated NPU; every device has one process for all."""
    folder = tmp_path_factory.mktemp("ways")
    for device, simulator in (("cpu", None), ("npu", BENIGN)):
        asked = ["--steps", "0:", "--no-dropout"]
        runs: list[tuple[Path, list[str | Path]]] = [
            (folder / f"{name}.{device}.h5", [*asked, script, *options, "--device", device])
            for name, (script, options) in RUNS.items()
        ]
        capture_all(device, runs, simulator)
    return folder


@pytest.mark.parametrize("name", RUNS)
def test_a_healthy_pair_is_aligned(captures: Path, name: str) -> None:
    result = diff(captures / f"{name}.cpu.h5", captures / f"{name}.npu.h5")
    assert result.verdict is Verdict.ALIGNED, result.summary
    assert (result.only_reference, result.only_candidate) == ((), ())
