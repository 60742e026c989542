"""Whose code made a gradient, and the few decisions that rounding flips in small tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from align.records import ModuleInfo, Origin, Phase, TensorKey, TensorRecord
from tests.builders import Array, record_of, walk_files, write_capture

FLOAT = np.float32


def _record(
    phase: Phase, name: str, slot: str, array: Array, within: str = "", same_as: int | None = None
) -> TensorRecord:
    return record_of(TensorKey(0, phase, name, slot), array, within=within, same_as=same_as)


def _normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(FLOAT)


def _nested(factor: float, *, deepest: str) -> list[TensorRecord]:
    """A root that ends in a container that ends in a linear: one gradient is the gradient of all three."""
    x, y = _normal(1, 32, 16), _normal(2, 32, 16)
    gradient = _normal(3, 32, 16) * FLOAT(factor)
    records = [
        _record(Phase.FORWARD, "<Net>", "input.0", x),
        _record(Phase.FORWARD, "tail", "input.0", x, "<Net>", 0),
        _record(Phase.FORWARD, "tail.fc", "input.0", x, "tail", 0),
        _record(Phase.FORWARD, "tail.fc", "output.0", y, "tail"),
        _record(Phase.FORWARD, "tail", "output.0", y, "<Net>", 3),
        _record(Phase.FORWARD, "<Net>", "output.0", y, "", 3),
        _record(Phase.LOSS, "loss", "value", np.array(2.5, FLOAT)),
        _record(Phase.BACKWARD, "tail.fc", "grad_output.0", gradient, "tail"),
        _record(Phase.BACKWARD, "tail", "grad_output.0", gradient, "<Net>", 7),
    ]
    if deepest == "script":
        records.append(_record(Phase.BACKWARD, "<Net>", "grad_output.0", gradient, "", 7))
    return records


MODULES = [
    ModuleInfo("<Net>", "Net", leaf=False),
    ModuleInfo("tail", "Sequential", leaf=False),
    ModuleInfo("tail.fc", "Linear", matmul=True),
]


@pytest.mark.parametrize(("deepest", "owner"), [("script", ""), ("root", "<Net>")])
def test_a_gradient_is_laid_on_the_caller_of_the_outermost_module_that_it_leaves(
    tmp_path: Path, deepest: str, owner: str
) -> None:
    reference = write_capture(tmp_path / "gpu.h5", {0: _nested(1.0, deepest=deepest)}, modules=MODULES)
    candidate = write_capture(tmp_path / "npu.h5", {0: _nested(1.1, deepest=deepest)}, modules=MODULES)
    first = walk_files(reference, candidate).first
    assert first is not None
    assert (first.comparison.key.name, first.origin, first.owner) == ("tail.fc", Origin.FUNCTIONAL, owner)


def _relu(size: int, *, flipped: int = 0, factor: float = 1.0) -> list[TensorRecord]:
    hidden = _normal(4, 8, size // 8)
    near = (hidden * FLOAT(1 + 1e-7)).astype(FLOAT)
    gradient = _normal(5, *hidden.shape)
    decisions = hidden > 0
    decisions.reshape(-1)[:flipped] ^= True
    return [
        _record(Phase.FORWARD, "act", "input.0", near),
        _record(Phase.FORWARD, "act", "output.0", np.maximum(near, 0)),
        _record(Phase.BACKWARD, "act", "grad_output.0", gradient),
        _record(Phase.BACKWARD, "act", "grad_input.0", (gradient * decisions * FLOAT(factor)).astype(FLOAT)),
    ]


@pytest.mark.parametrize("size", [32, 128, 512, 1600])
@pytest.mark.parametrize(("flipped", "factor", "diverged"), [(1, 1.0, False), (0, 1.001, True), (1, 1.01, True)])
def test_one_flipped_decision_does_not_count_in_a_small_tensor(
    tmp_path: Path, size: int, flipped: int, factor: float, diverged: bool
) -> None:
    modules = [ModuleInfo("act", "ReLU", piecewise=True)]
    reference = write_capture(tmp_path / "gpu.h5", {0: _relu(size)}, modules=modules)
    candidate = write_capture(tmp_path / "npu.h5", {0: _relu(size, flipped=flipped, factor=factor)}, modules=modules)
    first = walk_files(reference, candidate).first
    assert (first is not None) is diverged


def test_many_flipped_decisions_are_a_difference_in_a_small_tensor_too(tmp_path: Path) -> None:
    modules = [ModuleInfo("act", "ReLU", piecewise=True)]
    reference = write_capture(tmp_path / "gpu.h5", {0: _relu(512)}, modules=modules)
    candidate = write_capture(tmp_path / "npu.h5", {0: _relu(512, flipped=60)}, modules=modules)
    first = walk_files(reference, candidate).first
    assert first is not None
    assert first.comparison.key.slot == "grad_input.0"


def test_a_sparse_gradient_counts_as_a_small_tensor(tmp_path: Path) -> None:
    """Only the first row is not zero, as where a loss reads one token of many."""
    modules = [ModuleInfo("act", "ReLU", piecewise=True)]
    mask = np.zeros((128, 1), FLOAT)
    mask[0] = 1

    def sparse(*, flipped: int, factor: float = 1.0) -> list[TensorRecord]:
        hidden, gradient = _normal(6, 128, 128), _normal(7, 128, 128) * mask
        decisions = hidden > 0
        decisions[0, :flipped] ^= True
        return [
            _record(Phase.FORWARD, "act", "input.0", hidden),
            _record(Phase.FORWARD, "act", "output.0", np.maximum(hidden, 0)),
            _record(Phase.BACKWARD, "act", "grad_output.0", gradient),
            _record(Phase.BACKWARD, "act", "grad_input.0", (gradient * decisions * FLOAT(factor)).astype(FLOAT)),
        ]

    def diverges(flipped: int, factor: float) -> bool:
        records = sparse(flipped=flipped, factor=factor)
        candidate = write_capture(tmp_path / f"npu{flipped}.h5", {0: records}, modules=modules)
        return walk_files(reference, candidate).first is not None

    reference = write_capture(tmp_path / "gpu.h5", {0: sparse(flipped=0)}, modules=modules)
    assert not diverges(2, 1.0)
    assert diverges(0, 1.01)
    assert diverges(40, 1.0)
