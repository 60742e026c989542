"""`align accept` from the command line: logs, captures, every option, exit codes, all reports."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner

from align.acceptance import policy_text
from align.cli import main
from align.cli_accept import accept
from tests.acceptance.runs import pair, write_csv
from tests.running import STEPS, capture_all

main.add_command(accept)
REFERENCE, HEALTHY = pair()
SHORT = """
extends = "default"
minimum_steps = 10
minimum_source = "this test"
[criteria.shift]
use = false
[criteria.data-order]
use = false
[criteria.spikes]
use = false
[criteria.bias]
use = false
[criteria.early-window]
steps = 10
[criteria.divergence]
use = false
[criteria.worst-window]
use = false
[criteria.equal-start]
required = true
[criteria.tensors]
required = true
"""


@dataclass(frozen=True)
class Done:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


def align(*arguments: str | Path) -> Done:
    """Run a command in this process; what it raises is a fault of it."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
    return Done(done.exit_code, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Logs of the reference, of a healthy candidate and of faulty ones."""
    folder = tmp_path_factory.mktemp("logs")
    diverged = HEALTHY.copy()
    diverged[600:] *= 1.04
    norms = 1 + np.abs(np.sin(np.arange(len(REFERENCE))))
    return {
        "gpu": write_csv(folder / "gpu.csv", {"loss": REFERENCE, "grad_norm": norms}),
        "npu": write_csv(folder / "npu.csv", {"loss": HEALTHY, "grad_norm": norms * 1.01}),
        "diverged": write_csv(folder / "diverged.csv", {"loss": diverged}),
        "from one": write_csv(folder / "one.csv", {"step": range(1, len(HEALTHY) + 1), "loss": HEALTHY}),
        "short": write_csv(folder / "short.csv", {"loss": HEALTHY[:30]}),
        "renamed": write_csv(folder / "renamed.csv", {"my_loss": HEALTHY, "other_loss": HEALTHY * 2}),
    }


def test_a_healthy_pair_of_logs_passes(logs: dict[str, Path]) -> None:
    done = align("accept", logs["gpu"], logs["npu"])
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("PASS  ")
    assert "Met: 11 of 11 required criteria; 5 not measured." in done.out
    assert "12 gradient norm, mean relative 1.00 % <= 10.0 % pass" in " ".join(done.out.split())
    assert "gradient norm from 'grad_norm'" in " ".join(done.out.split())
    assert len(lines) <= 40


def test_a_faulty_candidate_fails(logs: dict[str, Path]) -> None:
    done = align("accept", logs["gpu"], logs["diverged"])
    assert done.code == 1
    text = " ".join(done.out.split())
    assert text.startswith("FAIL ")
    assert "Missed: 4 of 10 required criteria. First: From step 600 on the losses are apart to the end" in text
    assert "Capture steps 599 and 600 of both runs with `align capture --steps 599:601`" in text
    assert "Missed (4) divergence at the end: " in text
    assert len(done.out.splitlines()) <= 40


def test_too_few_steps_are_unknown(logs: dict[str, Path]) -> None:
    done = align("accept", logs["gpu"], logs["short"])
    assert done.code == 2
    assert done.out.startswith("UNKNOWN (preliminary: 30 steps, the policy asks for 1,000 or more)  ")


def test_the_numbering_does_not_matter(logs: dict[str, Path]) -> None:
    done = align("accept", logs["gpu"], logs["from one"])
    assert done.code == 0
    assert "counts its steps from 0" in " ".join(done.out.split())


def test_steps_and_policy(logs: dict[str, Path]) -> None:
    done = align("accept", logs["gpu"], logs["diverged"], "--steps", ":600")
    assert done.code == 0
    assert done.out.startswith("PASS (preliminary: 600 steps, the policy asks for 1,000 or more)  ")
    assert align("accept", logs["gpu"], logs["npu"], "--policy", "mindformers").code == 0
    assert align("accept", logs["gpu"], logs["npu"], "--policy", "modelzoo-2pct").code == 0
    strict = align("accept", logs["gpu"], logs["npu"], "--policy", "strict-fp32")
    assert strict.code == 1


def test_columns_are_chosen_by_hand(logs: dict[str, Path]) -> None:
    done = align("accept", logs["gpu"], logs["renamed"], "--column", "candidate:loss=my_loss")
    assert done.code == 0
    assert "loss from 'my_loss'" in done.out


def test_repeats_and_operators(logs: dict[str, Path], tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    repeat = write_csv(tmp_path / "repeat.csv", {"loss": REFERENCE * (1 + 0.001 * random.standard_normal(1000))})
    operators = tmp_path / "ops.csv"
    operators.write_text(
        "op;dtype;ratio;limit;source\nmatmul;bf16;1.1;1.2;CANN L2\n\ngelu;fp16;1.9;1.2;CANN L2\n", encoding="utf-8"
    )
    done = align("accept", logs["gpu"], logs["npu"], "--floor", repeat, "--ops", operators, "--all")
    text = " ".join(done.out.split())
    assert done.code == 1
    assert "First: 1 of 2 operators are within their limits; gelu fp16 has 1.900 of 1.200 allowed." in text
    assert f"repeats of the reference: {repeat}" in text
    assert "single-operator standard: <= 1.200, CANN L2" in text


def test_the_json_holds_everything(logs: dict[str, Path]) -> None:
    done = align("accept", logs["gpu"], logs["npu"], "--json", "-", "--title", "GPT-2", "--project", "P-7")
    document = json.loads(done.out)
    assert done.code == 0
    assert list(document)[:6] == ["format", "command", "verdict", "preliminary", "summary", "criteria"]
    assert (document["format"], document["verdict"]) == ("align/1", "pass")
    assert (document["title"], document["project"]) == ("GPT-2", "P-7")
    assert document["counts"] == {"required": 11, "pass": 11, "fail": 0, "not_measured": 5}
    assert document["curves"]["reference"]["loss"] == REFERENCE.tolist()
    assert document["curves"]["candidate"]["step"] == list(range(1000))
    assert document["policy"]["text"] == policy_text("default")
    assert len(document["runs"]["reference"]["sha256"]) == 64
    assert document["runs"]["candidate"]["taken"] == {"loss": "loss", "gradient_norm": "grad_norm"}
    mean = next(each for each in document["criteria"] if each["code"] == "mean-error")
    assert mean["limit"] == {
        "value": 0.01,
        "way": "at most",
        "source": "MindFormers, precision standard for the migration of large models: mean relative error of the loss "
        "within 1 %",
    }
    assert document["made"][:2] == "20"


def test_files_are_written(logs: dict[str, Path], tmp_path: Path) -> None:
    report, junit = tmp_path / "accept.json", tmp_path / "accept.xml"
    done = align("accept", logs["gpu"], logs["diverged"], "--json", report, "--junit", junit)
    assert done.code == 1
    assert done.err == f"align: wrote {report}\nalign: wrote {junit}\n"
    assert json.loads(report.read_text(encoding="utf-8"))["verdict"] == "fail"
    suite = ET.parse(junit).getroot()[0]  # noqa: S314 - written a moment ago
    assert (suite.get("failures"), suite.get("tests"), suite.get("skipped")) == ("4", "16", "6")


@pytest.mark.parametrize(
    ("option", "begin"), [("--junit", "<?xml "), ("--markdown", "#"), ("--html", "<!doctype html>")]
)
def test_one_report_alone_on_stdout(option: str, begin: str, logs: dict[str, Path]) -> None:
    done = align("accept", logs["gpu"], logs["npu"], option, "-")
    assert (done.code, done.err) == (0, "")
    assert done.out.lower().startswith(begin)


def test_chinese(logs: dict[str, Path]) -> None:
    done = align("accept", logs["gpu"], logs["diverged"], "--lang", "zh")
    assert done.code == 1
    assert done.out.startswith("\u4e0d\u901a\u8fc7 ")


@pytest.mark.parametrize("name", ["default", "mindformers", "modelzoo-2pct", "strict-fp32"])
def test_a_policy_is_shown_to_start_from(name: str, tmp_path: Path, logs: dict[str, Path]) -> None:
    shown = align("accept", "--show-policy", name)
    assert (shown.code, shown.out) == (0, policy_text(name))
    own = tmp_path / "own.toml"
    own.write_text(shown.out, encoding="utf-8")
    assert align("accept", logs["gpu"], logs["npu"], "--policy", own).code == (1 if name == "strict-fp32" else 0)


PROBLEMS: dict[str, tuple[list[str], str]] = {
    "policy": (
        ["--policy", "defualt"],
        (
            "Cannot find the policy 'defualt': there is no such file, and the built-in policies are default, "
            "mindformers, modelzoo-2pct, strict-fp32; did you mean 'default'? `align accept --show-policy default` "
            "prints one to start from."
        ),
    ),
    "steps": (
        ["--steps", "5"],
        (
            "Cannot read the steps '5': write --steps A:B, such as --steps 0:1000 or --steps 100: for all from step "
            "100 on."
        ),
    ),
    "steps backwards": (
        ["--steps", "9:3"],
        (
            "Cannot read the steps '9:3': write --steps A:B, such as --steps 0:1000 or --steps 100: for all from step "
            "100 on."
        ),
    ),
    "words for steps": (
        ["--steps", "a:b"],
        (
            "Cannot read the steps 'a:b': write --steps A:B, such as --steps 0:1000 or --steps 100: for all from step "
            "100 on."
        ),
    ),
    "column": (
        ["--column", "los=x"],
        (
            "Cannot read the column 'los=x': write --column QUANTITY=NAME, such as --column loss=train/loss, or "
            "--column candidate:loss=NAME for one file. Quantities are loss, gradient_norm, learning_rate, "
            "loss_scale, seconds, tokens_per_second."
        ),
    ),
    "side": (
        ["--column", "gpu:loss=x"],
        (
            "Cannot read the column 'gpu:loss=x': write --column QUANTITY=NAME, such as --column loss=train/loss, or "
            "--column candidate:loss=NAME for one file. Quantities are loss, gradient_norm, learning_rate, loss_scale, "
            "seconds, tokens_per_second."
        ),
    ),
    "operators are not there": (
        ["--ops", "none.csv"],
        (
            "Cannot read the operators in 'none.csv': No such file or directory. Name a CSV file with the columns op, "
            "ratio and limit."
        ),
    ),
    "no common step": (
        ["--steps", "5000:"],
        "Cannot compare '{gpu}' and '{npu}' at --steps 5000:: they have steps 0-999 in common. Ask for steps within.",
    ),
    "two on stdout": (
        ["--junit", "-", "--json", "-"],
        "Cannot print --json - and --junit -: one of them has stdout for itself. Name a file for the other.",
    ),
    "output": (
        ["--junit", "/none/a.xml"],
        "Cannot write '/none/a.xml': the folder '/none' does not exist. Make it first, or name another file.",
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_bad_input_is_said_in_a_sentence(problem: str, logs: dict[str, Path]) -> None:
    options, sentence = PROBLEMS[problem]
    done = align("accept", logs["gpu"], logs["npu"], *options)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"align: {sentence.format(gpu=logs['gpu'], npu=logs['npu'])}\n"


OPERATORS = {
    "empty": ("", "there is no column 'op', 'ratio' and 'limit' in its first line (). "),
    "no limit": ("op,ratio\na,1\n", "there is no column 'limit' in its first line (op, ratio). "),
    "no row": ("op,ratio,limit\n\n", "there is no row below its names of columns."),
    "no number": (
        "op,ratio,limit\na,x,1\n",
        "'x' in line 2, column 'ratio', is no number. Write numbers such as 1.25.",
    ),
    "short row": ("op,ratio,limit\na,1\n", "'' in line 2, column 'limit', is no number. Write numbers such as 1.25."),
}


@pytest.mark.parametrize("problem", OPERATORS)
def test_bad_tables_of_operators_are_said_in_a_sentence(problem: str, logs: dict[str, Path], tmp_path: Path) -> None:
    text, sentence = OPERATORS[problem]
    path = tmp_path / "ops.csv"
    path.write_text(text, encoding="utf-8")
    if sentence.endswith("). "):
        sentence += "Write the columns op, dtype, ratio, limit and source."
    done = align("accept", logs["gpu"], logs["npu"], "--ops", path)
    assert (done.code, done.err) == (2, f"align: Cannot read the operators in '{path}': {sentence}\n")


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real captures of one script: twice the same, once with another seed, once of the curves alone."""
    folder = tmp_path_factory.mktemp("captures")
    script: list[Any] = [STEPS / "accumulation.py", "--steps", "12"]
    runs = [(folder / f"{name}.h5", script) for name in ("gpu", "npu")]
    runs += [(folder / "seed.h5", [*script, "--seed", "1"])]
    capture_all("cpu", runs)
    (folder / "short.toml").write_text(SHORT, encoding="utf-8")
    return folder


def accept_captures(folder: Path, candidate: str, *options: str | Path) -> Done:
    return align("accept", folder / "gpu.h5", folder / candidate, "--policy", folder / "short.toml", *options)


def test_two_captures_are_compared_by_their_tensors_too(captures: Path) -> None:
    done = accept_captures(captures, "npu.h5")
    assert done.code == 0, done.out
    text = " ".join(done.out.split())
    assert "equal start (weights, batches) 0 <= 0 pass" in text
    assert "Tensors of other steps than the captured ones." in text


def test_other_weights_are_named_first(captures: Path) -> None:
    done = accept_captures(captures, "seed.h5")
    assert done.code == 1
    text = " ".join(done.out.split())
    assert " initial weights and batches differ: " in text
    assert "tensors, times the floor - <= 7.0x not measured, but required" in text


def test_a_capture_against_a_log(captures: Path, tmp_path: Path) -> None:
    document = json.loads(accept_captures(captures, "npu.h5", "--json", "-").out)
    log = write_csv(tmp_path / "npu.csv", {"loss": document["curves"]["candidate"]["loss"]})
    done = align("accept", captures / "gpu.h5", log, "--policy", captures / "short.toml")
    assert done.code == 2
    assert "Logs do not hold weights and batches: that both runs began alike was not seen." in " ".join(
        done.out.split()
    )
