"""Decisions that rounding flipped, found in kept values and left out of the distance of a backward."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import align
from align import metrics
from align.capture_file import CaptureWriter, open_capture
from align.comparison import compare
from align.pairing import Pair
from align.pool_windows import Pooling, largest_of_windows, pooling_of
from align.records import ModuleInfo, Phase, RunInfo, TensorKey
from align.value_blocks import ELEMENTS, BlockReader
from align.value_decisions import NEAR, WithoutFlips, top_k_flips, without_rows
from align.value_reader import ValueReader
from tests.builders import record_of

Array = NDArray[Any]

FORWARD = TensorKey(0, Phase.FORWARD, "act", "input.0")
BACKWARD = TensorKey(0, Phase.BACKWARD, "act", "grad_input.0")


def write(path: Path, tensors: dict[TensorKey, Array]) -> Path:
    writer = CaptureWriter(path, RunInfo(detail="tensors"))
    records = [record_of(key, array, order, has_values=True) for order, (key, array) in enumerate(tensors.items())]
    handles: dict[int, Any] = {
        order: writer.add_values(array, "float32") for order, array in enumerate(tensors.values())
    }
    writer.commit(0, records, handles)
    handles.clear()
    writer.close(RunInfo(detail="tensors", outcome="finished"))
    return path


class Runs:
    """Two files of the same tensors, compared."""

    def __init__(self, folder: Path, ours: dict[TensorKey, Array], theirs: dict[TensorKey, Array]) -> None:
        self.files = [open_capture(write(folder / f"{name}.h5", of)) for name, of in (("a", ours), ("b", theirs))]
        records = (capture.records(0) for capture in self.files)
        self.pairs = {left.key: Pair(left, right) for left, right in zip(*records, strict=True)}

    def reader(self, module: ModuleInfo | None = None) -> ValueReader:
        reader = ValueReader(self.files[0], self.files[1], {} if module is None else {module.name: module})
        reader.enter_step(self.pairs.values())
        return reader

    def without_flips(self, error: float, module: ModuleInfo | None = None) -> WithoutFlips:
        found = self.reader(module).without_flips(self.pairs[BACKWARD], error)
        assert found is not None
        return found

    def close(self) -> None:
        for file in self.files:
            file.close()


def relu_pair(error: float, count: int = 3 * ELEMENTS + 11) -> tuple[list[dict[TensorKey, Array]], Array]:
    """A ReLU of two runs whose inputs differ by rounding, and which elements flipped."""
    rng = np.random.default_rng(7)
    left = rng.standard_normal(count).astype(np.float32)
    right = (left * (1 + error * rng.standard_normal(count)) + error * rng.standard_normal(count)).astype(np.float32)
    gradient = rng.standard_normal(count).astype(np.float32)
    noisy = (gradient * (1 + error * rng.standard_normal(count))).astype(np.float32)
    sides = [
        {FORWARD: forward, BACKWARD: passed * (forward > 0)} for forward, passed in ((left, gradient), (right, noisy))
    ]
    return sides, (left > 0) != (right > 0)


@pytest.mark.parametrize("error", [1e-4, 1e-2])
def test_what_a_relu_decided_differently_is_left_out(tmp_path: Path, error: float) -> None:
    (ours, theirs), flipped = relu_pair(error)
    runs = Runs(tmp_path, ours, theirs)
    found = runs.without_flips(error * 2**0.5)
    difference = (theirs[BACKWARD].astype(float) - ours[BACKWARD])[~flipped]
    assert (found.flips, found.unexplained) == (int(flipped.sum()), 0)
    assert found.flips > 0
    assert found.distance.square == pytest.approx(float(difference @ difference), rel=1e-5)
    assert found.distance.first_at == np.flatnonzero((theirs[BACKWARD] != ours[BACKWARD]) & ~flipped)[0]
    assert found.farthest <= NEAR * error * 2**0.5 * runs.pairs[FORWARD].reference.stats.rms  # type: ignore[union-attr]
    runs.close()


def test_what_rounding_cannot_have_flipped_stays_in(tmp_path: Path) -> None:
    (ours, theirs), _ = relu_pair(1e-6, 10_000)
    theirs[FORWARD][17], theirs[BACKWARD][17] = -ours[FORWARD][17], 5.0
    runs = Runs(tmp_path, ours, theirs)
    found = runs.without_flips(1.5e-6)
    assert found.unexplained == 1
    assert found.distance.largest_at == 17
    assert found.farthest == pytest.approx(abs(float(ours[FORWARD][17])))
    runs.close()


def test_the_judged_difference_is_the_one_without_flips(tmp_path: Path) -> None:
    (ours, theirs), flipped = relu_pair(1e-4)
    assert flipped.any()
    runs = Runs(tmp_path, ours, theirs)
    pair, reader = runs.pairs[BACKWARD], runs.reader()
    whole = metrics.relative_l2(pair, 1.0, reader)
    robust = metrics.without_flips(pair, 1.5e-4, 1.0, reader)
    assert whole is not None
    assert robust is not None
    assert robust < 1.1e-4
    assert whole > 5e-4
    assert metrics.without_flips(pair, float("inf"), 1.0, reader) is None
    runs.close()


def test_without_the_forward_values_the_sketch_speaks(tmp_path: Path) -> None:
    (ours, theirs), _ = relu_pair(1e-6)
    runs = Runs(tmp_path, {BACKWARD: ours[BACKWARD]}, {BACKWARD: theirs[BACKWARD]})
    pair = runs.pairs[BACKWARD]
    assert runs.reader().without_flips(pair, 1e-6) is None
    assert metrics.without_flips(pair, 1e-6, 1.0, runs.reader()) == metrics.without_flips(pair, 1e-6)
    runs.close()


def geometry(dimensions: int) -> st.SearchStrategy[Pooling]:
    numbers = st.tuples(*[st.integers(1, 3)] * dimensions)
    pads = st.tuples(*[st.integers(0, 1)] * dimensions)
    steps = st.tuples(*[st.integers(1, 2)] * dimensions)
    return st.builds(Pooling, numbers, numbers, pads, steps, st.booleans())


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3).flatmap(geometry), st.integers(0, 1000), st.data())
def test_windows_are_those_of_torch(pooling: Pooling, seed: int, data: st.DataObject) -> None:
    assume(all(2 * pad <= width for pad, width in zip(pooling.padding, pooling.kernel, strict=True)))
    dimensions = len(pooling.kernel)
    shape = data.draw(st.tuples(*[st.integers(2, 7)] * dimensions))
    spans = [step * (width - 1) + 1 for step, width in zip(pooling.dilation, pooling.kernel, strict=True)]
    assume(all(n + 2 * pad >= span for n, pad, span in zip(shape, pooling.padding, spans, strict=True)))
    planes = np.random.default_rng(seed).integers(0, 5, (3, *shape)).astype(np.float32)
    pool = getattr(torch.nn, f"MaxPool{dimensions}d")(
        pooling.kernel,
        pooling.stride,
        pooling.padding,
        pooling.dilation,
        return_indices=True,
        ceil_mode=pooling.ceiling,
    )
    _, expected = pool(torch.from_numpy(planes)[:, None])
    assert largest_of_windows(planes, pooling).tolist() == expected.reshape(3, -1).tolist()


@pytest.mark.parametrize(
    ("class_name", "config", "expected"),
    [
        ("MaxPool2d", {"kernel_size": 2, "stride": 2, "padding": 0, "dilation": 1, "ceil_mode": False},
         Pooling((2, 2), (2, 2), (0, 0), (1, 1))),
        ("MaxPool1d", {"kernel_size": [3], "stride": [1], "padding": [1], "dilation": [2], "ceil_mode": True},
         Pooling((3,), (1,), (1,), (2,), ceiling=True)),
        ("MaxPool2d", {"kernel_size": 3}, Pooling((3, 3), (3, 3), (0, 0), (1, 1))),
        ("MaxPool2d", {}, None),
        ("MaxPool2d", {"kernel_size": [3, 3, 3]}, None),
        ("AdaptiveMaxPool2d", {"output_size": 1}, None),
        ("ReLU", {}, None),
    ],
)  # fmt: skip
def test_the_geometry_is_read_from_the_module(
    class_name: str, config: dict[str, Any], expected: Pooling | None
) -> None:
    assert pooling_of(class_name, config) == expected


def pooled(images: Array, gradient: Array) -> Array:
    """The gradient that a 2 x 2 max-pool sends back."""
    source = torch.from_numpy(images).requires_grad_()
    torch.nn.functional.max_pool2d(source, 2).backward(torch.from_numpy(gradient))
    assert source.grad is not None
    return source.grad.numpy()


def test_what_a_max_pool_decided_differently_is_left_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    left = rng.standard_normal((4, 5, 60, 80)).astype(np.float32)
    right = (left + 1e-4 * rng.standard_normal(left.shape)).astype(np.float32)
    gradient = rng.standard_normal((4, 5, 30, 40)).astype(np.float32)
    row, column = np.unravel_index(left[0, 0, :2, :2].argmin(), (2, 2))
    right[0, 0, row, column] = left[0, 0, :2, :2].max() + 1  # no rounding does this
    ours, theirs = pooled(left, gradient), pooled(right, gradient * np.float32(1 + 1e-5))
    module = ModuleInfo("act", "MaxPool2d", config={"kernel_size": 2, "stride": 2, "padding": 0, "dilation": 1})
    runs = Runs(tmp_path, {FORWARD: left, BACKWARD: ours}, {FORWARD: right, BACKWARD: theirs})
    found = runs.without_flips(1e-4, module)
    moved = (ours == 0) != (theirs == 0)
    assert found.unexplained == 1
    assert found.flips == (moved.sum() - 2) // 2 > 0
    large = float(np.square(theirs[0, 0, :2, :2].astype(float) - ours[0, 0, :2, :2]).sum())
    small = float(np.square((theirs.astype(float) - ours)[~moved]).sum())
    assert found.distance.square == pytest.approx(large + small, rel=1e-5)
    runs.close()


def test_rows_whose_top_k_flipped_are_left_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((200, 8)).astype(np.float32)
    other = scores.copy()
    order = np.argsort(-scores, axis=1)
    for row in (3, 77):  # the second and the third are as good as equal and change places
        scores[row, order[row, 2]] = scores[row, order[row, 1]] - 1e-6
        other[row] = scores[row]
        other[row, order[row, 2]] += 2e-6
    other[150, order[150, 7]] = 9.0  # the last becomes the first
    hidden = rng.standard_normal((20, 10, 6)).astype(np.float32)
    changed = hidden + np.float32(1e-6)
    changed[0, 3] = changed[7, 7] = 0.0
    keys = (TensorKey(0, Phase.FORWARD, "router", "output.0"), TensorKey(0, Phase.FORWARD, "moe", "output.0"))
    runs = Runs(
        tmp_path, dict(zip(keys, (scores, hidden), strict=True)), dict(zip(keys, (other, changed), strict=True))
    )
    reader, blocks = runs.reader(), BlockReader()
    rows, unexplained = top_k_flips(blocks, reader.opened(runs.pairs[keys[0]]), 2, 1e-5)
    assert (np.flatnonzero(rows).tolist(), unexplained) == ([3, 77], 1)
    found = without_rows(blocks, reader.opened(runs.pairs[keys[1]]), rows)
    assert found is not None
    assert found.square == pytest.approx(198 * 6 * 1e-12, rel=0.05)
    assert without_rows(blocks, reader.opened(runs.pairs[keys[1]]), rows[:7]) is None
    assert not top_k_flips(blocks, reader.opened(runs.pairs[keys[0]]), 8, 1e-5)[0].any()
    runs.close()


class Network(torch.nn.Module):
    """Convolution, batch norm, ReLU and max-pool, twice."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.Sequential(*[self._block(*sizes) for sizes in ((1, 8), (8, 8))])
        self.head = torch.nn.Linear(8 * 16, 10)

    @staticmethod
    def _block(entering: int, leaving: int) -> torch.nn.Module:
        return torch.nn.Sequential(
            torch.nn.Conv2d(entering, leaving, 3, padding=1),
            torch.nn.BatchNorm2d(leaving),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.blocks(images).flatten(1))
        return scores


