"""Open cases of forward passes, each with its right answer: alone, and under a device's benign noise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from align.records import Kind, Origin, Phase, Severity, Verdict
from tests.running import BENIGN, CASES, capture_all, diff
from tests.said import compared, first_finding, told

FP32, BF16 = "fp32", "bf16"
MODULE, FUNCTIONAL = Origin.MODULE, Origin.FUNCTIONAL
WITH_VALUES = "head_size_tail"


@dataclass(frozen=True)
class Answer:
    """Where the runs part, what the first finding must be called, and the precisions in which the case is run."""

    step: int
    phase: Phase
    name: str
    slot: str
    origin: Origin
    label: str
    precisions: tuple[str, ...] = (FP32,)


def forward(name: str, label: str, *precisions: str, origin: Origin = MODULE, step: int = 0) -> Answer:
    return Answer(step, Phase.FORWARD, name, "output.0", origin, label, (FP32, *precisions))


ANSWERS = {
    "gelu_operator": forward("blocks.0.act", "operator-differs", BF16),
    "gelu_tanh": forward("blocks.0.act", "module-config-differs"),
    "norm_weight_offset": forward("layers.0.input_norm", "module-config-differs"),
    "indexer_scale": forward("indexer.weights", "structure-differs"),
    "rope_norm": forward("attn.rope", "operator-differs", BF16),
    "head_size_tail": forward("attn", "operator-differs", BF16),
    "fused_softmax": forward("attn.softmax", "operator-differs", BF16),
    "fused_dropout_rate": forward("attn", "train-eval-mode", step=3),
    "packed_positions": forward("layers.0.attn", "origin-functional", BF16, origin=FUNCTIONAL),
    "overwritten_gradient": Answer(
        0, Phase.GRADIENT, "post_attention_layernorm", "weight", MODULE, "isolated-corruption", (FP32, BF16)
    ),
    "strided_kernel": forward("attn.scale", "layout-differs"),
}
SETTINGS = {"shortened_products": "precision-mode-differs", "parallel_settings": "environment-differs"}
"""Cases in which nothing is wrong but the settings."""

REPEATED = "scatter_order"
RUNS = [
    *((name, precision) for name, answer in ANSWERS.items() for precision in answer.precisions),
    *((name, FP32) for name in (*SETTINGS, REPEATED)),
]


def command(
    folder: Path, name: str, variant: str, precision: str, device: str, *more: str
) -> tuple[Path, list[str | Path]]:
    """The file and the arguments of one capture; `more` tells repeats and captures with values apart."""
    file = folder / ".".join((name, variant, precision, device, *more, "h5"))
    step = ANSWERS[name].step if name in ANSWERS else 0
    options = ["--steps", f"0:{step + 1}", *(["--detail", "tensors"] if "values" in more else [])]
    script: list[str | Path] = [
        CASES / f"{name}.py",
        "--variant",
        variant,
        "--precision",
        precision,
        "--device",
        device,
    ]
    return file, [*options, *script, "--steps", str(step + 1)]


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every case good and bad on the CPU, and on the simulated NPU with its benign noise."""
    folder = tmp_path_factory.mktemp("cases")
    variants = ("good", "bad")
    cpu = [command(folder, name, variant, precision, "cpu") for name, precision in RUNS for variant in variants]
    cpu += [command(folder, REPEATED, variant, FP32, "cpu", "again") for variant in variants]
    cpu += [command(folder, WITH_VALUES, variant, FP32, "cpu", "values") for variant in variants]
    capture_all("cpu", cpu)
    npu = [command(folder, name, variant, precision, "npu") for name, precision in RUNS for variant in variants]
    capture_all("npu", npu, BENIGN)
    faults = [{"op": "gelu", "module": "blocks.0.act", "action": "scale", "value": 1.05}]
    capture_all("npu", [command(folder, "gelu_tanh", "good", FP32, "npu", "fault")], {**BENIGN, "faults": faults})
    return folder


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize(("name", "precision"), [run for run in RUNS if run[0] in ANSWERS])
def test_the_fault_is_named(captures: Path, name: str, precision: str, device: str) -> None:
    result = compared(captures, name, precision, f"bad.{precision}.{device}")
    answer = ANSWERS[name]
    first, finding = result.first_divergence, result.findings[0]
    assert result.verdict is Verdict.DIVERGED
    assert first is not None
    assert (first.step, first.phase, first.name, first.slot) == (answer.step, answer.phase, answer.name, answer.slot)
    assert (first.kind, first.origin, finding.label, finding.severity) == (
        Kind.VALUE,
        answer.origin,
        answer.label,
        Severity.ERROR,
    )
    assert finding.advice


