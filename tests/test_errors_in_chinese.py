"""What goes wrong is said in the language of the command, through the real command line and of real files."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest
import torch
from torch import nn

from align import __version__
from align.capture_file import FORMAT_VERSION
from align.cli import main
from align.errors import ComparisonError, UsageError
from align.sentences import Sentence, say, told
from tests.seen import record


def train(width: int = 16, *, names: tuple[str, str] = ("first", "second")) -> Callable[[], None]:
    """Two steps of a small model whose two layers have these names."""

    def run() -> None:
        torch.manual_seed(0)
        model = nn.Sequential()
        model.add_module(names[0], nn.Linear(8, width))
        model.add_module(names[1], nn.Linear(width, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(4, 8)).square().mean().backward()
            optimizer.step()

    return run


MISSING = (
    "Cannot read 'missing.h5': there is no such file. Check the path, or make it with 'align capture -o missing.h5'."
)


class Code:
    """What unpickles by a call."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        """The call."""
        return os.system, ("true",)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captures, checkpoints, logs, rules, policies and results with a fault each."""
    folder = tmp_path_factory.mktemp("files")
    record(folder / "ref.h5", train(), steps="0:1")
    record(folder / "later.h5", train(), steps="1:2")
    record(folder / "reference.h5", train(32, names=("other", "another")), steps="0:1")
    (folder / "cut.h5").write_bytes((folder / "ref.h5").read_bytes()[:5000])
    (folder / "newer.h5").write_bytes((folder / "ref.h5").read_bytes())
    with h5py.File(folder / "newer.h5", "r+") as file:
        file.attrs["align_format"] = FORMAT_VERSION + 1
    (folder / "训练").mkdir()
    (folder / "weights.pt").write_bytes(b"<html>sorry</html>")
    (folder / "code.pt").write_bytes(pickle.dumps(Code(), protocol=2))
    (folder / "two.csv").write_text("step,train_loss,lm_loss\n0,3,2\n1,2,1\n")
    (folder / "none.csv").write_text("step,accuracy\n0,3\n1,2\n")
    (folder / "ops.csv").write_text("op,ratio,limit\nmatmul,high,1\n")
    (folder / "names.map").write_text("model.h layers\n")
    (folder / "groups.map").write_text("a(b -> layers\n")
    (folder / "policy.toml").write_text('extends = "default"\n[criteria.bias]\nlimit = 0.1\nsuorce = "ours"\n')
    (folder / "range.toml").write_text('extends = "default"\n[criteria.bias]\nlimit = -1\nsource = "ours"\n')
    (folder / "train.py").write_text("import torch\n")
    (folder / "broken.json").write_text('{"format": "align/1", ')
    (folder / "changed.json").write_text(json.dumps({"format": "align/1", "command": "inspect", "paths": 3}))
    return folder