def train(path: Path, noise: float) -> Path:
    """One step; the images are moved by a few unit roundoffs, as another device's rounding would move them."""
    torch.manual_seed(0)
    network, images, labels = Network(), torch.randn(64, 1, 16, 16), torch.randint(0, 10, (64,))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    with align.Recorder(path, steps="0:1", detail="tensors"):
        moved = images + noise * torch.randn(images.shape, generator=torch.Generator().manual_seed(1))
        torch.nn.functional.cross_entropy(network(moved), labels).backward()
        optimizer.step()
    return path


def test_a_real_network_keeps_to_what_it_inherits_without_its_flips(tmp_path: Path) -> None:
    paths = [train(tmp_path / f"{noise}.h5", noise) for noise in (0.0, 1e-3)]
    with open_capture(paths[0]) as ours, open_capture(paths[1]) as theirs:
        walk = compare(ours, theirs)
        reader = ValueReader(ours, theirs, walk.modules)
        pairs = {each.key: Pair(each.reference, each.candidate) for each in walk.comparisons if each.key.step == 0}
        reader.enter_step(pairs.values())
        flips = {}
        for key, pair in pairs.items():
            class_name = walk.modules[key.name].class_name if key.name in walk.modules else ""
            if key.phase is Phase.BACKWARD and key.slot == "grad_input.0" and class_name in {"ReLU", "MaxPool2d"}:
                forward = metrics.relative_l2(pairs[replace(key, phase=Phase.FORWARD, slot="input.0")], 1.0, reader)
                inherited = metrics.relative_l2(pairs[replace(key, slot="grad_output.0")], 1.0, reader)
                assert forward is not None
                assert inherited is not None
                found = reader.without_flips(pair, forward)
                assert found is not None
                assert found.unexplained == 0
                left = metrics.without_flips(pair, forward, 1.0, reader)
                assert left is not None
                assert left <= 1.1 * inherited
                flips[key.name] = (class_name, found.flips)
    assert sorted(class_name for class_name, count in flips.values() if count) == ["MaxPool2d"] * 2 + ["ReLU"] * 2
