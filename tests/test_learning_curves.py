"""Curves of one run from its timeline alone: what stalls, jumps, rises, slows down; and what only looks like it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from align.capture_file import open_capture
from align.diagnosis.run import loss_spike, loss_stall, step_time_cliff
from align.inspection import RunView, learning_questions
from align.inspection.loss_curve import loss_curve
from align.inspection.stall import classes_of
from align.inspection.step_times import step_times
from align.records import Phase, Severity, State, TensorKey, TensorRecord
from tests.builders import record_of, write_capture
from tests.learning_runs import answer, curve, falling, found, told

CLASSES = 10
GUESS = math.log(CLASSES)


def noisy(level: float, steps: int, noise: float = 0.02, seed: int = 0) -> NDArray[np.float64]:
    return level * (1.0 + noise * np.random.default_rng(seed).standard_normal(steps))


def classified(classes: int = CLASSES, dtype: str = "float32") -> dict[int, list[TensorRecord]]:
    """One captured step of a classifier: its logits, its targets, its loss."""
    logits = np.zeros((32, classes), dtype=np.float32)
    targets = np.arange(32) % classes
    return {
        0: [
            record_of(TensorKey(0, Phase.FORWARD, "<Net>", "output.0"), logits),
            record_of(TensorKey(0, Phase.LOSS, "loss", "target"), targets),
            record_of(TensorKey(0, Phase.LOSS, "loss", "value"), np.float32(GUESS).reshape(()), dtype=dtype),
        ]
    }


# ---- the loss stalls


def test_a_loss_of_guessing_is_named_with_its_classes(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "a.h5", classified(), timeline=curve(noisy(GUESS, 200, 0.004)))
    assert told(path, loss_stall.find) == [
        (
            Severity.WARNING,
            (
                "The loss does not fall: 2.3035 in the first and 2.3010 in the last of 200 steps, and ln(10) = 2.3026 "
                "is what guessing among 10 classes gives."
            ),
        )
    ]
    reply = answer(path, learning_questions.loss)
    assert (reply.state, reply.sentence) == (
        State.BAD, "The loss stays where guessing has it (2.3035 first, 2.3010 last, 200 steps)."
    )  # fmt: skip


@pytest.mark.parametrize(
    ("losses", "rates"),
    [
        pytest.param(noisy(2.1, 200), 0.1, id="flat, but better than guessing"),
        pytest.param(falling(200), 0.1, id="falling"),
        pytest.param(noisy(GUESS, 80), 0.1, id="too few steps"),
        pytest.param(noisy(GUESS, 200), [1e-6 * step for step in range(200)], id="still warming up"),
        pytest.param(noisy(0.01, 200, 0.5), 0.1, id="converged"),
    ],
)
def test_a_flat_loss_alone_is_no_finding(
    tmp_path: Path, losses: NDArray[np.float64], rates: float | list[float]
) -> None:
    path = write_capture(tmp_path / "a.h5", classified(), timeline=curve(losses, learning_rate=rates))
    assert told(path, loss_stall.find) == []


def test_of_a_flat_loss_it_is_said_what_cannot_be_told(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "a.h5", classified(), timeline=curve(noisy(1.5, 200)))
    reply = answer(path, learning_questions.loss)
    assert (reply.state, reply.sentence) == (
        State.UNKNOWN,
        (
            "The loss does not fall by more than its noise (1.5030 first, 1.4947 last, 200 steps). Whether that is "
            "wrong cannot be told: training that goes on from a finished model looks the same, and so do targets that "
            "belong to other inputs."
        ),
    )


def test_a_loss_that_is_constant_to_the_last_bit_is_an_error(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "a.h5", classified(), timeline=curve([1.25] * 12))
    assert told(path, loss_stall.find) == [
        (
            Severity.ERROR,
            "The loss is 1.2500 in all 12 steps, equal to the last bit: it does not depend on what is trained.",
        )
    ]


@pytest.mark.parametrize(
    ("losses", "dtype"),
    [
        pytest.param([1.25] * 9, "float32", id="few steps"),
        pytest.param([1.25] * 30, "bfloat16", id="a loss of three digits"),
        pytest.param([0.0] * 200, "float32", id="nothing left to learn"),
        pytest.param([1.25] * 11 + [1.2500001], "float32", id="one bit"),
    ],
)
def test_what_only_looks_constant_is_no_finding(tmp_path: Path, losses: list[float], dtype: str) -> None:
    path = write_capture(tmp_path / "a.h5", classified(dtype=dtype), timeline=curve(losses))
    assert told(path, loss_stall.find) == []


@pytest.mark.parametrize(
    ("output", "target", "classes"),
    [
        ((32, 10), (32,), 10),
        ((4, 16, 50), (4, 16), 50),
        ((4, 16, 50), (64,), 50),
        ((4, 16, 50), (4, 15), 50),
        ((2, 7, 8, 8), (2, 8, 8), 7),
        ((32, 1), (32,), None),
        ((32, 10), (31,), None),
        ((32,), (32,), None),
    ],
    ids=str,
)
def test_the_number_of_classes_is_read_from_outputs_and_targets(
    tmp_path: Path, output: tuple[int, ...], target: tuple[int, ...], classes: int | None
) -> None:
    records = [
        record_of(TensorKey(0, Phase.FORWARD, "<Net>", "output.logits"), np.zeros(output, dtype=np.float32)),
        record_of(TensorKey(0, Phase.LOSS, "loss", "target"), np.zeros(target, dtype=np.int64)),
    ]
    with open_capture(write_capture(tmp_path / "a.h5", {0: records})) as capture:
        assert classes_of(RunView(capture)) == classes


# ---- the loss jumps


def test_a_jump_is_told_with_the_steps_to_capture(tmp_path: Path) -> None:
    losses = falling(300)
    losses[200:203] = 2.0
    path = write_capture(tmp_path / "a.h5", {}, timeline=curve(losses))
    (finding,) = found(path, loss_spike.find)
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "The loss jumps in step 200 from 0.6736 to 2.0000. Which gradient grew first is not known: the steps around it "
        "were not captured."
    )
    assert finding.advice.startswith("Capture these steps with `align capture --steps 195:202` and inspect again")


def test_a_loss_that_rises_and_stays_is_told_as_such(tmp_path: Path) -> None:
    losses = falling(300)
    losses[250:] += 1.0
    assert told(write_capture(tmp_path / "a.h5", {}, timeline=curve(losses)), loss_spike.find) == [
        (
            Severity.WARNING,
            (
                "The loss rises in step 250 from 0.5920 to at most 1.5961 and is not back at the end of the run, 50 "
                "steps later. Which gradient grew first is not known: the steps around it were not captured."
            ),
        )
    ]


@pytest.mark.parametrize(("step", "words"), [(198, "rose before, in step 198"), (200, "rose with it, in step 200")])
def test_it_is_told_whether_the_norm_of_the_gradients_rose_first(tmp_path: Path, step: int, words: str) -> None:
    losses = falling(300)
    losses[200] = 2.0
    norms = [1.0] * 300
    norms[step] = 20.0
    path = write_capture(tmp_path / "a.h5", {}, timeline=curve(losses, gradient_norm=norms))
    assert words in told(path, loss_spike.find)[0][1]


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("seed", range(4))
def test_noise_is_no_jump(tmp_path: Path, noise: float, seed: int) -> None:
    path = write_capture(tmp_path / "a.h5", {}, timeline=curve(falling(1000, noise, seed)))
    assert told(path, loss_spike.find) == []


def test_near_zero_a_loss_may_jump() -> None:
    losses = falling(400, 0.02, end=0.001)
    losses[300] = 0.03
    assert loss_curve(curve(losses)).jumps == ()


def test_optimizers_that_take_turns_have_losses_of_their_own(tmp_path: Path) -> None:
    losses = np.where(np.arange(200) % 7 == 0, 3.0, 1.0)
    turns = ["Adam" if step % 7 else "SGD" for step in range(200)]
    assert told(write_capture(tmp_path / "a.h5", {}, timeline=curve(losses, optimizer=turns)), loss_spike.find) == []


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), max_size=150), st.floats(0.1, 10.0))
def test_a_curve_says_the_same_in_another_unit(losses: list[float], factor: float) -> None:
    factor = 2.0 ** round(math.log2(factor))
    one, other = loss_curve(curve(losses)), loss_curve(curve([loss * factor for loss in losses]))
    assert (one.fell, one.constant, one.count) == (other.fell, other.constant, other.count)
    assert [jump.step for jump in one.jumps] == [jump.step for jump in other.jumps]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(21, 240))
def test_the_windows_of_a_curve_are_those_of_its_definition(seed: int, count: int) -> None:
    """The sliding medians equal medians taken one by one."""
    losses = np.random.default_rng(seed).lognormal(size=count)
    expected = []
    for place in range(20, count):
        before = losses[max(0, place - 50) : place]
        middle = np.median(before)
        spread = 6.0 * 1.4826 * np.median(np.abs(before - middle))
        if losses[place] > middle + max(spread, 0.1 * middle, 0.05 * losses[0]):
            expected.append(place)
    curve_of = loss_curve(curve(losses))
    if curve_of.rise is None:
        firsts = [place for number, place in enumerate(expected) if not number or place - expected[number - 1] > 10]
        assert [jump.step for jump in curve_of.jumps] == firsts


# ---- the steps grow slow


def test_steps_that_take_longer_from_one_on_are_told(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    seconds = [float(0.1 * (1 + 0.1 * random.random()) * (3.0 if step >= 180 else 1.0)) for step in range(300)]
    path = write_capture(tmp_path / "a.h5", {}, timeline=curve(falling(300), seconds=seconds))
    assert told(path, step_time_cliff.find) == [
        (
            Severity.NOTE,
            "From step 180 on a step takes 0.317 seconds, 0.106 before: 3.002 times as long.",
        )
    ]


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param([0.1 + (step % 50 == 0) for step in range(300)], id="validation"),
        pytest.param([0.1 * (1 + step / 300) for step in range(300)], id="slowly"),
        pytest.param([0.1 if step < 270 else 0.4 for step in range(300)], id="a short load at the end"),
        pytest.param([5.0 if step < 10 else 0.1 for step in range(300)], id="warm-up"),
        pytest.param([0.4 if 100 <= step < 180 else 0.1 for step in range(300)], id="a load that ends"),
    ],
)
def test_other_times_are_no_cliff(seconds: list[float]) -> None:
    assert step_times(curve(falling(300), seconds=seconds)).cliff is None


def test_captured_steps_are_slower_and_do_not_count() -> None:
    rows = [replace(row, seconds=1.0) if row.step >= 150 else row for row in curve(falling(300))]
    assert step_times(rows, range(150, 300)).cliff is None
    assert step_times(rows).cliff == 150
