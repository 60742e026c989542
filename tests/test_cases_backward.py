"""Open cases of losses, gradients and updates, each with its right answer: alone, and under benign noise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from align.records import Kind, Origin, Phase, Severity, Verdict
from tests.running import BENIGN, CASES, capture_all
from tests.said import compared, first_finding

FP32, BF16 = "fp32", "bf16"


@dataclass(frozen=True)
class Answer:
    """Where the runs part, what the first finding must be called, and the precisions in which the case is run."""

    step: int
    phase: Phase
    name: str
    slot: str
    kind: Kind
    origin: Origin
    label: str
    precisions: tuple[str, ...] = (FP32,)


def value(phase: Phase, name: str, slot: str, origin: Origin, label: str, *precisions: str) -> Answer:
    return Answer(0, phase, name, slot, Kind.VALUE, origin, label, (FP32, *precisions))


def update(name: str, label: str, step: int = 0) -> Answer:
    return Answer(step, Phase.PARAM, name, "weight", Kind.EQUALITY, Origin.OPTIMIZER, label)


ANSWERS = {
    "residual_twice": value(Phase.FORWARD, "layers.0", "output.0", Origin.FUNCTIONAL, "origin-functional", BF16),
    "residual_gradient_twice": value(Phase.BACKWARD, "layers.3.mix", "grad_input.0", Origin.MODULE, "gradient-doubled"),
    "half_norm_gradient": value(Phase.GRADIENT, "norm", "weight", Origin.MODULE, "backward-operator-differs", BF16),
    "backward_gain": value(Phase.BACKWARD, "layers.7.act", "grad_input.0", Origin.MODULE, "backward-operator-differs"),
    "undivided_loss": value(Phase.LOSS, "loss", "value", Origin.LOSS, "loss-normalization", BF16),
    "sample_weighted_micros": value(Phase.LOSS, "loss", "value", Origin.LOSS, "loss-normalization"),
    "unscale_after_growth": Answer(
        3, Phase.UPDATE, "hidden", "weight", Kind.VALUE, Origin.OPTIMIZER, "gradient-scaled"
    ),
    "optimizer_not_loaded": update("hidden", "optimizer-state-differs"),
    "scheduler_world_size": update("hidden", "learning-rate-differs", 1),
    "norm_decay_group": update("norm", "weight-decay-groups"),
}
LONG = ("unscale_after_growth", "scheduler_world_size")
"""What they are told by is their whole course: the loss scale and the learning rate of later steps."""
RUNS = [(name, precision) for name, answer in ANSWERS.items() for precision in answer.precisions]


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every case good and bad on the CPU, and on the simulated NPU with its benign noise."""
    folder = tmp_path_factory.mktemp("cases")

    def runs(device: str) -> list[tuple[Path, list[str | Path]]]:
        found = []
        for name, precision in RUNS:
            precisions = ["--precision", precision] if BF16 in ANSWERS[name].precisions else []
            for variant in ("good", "bad"):
                script = [CASES / f"{name}.py", "--variant", variant, "--device", device, *precisions]
                file = folder / f"{name}.{variant}.{precision}.{device}.h5"
                steps = "10" if name in LONG else "3"
                found.append((file, ["--steps", f"0:{ANSWERS[name].step + 1}", *script, "--steps", steps]))
        return found

    capture_all("cpu", runs("cpu"))
    capture_all("npu", runs("npu"), BENIGN)
    return folder


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize(("name", "precision"), RUNS)
def test_the_fault_is_named(captures: Path, name: str, precision: str, device: str) -> None:
    result = compared(captures, name, precision, f"bad.{precision}.{device}")
    answer = ANSWERS[name]
    first, finding = result.first_divergence, result.findings[0]
    assert result.verdict is Verdict.DIVERGED
    assert first is not None
    found = Answer(
        first.step, first.phase, first.name, first.slot, first.kind, first.origin, finding.label, answer.precisions
    )
    assert found == answer
    assert finding.severity is Severity.ERROR
    assert finding.advice


@pytest.mark.parametrize(("name", "precision"), RUNS)
def test_the_good_variant_on_the_other_device_is_aligned(captures: Path, name: str, precision: str) -> None:
    result = compared(captures, name, precision, f"good.{precision}.npu")
    assert result.verdict is Verdict.ALIGNED, result.summary
    assert [finding.label for finding in result.findings] == ["within-noise"]


@pytest.mark.parametrize("precision", [FP32, BF16])
def test_a_residual_that_is_added_twice_is_found_as_such(captures: Path, precision: str) -> None:
    finding = first_finding(captures, "residual_twice", precision)
    assert finding.summary.endswith(
        "Its inputs and children agree: the code of layers.0 after layers.0.down is the cause. It is the reference's "
        "with its own input.0 added once more: a residual is counted twice."
    )
    assert finding.advice == (
        "See which operators of layers.0 add layers.0 input.0 themselves (kernels that are fused with a residual do), "
        "and let one place alone add it. To see its values, run `align capture --detail tensors --modules 'layers.0'` "
        "on both sides, then `align show RUN.h5 'layers.0'`."
    )
    assert finding.evidence["difference_is"]["factor"] == 1.0
    assert finding.evidence["difference_is"]["of"] == "step 0, forward: layers.0 input.0"


