"""What is said in Chinese: the choice of the language, signs and blanks, lines of wide characters, whole reports."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch
from torch import nn

from align.cli import main
from align.records import DiffResult, Phase
from align.reports import phrases
from align.reports.inspect_text import inspect_text
from align.reports.language import ENGLISH, LANGUAGES, chosen
from align.reports.lines import columns, cut, print_lines, wrapped
from align.reports.text import diff_text
from align.reports.wide import width
from align.sentences import capital, joined, read, say, small
from tests import inspect_samples
from tests.seen import record
from tests.test_reports_text import SAMPLES

CHINESE = LANGUAGES["zh"]
QUOTED = re.compile(r"`[^`]*`|'[^']*'|\([^()\u4e00-\u9fff]*\)|\S*[/\\]\S*|--\S+( \S+)?")
"""What stays as it is: commands, quoted text, brackets without a word of Chinese, paths, options."""
ENGLISH_WORDS = re.compile(r"(?<![\w.])[A-Za-z]{2,},? [a-z]{2,}(?![\w.]*[.(=_\d])")
"""Two words behind one another that are no names."""
TERMS = re.compile(r"activation checkpointing|exception: .*|(input|loss) value|scaler scale|\b[a-z]+(-[a-z]+)+\b")
"""What stays English in Chinese text: terms, labels, and names of records."""


@pytest.mark.parametrize(
    ("code", "encoding", "environment", "expected"),
    [
        (None, "utf-8", {}, "en"),
        (None, "utf-8", {"LANG": "C.UTF-8"}, "en"),
        (None, "utf-8", {"LANG": "zh_CN.UTF-8"}, "zh"),
        (None, "utf-8", {"LANG": "zh_TW"}, "zh"),
        (None, "utf-8", {"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh"),
        (None, "utf-8", {"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        (None, "utf-8", {"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, "zh"),
        (None, "utf-8", {"LC_ALL": "C", "ALIGN_LANG": "zh"}, "zh"),
        (None, "utf-8", {"LANG": "zh_CN.UTF-8", "ALIGN_LANG": "en"}, "en"),
        (None, "gb18030", {"LANG": "zh_CN.GB18030"}, "zh"),
        (None, "ascii", {"LANG": "zh_CN.UTF-8"}, "en"),
        (None, None, {"LANG": "zh_CN.UTF-8"}, "zh"),
        ("zh", "ascii", {}, "zh"),
        ("en", "utf-8", {"LANG": "zh_CN.UTF-8"}, "en"),
    ],
)
def test_the_language_is_that_of_the_option_else_of_the_environment(
    code: str | None, encoding: str | None, environment: dict[str, str], expected: str
) -> None:
    assert chosen(code, encoding, environment).code == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (say("{}x", "1,470"), "1,470 倍"),
        (say("{} %", "2.4"), "2.4%"),
        (say("{0}, {1}", say("step {}", 3), Phase.FORWARD), "第 3 步前向"),
        (capital(say("step {}", 3)), "第 3 步"),
        (small(say("step {}", 3)), "第 3 步"),
        (joined(", ", ["fc1", "fc2"]), "fc1、fc2"),
        (joined(" or ", ["fc1", "fc2", "fc3"]), "fc1 或 fc2 或 fc3"),
        (say("{} ({})", "fc1", "fp32"), "fc1 (fp32)"),
        (say("{} ({})", Phase.FORWARD, "fp32"), "前向（fp32）"),
        (say("{} {}", "forward", "input.0"), "forward input.0"),
        (say("{} never seen anywhere.", "input"), "input never seen anywhere."),
        ("A sentence that no rule says.", "A sentence that no rule says."),
        (say("Cannot compare '{}' with '{}'", "训练", "run"), "无法比对 '训练' 与 'run'"),
        (say("Make it with `align capture -o {} {}`.", "训练", "run"), "Make it with `align capture -o 训练 run`."),
        (say("'{}' is only in the {}", "reference", "reference"), "'reference' 仅在标杆侧"),
    ],
)
def test_sentences_have_the_signs_and_blanks_of_chinese(sentence: str, expected: str) -> None:
    assert CHINESE.said(sentence) == expected
    assert ENGLISH.said(sentence) == sentence


def test_phrases_say_what_they_are_given() -> None:
    assert CHINESE["judged_limit"].format(limit=say("{}x", "7.0")).startswith("张量的差异超过本底的 7.0 倍")
    assert CHINESE["rank"].format(rank=3) == phrases.CHINESE["rank"].format(rank=3)


def test_a_label_has_its_name_beside_it() -> None:
    assert CHINESE.beside("seed-mismatch") == "seed-mismatch 随机种子不一致"
    assert CHINESE.beside("of-another-package") == "of-another-package"
    assert ENGLISH.beside("seed-mismatch") == "seed-mismatch"


def test_lines_of_chinese_are_as_wide_as_asked_for_and_keep_commands_whole() -> None:
    text = "两次运行的随机数不一致（种子 1 与 2）；请以 `align capture --seed 1 --steps 0:3 SCRIPT` 重新采集。" * 3
    lines = [line for line, _ in wrapped(text, 60, "    ", first="提示：")]
    assert all(width(line) <= 60 for line in lines)
    assert max(map(width, lines)) >= 55
    assert "".join(line.strip() for line in lines).replace(" ", "") == f"提示：{text}".replace(" ", "")
    assert sum("`align capture --seed 1 --steps 0:3 SCRIPT`" in line for line in lines) == 3
    assert not any(line.strip()[0] in "，。；）、" for line in lines)
    assert width(cut(text, 40)) <= 40


def test_columns_of_chinese_stand_under_one_another() -> None:
    table = columns([["阶段", "模块"], ["前向", "fc1"], ["x", "fc2"]], frozenset())
    assert table == ["阶段  模块", "前向  fc1", "x     fc2"]


def test_a_terminal_that_is_not_utf_8_gets_question_marks_for_ideographs() -> None:
    stream = TextIOWrapper(BytesIO(), encoding="ascii", newline="")
    print_lines(lambda _: [("对齐 fc1", "")], stream, whole=False)
    stream.flush()
    assert stream.buffer.getvalue() == b"?? fc1\n"


def test_english_reports_do_without_the_catalogues() -> None:
    code = (
        "import sys; from align.reports.language import ENGLISH; from align.reports import output; "
        "print(sorted(name for name in sys.modules if 'chinese' in name))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def train(factor: float = 1.0, *, lost: bool = False) -> Callable[[], None]:
    """Two steps of a small model, whose second layer is scaled or whose batch holds a NaN."""

    def run() -> None:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        for _ in range(2):
            given = torch.randn(4, 8) * (torch.nan if lost else 1.0)
            model[1].register_forward_hook(lambda _module, _given, output: output * factor)
            optimizer.zero_grad()
            model(given).square().mean().backward()
            optimizer.step()

    return run


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captures of a run, of the same with a fault, and of one with NaN; two checkpoints."""
    folder = tmp_path_factory.mktemp("files")
    record(folder / "ref.h5", train(), steps="0:2")
    record(folder / "cand.h5", train(1.5), steps="0:2")
    record(folder / "nan.h5", train(lost=True), steps="0:2")
    weights = {f"layers.{number}.weight": np.full((4, 4), number + 1.0, np.float32) for number in range(3)}
    safetensors.numpy.save_file(weights, folder / "a.safetensors")
    other = {name.replace("layers", "blocks"): value * 2 for name, value in weights.items()}
    safetensors.numpy.save_file(other, folder / "b.safetensors")
    return folder


