"""Tables with Chinese names, and in the encoding that Excel writes in China."""

from __future__ import annotations

from pathlib import Path

import pytest

from align.curve_files import read_curves
from align.curve_records import Quantity
from align.errors import CurveError


@pytest.mark.parametrize("encoding", ["utf-8", "gbk", "gb18030", "utf-16"])
def test_chinese_names_are_known_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "run.csv"
    path.write_bytes("步数,训练损失,学习率\n10,2.5,1e-4\n20,2.25,1e-4\n".encode(encoding))
    curves = read_curves(str(path))
    assert curves.steps.tolist() == [10, 20]
    assert curves.columns[Quantity.LOSS].tolist() == [2.5, 2.25]
    assert curves.taken == {Quantity.LOSS: "训练损失", Quantity.LEARNING_RATE: "学习率"}
    assert curves.notes == ()


def test_a_log_in_another_encoding_keeps_its_numbers(tmp_path: Path) -> None:
    for name, text in (("gbk", "训练中 step {} loss {}"), ("latin-1", "caf\u00e9 \u00fcber step {} loss {}")):
        path = tmp_path / name
        path.write_bytes("\n".join(text.format(step, 3 - step / 10) for step in range(10)).encode(name))
        curves = read_curves(str(path))
        assert curves.columns[Quantity.LOSS].tolist() == [3 - step / 10 for step in range(10)]


def test_an_empty_name_is_no_file() -> None:
    with pytest.raises(CurveError) as found:
        read_curves("")
    assert str(found.value) == "Cannot read a run: the name of the file is empty. Name a file."
