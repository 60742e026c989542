"""What `align show` prints, whole."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from align.errors import UsageError
from align.records import INIT_STEP, TensorRecord
from align.reports.show import Contents, show_text
from tests import report_samples


def contents(steps: int = 12) -> Contents:
    """The candidate of the sample with NaN, as one capture."""
    records: dict[int, list[TensorRecord]] = {}
    for pair in report_samples.nonfinite().comparisons:
        records.setdefault(pair.key.step, []).append(pair.candidate)
    timeline = report_samples.timeline(steps)
    skipped = dataclasses.replace(timeline[-1], skipped=True, nonfinite=True, loss_scale=65536.0, micros=2)
    run = dataclasses.replace(report_samples.NPU, notes=("2 tensors could not be read.",))
    modules = {module.name: module for module in report_samples.modules(2)}
    return Contents("runs/npu.h5", run, modules, records, (*timeline[:-1], skipped))


def test_show_without_names_is_the_golden_text(golden: Callable[[str, str], None]) -> None:
    golden("show_run.txt", show_text(contents()))


def test_show_with_names_is_the_golden_text(golden: Callable[[str, str], None]) -> None:
    golden("show_tensors.txt", show_text(contents(), ("layers.1.attn", "*.mlp.fc1.weight", "input_ids")))


def test_a_long_timeline_leaves_out_its_middle() -> None:
    text = show_text(contents(500))

    assert "\n  ... 480 more steps\n" in text
    assert len(text.splitlines()) < 90


def test_an_empty_capture_says_so() -> None:
    empty = Contents("npu.h5", report_samples.NPU, {}, {})

    assert show_text(empty).endswith("\nTensors captured\n  none\n\nModules (0)\n")


def test_a_name_that_is_not_there_names_close_ones() -> None:
    with pytest.raises(UsageError) as caught:
        show_text(contents(), ("layers.1.atn",))

    listed = "'layers.1.attn', 'layers.0.attn', 'layers.1.ln_2'"
    reason = "no tensor of 'runs/npu.h5' has that name"
    assert str(caught.value) == f"Cannot show 'layers.1.atn': {reason}. Names in it: {listed}; * stands for anything."


def test_a_name_in_an_empty_capture_is_a_sentence() -> None:
    with pytest.raises(UsageError) as caught:
        show_text(Contents("npu.h5", report_samples.NPU, {}, {INIT_STEP: ()}), ("x",))

    assert str(caught.value) == "Cannot show 'x': 'npu.h5' holds no tensor. Capture it again with --steps 0:1."