COMMANDS = (
    ("diff", "ref.h5", "cand.h5"),
    ("diff", "ref.h5", "ref.h5"),
    ("inspect", "nan.h5"),
    ("inspect", "ref.h5"),
    ("checkpoint", "a.safetensors", "b.safetensors"),
    ("checkpoint", "ref.h5", "a.safetensors"),
)


@pytest.mark.parametrize("command", COMMANDS, ids="-".join)
def test_reports_in_chinese_have_no_english_sentence(
    command: tuple[str, ...], files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    main([*command, "--lang", "zh", "--all", "--json", "result.json"], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    assert any("\u4e00" <= char <= "\u9fff" for line in lines for char in line)
    assert [line for line in lines if english(line)] == []
    document = json.loads(Path("result.json").read_text())
    assert list(unsaid(document)) == []


def test_the_summary_is_said_as_the_json_has_it(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    main(["diff", "ref.h5", "cand.h5", "--json", "result.json"], standalone_mode=False)
    document = json.loads(Path("result.json").read_text())
    assert read(document["sentences"]["summary"]) == document["summary"]
    for finding in document["findings"]:
        assert read(finding["sentences"]["summary"]) == finding["summary"]
        assert read(finding["sentences"]["advice"]) == finding["advice"]


def test_the_environment_chooses_the_language(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    monkeypatch.setenv("ALIGN_LANG", "zh_CN.UTF-8")
    main(["diff", "ref.h5", "cand.h5"], standalone_mode=False)
    assert capsys.readouterr().out.startswith("未对齐  ref.h5（标杆侧）对比 cand.h5（待比对侧）\n")
    main(["diff", "ref.h5", "cand.h5", "--lang", "en"], standalone_mode=False)
    assert capsys.readouterr().out.startswith("DIVERGED  ref.h5 (reference) against cand.h5 (candidate)\n")


def wordless(result: Any) -> Any:
    """A sample with other sentences, which were written for it: what is left is what reports say themselves."""
    told = say("{}x", "1")
    findings = tuple(replace(each, summary=told, advice=told) for each in result.findings)
    if isinstance(result, DiffResult):
        return replace(result, summary=told, findings=findings, pairing=replace(result.pairing, notes=()))
    replies = tuple(replace(each, question=told, sentence=told) for each in result.replies)
    return replace(result, summary=told, findings=findings, replies=replies, tables=())


@pytest.mark.parametrize("name", SAMPLES)
def test_what_reports_of_two_runs_say_themselves_is_chinese(name: str) -> None:
    lines = diff_text(wordless(SAMPLES[name]()), CHINESE, whole=True).splitlines()
    assert [line for line in lines if english(line)] == []


@pytest.mark.parametrize("name", inspect_samples.SAMPLES)
def test_what_reports_of_one_run_say_themselves_is_chinese(name: str) -> None:
    lines = inspect_text(wordless(inspect_samples.SAMPLES[name]()), CHINESE, whole=True).splitlines()
    assert [line for line in lines if english(line)] == []


def english(text: str) -> re.Match[str] | None:
    """Two English words behind one another outside names, codes and commands."""
    return ENGLISH_WORDS.search(QUOTED.sub(" ", TERMS.sub(" ", text)))


def unsaid(found: object) -> Iterator[str]:
    """The sentences of a document that are English in Chinese, too."""
    if isinstance(found, dict):
        for name, value in found.items():
            yield from leaves(value) if name == "sentences" else unsaid(value)
    elif isinstance(found, list):
        for value in found:
            yield from unsaid(value)


def leaves(found: object) -> Iterator[str]:
    """The trees below `sentences`, said in Chinese, that have English words."""
    if isinstance(found, dict):
        for value in found.values():
            yield from leaves(value)
    if isinstance(found, (dict, int)):
        return
    try:
        said = CHINESE.word(read(found))
    except ValueError:
        assert isinstance(found, list)
        for value in found:
            yield from leaves(value)
        return
    if english(said):
        yield said
