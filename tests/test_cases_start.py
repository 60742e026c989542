"""Cases in which the runs do not start alike: other seeds, data, weights; each named by one command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from align.records import Health, Kind, Origin, Phase, Severity, Verdict
from tests.running import BENIGN, CASES, WORKLOADS, capture_all, diff
from tests.said import inspected


@dataclass(frozen=True)
class Answer:
    """Where the runs part, what the findings of severity error are called, and those that a first one explains."""

    step: int
    phase: Phase
    name: str
    slot: str
    label: str
    explained: tuple[str, ...] = ()
    kind: Kind = Kind.EQUALITY
    origin: Origin = Origin.INPUT


def weights(name: str, slot: str, label: str, *explained: str) -> Answer:
    """An answer about initial weights."""
    return Answer(-1, Phase.INIT, name, slot, label, explained, origin=Origin.WEIGHTS)


ANSWERS = {
    "epoch_order": Answer(4, Phase.INPUT, "x", "value", "data-order"),
    "peeked_batch": Answer(0, Phase.INPUT, "x", "value", "data-shifted"),
    "worker_duplicates": Answer(1, Phase.INPUT, "x", "value", "duplicate-samples"),
    "double_shift": Answer(0, Phase.LOSS, "loss", "target", "labels-differ"),
    "collated_positions": Answer(0, Phase.INPUT, "positions", "value", "data-differs"),
    "prefix_strict_false": weights("embed", "weight", "checkpoint-keys", "checkpoint-not-loaded"),
    "renamed_layer": weights("mix", "weight", "checkpoint-keys", "checkpoint-partially-loaded"),
    "qkv_restacked": weights("attn.qkv", "weight", "weight-permuted"),
    "swiglu_bias_merge": weights("mlp.up", "bias", "weight-permuted"),
    "tied_head": weights("head", "weight", "tied-weight-broken"),
    "rope_bf16": weights("rope", "inv_freq", "buffer-differs"),
}
EXTRA_DRAW = "extra_draw"
OPTIONS = {"epoch_order": ["--steps", "0:12"], "qkv_restacked": ["--keep", "init"]}


def steps(name: str) -> list[str]:
    """Of runs that part before the first step one step is enough."""
    return ["--steps", "1"] if name in ANSWERS and ANSWERS[name].step < 0 else []


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every case good and bad on the CPU and on the simulated NPU with its benign noise; two seeds of a workload."""
    folder = tmp_path_factory.mktemp("start")

    def runs(device: str) -> list[tuple[Path, list[str | Path]]]:
        return [
            (
                folder / f"{name}.{variant}.{device}.h5",
                [*OPTIONS.get(name, ()), CASES / f"{name}.py", "--variant", variant, "--device", device, *steps(name)],
            )
            for name in (*ANSWERS, EXTRA_DRAW)
            for variant in ("good", "bad")
        ]

    seeds: list[tuple[Path, list[str | Path]]] = [
        (
            folder / f"seed{seed}.h5",
            [WORKLOADS / "digits_cnn.py", "--device", "cpu", "--steps", "3", "--dropout", "0.1", "--seed", str(seed)],
        )
        for seed in (0, 1)
    ]
    capture_all("cpu", [*runs("cpu"), *seeds])
    capture_all("npu", runs("npu"), BENIGN)
    return folder


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("name", ANSWERS)
def test_the_fault_is_named(captures: Path, name: str, device: str) -> None:
    result = diff(captures / f"{name}.good.cpu.h5", captures / f"{name}.bad.{device}.h5")
    first = result.first_divergence
    assert result.verdict is Verdict.DIVERGED
    assert first is not None
    errors = [finding for finding in result.findings if finding.severity is Severity.ERROR]
    explained = tuple(finding.label for finding in errors[1:] if finding.explained_by == errors[0].code)
    assert len(errors) == 1 + len(explained)
    found = Answer(
        first.step, first.phase, first.name, first.slot, errors[0].label, explained, first.kind, first.origin
    )
    assert found == ANSWERS[name]


@pytest.mark.parametrize("name", [*ANSWERS, EXTRA_DRAW])
def test_the_good_variant_on_the_other_device_is_aligned(captures: Path, name: str) -> None:
    result = diff(captures / f"{name}.good.cpu.h5", captures / f"{name}.good.npu.h5")
    assert result.verdict is Verdict.ALIGNED, result.summary
    assert [finding.label for finding in result.findings] == ["within-noise"]


