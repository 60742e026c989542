"""Where both files hold values, they decide what a sketch is too near to its limit to tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from align.capture_file import CaptureWriter, open_capture
from align.comparison import compare
from align.records import INIT_STEP, Comparison, ModuleInfo, Phase, RunInfo, TensorKey
from tests.builders import record_of

ENTERING = TensorKey(0, Phase.FORWARD, "layer", "input.0")
LEAVING = TensorKey(0, Phase.FORWARD, "layer", "output.0")
WEIGHT = TensorKey(INIT_STEP, Phase.INIT, "layer", "weight")
MODULES = (ModuleInfo("layer", "Tanh", compute_dtype="bfloat16"),)


def write(path: Path, entering: NDArray[Any], leaving: NDArray[Any], *, values: bool) -> Path:
    run = RunInfo(detail="tensors" if values else "sketch", outcome="finished")
    writer = CaptureWriter(path, run, force=True)
    writer.commit(INIT_STEP, [record_of(WEIGHT, np.ones(3, dtype=np.float32))], {})
    tensors = {ENTERING: entering, LEAVING: leaving}
    records = [record_of(key, array, order, has_values=values) for order, (key, array) in enumerate(tensors.items())]
    handles: dict[int, Any] = {
        order: writer.add_values(array, "float32") for order, array in enumerate(tensors.values()) if values
    }
    writer.commit(0, records, handles)
    handles.clear()
    writer.append_modules(MODULES)
    writer.close(run)
    return path


def output(folder: Path, times: float, *, values: bool) -> tuple[Comparison, float]:
    """What a comparison says of the output of a module in bfloat16, and its true relative L2 difference.

    It differs by so many times the limit, which is 7 unit roundoffs; the input is equal.
    """
    rng = np.random.default_rng(7)
    entering, leaving = rng.standard_normal((2, 40, 500)).astype(np.float32)
    other = (leaving + times * 7 * 2**-8 * rng.standard_normal(leaving.shape)).astype(np.float32)
    paths = [
        write(folder / f"{name}.h5", entering, array, values=values) for name, array in (("a", leaving), ("b", other))
    ]
    with open_capture(paths[0]) as ours, open_capture(paths[1]) as theirs:
        found = next(each for each in compare(ours, theirs).comparisons if each.key == LEAVING)
    return found, float(np.linalg.norm(other.astype(float) - leaving) / np.linalg.norm(leaving.astype(float)))


@pytest.mark.parametrize("times", [0.6, 0.96, 1.04, 1.8])
def test_near_the_limit_the_values_decide(tmp_path: Path, times: float) -> None:
    found, exact = output(tmp_path, times, values=True)
    assert found.relative_l2 == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("times", [0.3, 3.0])
def test_far_from_the_limit_nothing_is_read(tmp_path: Path, times: float) -> None:
    found, exact = output(tmp_path, times, values=True)
    assert found.relative_l2 != pytest.approx(exact, rel=1e-6)
    assert found.relative_l2 == pytest.approx(exact, rel=0.15)


def test_what_a_sketch_lays_above_the_limit_the_values_lay_below(tmp_path: Path) -> None:
    sketched, exact = output(tmp_path, 0.96, values=False)
    measured, _ = output(tmp_path, 0.96, values=True)
    limit = 7 * 2**-8
    assert sketched.relative_l2 is not None
    assert sketched.relative_l2 > limit > exact
    assert measured.relative_l2 == pytest.approx(exact, rel=1e-6)
