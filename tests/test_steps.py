"""What counts as a step, and what is recorded in it, for the ways people train."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from align.capture_file import Capture, open_capture
from align.records import Phase, Verdict
from tests.running import BENIGN, STEPS, capture_all, diff

SCALES = [262144.0, 131072.0, 65536.0, 32768.0, 32768.0, 32768.0]


@dataclass(frozen=True)
class Expected:
    """A script, and for each of its steps whether it was skipped, its micro-steps and its optimizers."""

    script: str
    options: tuple[str, ...]
    skipped: tuple[bool, ...]
    micros: int
    optimizers: str
    parameters: int
    updates: int | None = None
    """Update records a step; as many as parameters unless said otherwise (None also for skipped steps)."""


NEVER = (False,) * 4
THREE = (True, True, True, False, False, False)
TABLE = {
    "skipped by the scaler": Expected("scaler_skip", (), THREE, 1, "AdamW", 4),
    "fused optimizer with a scaler": Expected("fused_scaler", (), THREE, 1, "AdamW", 4),
    "closure": Expected("lbfgs_closure", (), NEVER, 3, "LBFGS", 4, 12),
    "two optimizers for one loss": Expected("two_optimizers", (), NEVER, 1, "AdamW, SGD", 4),
    "optimizer inside backward": Expected("optimizer_in_backward", (), NEVER, 1, "AdamW", 4),
    "accumulation": Expected("accumulation", (), NEVER, 4, "AdamW", 4),
    "validation without grad": Expected("validation", (), NEVER, 1, "AdamW", 6),
    "validation in grad mode": Expected("validation", ("--grad",), NEVER, 1, "AdamW", 6),
    "children called directly": Expected("submodule_calls", (), NEVER, 1, "AdamW", 4),
    "teacher": Expected("teacher", (), NEVER, 1, "AdamW", 4),
    "weight sharing": Expected("weight_sharing", (), NEVER, 1, "AdamW", 3),
    "reentrant checkpointing": Expected("checkpointing", ("--reentrant",), NEVER, 1, "AdamW", 8),
    "checkpointing": Expected("checkpointing", (), NEVER, 1, "AdamW", 8),
}


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("steps")
    capture_all(
        "cpu",
        [
            (folder / f"{name}.h5", ["--steps", "0:", STEPS / f"{expected.script}.py", *expected.options])
            for name, expected in TABLE.items()
        ],
    )
    return folder


def opened(folder: Path, name: str) -> Capture:
    return open_capture(folder / f"{name}.h5")


def counts(capture: Capture, step: int) -> Counter[Phase]:
    return Counter(record.key.phase for record in capture.records(step))


@pytest.mark.parametrize("name", TABLE)
def test_steps_are_attempts_to_update(captures: Path, name: str) -> None:
    expected = TABLE[name]
    with opened(captures, name) as capture:
        rows = capture.timeline
        assert [row.step for row in rows] == list(range(len(expected.skipped)))
        assert tuple(row.skipped for row in rows) == expected.skipped
        assert {row.micros for row in rows} == {expected.micros}
        assert {row.optimizer for row in rows} == {expected.optimizers}
        assert capture.steps == [row.step for row in rows]
        assert capture.run.outcome == "finished"
        assert capture.run.notes == ()


@pytest.mark.parametrize("name", TABLE)
def test_every_parameter_is_followed_through_every_step(captures: Path, name: str) -> None:
    expected = TABLE[name]
    with opened(captures, name) as capture:
        for row in capture.timeline:
            found = counts(capture, row.step)
            assert found[Phase.GRADIENT] == expected.parameters * expected.micros
            assert found[Phase.PARAM] == expected.parameters
            unseen = row.skipped and expected.script == "scaler_skip"
            assert found[Phase.UPDATE] == (0 if unseen else expected.updates or expected.parameters)


@pytest.mark.parametrize("name", TABLE)
def test_only_training_forwards_are_kept(captures: Path, name: str) -> None:
    expected = TABLE[name]
    with opened(captures, name) as capture:
        seen = [
            Counter(
                (r.key.phase, r.key.name, r.key.slot)
                for r in capture.records(step)
                if r.key.phase not in {Phase.UPDATE, Phase.OPTIMIZER}
            )
            for step in capture.steps
        ]
        # Every step looks like the first, however much was validated in between.
        assert all(step == seen[0] for step in seen)
        losses = [r for r in capture.records(0) if r.key.phase is Phase.LOSS and r.key.slot == "value"]
        assert [record.key.micro for record in losses] == list(range(expected.micros))


def test_a_fused_optimizer_takes_unscaled_gradients(captures: Path) -> None:
    with opened(captures, "skipped by the scaler") as plain, opened(captures, "fused optimizer with a scaler") as fused:
        assert [row.loss_scale for row in plain.timeline] == SCALES
        assert [row.loss_scale for row in fused.timeline] == SCALES
        norms = [row.gradient_norm for row in plain.timeline[3:]]
        assert [row.gradient_norm for row in fused.timeline[3:]] == pytest.approx(norms, rel=1e-3)


def test_the_loss_is_recorded_before_its_scale(captures: Path) -> None:
    with opened(captures, "skipped by the scaler") as capture:
        assert capture.timeline[0].loss == pytest.approx(8.904, abs=1e-3)


def test_children_of_a_root_that_is_never_called_carry_its_names(captures: Path) -> None:
    with opened(captures, "children called directly") as capture:
        names = {record.key.name for record in capture.records(0) if record.key.phase is Phase.FORWARD}
        assert names == {"encoder", "encoder.0", "encoder.1", "head"}


def test_a_teacher_has_its_class_as_prefix_and_no_gradients(captures: Path) -> None:
    with opened(captures, "teacher") as capture:
        records = capture.records(0)
        forward = {record.key.name for record in records if record.key.phase is Phase.FORWARD}
        backward = {record.key.name for record in records if record.key.phase is Phase.BACKWARD}
        assert {"<Teacher>", "<Teacher>.fc1", "<Teacher>.fc2"} < forward
        assert backward == {"<Network>", "fc1", "fc2"}


def test_a_module_called_three_times_has_three_calls(captures: Path) -> None:
    with opened(captures, "weight sharing") as capture:
        calls = [r.key.call for r in capture.records(0) if (r.key.name, r.key.slot) == ("block", "output.0")]
        backward = [r.key.call for r in capture.records(0) if (r.key.name, r.key.slot) == ("block", "grad_output.0")]
        assert calls == [0, 1, 2]
        assert backward == [2, 1, 0]


def test_checkpointing_adds_nothing_but_what_was_computed_again(captures: Path) -> None:
    for name in ("reentrant checkpointing", "checkpointing"):
        with opened(captures, name) as capture:
            records = capture.records(0)
        blocks = [r for r in records if r.key.name == "blocks.1.0" and not r.recomputed]
        assert [
            (r.key.phase, r.key.slot, r.key.call) for r in blocks if r.key.phase in (Phase.FORWARD, Phase.BACKWARD)
        ] == [
            (Phase.FORWARD, "input.0", 0),
            (Phase.FORWARD, "output.0", 0),
            (Phase.BACKWARD, "grad_output.0", 0),
            (Phase.BACKWARD, "grad_input.0", 0),
        ]
        first = {(r.key.name, r.key.slot, r.key.call): r for r in records if r.key.phase is Phase.FORWARD}
        again = [r for r in records if r.recomputed]
        assert "blocks.1.0" in {r.key.name for r in again}
        for record in again:
            answer = first[record.key.name, record.key.slot.removesuffix(".recomputed"), record.key.call]
            assert record.sketch is not None
            assert answer.sketch is not None
            assert np.array_equal(record.sketch, answer.sketch), record.key
    result = diff(captures / "reentrant checkpointing.h5", captures / "checkpointing.h5")
    assert result.verdict is Verdict.ALIGNED


PROJECTIONS = ("q_proj", "k_proj", "v_proj")


@pytest.fixture(scope="module")
def wrong_backwards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run as it is, and one on the simulated NPU for each projection whose backward is wrong there."""
    folder = tmp_path_factory.mktemp("projections")
    script = STEPS / "shared_input.py"
    capture_all("cpu", [(folder / "good.h5", [script])])
    wrong: list[tuple[Path, list[str | Path]]] = [
        (folder / f"{module}.h5", [script, "--wrong-backward", module, "--device", "npu"]) for module in PROJECTIONS
    ]
    capture_all("npu", wrong, BENIGN)
    return folder


@pytest.mark.parametrize("module", PROJECTIONS)
def test_a_wrong_backward_of_one_of_three_projections_of_one_input_is_named(wrong_backwards: Path, module: str) -> None:
    result = diff(wrong_backwards / "good.h5", wrong_backwards / f"{module}.h5")
    first = result.first_divergence
    assert first is not None
    assert (first.step, first.phase, first.slot) == (0, Phase.BACKWARD, "grad_input.0")
    assert first.name.split(".")[-1] == module
    assert result.findings[0].label == "origin-module"
