"""The open cases, each with its right answer: alone, and under a device's benign noise in fp32 and bf16."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from align.records import Kind, Origin, Phase, Severity, Verdict
from tests.running import BENIGN, CASES, capture_all
from tests.said import compared, told

PRECISIONS = ("fp32", "bf16")


@dataclass(frozen=True)
class Answer:
    """Where the runs part and what the first finding must be called."""

    step: int
    phase: Phase
    name: str
    slot: str
    kind: Kind
    origin: Origin
    label: str


ANSWERS = {
    "where_sqrt": Answer(0, Phase.BACKWARD, "dist", "grad_input.0", Kind.NONFINITE, Origin.MODULE, "nan-origin"),
    "key_norm_eps": Answer(
        0, Phase.FORWARD, "attn.k_norm", "output.0", Kind.VALUE, Origin.MODULE, "module-config-differs"
    ),
    "packed_mask": Answer(0, Phase.FORWARD, "blocks.0.fa", "output.0", Kind.VALUE, Origin.MODULE, "operator-differs"),
    "all_ignored": Answer(2, Phase.LOSS, "loss", "value", Kind.NONFINITE, Origin.LOSS, "nan-origin"),
    "double_shift": Answer(0, Phase.LOSS, "loss", "target", Kind.EQUALITY, Origin.INPUT, "labels-differ"),
}
BENIGN_CASE = "bf16_split"
NAMES = (*ANSWERS, BENIGN_CASE)


def command(name: str, variant: str, precision: str, device: str) -> list[str | Path]:
    """The arguments of one capture, of two steps or of all up to the fault."""
    steps = str(max(ANSWERS[name].step + 1 if name in ANSWERS else 0, 2))
    options = ["--variant", variant, "--precision", precision, "--device", device, "--steps", steps]
    return ["--steps", f"0:{steps}", CASES / f"{name}.py", *options]


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every case good and bad on the CPU, and on the simulated NPU with its benign noise."""
    folder = tmp_path_factory.mktemp("cases")

    def runs(device: str) -> list[tuple[Path, list[str | Path]]]:
        return [
            (folder / f"{name}.{variant}.{precision}.{device}.h5", command(name, variant, precision, device))
            for name in NAMES
            for variant in ("good", "bad")
            for precision in PRECISIONS
        ]

    capture_all("cpu", runs("cpu"))
    capture_all("npu", runs("npu"), BENIGN)
    return folder


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("name", ANSWERS)
def test_the_fault_is_named(captures: Path, name: str, device: str, precision: str) -> None:
    result = compared(captures, name, precision, f"bad.{precision}.{device}")
    answer = ANSWERS[name]
    first = result.first_divergence
    assert result.verdict is Verdict.DIVERGED
    assert first is not None
    found = Answer(first.step, first.phase, first.name, first.slot, first.kind, first.origin, result.findings[0].label)
    assert found == answer


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", NAMES)
def test_the_good_variant_on_the_other_device_is_aligned(captures: Path, name: str, precision: str) -> None:
    result = compared(captures, name, precision, f"good.{precision}.npu")
    assert result.verdict is Verdict.ALIGNED, result.summary


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_another_order_of_bf16_sums_is_within_noise(captures: Path, device: str, precision: str) -> None:
    result = compared(captures, BENIGN_CASE, precision, f"bad.{precision}.{device}")
    assert result.verdict is Verdict.ALIGNED, result.summary
    # The case sets the number of pieces in the module: a fact, and no cause.
    assert told(result) == [("module-config-differs", Severity.NOTE), ("within-noise", Severity.NOTE)]


def test_the_mask_of_another_shape_is_named_beside_the_operator(captures: Path) -> None:
    result = compared(captures, "packed_mask", "fp32", "bad.fp32.npu")
    labels = [finding.label for finding in result.findings]
    assert labels[:2] == ["operator-differs", "shape-differs"]
    assert result.findings[1].where.name == "blocks.0.fa"


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_the_epsilon_is_named_with_both_values(captures: Path, device: str) -> None:
    finding = compared(captures, "key_norm_eps", "bf16", f"bad.bf16.{device}").findings[0]
    assert finding.summary.startswith("attn.k_norm has eps 1e-05 in the reference and 1e-06 in the candidate. Step 0, ")
    assert finding.advice == "Build attn.k_norm with the same eps in both runs."