@pytest.mark.parametrize(("name", "precision"), RUNS)
def test_the_good_variant_on_the_other_device_is_aligned(captures: Path, name: str, precision: str) -> None:
    result = compared(captures, name, precision, f"good.{precision}.npu")
    assert result.verdict is Verdict.ALIGNED, result.summary
    assert [finding.label for finding in result.findings] == ["within-noise"]


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_part_nothing_are_a_note(captures: Path, name: str, device: str) -> None:
    result = compared(captures, name, "fp32", f"bad.fp32.{device}")
    assert result.verdict is Verdict.ALIGNED, result.summary
    assert told(result) == [
        (SETTINGS[name], Severity.NOTE),
        ("within-noise", Severity.NOTE),
    ]


def test_shortened_operands_are_first_seen_in_the_first_product(captures: Path) -> None:
    note = first_finding(captures, "shortened_products")
    assert (note.where.step, note.where.phase, note.where.name) == (0, "forward", "fc1")
    assert note.summary == (
        "The runs compute in different precision: matrix products fp32 against HF32 (reference against candidate). It "
        "is first seen in step 0, forward, at fc1 output.0: relative L2 2.7e-4, as such operands leave it."
    )


def test_parallel_wrappers_are_told(captures: Path) -> None:
    note = first_finding(captures, "parallel_settings")
    assert note.summary == (
        "The runs were not made comparable alike: the model runs in DistributedDataParallel in the reference and in no "
        "parallel wrapper in the candidate."
    )


def test_a_repeat_names_the_operator_that_adds_in_any_order(captures: Path) -> None:
    bad, again = (captures / f"{REPEATED}.bad.fp32.cpu.{end}" for end in ("h5", "again.h5"))
    result = diff(bad, again)
    note = result.findings[0]
    assert result.verdict is Verdict.ALIGNED
    assert (note.label, note.severity) == ("nondeterministic", Severity.NOTE)
    assert (note.where.step, note.where.phase, note.where.name) == (0, "forward", "sample")
    assert note.summary.endswith(
        "An operator in sample sums in another order each time, although deterministic algorithms are on."
    )


def test_a_repeat_with_equal_bits_is_no_finding(captures: Path) -> None:
    good, again = (captures / f"{REPEATED}.good.fp32.cpu.{end}" for end in ("h5", "again.h5"))
    assert [finding.label for finding in diff(good, again).findings] == ["within-noise"]


def test_a_faulty_operator_of_torch_on_the_device_is_named(captures: Path) -> None:
    finding = compared(captures, "gelu_tanh", "fp32", "good.fp32.npu.fault").findings[0]
    assert (finding.label, finding.where.name) == ("operator-differs", "blocks.0.act")
    assert finding.summary.endswith(
        "1.05 times the reference. The class (GELU), settings, parameters and inputs of blocks.0.act agree, so the "
        "operator behind it gives another result on npu than on cpu."
    )


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("rope_norm",
         "It keeps the length of input.0 in the reference; in the candidate it makes it 1.0015 times as long."),
        ("head_size_tail", "Only columns 16 to 19 of 20, the last, differ beyond rounding; the others agree."),
        ("fused_softmax",
         "54 of its 288 elements are zero in the reference and 134 in the candidate: other elements are masked."),
        ("indexer_scale", "The candidate's is 8 times the reference."),
        ("packed_positions", "Of its 144 elements 101 are true in the reference and 66 in the candidate."),
    ],
)  # fmt: skip
def test_what_is_broken_is_told(captures: Path, name: str, sentence: str) -> None:
    assert first_finding(captures, name).summary.endswith(sentence)


def test_the_wrong_columns_are_told_from_values_too(captures: Path) -> None:
    good, bad = (captures / f"{WITH_VALUES}.{variant}.fp32.cpu.values.h5" for variant in ("good", "bad"))
    finding = diff(good, bad).findings[0]
    assert finding.evidence["wrong_slice"] == {"dimension": 2, "start": 16, "stop": 20}


def test_a_rate_that_was_not_set_back_is_told(captures: Path) -> None:
    finding = first_finding(captures, "fused_dropout_rate")
    assert finding.summary.startswith(
        "In step 3 attn drops nothing in the candidate, as in evaluation mode: its attention_dropout is 0.2 in the "
        "reference and 0 in the candidate, and was changed since the capture began. Step 3, forward: attn output.0 is "
        "the first tensor that differs (relative L2 "
    )
    assert finding.advice == (
        "Look for code that sets attention_dropout of attn for an evaluation and does not set it back; let it follow "
        "the training mode of the module (`self.training`) in both runs."
    )


def test_both_layouts_are_told(captures: Path) -> None:
    finding = first_finding(captures, "strided_kernel")
    assert finding.summary.startswith(
        "input.0 of attn.scale has equal values in both runs and lies in memory row-major in the reference and strided "
        "in the candidate. Step 0, forward: attn.scale output.0 is the first tensor that differs (relative L2 "
    )