def test_an_extra_draw_is_told_between_runs_on_one_kind_of_device(captures: Path) -> None:
    result = diff(captures / f"{EXTRA_DRAW}.good.cpu.h5", captures / f"{EXTRA_DRAW}.bad.cpu.h5")
    assert [finding.label for finding in result.findings] == ["rng-mismatch", "dropout-mask-differs", "origin-module"]
    assert result.summary == (
        "The seeds agree, but the generator of torch (CPU) differs as step 0 begins: before step 0 one run draws "
        "numbers that the other does not. Step 0, forward: drop then drops other elements. No module is to blame."
    )


def test_between_devices_only_the_masks_are_told(captures: Path) -> None:
    result = diff(captures / f"{EXTRA_DRAW}.good.cpu.h5", captures / f"{EXTRA_DRAW}.bad.npu.h5")
    assert [finding.label for finding in result.findings] == ["dropout-mask-differs", "origin-module"]


def test_another_seed_is_one_finding_with_its_consequences(captures: Path) -> None:
    result = diff(captures / "seed0.h5", captures / "seed1.h5")
    assert [(finding.label, finding.explained_by) for finding in result.findings] == [
        ("seed-mismatch", ""),
        ("initial-weights-differ", "AL201"),
        ("data-order", "AL201"),
    ]
    assert result.summary == (
        "The runs draw different random numbers (the initial weights look like two draws of one distribution and the "
        "torch seed is 0 and 1); no module can be blamed before the seeds agree."
    )
    for option in ("--seed 1", "--keep init,batches", "--init-from REF.h5 --batches-from REF.h5"):
        assert option in result.findings[0].advice


def test_rows_that_were_stacked_otherwise_are_told_with_their_order(captures: Path) -> None:
    """The values were kept."""
    summary = diff(captures / "qkv_restacked.good.cpu.h5", captures / "qkv_restacked.bad.cpu.h5").summary
    assert summary == (
        "Initial weights hold the values of the reference in another order: 2 of 6 initial tensors (attn.qkv.weight "
        "and attn.qkv.bias). In the candidate attn.qkv.weight and attn.qkv.bias are the rows of the reference, split "
        "into 3 x 4 x 8, with the 3 and the 4 exchanged. No module was judged."
    )


def test_labels_that_were_shifted_twice_are_told_so(captures: Path) -> None:
    summary = diff(captures / "double_shift.good.cpu.h5", captures / "double_shift.bad.cpu.h5").summary
    assert summary == (
        "Step 0, loss: the logits agree, the targets handed to the loss differ: they are shifted by one place along "
        "the sequence (the candidate's are those that stand one place later in the reference, 40 of 40 agree). No "
        "module is to blame."
    )


@pytest.mark.parametrize(
    ("name", "label", "severity", "summary"),
    [
        (
            "epoch_order",
            "data-order-repeated",
            Severity.WARNING,
            (
                "From step 4 on the batches of the epoch before come again in the same order: 8 of 12 captured "
                "batches, each 4 batches after it came first, although the loader shuffles."
            ),
        ),
        (
            "worker_duplicates",
            "duplicate-samples",
            Severity.WARNING,
            (
                "Each of the 2 workers of the DataLoader gives the same batches: 1 of 3 captured batches is a copy of "
                "the one before."
            ),
        ),
        (
            "prefix_strict_false",
            "checkpoint-keys",
            Severity.ERROR,
            (
                "Nothing of the checkpoint was loaded, since no key fits: load_state_dict of Network was given 6 "
                "keys, knows none of them (such as '_orig_mod.embed.weight') and misses 6 of its own (such as "
                "'embed.weight'); without '_orig_mod.' 6 of them would fit."
            ),
        ),
        (
            "renamed_layer",
            "checkpoint-keys",
            Severity.NOTE,
            (
                "The checkpoint did not fill 2 parameters and buffers: load_state_dict of Network was given 6 keys, "
                "does not know 2 of them (such as 'mixing.weight') and misses 2 of its own (such as 'mix.weight')."
            ),
        ),
    ],
)
def test_one_run_alone_tells_it(captures: Path, name: str, label: str, severity: Severity, summary: str) -> None:
    finding = inspected(captures / f"{name}.bad.cpu.h5").findings[0]
    assert (finding.label, finding.severity, finding.summary) == (label, severity, summary)


@pytest.mark.parametrize("name", [*ANSWERS, EXTRA_DRAW])
def test_one_healthy_run_is_not_accused(captures: Path, name: str) -> None:
    result = inspected(captures / f"{name}.good.npu.h5")
    assert (result.verdict, result.findings) == (Health.HEALTHY, ())
