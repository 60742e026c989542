"""Loss scales over a whole run: what a healthy scaler does, and what collapses, is stuck, or jumps."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align.inspection.loss_scale import scale_courses
from align.inspection.scale_problems import problems
from align.records import Phase, Severity, TimelineRow
from tests.scale_samples import Scaler, half, inspected, labels, replies, row, told

SCALE_LABELS = ("loss-scale-collapse", "loss-scale-stuck", "loss-scale-unstable")


def gan(first: Collection[int], second: Collection[int], *, one_scaler: bool) -> list[TimelineRow]:
    """Two optimizers that take turns, with a scaler for each or one for both; the steps that overflow."""
    if one_scaler:
        return Scaler().rows(200, {*first, *second})
    turns = [
        [replace(one, step=2 * one.step + turn) for one in Scaler().rows(100, {step // 2 for step in overflows})]
        for turn, overflows in enumerate((first, second))
    ]
    return sorted((one for turn in turns for one in turn), key=lambda one: one.step)


def by_hand(scales: Collection[float], micros: Collection[int] | None = None) -> list[TimelineRow]:
    """A script that multiplies the loss itself: what it does after a step is not known."""
    return [
        row(step, scale, micros=count)
        for step, (scale, count) in enumerate(zip(scales, micros or [1] * len(scales), strict=True))
    ]


HEALTHY: dict[str, list[TimelineRow]] = {
    "never overflows": Scaler().rows(100),
    "ten skips to find the scale": Scaler().rows(100, range(10)),
    "a start of 2^32 needs more of them": Scaler(start=2.0**32).rows(100, range(26)),
    "one skip after each growth": Scaler(growth_interval=100).rows(1000, range(100, 1000, 102)),
    "grows at every other step": Scaler(growth_interval=2).rows(600, range(2, 600, 3)),
    "two late skips in a row": Scaler().rows(300, (200, 201)),
    "one batch with a loss that is not finite": Scaler().rows(100, (60,), nonfinite=(60,)),
    "resumed from a low scale that grows": Scaler(start=4.0, growth_interval=20).rows(300),
    "bf16 with a scale of 1": Scaler(start=1.0, growth_factor=1.0).rows(300),
    "grows by four": Scaler(growth_factor=4.0, growth_interval=50).rows(500, range(51, 500, 101)),
    "two scalers that take turns": gan((10, 12), (11,), one_scaler=False),
    "one scaler for two optimizers": gan((10, 12), (31,), one_scaler=True),
    "static by hand": by_hand([1024.0] * 60),
    "dynamic by hand": by_hand([1024.0] * 20 + [2048.0] * 20 + [1024.0] * 20),
    "by hand, halved in several passes of one step": by_hand([65536.0, 256.0, 256.0], [1, 9, 1]),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_scale_is_not_accused(tmp_path: Path, name: str) -> None:
    facts = {0: Scaler(growth_interval=2).facts(0)} if name == "grows at every other step" else None
    result = inspected(tmp_path / "a.h5", HEALTHY[name], facts=facts)
    assert told(result, *SCALE_LABELS) == []
    assert replies(result)["loss scale"][0] == "good"


def test_the_history_is_told_in_a_sentence(tmp_path: Path) -> None:
    result = inspected(tmp_path / "a.h5", Scaler(growth_interval=100).rows(250, (0, 1, 200)))
    assert replies(result)["loss scale"] == (
        "good",
        "65,536 (2^16) at step 0, 16,384 (2^14) after step 249; 3 of 250 steps skipped (steps 0-1, 200), 1 growth.",
    )
    assert replies(result)["skipped steps"][0] == "unknown"
    assert replies(result)["skipped steps"][1] == (
        "Steps 0-1, 200 were skipped and not captured: what overflowed cannot be told. Capture them: "
        "`align capture --steps 0,1,200 ...` in a run of the same seed, or `align capture-now RUN.h5` while it is "
        "happening."
    )


def test_each_of_two_scalers_has_a_course_of_its_own(tmp_path: Path) -> None:
    result = inspected(tmp_path / "a.h5", gan((10,), (), one_scaler=False))
    assert replies(result)["loss scale"][1] == (
        "65,536 (2^16) at step 0, 32,768 (2^15) after step 198; 1 of 105 steps skipped (step 10), 0 growths. "
        "65,536 (2^16) at step 11, 65,536 (2^16) after step 199; 0 of 95 steps skipped, 0 growths."
    )


def test_a_run_without_a_loss_scale_is_not_asked(tmp_path: Path) -> None:
    result = inspected(tmp_path / "a.h5", [row(step, math.nan) for step in range(20)])
    assert replies(result)["loss scale"] == ("absent", "No loss scale is in use.")


def test_a_search_that_has_not_ended_is_not_judged(tmp_path: Path) -> None:
    result = inspected(tmp_path / "a.h5", Scaler().rows(6, range(6)))
    assert told(result, *SCALE_LABELS) == []
    assert replies(result)["loss scale"][0] == "unknown"
    assert replies(result)["loss scale"][1] == (
        "65,536 (2^16) at step 0, 1,024 (2^10) after step 5; 6 of 6 steps skipped, 0 growths. The last steps are "
        "skipped too: whether a scale was found in the end cannot be told before the run has made more steps."
    )


# ---- collapse


def test_a_scale_that_falls_while_the_loss_is_not_finite_collapses(tmp_path: Path) -> None:
    result = inspected(tmp_path / "a.h5", Scaler().rows(8, range(8), nonfinite=range(8)))
    (finding,) = told(result, *SCALE_LABELS)
    assert (finding.label, finding.severity, finding.where.step) == ("loss-scale-collapse", Severity.ERROR, 0)
    assert finding.summary == (
        "Steps 0-7 are all skipped (8 in a row), and the loss itself is not finite in each of them, before any scale: "
        "no loss scale helps where the forward overflows. The loss scale falls from 65,536 (2^16) to 256 (2^8)."
    )
    assert finding.advice == (
        "Find the first module that overflows; train in bf16, whose range is that of fp32 "
        "(torch.autocast(..., dtype=torch.bfloat16), no GradScaler), or run the module that overflows in fp32. Capture "
        "them: `align capture --steps 0,1,2 ...` in a run of the same seed, or `align capture-now RUN.h5` while it is "
        "happening."
    )


def test_what_overflows_first_in_a_captured_skip_is_named(tmp_path: Path) -> None:
    wide = np.full((8, 16), 1e5)
    records = {
        step: [half(step, "down", "output.0", np.ones((8, 16)), Phase.FORWARD), half(step, "up", "output.0", wide,
               Phase.FORWARD), half(step, "loss", "value", np.full((), np.inf), Phase.LOSS)]
        for step in (0, 1)
    }  # fmt: skip
    result = inspected(tmp_path / "a.h5", Scaler().rows(8, range(8), nonfinite=range(8)), records)
    (finding,) = told(result, "loss-scale-collapse")
    assert finding.summary.endswith(" The first that is not finite in step 0 is up output.0 (forward).")
    assert finding.evidence["overflows_first"] == "up"
    assert replies(result)["skipped steps"][1] == (
        "8 steps skipped: in steps 0-1 up output.0 (forward) is the first that is not finite."
    )


def test_a_scale_that_falls_to_1_without_a_growth_collapses(tmp_path: Path) -> None:
    # Not one after another: every third step overflows, however small the scale.
    result = inspected(tmp_path / "a.h5", Scaler().rows(60, range(0, 60, 3)))
    (finding,) = told(result, *SCALE_LABELS)
    assert (finding.label, finding.severity) == ("loss-scale-collapse", Severity.ERROR)
    assert finding.summary == (
        "The loss scale falls from 65,536 (2^16) to 2^-4 over steps 0-57, by 20 halvings without a growth: gradients "
        "overflow however small the scale is."
    )


def test_a_scale_that_grew_again_is_a_warning(tmp_path: Path) -> None:
    timeline = Scaler(start=16.0, growth_interval=40).rows(200, range(5))
    assert labels(told(inspected(tmp_path / "a.h5", timeline), *SCALE_LABELS)) == [("loss-scale-collapse", "warning")]


LATE = {
    "two in a row are outliers": ((100, 101), []),
    "three in a row, and on it goes": ((100, 101, 102), [("loss-scale-collapse", "warning")]),
    "five in a row, and on it goes": (range(100, 105), [("loss-scale-collapse", "warning")]),
    "to the end of the run": (range(293, 300), [("loss-scale-collapse", "error")]),
}


@pytest.mark.parametrize("name", LATE)
def test_skips_in_a_row_long_after_the_start(tmp_path: Path, name: str) -> None:
    overflows, expected = LATE[name]
    result = inspected(tmp_path / "a.h5", Scaler().rows(300, overflows))
    assert labels(told(result, *SCALE_LABELS)) == expected


# ---- stuck


def test_a_scale_that_does_not_come_down_is_stuck(tmp_path: Path) -> None:
    timeline = [row(step, 65536.0, 32768.0, skipped=True) for step in range(6)]  # a new scaler in every step
    (finding,) = told(inspected(tmp_path / "a.h5", timeline), *SCALE_LABELS)
    assert (finding.label, finding.severity, finding.where.step) == ("loss-scale-stuck", Severity.ERROR, 0)
    assert finding.summary == (
        "Steps 0-5 are all skipped (6 in a row), all at the same loss scale of 65,536 (2^16): it does not come down, "
        "so that nothing is updated."
    )
    assert finding.advice.startswith("Make the scaler once, before the loop, call scaler.update() after every step, ")


def test_a_static_scale_that_overflows_is_stuck(tmp_path: Path) -> None:
    timeline = [row(step, 65536.0, 65536.0, skipped=True) for step in range(5)]
    result = inspected(tmp_path / "a.h5", timeline, facts={0: Scaler().facts(0, dynamic=False)})
    (finding,) = told(result, *SCALE_LABELS)
    assert finding.advice.startswith("A static loss scale cannot come down: take less than 65,536 (2^16), or a dynamic")


def test_a_scale_at_its_minimum_is_stuck(tmp_path: Path) -> None:
    timeline = [row(step, 1.0, 1.0, skipped=True) for step in range(7)]
    (finding,) = told(inspected(tmp_path / "a.h5", timeline), *SCALE_LABELS)
    assert finding.label == "loss-scale-stuck"
    assert finding.advice.startswith(
        "The scale is as low as it may be, and still the gradients overflow: train in bf16"
    )


def test_a_step_that_is_tried_again_at_one_scale_is_no_stuck_scale(tmp_path: Path) -> None:
    timeline = [row(step, 65536.0, 65536.0, skipped=step < 4) for step in range(10)]  # hysteresis
    assert told(inspected(tmp_path / "a.h5", timeline), *SCALE_LABELS) == []


def test_a_growth_that_is_long_overdue_is_told(tmp_path: Path) -> None:
    scaler = Scaler(growth_interval=20)
    held = Scaler().rows(100)
    (finding,) = told(inspected(tmp_path / "a.h5", held, facts={0: scaler.facts(0)}), *SCALE_LABELS)
    assert (finding.label, finding.severity) == ("loss-scale-stuck", Severity.WARNING)
    assert finding.summary == (
        "The loss scale stays at 65,536 (2^16) over steps 0-99, though none of them was skipped and it grows every 20 "
        "steps by its settings."
    )
    # Two scalers of one scale look like one that is updated twice as often.
    assert told(inspected(tmp_path / "b.h5", held[:80], facts={0: scaler.facts(0)}), *SCALE_LABELS) == []


def test_a_scaler_that_begins_anew_in_every_step_is_told(tmp_path: Path) -> None:
    scaler = Scaler()
    facts = {step: scaler.facts(step, growth_tracker=0, growth_tracker_after=1) for step in range(4)}
    result = inspected(tmp_path / "a.h5", scaler.rows(20), facts=facts)
    (finding,) = told(result, *SCALE_LABELS)
    assert (finding.label, finding.severity) == ("loss-scale-stuck", Severity.WARNING)
    assert finding.summary.startswith("The growth count of the scaler is 0 as each of steps 0-3 begins, though the ")
    counted = {step: scaler.facts(step, growth_tracker=step, growth_tracker_after=step + 1) for step in range(4)}
    assert told(inspected(tmp_path / "b.h5", scaler.rows(20), facts=counted), *SCALE_LABELS) == []


# ---- unstable


def test_a_scale_that_jumps_to_nothing_is_an_error(tmp_path: Path) -> None:
    timeline = [row(0, 131072.0, 131072.0), row(1, 131072.0, 5e-23), row(2, 5e-23, 5e-23)]
    (finding,) = told(inspected(tmp_path / "a.h5", timeline), *SCALE_LABELS)
    assert (finding.label, finding.severity) == ("loss-scale-unstable", Severity.ERROR)
    assert (finding.where.step, finding.where.phase, finding.where.slot) == (1, "scaler", "scale")
    assert finding.summary == (
        "The loss scale goes from 131,072 (2^17) to 5.000e-23 in step 1, which was not skipped: that is 91 halvings, "
        "and a scaler makes one. Nothing of a gradient in fp16 is left at such a scale."
    )


def test_a_jump_between_two_steps_to_a_scale_that_works_is_a_warning(tmp_path: Path) -> None:
    timeline = [row(0, 65536.0, 65536.0), *(row(step, 128.0, 128.0) for step in range(1, 5))]
    (finding,) = told(inspected(tmp_path / "a.h5", timeline), *SCALE_LABELS)
    assert (finding.label, finding.severity) == ("loss-scale-unstable", Severity.WARNING)
    assert finding.summary == (
        "The loss scale goes from 65,536 (2^16) to 128 (2^7) between step 1 and the one before, without a skip: that "
        "is 9 halvings, and a scaler makes one."
    )


@pytest.mark.parametrize("after", [math.inf, 0.0, -1.0])
def test_what_is_no_scale_is_an_error(tmp_path: Path, after: float) -> None:
    timeline = [row(0, 65536.0, after), row(1, after, after)]
    assert labels(told(inspected(tmp_path / "a.h5", timeline), *SCALE_LABELS)) == [("loss-scale-unstable", "error")]


def test_more_skips_than_growths_explain_are_a_warning(tmp_path: Path) -> None:
    scaler = Scaler(growth_interval=200)
    often = scaler.rows(1000, range(60, 1000, 30))
    found = told(inspected(tmp_path / "a.h5", often, facts={0: scaler.facts(0)}), "loss-scale-unstable")
    assert labels(found) == [("loss-scale-unstable", "warning")]
    assert found[0].summary.startswith("32 of 950 steps after step 50 are skipped (3.4 %): the loss scale goes up and ")


@settings(max_examples=20)
@given(
    start=st.integers(4, 24),
    interval=st.integers(20, 400),
    overflows=st.sets(st.integers(0, 9), max_size=6),
    growths=st.booleans(),
)
def test_no_scaler_that_finds_its_scale_is_accused(
    start: int, interval: int, overflows: set[int], growths: bool
) -> None:
    scaler = Scaler(start=2.0**start, growth_interval=interval)
    late: set[int] = set()
    for step in range(interval, 600, interval + 1):
        late |= {step} if growths else set()
    rows = scaler.rows(600, overflows | late)
    facts = {0: scaler.facts(0)}
    found = [problem for course in scale_courses(rows, facts) for problem in problems(course, facts)]
    lowest = min(one.loss_scale for one in rows)
    assert [problem for problem in found if problem.severity is Severity.ERROR and lowest > 1.0] == []
