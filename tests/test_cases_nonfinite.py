"""The cases of NaN, overflow and ill-conditioned numbers, each with its right answer from two files and from one."""

from __future__ import annotations

from pathlib import Path

import pytest

from align.records import Finding, Health, Kind, Origin, Phase, Severity, Verdict
from tests.running import BENIGN, CASES, capture_all, diff
from tests.said import inspected

NAMES = ("where_sqrt", "all_ignored", "saturating_overflow", "large_angle")

INSPECTED = {
    "where_sqrt": (0, "backward", "dist", "nan-origin"),
    "all_ignored": (2, "loss", "loss", "nan-origin"),
}

SATURATING = {"numerics": {"saturate": True}}

SATURATED_SCRIPT = """
import sys

import torch
import torch_npu
from torch import nn

class Half(nn.Module):
    def forward(self, x):
        return x.half() * 100


torch.manual_seed(1)
model = nn.Sequential(nn.Linear(4, 4), Half(), nn.Linear(4, 1)).npu()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch_npu.npu.amp.GradScaler(init_scale=4.0, enabled=sys.argv[1] == "scaler")
for step in range(3):
    optimizer.zero_grad()
    x = torch.ones(6, 4).npu() * (1e4 if step == 1 else 1.0)
    hidden = model[0](x)
    hidden = hidden.half() * 100 if sys.argv[1] == "inside" else model[1](hidden)
    loss = model[2](hidden.float() * 1e-6).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every case good and bad on the CPU, and on the simulated NPU with its benign noise."""
    folder = tmp_path_factory.mktemp("cases")

    def runs(device: str) -> list[tuple[Path, list[str | Path]]]:
        return [
            (folder / f"{name}.{variant}.{device}.h5", [CASES / f"{name}.py", "--variant", variant, "--device", device])
            for name in NAMES
            for variant in ("good", "bad")
        ]

    reduced: list[tuple[Path, list[str | Path]]] = [
        (
            folder / f"reduced.{variant}.cpu.h5",
            [CASES / "large_angle.py", "--variant", variant, "--reduced", "--device", "cpu"],
        )
        for variant in ("good", "bad")
    ]
    capture_all("cpu", [*runs("cpu"), *reduced])
    capture_all("npu", runs("npu"), BENIGN)
    return folder


def first(path: Path) -> Finding:
    return inspected(path).findings[0]


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("name", INSPECTED)
def test_one_file_names_the_producer(captures: Path, name: str, device: str) -> None:
    finding = first(captures / f"{name}.bad.{device}.h5")
    assert (finding.where.step, finding.where.phase, finding.where.name, finding.label) == INSPECTED[name]
    assert finding.severity is Severity.ERROR


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("name", NAMES)
def test_the_good_variant_is_healthy(captures: Path, name: str, device: str) -> None:
    assert inspected(captures / f"{name}.good.{device}.h5").verdict is Health.HEALTHY


def test_a_batch_without_a_target_that_counts_is_told_as_that(captures: Path) -> None:
    finding = first(captures / "all_ignored.bad.cpu.h5")
    assert finding.summary == (
        "Every module output of step 2 is finite; the loss is NaN. It reaches the parameters after step 2."
    )
    assert finding.advice == (
        "Look at the loss of this step for a division by zero or a logarithm of zero: a batch without a valid target, "
        "a mask whose sum is 0. Divide by at least 1, and leave such a batch out."
    )


# ---- A device that saturates


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_two_files_name_the_device_that_saturates(captures: Path, device: str) -> None:
    result = diff(captures / "saturating_overflow.good.cpu.h5", captures / f"saturating_overflow.bad.{device}.h5")
    found = result.first_divergence
    assert found is not None
    assert (found.step, found.phase, found.name, found.slot) == (2, Phase.FORWARD, "gate", "output.0")
    assert (found.kind, found.origin) == (Kind.NONFINITE, Origin.MODULE)
    assert [finding.label for finding in result.findings if finding.severity is Severity.ERROR] == [
        "overflow-saturated"
    ]
    assert result.findings[0].summary == (
        "Step 2, forward: gate output.0 reaches exactly 65,504, the greatest fp16 number, in the candidate; the "
        "reference has Inf in 2 of 96 elements. What overflows is set to the limit there. The loss scaler of the "
        "reference skipped the step; that of the candidate saw no Inf and let it through."
    )


