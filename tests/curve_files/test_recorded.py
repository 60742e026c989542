"""`nan` and 0 that only fill a cell, and losses that really were NaN."""

from __future__ import annotations

from pathlib import Path

import pytest

from align.curve_records import Curves, Quantity
from tests.curve_files.reading import read, steps, values, where

LEFT_OUT = "Rows with nan or 0 in the column 'loss' where no loss was logged: {}. They were left out."


def table(folder: Path, losses: list[object], **others: list[object]) -> Curves:
    """The curves of a table with these cells."""
    columns = {"step": list(range(len(losses))), "loss": losses, **others}
    rows = zip(*columns.values(), strict=True)
    return read(folder, "\n".join(",".join(map(str, row)) for row in [tuple(columns), *rows]) + "\n", "run.csv")


@pytest.mark.parametrize("filler", ["nan", "NaN", "0", "0.0"])
def test_loss_that_is_logged_every_ten_steps(filler: str, tmp_path: Path) -> None:
    curves = table(tmp_path, [filler if n % 10 else 3 - n / 100 for n in range(38)], lr=[1] * 38)
    assert len(curves.steps) == 38
    assert [loss for loss in values(curves) if loss is not None] == [3.0, 2.9, 2.8, 2.7]
    assert where(curves, curves.nonfinite) == []
    assert curves.notes == (LEFT_OUT.format(34),)


def test_loss_that_is_logged_every_ten_steps_and_became_nan(tmp_path: Path) -> None:
    curves = table(tmp_path, ["nan" if n % 10 or n > 50 else 3 - n / 100 for n in range(95)])
    assert steps(curves) == list(range(0, 95, 10))
    assert where(curves, curves.nonfinite) == [60, 70, 80, 90]


def test_loss_that_became_nan(tmp_path: Path) -> None:
    curves = table(tmp_path, [3, 2.9, 2.8, "nan", "nan", "nan", "nan", "nan"])
    assert where(curves, curves.nonfinite) == [3, 4, 5, 6, 7]
    assert curves.notes == ()


def test_single_loss_that_was_nan(tmp_path: Path) -> None:
    curves = table(tmp_path, [3, 2.9, 2.8, "nan", 2.7, 2.6, "inf", 2.5])
    assert where(curves, curves.nonfinite) == [3, 6]


def test_loss_that_was_never_a_number(tmp_path: Path) -> None:
    curves = table(tmp_path, ["nan"] * 5)
    assert where(curves, curves.nonfinite) == [0, 1, 2, 3, 4]


def test_cells_before_the_first_number(tmp_path: Path) -> None:
    curves = table(tmp_path, ["nan", 0.0, 3, 2.9, 2.8])
    assert steps(curves) == [2, 3, 4]
    assert curves.notes == (LEFT_OUT.format(2),)


def test_loss_that_became_zero(tmp_path: Path) -> None:
    curves = table(tmp_path, [3, 2, 1, 0, 0, 0.5, 0, 0, 0])
    assert values(curves) == [3, 2, 1, 0, 0, 0.5, 0, 0, 0]
    assert curves.notes == ()


def test_rows_of_validation(tmp_path: Path) -> None:
    losses: list[object] = [3, 2.9, "nan", 2.8, 2.7, "nan", 2.6]
    curves = table(tmp_path, losses, val_loss=["nan", "nan", 3.1, "nan", "nan", 3.0, "nan"])
    assert steps(curves) == [0, 1, 3, 4, 6]
    assert where(curves, curves.nonfinite) == []


def test_row_of_a_resumed_run_that_holds_nothing_does_not_replace(tmp_path: Path) -> None:
    curves = read(tmp_path, "step,loss,val_loss\n0,3,nan\n1,2.9,nan\n1,nan,3.1\n2,2.8,nan\n")
    assert values(curves) == [3, 2.9, 2.8]
    assert where(curves, curves.nonfinite) == []


def test_empty_cells_are_never_losses(tmp_path: Path) -> None:
    curves = table(tmp_path, [3, "", 2.8, "", "", "n/a", "None", "null", "-"], lr=[1] * 9)
    assert values(curves) == [3, None, 2.8, None, None, None, None, None, None]
    assert where(curves, curves.nonfinite) == []


def test_zero_beside_a_gradient_norm_of_nan(tmp_path: Path) -> None:
    curves = table(tmp_path, [3, 2.9, 0.0, 0.0], grad_norm=[1, "nan", "nan", 0.5])
    assert where(curves, curves.nonfinite) == [2]
    assert values(curves) == [3, 2.9, None, 0.0]
    assert values(curves, Quantity.GRADIENT_NORM) == [1, None, None, 0.5]


def test_column_that_was_never_recorded(tmp_path: Path) -> None:
    curves = table(tmp_path, [0.0] * 4, lr=[1] * 4)
    assert values(curves) == [0, 0, 0, 0]
