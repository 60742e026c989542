"""A first difference that is a multiple of another tensor of the run: a residual twice, gradients not cleared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align.multiples import find_multiple
from align.records import Comparison, DiffResult, Phase, Severity, Status, TensorKey
from tests.builders import Array, diff_files, record_of
from tests.numpy_run import Fault, Model, Setup, make
from tests.said import told

PARAMETERS = tuple(Model(Setup()).parameters)


class Kept:
    """Keeps a tensor where it passes and adds a multiple of it where another passes."""

    def __init__(self, factor: float = 1.0) -> None:
        self.array: Array | None = None
        self.factor = np.float32(factor)

    def keep(self, array: Array) -> Array:
        self.array = array.copy()
        return array

    def add(self, array: Array) -> Array:
        assert self.array is not None
        added: Array = array + self.factor * self.array
        return added


def diff(folder: Path, faults: Mapping[tuple[int, str], Fault], steps: int = 1, *, pieces: int = 3) -> DiffResult:
    reference = folder / "a.h5"
    make(reference, steps=steps)
    return diff_files(reference, make(folder / "b.h5", steps=steps, pieces=pieces, faults=faults))


def test_an_input_of_the_module_once_more_is_a_residual_twice(tmp_path: Path) -> None:
    kept = Kept()
    result = diff(tmp_path, {(0, "forward embed"): kept.keep, (0, "forward blocks.0"): kept.add})
    assert [finding.label for finding in result.findings] == ["origin-functional"]
    assert result.summary.endswith(
        " It is the reference's with its own input.0 added once more: a residual is counted twice."
    )
    assert "and let one place alone add it." in result.findings[0].advice


def test_a_residual_that_is_left_out_is_missing(tmp_path: Path) -> None:
    kept = Kept(-1.0)
    result = diff(tmp_path, {(0, "forward embed"): kept.keep, (0, "forward blocks.0"): kept.add})
    assert result.summary.endswith(
        " It is the reference's without its own input.0, which is not added: a residual is missing."
    )


def test_another_multiple_is_told_with_its_factor(tmp_path: Path) -> None:
    kept = Kept(0.3)
    result = diff(tmp_path, {(0, "forward embed"): kept.keep, (0, "forward blocks.0"): kept.add})
    assert result.summary.endswith(" The difference is 0.3 times its own input.0.")


def test_a_tensor_of_another_module_is_named(tmp_path: Path) -> None:
    kept = Kept()
    result = diff(tmp_path, {(0, "forward embed"): kept.keep, (0, "forward blocks.1.attn.o"): kept.add})
    assert [finding.label for finding in result.findings] == ["origin-module"]
    # Its values are not in the reference's output.
    assert result.summary.endswith(" It is the reference's with embed output.0 added once more.")


@pytest.mark.parametrize("factor", [1.5, 2.0, -1.0])
def test_a_factor_of_the_tensor_itself_is_no_multiple_of_another(tmp_path: Path, factor: float) -> None:
    result = diff(tmp_path, {(0, "forward blocks.0"): lambda array: array * np.float32(factor)})
    assert "The difference is" not in result.summary
    assert "once more" not in result.summary


def test_something_else_is_no_multiple(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    result = diff(tmp_path, {(0, "forward blocks.0"): lambda array: array + random.normal(0, 0.3, array.shape)})
    assert [finding.label for finding in result.findings] == ["origin-functional"]
    assert result.summary.endswith("the code of blocks.0 after blocks.0.mlp is the cause.")
    assert "difference_is" not in result.findings[0].evidence


def test_the_gradient_of_an_output_once_more_is_doubled(tmp_path: Path) -> None:
    kept = Kept()
    faults = {(0, "backward blocks.1.mlp.fc"): kept.keep, (0, "backward blocks.1.norm2"): kept.add}
    result = diff(tmp_path, faults)
    assert told(result) == [("gradient-doubled", Severity.ERROR)]
    assert result.summary.endswith(
        " It is the reference's with its own grad_output.0 added once more: the gradient of a residual is counted "
        "twice."
    )


def test_half_of_that_gradient_more_is_not_doubled(tmp_path: Path) -> None:
    kept = Kept(0.5)
    faults = {(0, "backward blocks.1.mlp.fc"): kept.keep, (0, "backward blocks.1.norm2"): kept.add}
    result = diff(tmp_path, faults)
    assert [finding.label for finding in result.findings] == ["origin-module"]
    assert result.summary.endswith(" The difference is 0.5 times its own grad_output.0.")


def test_gradients_that_were_not_cleared_are_told(tmp_path: Path) -> None:
    faults: dict[tuple[int, str], Fault] = {}
    for name in PARAMETERS:
        kept = Kept()
        faults |= {(0, f"gradient {name}"): kept.keep, (1, f"gradient {name}"): kept.add}
    result = diff(tmp_path, faults, steps=2, pieces=1)
    assert result.findings[0].label == "origin-module"
    assert result.summary.endswith(
        " The difference is the gradient of step 0 (after backward). It was not cleared before the next backward."
    )
    assert result.findings[0].advice == (
        "Call optimizer.zero_grad before each backward that begins a step, in both runs."
    )


def test_a_decay_in_the_gradient_is_told(tmp_path: Path) -> None:
    weight = Model(Setup()).parameters["blocks.0.mlp.fc.weight"]
    faults = {(0, "gradient blocks.0.mlp.fc.weight"): lambda array: array + np.float32(0.01) * weight}
    result = diff(tmp_path, faults)
    assert [finding.label for finding in result.findings] == ["origin-module"]
    assert result.summary.endswith(
        " The difference is 0.01 times weight itself, as a weight decay that is added to the gradient makes it."
    )


def comparison(array: Array, other: Array, slot: str, order: int, status: Status = Status.WITHIN) -> Comparison:
    key = TensorKey(0, Phase.FORWARD, "block", slot)
    return Comparison(record_of(key, array, order), record_of(key, other, order), status, floor=1e-7)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    factor=st.one_of(st.sampled_from([1.0, -1.0, 2.0]), st.floats(0.05, 3.0)),
    shape=st.sampled_from([(8, 8), (40, 70), (3, 5, 300)]),
)
def test_the_factor_is_found_among_others(seed: int, factor: float, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(seed)
    first, source, other = (random.normal(size=shape).astype(np.float32) for _ in range(3))
    before = [comparison(source, source, "input.0", 0), comparison(other, other, "input.1", 1)]
    origin = comparison(first, first + np.float32(factor) * source, "output.0", 2)
    found = find_multiple(origin, 1.0, before)
    assert found is not None
    assert (found.source.key.slot, found.own) == ("input.0", True)
    assert found.factor == pytest.approx(factor, rel=0.011)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), shape=st.sampled_from([(4, 9), (8, 8), (40, 70)]))
def test_differences_of_their_own_are_none(seed: int, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(seed)
    first, *others = (random.normal(size=shape).astype(np.float32) for _ in range(20))
    before = [comparison(other, other, f"input.{place}", place) for place, other in enumerate(others)]
    away = random.normal(size=shape).astype(np.float32)
    assert find_multiple(comparison(first, first + away, "output.0", 99), 1.0, before) is None


def test_a_source_that_differs_itself_is_not_named() -> None:
    random = np.random.default_rng(2)
    first, source = (random.normal(size=(40, 70)).astype(np.float32) for _ in range(2))
    before = [comparison(source, source * np.float32(1.1), "input.0", 0, Status.ORIGIN)]
    assert find_multiple(comparison(first, first + source, "output.0", 2), 1.0, before) is None
