"""Tables of text: delimiters, headers, encodings, exports of other tools, rows that cannot be read."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from align.curve_records import CurveKind, Quantity
from tests.curve_files.reading import REPEATED, read, steps, values, where


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_delimiters_and_line_ends(delimiter: str, ending: str, tmp_path: Path) -> None:
    rows = [("step", "loss", "grad norm", "lr"), ("1", "2.5", "0.5", "1e-4"), ("2", "2.25", "0.25", "1e-4")]
    curves = read(tmp_path, ending.join(delimiter.join(row) for row in rows), "run.csv")
    assert curves.kind is CurveKind.CSV
    assert steps(curves) == [1, 2]
    assert values(curves) == [2.5, 2.25]
    assert values(curves, Quantity.GRADIENT_NORM) == [0.5, 0.25]
    assert values(curves, Quantity.LEARNING_RATE) == [1e-4, 1e-4]
    assert curves.notes == ()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    content = "step,loss\r\n1,2.5\r\n2,2.25\r\n".encode(encoding)
    curves = read(tmp_path, content, "run.csv")
    assert steps(curves) == [1, 2]
    assert values(curves) == [2.5, 2.25]
    assert curves.taken == {Quantity.LOSS: "loss"}
    assert curves.sha256 == hashlib.sha256(content).hexdigest()


def test_decimal_commas_between_semicolons(tmp_path: Path) -> None:
    assert values(read(tmp_path, "step;loss\n1;2,5\n2;-1,25e-2\n")) == [2.5, -0.0125]


def test_table_with_blanks_and_a_comment_as_header(tmp_path: Path) -> None:
    curves = read(tmp_path, "# made by savetxt\n# step loss\n0 2.5\n10 2.25\n")
    assert steps(curves) == [0, 10]
    assert values(curves) == [2.5, 2.25]


def test_two_columns_without_a_header(tmp_path: Path) -> None:
    curves = read(tmp_path, "10,2.5\n20,2.25\n")
    assert steps(curves) == [10, 20]
    assert values(curves) == [2.5, 2.25]
    assert curves.taken == {Quantity.LOSS: "column 2"}


def test_one_column_without_a_header(tmp_path: Path) -> None:
    curves = read(tmp_path, "2.5\n2.25\n2\n")
    assert steps(curves) == [0, 1, 2]
    assert values(curves) == [2.5, 2.25, 2.0]
    assert curves.notes == ("The file has no column of steps: its rows are numbered from 0.",)


def test_column_without_a_name_is_chosen_by_its_number(tmp_path: Path) -> None:
    curves = read(tmp_path, "1,0.5,2.5\n2,0.4,2.25\n", columns={Quantity.LOSS: "3", Quantity.GRADIENT_NORM: "column 2"})
    assert steps(curves) == [1, 2]
    assert values(curves) == [2.5, 2.25]
    assert values(curves, Quantity.GRADIENT_NORM) == [0.5, 0.4]


def test_export_of_weights_and_biases(tmp_path: Path) -> None:
    header = '"Step","run, 1 - train/loss","run, 1 - train/loss__MIN","run, 1 - train/loss__MAX"\n'
    curves = read(tmp_path, header + '"0","2.5","2.5","2.5"\n"10","2.25","2.25","2.25"\n')
    assert steps(curves) == [0, 10]
    assert values(curves) == [2.5, 2.25]
    assert curves.taken == {Quantity.LOSS: "run, 1 - train/loss"}


def test_exports_of_tensorboard(tmp_path: Path) -> None:
    table = read(tmp_path, "Wall time,Step,Value\n1700000000.5,1,2.5\n1700000001.5,2,2.25\n")
    lists = read(tmp_path, "[[1700000000.5, 1, 2.5], [1700000001.5, 2, 2.25]]")
    assert steps(table) == steps(lists) == [1, 2]
    assert values(table) == values(lists) == [2.5, 2.25]


def test_metrics_of_lightning(tmp_path: Path) -> None:
    rows = [
        "epoch,step,train_loss_epoch,train_loss_step,val_loss",
        "0,0,,2.5,",
        "0,1,,2.25,",
        "0,1,,,2.75",
        "0,1,2.375,,",
    ]
    curves = read(tmp_path, "\n".join([*rows, "1,2,,2,"]), "metrics.csv")
    assert steps(curves) == [0, 1, 2]
    assert values(curves) == [2.5, 2.25, 2.0]
    assert curves.taken == {Quantity.LOSS: "train_loss_step"}
    assert curves.notes == ()


def test_times_and_rates(tmp_path: Path) -> None:
    curves = read(tmp_path, "iteration,loss,step_time_ms,tokens/s,loss_scale\n1,2,500,1000,65536\n")
    assert values(curves, Quantity.SECONDS) == [0.5]
    assert values(curves, Quantity.TOKENS_PER_SECOND) == [1000]
    assert values(curves, Quantity.LOSS_SCALE) == [65536]


def test_skipped_steps(tmp_path: Path) -> None:
    curves = read(tmp_path, "step,loss,skipped\n0,2,False\n1,2,True\n2,2,False\n")
    assert where(curves, curves.skipped) == [1]


def test_resumed_run_with_its_header_again(tmp_path: Path) -> None:
    text = "step,loss\n1,5\n2,4\n3,3\nstep,loss\n3,2.5\n4,2\n"
    curves = read(tmp_path, text)
    assert steps(curves) == [1, 2, 3, 4]
    assert values(curves) == [5, 4, 2.5, 2]
    assert curves.notes == (REPEATED.format(1, 3, 3),)


def test_rows_that_cannot_be_read(tmp_path: Path) -> None:
    curves = read(tmp_path, "step,loss\n0,5\nhello\n1,oops\n2,4\n3,3,7,8\n4,2\n5,1\n6,1\n7")
    assert steps(curves) == [0, 2, 4, 5, 6]
    assert curves.notes == ("Lines that could not be read: 4, the first is line 3. They were left out.",)


def test_steps_that_are_no_whole_numbers(tmp_path: Path) -> None:
    curves = read(tmp_path, "step,loss\n0,5\n0.5,4\n1,3\nnan,2\n1e300,2\n2,1\n3,1\n4,1\n")
    assert steps(curves) == [0, 1, 2, 3, 4]
    assert curves.notes == ("Rows without a whole number as their step: 3. They were left out.",)


def test_steps_in_another_order(tmp_path: Path) -> None:
    curves = read(tmp_path, "step,loss\n3,1\n1,3\n2,2\n")
    assert steps(curves) == [1, 2, 3]
    assert values(curves) == [3, 2, 1]


def test_gzip_and_its_hash(tmp_path: Path) -> None:
    content = gzip.compress(b"step,loss\n1,2.5\n") + gzip.compress(b"2,2.25\n") + bytes(512)
    curves = read(tmp_path, content, "run.csv.gz")
    assert values(curves) == [2.5, 2.25]
    assert curves.sha256 == hashlib.sha256(content).hexdigest()
    assert curves.notes == ("The file has no column of steps: its rows are numbered from 0.",)[1:]


def test_gzip_that_ends_in_the_middle(tmp_path: Path) -> None:
    text = "".join(f"step {n} loss {(n * 7919 % 1000) / 1000 + 1}\n" for n in range(2000))
    content = gzip.compress(text.encode())
    curves = read(tmp_path, content[: len(content) // 2], "run.log.gz")
    assert 200 < len(curves.steps) < 1800
    assert curves.notes[-1] == "The file 'run.log.gz' ends in the middle: it was read up to there."


names = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n\x85\u2028\u2029\"'"), min_size=1, max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)
FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FEW
@given(rows=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=20), delimiter=st.sampled_from(",;\t"))
def test_what_csv_writes_is_read(rows: list[tuple[float, float]], delimiter: str, tmp_path: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(["global_step", "train/loss", "train/grad_norm"])
    writer.writerows((step, repr(loss or 1.0), repr(norm or 1.0)) for step, (loss, norm) in enumerate(rows))
    curves = read(tmp_path, text.getvalue())
    assert steps(curves) == list(range(len(rows)))
    assert curves.columns[Quantity.LOSS].tolist() == [loss or 1.0 for loss, _ in rows]
    assert curves.columns[Quantity.GRADIENT_NORM].tolist() == [norm or 1.0 for _, norm in rows]
    assert not curves.nonfinite.any()
