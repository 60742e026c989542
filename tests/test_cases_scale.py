"""The cases of loss scales, each with its right answer from two files and from one, also under a device's noise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from align.records import Health, Kind, Origin, Phase, Verdict
from tests.running import BENIGN, CASES, capture_all, diff
from tests.said import inspected


@dataclass(frozen=True)
class Answer:
    """Where the runs part, what the first finding of both is called, and where one file alone points to.

    `diff_label` is that of two files; of one it is `label`, at (step, phase, name).
    """

    step: int
    phase: Phase
    name: str
    slot: str
    kind: Kind
    origin: Origin
    label: str
    diff_label: str
    inspected: tuple[int, str, str]


ANSWERS = {
    "fp16_underflow": Answer(
        0, Phase.BACKWARD, "layers.2", "grad_input.0", Kind.VALUE, Origin.LOSS, "gradient-underflow",
        "gradient-underflow", (0, "backward", "layers.2"),
    ),
    "scale_overwritten": Answer(
        3, Phase.BACKWARD, "up", "grad_output.0", Kind.VALUE, Origin.LOSS, "loss-scale-unstable",
        "loss-scale-unstable", (2, "scaler", "GradScaler"),
    ),
    "skip_ignored": Answer(
        2, Phase.PARAM, "hidden", "weight", Kind.EQUALITY, Origin.OPTIMIZER, "skipped-step-applied",
        "skipped-step-applied", (2, "param", "hidden"),
    ),
    "clip_before_unscale": Answer(
        0, Phase.UPDATE, "hidden", "weight", Kind.VALUE, Origin.OPTIMIZER, "clip-before-unscale",
        "clip-before-unscale", (0, "update", "hidden"),
    ),
    "overflow_collapse": Answer(
        0, Phase.FORWARD, "up", "output.0", Kind.NONFINITE, Origin.MODULE, "overflow", "overflow", (0, "forward", "up")
    ),
}  # fmt: skip
DIVIDED = "unscale_after_growth"
SHORT = {
    "fp16_underflow": ["--steps", "1"],
    "scale_overwritten": ["--steps", "4"],
    "clip_before_unscale": ["--steps", "2"],
    "overflow_collapse": ["--steps", "3"],
}
LOW_SCALE = ("--variant", "good", "--scale", "4096", "--steps", "1")
ON_BOTH = ("fp16_underflow", "scale_overwritten", DIVIDED, "skip_ignored")
CAPTURED = [(name, device) for name in ANSWERS for device in ("cpu", "npu") if device == "cpu" or name in ON_BOTH]


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every case good and bad on the CPU, and those of this page on the simulated NPU with its benign noise."""
    folder = tmp_path_factory.mktemp("scale")

    def runs(device: str, names: tuple[str, ...]) -> list[tuple[Path, list[str | Path]]]:
        return [
            (
                folder / f"{name}.{variant}.{device}.h5",
                ["--steps", "0:", CASES / f"{name}.py", "--variant", variant, "--device", device, *SHORT.get(name, [])],
            )
            for name in names
            for variant in ("good", "bad")
        ]

    low: list[str | Path] = [CASES / "fp16_underflow.py", *LOW_SCALE]
    capture_all("cpu", [*runs("cpu", (*ANSWERS, DIVIDED)), (folder / "kept.h5", low)])
    capture_all("npu", runs("npu", ON_BOTH), BENIGN)
    capture_all("npu", [(folder / "flushed.h5", [*low, "--device", "npu"])], {"numerics": {"ftz": ["float16"]}})
    return folder


@pytest.mark.parametrize(("name", "device"), CAPTURED)
def test_the_fault_is_named_from_two_files(captures: Path, name: str, device: str) -> None:
    result = diff(captures / f"{name}.good.cpu.h5", captures / f"{name}.bad.{device}.h5")
    answer = ANSWERS[name]
    first = result.first_divergence
    assert result.verdict is Verdict.DIVERGED
    assert first is not None
    assert (first.step, first.phase, first.name, first.slot, first.kind, first.origin) == (
        answer.step, answer.phase, answer.name, answer.slot, answer.kind, answer.origin,
    )  # fmt: skip
    assert result.findings[0].label == answer.diff_label
    assert result.summary == result.findings[0].summary


