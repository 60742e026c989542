"""The tables behind the page of an inspection, of real captures: a birth of NaN, reasons, lost updates, ranks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from align.commands import inspect_files
from align.inspection.tables import JOB_TABLES, TABLES
from align.records import InspectResult, Table
from tests.learning_runs import Training
from tests.rank_files import Rank, inspect_ranks
from tests.seen import record
from tests.test_learning_recomputing import captured, drawing, keeping


def table(result: InspectResult, name: str) -> Table | None:
    return next((each for each in result.tables if each.name == name), None)


def rows(result: InspectResult, name: str) -> list[tuple[Any, ...]]:
    found = table(result, name)
    return [] if found is None else list(found.rows)


def answers(result: InspectResult) -> list[str]:
    return [row[2] for row in rows(result, "learning")]


def of_training(folder: Path, **given: Any) -> InspectResult:
    return inspect_files(str(Training(**given).write(folder / f"{len(list(folder.iterdir()))}.h5")))


class Divided(nn.Module):
    """Divides by its input, which holds a zero in step 1."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.tanh(self.first(x)) / x)  # type: ignore[no-any-return]


def divide(*, by_zero: int) -> Callable[[], None]:
    def train() -> None:
        torch.manual_seed(0)
        model = Divided()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(3):
            x = torch.randn(5, 4, generator=torch.Generator().manual_seed(step))
            if step == by_zero:
                x[2, 3] = 0.0
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

    return train


@pytest.fixture(scope="module")
def divided(tmp_path_factory: pytest.TempPathFactory) -> InspectResult:
    path = tmp_path_factory.mktemp("divided") / "a.h5"
    record(path, divide(by_zero=1))
    return inspect_files(str(path))


def test_the_steps_around_a_birth_are_told_phase_by_phase(divided: InspectResult) -> None:
    found = table(divided, "nonfinite_steps")

    assert found is not None
    assert [str(column.title) for column in found.columns] == [
        "step", "forward", "loss", "backward", "gradient", "update", "param", "loss scale", "skipped",
    ]  # fmt: skip
    assert [row[:2] for row in found.rows] == [(0, "finite"), (1, "2 of 6 not finite"), (2, "4 of 6 not finite")]
    assert found.rows[0][1:7] == ("finite",) * 6
    assert found.question == "finite numbers"


def test_the_producer_of_code_between_modules_is_told_with_what_it_had(divided: InspectResult) -> None:
    found = rows(divided, "nonfinite_producer")

    assert [(row[0], row[1]) for row in found if row[1] == "starts here"] == [("second input.0", "starts here")]
    assert ("first output.0", "leaves") in [(row[0], row[1]) for row in found]
    assert [row[4:6] for row in found][:-1] == [(0, 0)] * (len(found) - 1)


def test_those_that_carry_it_on_are_counted(divided: InspectResult) -> None:
    found = table(divided, "nonfinite_later")

    assert found is not None
    assert found.rows[0][:3] == (1, "forward", "second output.0")
    assert found.lead.endswith(f"There are {len(found.rows)} in the captured steps.")
    assert all(row[3] or row[4] for row in found.rows)


def test_without_inputs_the_producer_may_be_a_victim(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    record(path, divide(by_zero=1), modules=["second"], phases=["forward", "loss"])

    found = table(inspect_files(str(path)), "nonfinite_producer")

    assert found is not None
    assert found.lead.startswith("The inputs of this module were not captured, so it may itself be a victim;")
    assert [row[1] for row in found.rows] == ["starts here"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, ["no", "no", "no", "no", "no", "no"], id="healthy"),
        pytest.param(
            {"rate": 0.0, "losses": (2.0, 2.0, 2.0)}, ["yes", "no", "no", "yes", "not measured", "yes"], id="no rate"
        ),
        pytest.param(
            {"dtype": "bfloat16", "rate": 1e-6, "losses": (2.0, 2.0, 2.0)},
            ["no", "no", "no", "no", "yes", "yes"],
            id="lost in rounding",
        ),
    ],
)
def test_the_reasons_are_asked_in_their_order(tmp_path: Path, given: dict[str, Any], expected: list[str]) -> None:
    result = of_training(tmp_path, **given)

    assert answers(result)[:6] == expected
    assert [row[0] for row in rows(result, "learning")] == list(range(1, 8))


def test_what_was_not_captured_says_what_to_capture(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    record(path, divide(by_zero=-1), phases=["forward", "loss"])

    found = {row[1]: row[2:] for row in rows(inspect_files(str(path)), "learning")}

    answer, seen = found["the parameters stay as they are, to the last bit"]
    assert answer == "not measured"
    assert "--phases all" in seen


def test_parameters_whose_updates_are_lost_are_listed_with_numbers(tmp_path: Path) -> None:
    result = of_training(tmp_path, dtype="bfloat16", rate=1e-6, losses=(2.0, 2.0, 2.0))

    found = rows(result, "unmoved")
    assert [row[0] for row in found] == ["fc bias", "head weight", "norm weight", "fc weight"]
    assert all(row[1] > 0.99 and (row[3], row[7]) == ("bfloat16", True) for row in found)
    assert rows(of_training(tmp_path), "unmoved") == []


def test_what_checkpoints_compute_again_is_counted_step_by_step(tmp_path: Path) -> None:
    same = rows(inspect_files(str(captured(tmp_path / "a.h5", keeping, 0.5))), "recomputed")
    other = rows(inspect_files(str(captured(tmp_path / "b.h5", drawing, 0.5))), "recomputed")

    assert [row[0] for row in same] == [0, 1]
    assert all(row[1] > 0 and row[1] == row[2] and row[3:] == (0, None, None) for row in same)
    assert all(row[3] > 0 and row[4] is not None for row in other)


def test_ranks_stand_beside_one_another_and_one_has_no_table(tmp_path: Path) -> None:
    found = rows(inspect_ranks(tmp_path, [Rank(), Rank()]), "ranks")

    assert [row[0] for row in found] == [0, 1]
    assert all(row[2] == 1 for row in found)
    assert rows(of_training(tmp_path), "ranks") == []


def test_names_of_tables_are_unique_and_columns_fit(divided: InspectResult) -> None:
    names = [each.name for each in divided.tables]

    assert len(names) == len(set(names))
    assert all(len(row) == len(each.columns) for each in divided.tables for row in each.rows)
    assert len(TABLES) == len(set(TABLES))
    assert len(JOB_TABLES) == 1
