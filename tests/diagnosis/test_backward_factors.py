"""AL502, AL503: gradients that are a number times the reference's, all of them or one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from align import sketch
from align.capture_file import open_capture
from align.gradient_factors import scaled
from align.records import DiffResult, Phase, RunInfo, Severity
from tests.builders import Array, diff_files, record_of
from tests.numpy_run import Fault, Model, Setup, make, times
from tests.said import told

PARAMETERS = tuple(Model(Setup()).parameters)
DOUBLED = [("gradient-doubled", Severity.ERROR)]
SCALED = [("gradient-scaled", Severity.ERROR)]
FUNCTIONAL = [("origin-functional", Severity.ERROR)]
MODULE = [("origin-module", Severity.ERROR)]


def all_gradients(factor: float, *but: str) -> dict[tuple[int, str], Fault]:
    return {(0, f"gradient {name}"): times(factor) for name in PARAMETERS if name not in but}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("reference") / "a.h5", steps=1)


def diff(reference: Path, folder: Path, faults: Mapping[tuple[int, str], Fault], pieces: int = 3) -> DiffResult:
    return diff_files(reference, make(folder / "b.h5", steps=1, pieces=pieces, faults=faults))


def test_all_gradients_twice_are_doubled(reference: Path, tmp_path: Path) -> None:
    result = diff(reference, tmp_path, all_gradients(2.0))
    assert told(result) == DOUBLED
    assert result.summary == (
        "Step 0, gradient: the gradients are twice those of the reference, though the gradients of activations agree "
        "(32 of 34 parameters; first weight of head)."
    )
    first = result.first_divergence
    assert first is not None
    assert (first.phase, first.name, first.slot) == (Phase.GRADIENT, "head", "weight")


def test_one_gradient_twice_is_named(reference: Path, tmp_path: Path) -> None:
    result = diff(reference, tmp_path, {(0, "gradient blocks.0.mlp.fc.weight"): times(2.0)})
    assert told(result) == DOUBLED
    assert result.summary == (
        "Step 0, gradient: the gradient of weight of blocks.0.mlp.fc is twice the reference's, though the gradients of "
        "activations agree."
    )


@pytest.mark.parametrize("factor", [1.97, 2.1, 0.5, 1.5])
def test_one_gradient_times_another_number_is_not_doubled(reference: Path, tmp_path: Path, factor: float) -> None:
    result = diff(reference, tmp_path, {(0, "gradient blocks.0.mlp.fc.weight"): times(factor)})
    assert told(result) == MODULE


def test_gradients_that_are_twice_from_one_module_on(reference: Path, tmp_path: Path) -> None:
    result = diff(reference, tmp_path, {(0, "backward blocks.1.norm2"): times(2.0)})
    assert told(result) == DOUBLED
    assert result.summary.startswith(
        "Forward agrees; step 0, backward: grad_input.0 of blocks.1.norm2 is the first gradient that differs: it is "
        "twice the reference's (relative L2 "
    )


def test_under_the_world_size_two_is_a_scale(tmp_path: Path) -> None:
    run = RunInfo(outcome="finished", world_size=2)
    reference = make(tmp_path / "a.h5", steps=1, run=run)
    result = diff_files(reference, make(tmp_path / "b.h5", steps=1, run=run, faults=all_gradients(2.0)))
    assert told(result) == SCALED
    assert result.summary == (
        "Step 0, gradient: the gradients are 2 times those of the reference (34 of 34 parameters; first head weight). "
        "The gradients of activations agree. That may be world size."
    )


@pytest.mark.parametrize(("factor", "number"), [(0.25, "0.25"), (3.0, "3"), (1.37, "1.37")])
def test_all_gradients_have_one_factor(reference: Path, tmp_path: Path, factor: float, number: str) -> None:
    result = diff(reference, tmp_path, all_gradients(factor))
    assert told(result) == SCALED
    assert result.summary == (
        f"Step 0, gradient: the gradients are {number} times those of the reference (32 of 34 parameters; first head "
        "weight). The gradients of activations agree."
    )
    assert result.findings[0].evidence["factor"] == pytest.approx(factor, rel=1e-5)


def test_gradients_of_several_factors_have_none(reference: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    faults = {
        (0, f"gradient {name}"): times(factor)
        for name, factor in zip(PARAMETERS, random.uniform(2, 4, 34), strict=True)
    }
    assert told(diff(reference, tmp_path, faults))[0] == MODULE[0]


def test_half_of_the_gradients_have_no_factor_in_common(reference: Path, tmp_path: Path) -> None:
    result = diff(reference, tmp_path, all_gradients(3.0, *PARAMETERS[: len(PARAMETERS) // 2]))
    assert told(result)[0] not in (SCALED[0], DOUBLED[0])


def test_the_gradient_of_a_loss_that_agrees_is_scaled(reference: Path, tmp_path: Path) -> None:
    result = diff(reference, tmp_path, {(0, "backward loss"): times(1.5)})
    assert told(result) == SCALED
    assert result.summary == (
        "Step 0, backward: the gradients are 1.5 times those of the reference (32 of 34 parameters; first <Net> "
        "grad_output.0). The loss agrees."
    )


def test_the_gradient_of_a_loss_that_is_another_is_not_scaled(reference: Path, tmp_path: Path) -> None:
    def fault(array: Array) -> Array:
        return array * np.linspace(1.0, 2.0, array.shape[-1], dtype=np.float32)

    assert told(diff(reference, tmp_path, {(0, "backward loss"): fault})) == FUNCTIONAL


def test_the_gradients_that_the_optimizer_takes_are_scaled(reference: Path, tmp_path: Path) -> None:
    result = diff(reference, tmp_path, {(0, "update"): times(1.5)})
    assert told(result) == SCALED
    assert result.summary == (
        "Step 0, update: the gradients that the optimizer takes are 1.5 times those of the reference (32 of 34 "
        "parameters; first head weight). Those after backward agree."
    )


def test_a_loss_scale_that_is_not_undone_is_told(tmp_path: Path) -> None:
    reference = make(tmp_path / "a.h5", steps=1, loss_scale=1024.0)
    result = diff_files(
        reference, make(tmp_path / "b.h5", steps=1, loss_scale=1024.0, faults={(0, "update"): times(1024.0)})
    )
    assert told(result) == SCALED
    assert result.summary.endswith(" That is the loss scale: one run does not undo it.")


def test_clipping_of_one_run_is_told(tmp_path: Path) -> None:
    reference = clipped(make(tmp_path / "a.h5", steps=1), tmp_path / "c.h5", 4.0)
    candidate = clipped(make(tmp_path / "b.h5", steps=1, faults={(0, "update"): times(0.5)}), tmp_path / "d.h5", 1.0)
    result = diff_files(reference, candidate)
    assert told(result) == SCALED
    assert result.summary.endswith(
        " Clipping makes it: the norm is clipped not at all in the reference, from 2.000 to 1.000 in the candidate."
    )


def clipped(path: Path, other: Path, limit: float) -> Path:
    """The same capture, whose timeline tells that a norm of 2 was clipped to a limit."""
    from tests.builders import write_capture

    with open_capture(path) as capture:
        return write_capture(
            other,
            {step: capture.records(step) for step in (-1, 0)},
            modules=list(capture.modules.values()),
            run=capture.run,
            timeline=[replace(row, clip_norm=2.0, clip_limit=limit) for row in capture.timeline],
        )


@pytest.mark.parametrize("scale", [1.0, 0.5, 1024.0])
def test_a_record_times_a_number_is_that_of_the_tensor_times_it(scale: float) -> None:
    from align.records import TensorKey

    array = np.random.default_rng(1).normal(size=(7, 41)).astype(np.float32)
    key = TensorKey(0, Phase.GRADIENT, "fc", "weight")
    ours, theirs = scaled(record_of(key, array), scale), record_of(key, array * np.float32(scale))
    assert ours.stats is not None
    assert theirs.stats is not None
    assert ours.stats.norm == pytest.approx(theirs.stats.norm)
    assert ours.stats.maximum == pytest.approx(theirs.stats.maximum)
    left, right = sketch.sketch_of(ours), sketch.sketch_of(theirs)
    assert left is not None
    assert right is not None
    assert np.allclose(left.values, right.values, rtol=1e-6)