CASES = {
    "diff missing.h5 ref.h5": (
        "无法读取 'missing.h5'：文件不存在。请检查路径，或用 'align capture -o missing.h5' 生成它。"
    ),
    "diff 训练 ref.h5": "无法读取 '训练'：它是文件夹。请指定其中的采集文件。",
    "diff weights.pt ref.h5": (
        "无法读取 'weights.pt'：它不是 HDF5 文件；权重文件请用 `align checkpoint`。请指定由 'align capture' 写"
        "出的文件。"
    ),
    "diff cut.h5 ref.h5": (
        "无法读取 'cut.h5'：文件不完整：应有 SIZE 字节，现有 5000 字节。请从写出它的位置重新复制，或重新采集。"
    ),
    "diff newer.h5 ref.h5": (
        "无法读取 'newer.h5'：其采集格式为 NEWER，由 align VERSION 写出，而当前的 align 最高只能读取格式 KNOWN。"
        "请用 'pip install -U torch-align' 更新。"
    ),
    "diff ref.h5 later.h5": (
        "无法比对 'ref.h5' 与 'later.h5'：没有共同的步。标杆侧有第 0 步，待比对侧有第 1 步。请在两侧使用相同的 "
        "--steps 采集。"
    ),
    "diff ref.h5 reference.h5": (
        "无法比对 'ref.h5' 与 'reference.h5'：两者的模型不同。标杆侧的 3 个名称中只有 1 个有对应；例如 'first' "
        "仅在标杆侧和 'another' 仅在待比对侧。若模块改了名，用 --rename OLD=NEW 或 --map FILE 建立映射；"
        "`align show RUN.h5` 可列出各文件的内容。"
    ),
    "diff ref.h5 ref.h5 --floor ref.h5": (
        "无法将 'ref.h5' 用作本底：它就是标杆侧本身，不能体现舍入。请用 `align capture --perturb 1` 再采集一次"
        "标杆侧的脚本。"
    ),
    "diff ref.h5 ref.h5 --rename first": (
        "无法读取改名规则 'first'：请写成 --rename OLD=NEW，例如 --rename model.h=model.layers；或写 --rename "
        "=net，在标杆侧每个名称前加上 'net.'。"
    ),
    "diff ref.h5 ref.h5 --rename run=walk": (
        "无法将 'run' 改名为 'walk'：标杆侧没有该名称的模块。请用 `align show` 列出其模块。"
    ),
    "diff ref.h5 ref.h5 --map names.map": (
        "无法读取 'names.map' 第 1 行 'model.h layers'：请写成 PATTERN -> REPLACEMENT，例如 "
        "'model\\.h\\.(\\d+) -> layers.\\1'。"
    ),
    "diff ref.h5 ref.h5 --map groups.map": (
        "无法读取 'groups.map' 第 1 行 'a(b -> layers'：'a(b' 不是正则表达式（missing ), unterminated "
        "subpattern）。请修正该模式。"
    ),
    "diff ref.h5 ref.h5 --html 训练": "无法写入 '训练'：它是文件夹。请指定其中的文件。",
    "diff ref.h5 ref.h5 --json none/result.json": (
        "无法写入 'none/result.json'：文件夹 'FOLDER/none' 不存在。请先创建它，或指定其他文件。"
    ),
    "diff ref.h5 ref.h5 --json - --html -": (
        "无法同时输出 --json - 和 --html -：其中一个独占标准输出。请为另一个指定文件。"
    ),
    "inspect ref.h5 reference.h5": (
        "无法同时检查 2 个文件：`align inspect ref.h5` 检查一次运行及其全部 rank。比对两次运行请用 "
        "`align diff ref.h5 reference.h5`。"
    ),
    "checkpoint weights.pt ref.h5": (
        "无法读取 'weights.pt'：它是网页，例如下载服务器返回的错误页。请重新下载，并在浏览器中查看该页面：可能"
        "需要登录。"
    ),
    "checkpoint code.pt ref.h5": (
        "无法读取 'code.pt'：其 pickle 要求加载 'posix.system'，它可能是代码而非权重。其中的内容均未执行。请在"
        "生成它的环境中加载，并只保存权重：`torch.save(model.state_dict(), 'weights.pt')`，或保存为 "
        "safetensors 文件。"
    ),
    "checkpoint 训练 ref.h5": (
        "无法读取 '训练'：其 0 个文件中没有 checkpoint。请指定含有 .safetensors、.bin、.pt 或 .index.json 的文件夹。"
    ),
    "checkpoint run ref.h5": "无法读取 'run'：文件或文件夹不存在。请检查路径。",
    "accept two.csv two.csv": (
        "无法确定 'two.csv' 中的哪一列是 loss：可能是 'train_loss'、'lm_loss'。请用 --column loss=train_loss 或"
        " --column loss=lm_loss 选择。"
    ),
    "accept none.csv none.csv": (
        "在 'none.csv' 中找不到 loss。其中的列有 'step'、'accuracy'：请用 --column loss=NAME 选择。"
    ),
    "accept none.csv none.csv --column loss=acuracy": (
        "在 'none.csv' 中找不到列 'acuracy'。最接近的是 'accuracy'：请用 --column loss=accuracy 选择。"
    ),
    "accept two.csv two.csv --steps 3": (
        "无法读取步 '3'：请写成 --steps A:B，例如 --steps 0:1000；或用 --steps 100: 表示从第 100 步起的所有步。"
    ),
    "accept two.csv two.csv --column loss=lm_loss --steps 5:9": (
        "无法在 --steps 5:9 处比对 'two.csv' 与 'two.csv'：两者共有第 0–1 步。请指定其中的步。"
    ),
    "accept two.csv two.csv --column loss=lm_loss --floor two.csv --json ops.csv --ops ops.csv": (
        "无法将 --json 写入 'ops.csv'：该文件是被读取的文件。请指定其他文件。"
    ),
    "accept two.csv two.csv --column loss=lm_loss --ops ops.csv": (
        "无法读取 'ops.csv' 中的算子：第 2 行 'ratio' 列的 'high' 不是数。请写数值，例如 1.25。"
    ),
    "accept two.csv two.csv --policy defualt": (
        "找不到策略 'defualt'：没有此文件，内置策略有 default, mindformers, modelzoo-2pct, strict-fp32；是否指 "
        "'default'？`align accept --show-policy default` 可打印一个策略作为起点。"
    ),
    "accept two.csv two.csv --policy policy.toml": (
        "无法读取策略 'policy.toml'：[criteria.bias] 中 'limit' 没有 'source'。请说明其来源，例如 source = "
        '"project limit, agreed 2026-01"。'
    ),
    "accept two.csv two.csv --policy range.toml": (
        "无法读取策略 'range.toml'：[criteria.bias] 中 'limit' 为 -1，超出允许范围：0 到 100。"
    ),
    "accept --show-policy defualt": (
        "找不到策略 'defualt'：没有此文件，内置策略有 default, mindformers, modelzoo-2pct, strict-fp32；是否指 "
        "'default'？`align accept --show-policy default` 可打印一个策略作为起点。"
    ),
    "report broken.json": "无法读取 'broken.json'：内容在第 1 行中断。请用 --json 重新写出。",
    "report changed.json": (
        "无法读取 'changed.json'：'runs' 为 null，而不是对象。它被手工或其他程序修改过：请用 --json 重新写出。"
    ),
    "report ref.h5": (
        "无法读取 'ref.h5'：它是 HDF5 文件（例如采集文件），而不是已保存的结果。`align inspect ref.h5` 可检查采"
        "集文件；`align report` 读取由 --json 写出的文件。"
    ),
    "report run": "无法读取 'run'：文件不存在。请指定由 --json 写出的文件，或用 - 表示标准输入。",
}
"""Commands, and what they say; words in capitals stand for what depends on the machine and the version."""


