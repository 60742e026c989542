"""Local errors and the rule that tells rounding from a fault, on tensors with a known error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from align.capture_file import CaptureWriter, open_capture
from align.records import ModuleInfo, Phase, RunInfo, TensorKey, TensorRecord
from align.replay_errors import LocalError, change_error, local_error
from align.replay_rule import Format, Part, Ruling, Work, parts_of, rule, work_of
from align.value_blocks import BlockReader, KeptPair
from align.value_source import ValueSource
from tests.builders import record_of

Array = NDArray[np.float64]

BF16 = Format(2.0**-8)
SHAPE = (64, 96)
KEY = TensorKey(0, Phase.FORWARD, "layers.0", "output.0")


class Files:
    """Keeps tensors in capture files and measures them there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stack = ExitStack()

    def kept(self, values: Array) -> ValueSource:
        """The values of a tensor in a file of its own."""
        path = self.folder / f"{len(list(self.folder.iterdir()))}.h5"
        writer = CaptureWriter(path, RunInfo(detail="tensors"))
        handles: dict[int, Any] = {0: writer.add_values(values, "float64")}
        writer.commit(0, [record_of(KEY, values, has_values=True)], handles)
        handles.clear()
        writer.close(RunInfo(detail="tensors", outcome="finished"))
        capture = self.stack.enter_context(open_capture(path))
        return capture.value_source(capture.records(0)[0])

    def error(self, replayed: Array, captured: Array) -> LocalError:
        """The local error of a captured tensor."""
        return local_error(BlockReader(), KeptPair(self.kept(replayed), self.kept(captured)))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def drawn(seed: int = 0, shape: tuple[int, ...] = SHAPE) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def rounded(values: Array, seed: int = 1) -> Array:
    """The values with the rounding of bfloat16: up to half a spacing up or down."""
    spacing = 2.0 ** (np.floor(np.log2(np.abs(values))) - 7)
    return values + spacing * np.random.default_rng(seed).uniform(-0.5, 0.5, values.shape)


def ruled(candidate: LocalError, reference: LocalError, work: Work = Work.PRODUCT) -> Ruling:
    return rule(work, candidate, reference, BF16, SHAPE[0] * SHAPE[1])


def test_rounding_has_a_size_and_no_structure(files: Files) -> None:
    values = drawn()
    found = files.error(values, rounded(values))
    assert 0.3 * BF16.unit < found.size < 0.6 * BF16.unit
    assert found.peak < BF16.unit
    assert not ruled(found, files.error(drawn(2), rounded(drawn(2), 3))).differs


def test_equal_tensors_have_no_error(files: Files) -> None:
    found = files.error(drawn(), drawn())
    assert (found.size, found.peak, found.structure) == (0.0, 0.0, None)
    assert ruled(found, found).times_floor == 0.0


@pytest.mark.parametrize(
    ("change", "part", "size"),
    [
        (lambda x: x * 1.3, Part.SIZE, 0.3),
        (lambda x: x * 1.005, Part.SCALE, 0.005),
        (lambda x: x + 0.01, Part.SHIFT, 0.01),
        (lambda x: x * np.where(np.arange(SHAPE[1]) == 7, 1.05, 1.0), Part.CHANNEL, 0.05),
        (lambda x: x + np.where(np.arange(SHAPE[1]) == 7, 0.03, 0.0), Part.CHANNEL, 0.03),
        (lambda x: np.where(np.arange(x.size).reshape(SHAPE) == 99, x + 0.2 * (np.abs(x) + 1.0), x), Part.PEAK, 0.2),
        (lambda x: np.where(np.arange(x.size).reshape(SHAPE) == 99, x + 0.2 * (np.abs(x) + 1.0), x), Part.LONE, 0.2),
    ],
    ids=["large", "factor", "constant", "channel factor", "channel constant", "element", "lone element"],
)
def test_a_fault_is_seen_by_its_structure(
    files: Files, change: Callable[[Array], Array], part: Part, size: float
) -> None:
    values = drawn()
    found, own = files.error(values, rounded(change(values))), files.error(values, rounded(values, 4))
    assert parts_of(found, own)[part][0] == pytest.approx(size, rel=0.1)
    assert ruled(found, own).differs


def test_what_the_reference_has_too_is_no_fault(files: Files) -> None:
    """A bias that is added after rounding leaves the same error in a channel on every device."""
    values = drawn()
    common = np.where(np.arange(SHAPE[1]) == 7, 1.03, 1.0)
    one, other = (files.error(values, rounded(values * common, seed)) for seed in (5, 6))
    assert not ruled(one, other).differs
    assert ruled(one, files.error(values, rounded(values, 6))).differs


def test_channels_of_images_are_those_of_dimension_1(files: Files) -> None:
    values = drawn(shape=(8, 32, 8, 8))
    wrong = values * np.where(np.arange(32) == 3, 1.02, 1.0)[:, None, None]
    found = files.error(values, rounded(wrong)), files.error(values, rounded(values, 4))
    assert parts_of(*found)[Part.CHANNEL][0] == pytest.approx(0.02, rel=0.1)


def test_an_update_is_held_against_the_change(files: Files) -> None:
    before, replayed = drawn(), drawn() + 1e-3
    captured = before + 1.01 * (replayed - before)
    after = files.kept(replayed)
    found = change_error(BlockReader(), KeptPair(after, files.kept(captured)), KeptPair(files.kept(before), after))
    assert found.size == pytest.approx(0.01, rel=1e-6)


@pytest.mark.parametrize(
    ("key", "module", "work"),
    [
        (("forward", "output.0"), ModuleInfo("m", "Linear", matmul=True), Work.PRODUCT),
        (("forward", "input.0"), ModuleInfo("m", "Linear", matmul=True), Work.CODE),
        (("backward", "grad_input.0"), ModuleInfo("m", "Conv2d", conv=True), Work.PRODUCT),
        (("backward", "grad_output.0"), ModuleInfo("m", "Conv2d", conv=True), Work.CODE),
        (("forward", "output.0"), ModuleInfo("m", "LlamaRMSNorm"), Work.NORM),
        (("forward", "output.0"), ModuleInfo("m", "GELU"), Work.OTHER),
        (("forward", "output.0"), ModuleInfo("m", "Block", leaf=False, matmul=True), Work.CODE),
        (("forward", "output.0"), None, Work.CODE),
        (("loss", "value"), None, Work.LOSS),
        (("gradient", "weight"), ModuleInfo("m", "Linear", matmul=True), Work.GRADIENT),
        (("param", "weight"), ModuleInfo("m", "Linear", matmul=True), Work.UPDATE),
    ],
)
def test_the_work_that_made_a_record(key: tuple[str, str], module: ModuleInfo | None, work: Work) -> None:
    record = TensorRecord(TensorKey(0, Phase(key[0]), "m", key[1]), 0, "float32", (2, 3))
    assert work_of(record, module) is work