def test_the_gradient_of_a_residual_that_is_added_twice_grows_with_the_layers(captures: Path) -> None:
    summary = first_finding(captures, "residual_gradient_twice").summary
    assert "It is the reference's with its own grad_output.0 added once more: the gradient of a residual is" in summary
    assert summary.endswith(
        "It grows from layer to layer: the gradient of layers.3.mix has 1.38 times the norm of the reference's, that "
        "of layers.1.mix 3.34 times."
    )


def test_the_gain_of_a_layer_is_told(captures: Path) -> None:
    assert first_finding(captures, "backward_gain").summary.endswith(
        "1.08 times the reference. The gradient of its output agrees, and so do its class (Silu) and settings: its "
        "backward gives another result on npu than on cpu. The factor grows by 1.08 with each of 8 layers towards the "
        "input: the gradient of layers.7.act has 1.08 times the norm of the reference's, that of layers.0.act 1.85 "
        "times."
    )


@pytest.mark.parametrize("precision", [FP32, BF16])
def test_only_the_parameters_of_the_norm_have_wrong_gradients(captures: Path, precision: str) -> None:
    assert first_finding(captures, "half_norm_gradient", precision).summary.endswith(
        "Forward agrees, and so does the gradient of its input: the part of the backward of norm (Norm) that makes "
        "the gradient of weight and bias gives another result on npu than on cpu."
    )


@pytest.mark.parametrize("precision", [FP32, BF16])
def test_the_missing_division_is_told_with_both_factors(captures: Path, precision: str) -> None:
    assert first_finding(captures, "undivided_loss", precision).summary.endswith(
        "It is 4 times the reference's (accumulation steps), and so are the gradients of the outputs, which agree: the "
        "same loss, averaged otherwise. The reference multiplies it by 0.25 at the end, the candidate does not "
        "multiply it."
    )


def test_the_weights_of_micro_batches_are_told_with_their_targets(captures: Path) -> None:
    assert first_finding(captures, "sample_weighted_micros").summary == (
        "Step 0, loss: the loss is the first value that differs: 0.7766 in the reference and 0.4390 in the candidate. "
        "The micro-batches have other weights: their losses are 0.5652, 2.6 and 1.182 times the reference's (micro 0, "
        "1 and 2), and so are the gradients of the outputs, which agree. 23, 5 and 11 of their targets count: the "
        "reference weights each micro-batch by the targets that count in it, the candidate does not."
    )


def test_a_scale_that_moves_too_early_is_told(captures: Path) -> None:
    result = compared(captures, "unscale_after_growth", FP32, "bad.fp32.npu")
    assert result.findings[0].summary == (
        "Step 3, update: the gradients that the optimizer takes are 0.5 times those of the reference (4 of 4 "
        "parameters; first hidden weight). Those after backward agree. The loss scale is 1,024 (2^10) in step 3 and "
        "2,048 (2^11) in the next: the candidate divides by that of the next. In steps 0-2, where the scale stays, "
        "they agree."
    )
    assert {finding.explained_by for finding in result.findings[1:]} <= {"AL502"}


def test_the_pace_of_the_schedule_is_told(captures: Path) -> None:
    assert first_finding(captures, "scheduler_world_size").summary == (
        "The learning rate of step 1 is 0.145312 in the reference and 0.13125 in the candidate. All gradients agree; "
        "the parameters part here. The rate of step n of the candidate is that of step 4 n of the reference (in 3 "
        "steps): its scheduler is advanced 4 times for each step of the other's."
    )


def test_the_parameter_in_another_group_is_named(captures: Path) -> None:
    finding = first_finding(captures, "norm_decay_group")
    assert finding.summary == (
        "Step 0: the weight decay of norm weight is 0 in the reference and 0.1 in the candidate; that of the other 2 "
        "parameters agrees. All gradients of the step agree: the runs part in the optimizer."
    )
    assert (finding.where.phase, finding.where.name, finding.where.slot) == ("optimizer", "norm", "weight")


def test_the_states_that_were_not_loaded_are_named(captures: Path) -> None:
    assert first_finding(captures, "optimizer_not_loaded").summary == (
        "The optimizer of the reference begins step 0 with the state of earlier steps, that of the candidate without: "
        "8 states (hidden weight.exp_avg, hidden weight.exp_avg_sq, hidden bias.exp_avg and 5 more) are in the "
        "reference only. All gradients of the step agree: the runs part in the optimizer."
    )
