"""JSON lines, arrays, the state of a Trainer, and columns in an object."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from align.curve_files import read_curves
from align.curve_records import CurveKind, Quantity
from tests.curve_files.reading import SAMPLES, ZERO_FOR_NAN, read, steps, values, where


def test_state_of_a_trainer() -> None:
    curves = read_curves(str(SAMPLES / "trainer_state.json"))
    assert curves.kind is CurveKind.TRAINER_STATE
    assert steps(curves) == [10, 20, 30, 40]
    assert values(curves) == [1.4596, 1.3302, 1.2514, None]
    assert where(curves, curves.nonfinite) == [40]
    assert values(curves, Quantity.GRADIENT_NORM) == [2.25, 2.01, None, None]
    assert values(curves, Quantity.LEARNING_RATE) == [4.5e-5, 4e-5, 3.5e-5, 3e-5]
    assert curves.notes == (ZERO_FOR_NAN.format(1),)


def test_state_of_a_trainer_on_one_line(tmp_path: Path) -> None:
    state = json.loads((SAMPLES / "trainer_state.json").read_text())
    curves = read(tmp_path, json.dumps(state), "trainer_state.json")
    assert curves.kind is CurveKind.TRAINER_STATE
    assert steps(curves) == [10, 20, 30, 40]


def test_state_that_ends_in_the_middle(tmp_path: Path) -> None:
    text = (SAMPLES / "trainer_state.json").read_text()
    curves = read(tmp_path, text[: text.index('"eval_runtime"')], "trainer_state.json")
    assert steps(curves) == [10, 20]
    assert curves.notes == ("The file 'trainer_state.json' ends in the middle: it was read up to there.",)


def test_folder_of_a_trainer(tmp_path: Path) -> None:
    text = (SAMPLES / "trainer_state.json").read_text()
    for step in (20, 100, 40):
        (tmp_path / f"checkpoint-{step}").mkdir()
        content = text.replace("1.4596", f"{step}.5")
        (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text(content)
    assert values(read_curves(str(tmp_path)))[0] == 100.5
    (tmp_path / "trainer_state.json").write_text(text)
    assert values(read_curves(str(tmp_path)))[0] == 1.4596


def test_log_of_llama_factory() -> None:
    curves = read_curves(str(SAMPLES / "trainer_log.jsonl"))
    assert curves.kind is CurveKind.JSON_LINES
    assert steps(curves) == [10, 20, 30]
    assert values(curves) == [1.4596, 1.3302, 1.2514]
    assert values(curves, Quantity.TOKENS_PER_SECOND) == [2048.5, 2050.1, 2049.0]
    assert curves.taken[Quantity.LEARNING_RATE] == "lr"
    assert curves.notes == ()


def test_loss_that_is_null_is_not_recorded_and_nan_is_nan(tmp_path: Path) -> None:
    lines = [
        '{"step": 1, "loss": 2.5}',
        '{"step": 2, "loss": null}',
        '{"step": 3, "loss": NaN}',
        '{"step": 4, "loss": "inf"}',
    ]
    curves = read(tmp_path, "\n".join(lines))
    assert steps(curves) == [1, 3, 4]
    assert where(curves, curves.nonfinite) == [3, 4]


def test_lines_with_objects_inside(tmp_path: Path) -> None:
    curves = read(tmp_path, '{"step": 1, "train": {"loss": 2.5, "lr": [0.1]}}\n{"step": 2, "train": {"loss": 2.25}}\n')
    assert values(curves) == [2.5, 2.25]
    assert curves.taken == {Quantity.LOSS: "train/loss", Quantity.LEARNING_RATE: "train/lr"}


def test_lines_that_cannot_be_read(tmp_path: Path) -> None:
    text = '{"step": 1, "loss": 2.5}\n' + "[" * 100_000 + '\n{"step": 2, "loss": 2.25}\n{"step": 3, "lo'
    curves = read(tmp_path, text)
    assert values(curves) == [2.5, 2.25]
    assert curves.notes == ("Lines that could not be read: 2, the first is line 2. They were left out.",)


@pytest.mark.parametrize("indent", [None, 2])
def test_array_of_objects(indent: int | None, tmp_path: Path) -> None:
    rows = [{"step": step, "loss": 3 - step / 10} for step in range(5)]
    curves = read(tmp_path, json.dumps(rows, indent=indent), "run.json")
    assert curves.kind is CurveKind.JSON
    assert steps(curves) == [0, 1, 2, 3, 4]
    assert values(curves) == [3, 2.9, 2.8, 2.7, 2.6]
    assert curves.notes == ()


def test_array_that_ends_in_the_middle(tmp_path: Path) -> None:
    rows = [{"step": step, "loss": 3 - step / 10} for step in range(5)]
    curves = read(tmp_path, json.dumps(rows)[:-20], "run.json")
    assert steps(curves) == [0, 1, 2, 3]
    assert curves.notes == ("The file 'run.json' ends in the middle: it was read up to there.",)


@pytest.mark.parametrize(
    "content",
    [
        {"step": [1, 2], "train": {"loss": [2.5, 2.25]}},
        {"name": "run", "history": [{"step": 1, "loss": 2.5}, {"step": 2, "loss": 2.25}]},
    ],
    ids=["columns", "rows"],
)
def test_object_that_holds_all(content: dict[str, object], tmp_path: Path) -> None:
    curves = read(tmp_path, json.dumps(content, indent=1), "run.json")
    assert steps(curves) == [1, 2]
    assert values(curves) == [2.5, 2.25]


def test_objects_over_several_lines(tmp_path: Path) -> None:
    text = "\n".join(json.dumps({"step": step, "loss": 3.0 - step}, indent=2) for step in range(3))
    assert values(read(tmp_path, text)) == [3, 2, 1]


numbers = st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: number != 0)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(losses=st.lists(numbers | st.none(), min_size=1, max_size=20).filter(any), first=st.integers(-5, 10**9))
def test_what_json_writes_is_read(losses: list[float | None], first: int, tmp_path: Path) -> None:
    rows = [{"step": first + place, "loss": loss, "note": "<b>"} for place, loss in enumerate(losses)]
    expected = [row for row in rows if row["loss"] is not None]
    for text in ("\n".join(map(json.dumps, rows)), json.dumps(rows), json.dumps(rows, indent=1)):
        curves = read(tmp_path, text)
        assert steps(curves) == [row["step"] for row in expected]
        assert curves.columns[Quantity.LOSS].tolist() == [row["loss"] for row in expected]


def test_an_object_of_lists_on_one_line(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text('{"step": [0, 1, 2], "loss": [3.0, 2.5, NaN], "lr": [1, 1, 1]}', encoding="utf-8")
    curves = read_curves(str(path))
    assert curves.steps.tolist() == [0, 1, 2]
    assert curves.nonfinite.tolist() == [False, False, True]
