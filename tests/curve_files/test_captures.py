"""The timelines of captures, made by the real command line."""

from __future__ import annotations

import hashlib
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from align.capture_file import open_capture
from align.curve_files import read_curves
from align.curve_records import CurveKind, Quantity
from align.errors import CurveError, TruncatedCaptureFile
from align.records import TimelineRow
from tests.builders import write_capture
from tests.curve_files.reading import steps, values, where
from tests.running import STEPS, capture_all


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("curves") / "run.h5"
    capture_all("cpu", [(path, [STEPS / "scaler_skip.py"])])
    return path


def test_timeline_of_a_capture(capture: Path) -> None:
    curves = read_curves(str(capture))
    with open_capture(capture) as opened:
        rows = opened.timeline
        assert curves.run == opened.run
    assert curves.kind is CurveKind.CAPTURE
    assert steps(curves) == [0, 1, 2, 3, 4, 5]
    assert where(curves, curves.skipped) == [0, 1, 2]
    assert where(curves, curves.nonfinite) == []
    assert curves.taken == {
        Quantity.LOSS: "loss",
        Quantity.LEARNING_RATE: "learning_rate",
        Quantity.LOSS_SCALE: "loss_scale",
        Quantity.SECONDS: "seconds",
    }
    for quantity, name in curves.taken.items():
        np.testing.assert_array_equal(curves.columns[quantity], [getattr(row, name) for row in rows])
    assert curves.sha256 == hashlib.sha256(capture.read_bytes()).hexdigest()
    assert curves.notes == ()


def test_name_that_stands_for_the_ranks_of_a_run(capture: Path, tmp_path: Path) -> None:
    for rank in (0, 1):
        shutil.copy(capture, tmp_path / f"run.rank000{rank}.h5")
    curves = read_curves(str(tmp_path / "run.h5"))
    assert curves.path == str(tmp_path / "run.h5")
    assert len(curves.steps) == 6
    assert curves.notes == ("Of the ranks of the run, the file 'run.rank0000.h5' was read.",)


def test_column_of_a_capture_that_is_asked_for(capture: Path) -> None:
    assert read_curves(str(capture), {Quantity.LOSS: "loss scale"}).taken[Quantity.LOSS] == "loss_scale"
    with pytest.raises(CurveError) as caught:
        read_curves(str(capture), {Quantity.LOSS: "lm loss"})
    assert str(caught.value) == (
        f"Cannot find the column 'lm loss' in '{capture}'. The columns of a capture are 'loss', 'learning_rate', "
        "'loss_scale', 'gradient_norm', 'seconds', 'loss_scale_after', 'clip_norm', 'clip_limit'."
    )


def test_capture_that_is_cut(capture: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.h5"
    path.write_bytes(capture.read_bytes()[:3000])
    with pytest.raises(TruncatedCaptureFile):
        read_curves(str(path))


def row(step: int, loss: float, *, nonfinite: bool = False, norm: float = math.nan) -> TimelineRow:
    """A row of a timeline."""
    return TimelineRow(step, loss, 0.1, math.nan, 0.5, 0.25, skipped=False, nonfinite=nonfinite, micros=1,
                       optimizer="SGD", clip_norm=norm)  # fmt: skip


def test_loss_that_was_nan_or_was_not_seen(tmp_path: Path) -> None:
    rows = [row(0, 2.0), row(1, math.nan, nonfinite=True), row(2, math.nan), row(3, math.inf, nonfinite=True)]
    curves = read_curves(str(write_capture(tmp_path / "run.h5", {}, timeline=rows)))
    assert steps(curves) == [0, 1, 2, 3]
    assert values(curves)[:3] == [2.0, None, None]
    assert where(curves, curves.nonfinite) == [1, 3]
    assert values(curves, Quantity.GRADIENT_NORM) == [0.5] * 4


def test_norm_of_gradients_before_they_were_clipped(tmp_path: Path) -> None:
    rows = [row(0, 2.0, norm=7.5), row(1, 1.5, norm=5.0)]
    curves = read_curves(str(write_capture(tmp_path / "run.h5", {}, timeline=rows)))
    assert values(curves, Quantity.GRADIENT_NORM) == [7.5, 5.0]
    assert curves.taken[Quantity.GRADIENT_NORM] == "clip_norm"


def test_capture_without_a_loss(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "run.h5", {}, timeline=[row(0, math.nan), row(1, math.nan)])
    with pytest.raises(CurveError) as caught:
        read_curves(str(path))
    assert str(caught.value) == (
        f"Cannot find a loss in '{path}': its timeline has 2 steps, and no loss was seen in any. Train with a backward "
        "that starts at a loss, and capture again."
    )