def test_the_reference_may_be_the_one_that_saturates(captures: Path) -> None:
    result = diff(captures / "saturating_overflow.bad.cpu.h5", captures / "saturating_overflow.good.cpu.h5")
    assert result.findings[0].label == "overflow-saturated"
    assert result.findings[0].evidence["side"] == "reference"


def test_one_file_with_a_number_at_its_limit_is_a_warning_without_the_word_of_the_device(captures: Path) -> None:
    findings = inspected(captures / "saturating_overflow.bad.cpu.h5").findings
    told = [(finding.severity, finding.where.name) for finding in findings if finding.label == "overflow-saturated"]
    assert told == [(Severity.WARNING, "gate")]


@pytest.fixture(scope="module")
def saturating(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trainings on a simulated NPU without Inf, whose flag stays set in the process: the first is the one to see it."""
    folder = tmp_path_factory.mktemp("saturating")
    script = folder / "train.py"
    script.write_text(SATURATED_SCRIPT, encoding="utf-8")
    capture_all("npu", [(folder / f"{name}.h5", [script, name]) for name in ("inside", "scaler", "none")], SATURATING)
    return folder


@pytest.mark.parametrize("name", ["none", "scaler"])
def test_a_device_that_says_it_saturates_is_believed(saturating: Path, name: str) -> None:
    # The scaler of torch_npu clears the flag before the backward, and so does not see what the forward has set.
    finding = first(saturating / f"{name}.h5")
    assert (finding.label, finding.severity) == ("overflow-saturated", Severity.ERROR)
    assert (finding.where.step, finding.where.phase, finding.where.name) == (1, "forward", "1")


def test_where_no_tensor_is_at_its_limit_the_flag_is_told_as_a_fact(saturating: Path) -> None:
    findings = inspected(saturating / "inside.h5").findings
    (finding,) = [finding for finding in findings if finding.label == "overflow-saturated"]
    assert (finding.severity, finding.where.step, finding.where.name) == (Severity.WARNING, 1, "")
    assert finding.summary == (
        "The overflow flag of the device is set in step 1: it has no Inf, and has set a number to the greatest of its "
        "format instead. No captured tensor holds that number; it was inside a module, or in a step before. Nothing "
        "skipped the step."
    )


# ---- Ill-conditioned numbers


@pytest.mark.parametrize("candidate", ["bad.cpu", "bad.npu"])
def test_what_enlarges_a_rounding_is_told_and_no_operator_is_accused(captures: Path, candidate: str) -> None:
    result = diff(captures / "large_angle.good.cpu.h5", captures / f"large_angle.{candidate}.h5")
    assert result.verdict is Verdict.ALIGNED
    finding = next(finding for finding in result.findings if finding.evidence.get("ill_conditioned"))
    assert (finding.label, finding.severity) == ("within-noise", Severity.NOTE)
    assert (finding.where.step, finding.where.phase, finding.where.name) == (0, "forward", "wave")
    assert finding.summary == (
        "Step 0, forward: wave makes a relative L2 difference of 0.054 of one of at most 6.0e-8 in its input. It "
        "enlarges rounding: what it is given is ill-conditioned, and no operator is wrong. input.0 reaches 1.499e6, "
        "where neighbouring numbers are 0.1787 apart. What is made of it, NaN too, may differ between any two devices."
    )


def test_small_angles_enlarge_nothing(captures: Path) -> None:
    result = diff(captures / "reduced.good.cpu.h5", captures / "reduced.bad.cpu.h5")
    assert result.verdict is Verdict.ALIGNED
    assert not any(finding.evidence.get("ill_conditioned") for finding in result.findings)