@pytest.mark.parametrize(("name", "device"), CAPTURED)
def test_the_fault_is_named_from_one_file(captures: Path, name: str, device: str) -> None:
    result = inspected(captures / f"{name}.bad.{device}.h5")
    finding = result.findings[0]
    assert result.verdict is Health.UNHEALTHY
    assert finding.label == ANSWERS[name].label
    assert (finding.where.step, finding.where.phase, finding.where.name) == ANSWERS[name].inspected


@pytest.mark.parametrize("name", ON_BOTH)
def test_the_good_variant_is_aligned_and_healthy(captures: Path, name: str) -> None:
    result = diff(captures / f"{name}.good.cpu.h5", captures / f"{name}.good.npu.h5")
    assert result.verdict is Verdict.ALIGNED, result.summary
    for device in ("cpu", "npu"):
        alone = inspected(captures / f"{name}.good.{device}.h5")
        assert (alone.verdict, alone.findings) == (Health.HEALTHY, ())


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_a_step_that_is_divided_by_the_next_scale(captures: Path, device: str) -> None:
    result = diff(captures / f"{DIVIDED}.good.cpu.h5", captures / f"{DIVIDED}.bad.{device}.h5")
    first = result.first_divergence
    assert first is not None
    assert (first.step, first.phase, first.name, first.origin) == (3, Phase.UPDATE, "hidden", Origin.OPTIMIZER)
    alone = inspected(captures / f"{DIVIDED}.bad.{device}.h5")
    assert [finding.label for finding in alone.findings] == ["gradient-scaled"]
    assert alone.summary == (
        "Step 3: the loss was multiplied by 1,024 (2^10), and its gradients are divided by 2,048 (2^11), the loss "
        "scale of the step after: the optimizer takes 0.5 times the true gradients. In the other captured steps both "
        "are equal."
    )


def test_the_consequences_stand_under_the_scale_that_was_overwritten(captures: Path) -> None:
    result = diff(captures / "scale_overwritten.good.cpu.h5", captures / "scale_overwritten.bad.cpu.h5")
    assert [(finding.label, finding.explained_by) for finding in result.findings] == [
        ("loss-scale-unstable", ""),
        ("gradient-underflow", "AL608"),
    ]


def test_a_device_that_flushes_is_named_from_two_files_and_from_one(captures: Path) -> None:
    result = diff(captures / "kept.h5", captures / "flushed.h5")
    assert result.findings[0].label == "denormal-flush"
    assert {finding.explained_by for finding in result.findings[1:]} <= {"AL605"}
    assert result.summary.startswith("The candidate makes 0 of the smallest numbers: in ")
    alone = inspected(captures / "flushed.h5")
    told = [(finding.label, str(finding.severity)) for finding in alone.findings]
    assert told == [("gradient-underflow", "warning"), ("denormal-flush", "note")]
    assert "(6.1e-5, the device has no subnormals)" in alone.findings[0].summary
    assert inspected(captures / "kept.h5").findings == ()


def test_the_collapse_stands_under_the_overflow(captures: Path) -> None:
    result = inspected(captures / "overflow_collapse.bad.cpu.h5")
    assert [(finding.label, finding.explained_by) for finding in result.findings[:2]] == [
        ("overflow", ""),
        ("loss-scale-collapse", "AL602"),
    ]
    assert result.findings[1].summary.endswith(" The first that is not finite in step 0 is up output.0 (forward).")


def test_the_first_of_the_five_troubles_is_read_from_the_output(captures: Path) -> None:
    result = inspected(captures / "fp16_underflow.bad.cpu.h5")
    finding = result.findings[0]
    assert finding.summary.startswith("Step 0: without a loss scale gradients are too small for fp16: from layers.2 ")
    assert "The gradients of 4 of 14 parameters are all 0 (embed weight, embed bias, layers.0 weight and 1 more)." in (
        finding.summary
    )
    assert finding.advice == (
        "Scale the loss: scaler = torch.amp.GradScaler(init_scale=2.0**16), scaler.scale(loss).backward(), "
        "scaler.step(optimizer), scaler.update(); or train in bf16."
    )