@pytest.mark.parametrize("command", CASES)
def test_an_error_is_said_in_chinese(
    command: str, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    said = CASES[command]
    for word, meaning in (
        ("SIZE", (files / "ref.h5").stat().st_size),
        ("NEWER", FORMAT_VERSION + 1),
        ("KNOWN", FORMAT_VERSION),
        ("VERSION", __version__),
        ("FOLDER", files),
    ):
        said = said.replace(word, str(meaning))
    assert main([*command.split(" "), "--lang", "zh"], standalone_mode=False) == 2
    assert capsys.readouterr() == ("", f"align: {said}\n")


@pytest.mark.parametrize(
    ("environment", "command", "said"),
    [
        ({"ALIGN_LANG": "zh"}, "show missing.h5", CASES["diff missing.h5 ref.h5"]),
        ({"LC_ALL": "zh_CN.UTF-8", "ALIGN_LANG": ""}, "inspect missing.h5", CASES["diff missing.h5 ref.h5"]),
        ({"ALIGN_LANG": "zh"}, "inspect missing.h5 --lang en", MISSING),
        ({"ALIGN_LANG": "zh", "PYTHONIOENCODING": "ascii"}, "inspect missing.h5", MISSING),
        (
            {"ALIGN_LANG": "zh"},
            "show ref.h5 frist",
            "无法显示 'frist'：'ref.h5' 中没有该名称的张量。其中的名称有：'first'；* 可匹配任意内容。",
        ),
        (
            {"ALIGN_LANG": "zh"},
            "capture --device cpu -o run.h5 missing.py",
            "无法运行 'missing.py'：它不存在。请给出训练脚本的路径，或使用 -m MODULE。",
        ),
        (
            {"ALIGN_LANG": "zh"},
            "capture --device cpu -o ref.h5 train.py",
            "无法写入 'ref.h5'：文件已存在。请指定其他文件，或用 --force 替换它（在 Python 中为 force=True）。",
        ),
    ],
)
def test_the_environment_chooses_the_language_of_errors(
    environment: dict[str, str], command: str, said: str, files: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "align", *command.split(" ")],
        cwd=files,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"align: {said}\n")


def test_what_was_written_is_said_in_the_language(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["diff", str(files / "ref.h5"), str(files / "ref.h5"), "--lang", "zh", "--json", "run"], standalone_mode=False)
    assert capsys.readouterr().err == "align: 已写入 run\n"


def test_an_error_keeps_the_sentence_that_its_text_does_not() -> None:
    error = ComparisonError(say("Cannot compare '{}' with '{}'", "a", "b"))
    assert str(error) == "Cannot compare 'a' with 'b'"
    assert type(str(error)) is str
    kept = told(error)
    assert isinstance(kept, Sentence)
    assert (kept.template, kept.arguments) == ("Cannot compare '{}' with '{}'", ("a", "b"))


@pytest.mark.parametrize(
    ("error", "longest", "said"),
    [
        (KeyError("data"), None, "'data'"),
        (OSError(2, "No such file"), None, "[Errno 2] No such file"),
        (ValueError("too long"), 3, "too"),
        (ValueError(say("{} are too long", 2)), 3, "2 are too long"),
        (UsageError("as it is"), None, "as it is"),
        (ValueError(), None, ""),
    ],
)
def test_of_other_errors_their_own_text_is_told(error: Exception, longest: int | None, said: str) -> None:
    assert told(error, longest) == said
