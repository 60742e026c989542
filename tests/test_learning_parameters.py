"""AL704, AL705, AL706: what keeps parameters from being updated, and what only looks like it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from align.commands import inspect_files
from align.diagnosis.run import loss_stall, not_updated, update_lost, weight_decay_groups
from align.inspection import learning_questions
from align.records import Health, Severity, State
from tests.builders import write_capture
from tests.learning_runs import Training, answer, curve, falling, found, told

ALL = frozenset(("fc.weight", "fc.bias", "head.weight", "norm.weight"))


def test_a_healthy_run_has_no_finding(tmp_path: Path) -> None:
    path = Training(losses=falling(120).tolist()).write(tmp_path / "a.h5")
    for rule in (not_updated, update_lost, loss_stall, weight_decay_groups):
        assert told(path, rule.find) == []
    reply = answer(path, learning_questions.parameters)
    assert (reply.state, reply.sentence) == (State.GOOD, "4 of 4 parameters with a gradient moved.")
    assert inspect_files(str(path)).verdict is Health.HEALTHY


@pytest.mark.parametrize(
    ("zeros", "state", "sentence"),
    [
        (
            {"norm.weight"},
            State.GOOD,
            (
                "3 of 3 parameters with a gradient other than 0 moved. 1 parameter of the optimizer got gradients that "
                "are all 0."
            ),
        ),
        (
            {"fc.weight", "fc.bias", "head.weight"},
            State.UNKNOWN,
            (
                "1 of 1 parameter with a gradient other than 0 moved. 3 parameters of the optimizer got gradients that "
                "are all 0. Whether that is meant cannot be told."
            ),
        ),
    ],
    ids=["one", "most"],
)
def test_gradients_of_zeros_are_told_and_are_no_sign_of_health(
    tmp_path: Path, zeros: set[str], state: State, sentence: str
) -> None:
    path = Training(gradient=lambda name, _step, draw: 0.0 * draw if name in zeros else draw).write(tmp_path / "a.h5")
    reply = answer(path, learning_questions.parameters)
    assert (reply.state, reply.sentence) == (state, sentence)


# ---- from the timeline alone


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(
            curve([2.3 + 0.01 * (step % 2) for step in range(200)], learning_rate=0.0),
            [(Severity.ERROR, "The learning rate is 0 in all 200 steps that were seen: no parameter can move.")],
            id="rate 0",
        ),
        pytest.param(
            curve(falling(200), learning_rate=0.0),
            [(Severity.WARNING, "The learning rate is 0 in all 200 steps that were seen: no parameter can move.")],
            id="rate 0 of the first group, and the loss falls",
        ),
        pytest.param(
            curve(falling(200), learning_rate=[max(0.0, 0.1 - 0.001 * step) for step in range(200)]),
            [
                (
                    Severity.WARNING,
                    (
                        "The learning rate is 0 from step 100 to the end of the run, 100 steps: from there on no "
                        "parameter moves."
                    ),
                )
            ],
            id="the schedule ends too early",
        ),
        pytest.param(
            curve([2.3] * 20, skipped=True),
            [
                (
                    Severity.ERROR,
                    "All 20 steps were skipped because a gradient was not finite: no parameter has moved.",
                )
            ],
            id="all skipped",
        ),
        pytest.param(
            curve([2.3 + 0.01 * (step % 2) for step in range(20)], gradient_norm=0.0),
            [
                (
                    Severity.ERROR,
                    "All gradients are exactly 0 in 20 steps, the loss is not: nothing can be learned from it.",
                )
            ],
            id="no gradient",
        ),
        pytest.param(curve([2.3, 2.2], learning_rate=0.0), [], id="two steps of a warm-up"),
        pytest.param(curve(falling(50), learning_rate=[0.0, *[0.1] * 49]), [], id="a warm-up from 0"),
        pytest.param(curve(falling(50), learning_rate=[*[0.1] * 45, *[0.0] * 5]), [], id="the end of a schedule"),
        pytest.param(curve([2.3] * 8, skipped=True), [], id="a scaler that looks for its scale"),
        pytest.param(curve([0.0] * 20, gradient_norm=0.0), [], id="a loss of 0"),
    ],
)
def test_the_timeline_alone_tells(tmp_path: Path, rows: Any, expected: list[tuple[Severity, str]]) -> None:
    assert told(write_capture(tmp_path / "a.h5", {}, timeline=rows), not_updated.find) == expected


# ---- from captured steps


def test_gradients_of_zero_are_named(tmp_path: Path) -> None:
    path = Training(gradient=lambda _name, _step, draw: 0.0 * draw).write(tmp_path / "a.h5")
    (finding,) = found(path, not_updated.find)
    assert finding.severity is Severity.ERROR
    assert finding.summary == "All gradients are exactly 0 in 3 steps, the loss is not: nothing can be learned from it."
    assert inspect_files(str(path)).verdict is Health.UNHEALTHY


def test_gradients_of_zero_in_one_step_are_an_odd_batch(tmp_path: Path) -> None:
    path = Training(gradient=lambda _name, step, draw: draw * (step != 1)).write(tmp_path / "a.h5")
    assert told(path, not_updated.find) == []


def test_an_optimizer_without_the_parameters_is_an_error(tmp_path: Path) -> None:
    path = Training(loose=ALL - {"norm.weight"}, owned=["norm.weight"]).write(tmp_path / "a.h5")
    assert told(path, not_updated.find) == [
        (
            Severity.ERROR,
            (
                "None of the 3 parameters that get a gradient belongs to the optimizer (fc weight, fc bias and head "
                "weight): it updates others, or none."
            ),
        )
    ]


def test_some_parameters_outside_the_optimizer_are_a_warning(tmp_path: Path) -> None:
    path = Training(loose=frozenset({"head.weight"})).write(tmp_path / "a.h5")
    assert told(path, not_updated.find) == [
        (
            Severity.WARNING,
            "1 of 4 parameters with a gradient is in no optimizer, so that nothing moves it: head weight.",
        )
    ]


def test_of_several_optimizers_one_may_have_them(tmp_path: Path) -> None:
    facts = {("optimizers", "count"): 2}
    path = Training(loose=frozenset({"head.weight"}), facts=facts).write(tmp_path / "a.h5")
    assert told(path, not_updated.find) == []


def test_an_optimizer_of_copies_is_not_judged(tmp_path: Path) -> None:
    facts = {("<parameters>", "group0.0.group"): "group0"}
    path = Training(loose=ALL, facts=facts).write(tmp_path / "a.h5")
    assert told(path, not_updated.find) == []


def test_parameters_that_stay_as_they_are_are_named(tmp_path: Path) -> None:
    path = Training(update=lambda name, change: change * (name != "head.weight")).write(tmp_path / "a.h5")
    assert told(path, not_updated.find) == [
        (
            Severity.WARNING,
            (
                "1 of 4 parameters with a gradient and a learning rate is the same to the last bit after 3 steps, "
                "though the update is large enough to be seen: head weight."
            ),
        )
    ]
    still = Training(update=lambda _name, change: 0.0 * change).write(tmp_path / "b.h5")
    (finding,) = found(still, not_updated.find)
    assert (finding.severity, finding.where.name) == (Severity.ERROR, "fc")
    result = inspect_files(str(still))
    assert [(one.code, one.explained_by) for one in result.findings] == [("AL706", ""), ("AL702", "AL706")]


def test_a_parameter_that_stands_still_once_is_no_finding(tmp_path: Path) -> None:
    path = Training(steps=1, losses=(2.0,), update=lambda _name, change: 0.0 * change).write(tmp_path / "a.h5")
    assert told(path, not_updated.find) == []


# ---- lost in rounding


def test_updates_that_bf16_cannot_hold_are_lost(tmp_path: Path) -> None:
    path = Training(dtype="bfloat16", rate=1e-6, losses=(2.0, 2.0, 2.0)).write(tmp_path / "a.h5")
    (finding,) = found(path, update_lost.find)
    assert finding.severity is Severity.ERROR
    assert finding.summary == (
        "The updates of 100.0 % of the elements are lost in rounding, in all 3 steps that could be judged: fc weight "
        "is bf16, where half the distance between two numbers is about 3.895e-4, and its update about 9.724e-7. 4 of 4 "
        "parameters are concerned."
    )
    assert told(path, not_updated.find) == []


def test_lost_updates_of_a_run_that_learns_are_a_warning(tmp_path: Path) -> None:
    run = Training(dtype="bfloat16", rate=1e-6, losses=falling(200).tolist())
    (finding,) = found(run.write(tmp_path / "a.h5"), update_lost.find)
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(Training(dtype="bfloat16", rate=1e-2), id="updates as large as the spacing"),
        pytest.param(Training(dtype="bfloat16", rate=3e-4), id="updates of half the spacing"),
        pytest.param(Training(rate=1e-6), id="float32"),
        pytest.param(Training(rate=1e-12), id="float32, nothing left to learn"),
        pytest.param(Training(dtype="bfloat16", rate=1e-6, steps=1, losses=(2.0,)), id="one step"),
        pytest.param(
            Training(dtype="bfloat16", rate=1e-2, gradient=lambda _name, _step, draw: np.where(draw > 2.0, draw, 0.0)),
            id="few elements with a gradient",
        ),
    ],
)
def test_other_updates_are_not_lost(tmp_path: Path, run: Training) -> None:
    path = run.write(tmp_path / "a.h5")
    assert told(path, update_lost.find) == []
    assert told(path, not_updated.find) == []


# ---- groups of weight decay


def test_a_norm_among_decayed_weights_is_noted(tmp_path: Path) -> None:
    decay = {"fc.weight": 0.1, "head.weight": 0.1, "norm.weight": 0.1}
    assert told(Training(decay=decay).write(tmp_path / "a.h5"), weight_decay_groups.find) == [
        (
            Severity.NOTE,
            "1 of 2 parameters of one dimension is decayed (0.1) while 1 is not: norm weight.",
        )
    ]


@pytest.mark.parametrize(
    "decay",
    [dict.fromkeys(ALL, 0.1), {"fc.weight": 0.1, "head.weight": 0.1}, {}],
    ids=["all alike", "none of one dimension", "no decay"],
)
def test_other_groups_are_no_finding(tmp_path: Path, decay: dict[str, float]) -> None:
    assert told(Training(decay=decay).write(tmp_path / "a.h5"), weight_decay_groups.find) == []


def test_without_the_phases_it_is_said_what_to_capture(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "a.h5", {}, timeline=curve(falling(50)))
    reply = answer(path, learning_questions.parameters)
    assert (reply.state, reply.sentence) == (
        State.UNKNOWN,
        ("Whether the parameters move cannot be told: no step was captured; capture steps 0 to 2 with --steps 0:3."),
    )
    assert answer(path, learning_questions.optimizer).sentence == (
        "Whether the optimizer follows its formula cannot be told: no step was captured; capture steps 0 to 2 with "
        "--steps 0:3."
    )
