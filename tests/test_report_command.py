"""`align report`: saved results through the real command line, the same files as the command that made them wrote."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from align.cli import main
from align.records import RunInfo
from align.reports.redacting import redacted
from align.sentences import Sentence, say
from tests import document_samples, inspect_samples
from tests.numpy_run import Model, Setup

SECRETS = ("gpu-07", "s3cret", "zeppelin", "10.1.2.3", "intranet", "/mnt")
"""What a redacted report may not hold."""

RUN = RunInfo(
    align_version="0.1.0",
    device_type="cuda",
    device_name="NVIDIA A100",
    host="gpu-07",
    command=("/home/me/zeppelin/train.py", "--token", "s3cret"),
    environment={"MASTER_ADDR": "10.1.2.3", "DATA": "/mnt/data"},
    versions={"torch": "2.1.0"},
    started="2026-01-07 10:31:05+08:00",
    outcome="exception: OSError: /home/me/zeppelin/data.bin is missing on gpu-07",
    notes=("see http://intranet/gpu-07 and 10.1.2.3:29500 for /mnt/data/x.bin",),
    same_start={"seed": 1, "init_from": "/mnt/data/runs/gpu.h5"},
    process_id=4711,
)


def align(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """The exit code of a command, and what it printed."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments], prog_name="align", standalone_mode=False)
    printed = capsys.readouterr()
    return int(code or 0), printed.out, printed.err


def files(folder: Path, kinds: Sequence[str]) -> list[str]:
    """Options that ask for a file of each kind."""
    folder.mkdir()
    return [word for kind in kinds for word in (f"--{kind}", str(folder / kind))]


def repeated(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: Sequence[str | Path], kinds: Sequence[str]
) -> tuple[int, Path]:
    """Run a command with all its files, report its JSON, and compare everything; the exit code and the JSON."""
    before, after = tmp_path / "before", tmp_path / "after"
    code, text, _ = align(capsys, *command, *files(before, kinds))
    saved = before / "json"

    again, repeated_text, notes = align(capsys, "report", saved, *files(after, kinds))

    assert (again, repeated_text) == (code, text)
    assert notes == "".join(
        f"align: wrote {after / kind}\n" for kind in ("json", "html", "markdown", "junit") if kind in kinds
    )
    for kind in kinds:
        assert (after / kind).read_bytes() == (before / kind).read_bytes(), kind
    return code, saved


ALL = ("json", "html", "markdown", "junit")


@pytest.fixture
def captures(tmp_path: Path) -> tuple[Path, Path]:
    """A reference, and a candidate of which one module computes something else."""
    faults = {(0, "forward blocks.0.mlp.fc"): lambda array: array * 1.01}
    ours = Model(Setup(run=RUN)).write(tmp_path / "gpu.h5")
    theirs = Model(Setup(run=replace(RUN, device_type="npu"), faults=faults)).write(tmp_path / "npu.h5")
    return ours, theirs


def test_a_comparison_is_reported_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, captures: tuple[Path, Path]
) -> None:
    code, saved = repeated(capsys, tmp_path, ["diff", *captures], ALL)

    assert code == 1
    for path in captures:
        path.unlink()
    assert align(capsys, "report", saved, "--json", "-")[1] == saved.read_text(encoding="utf-8")
    chinese = align(capsys, "report", saved, "--lang", "zh")[1]
    assert chinese.startswith("\u672a\u5bf9\u9f50  gpu.h5")
    markdown = align(capsys, "report", saved, "--markdown", "-")[1]
    assert markdown == (tmp_path / "before" / "markdown").read_text(encoding="utf-8")
    assert markdown.startswith("**DIVERGED** `gpu.h5` (reference) against `npu.h5` (candidate)\n")


def test_an_inspection_is_reported_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, captures: tuple[Path, Path]
) -> None:
    code, _ = repeated(capsys, tmp_path, ["inspect", captures[0]], ALL)

    assert code in {0, 1}


def test_a_comparison_of_checkpoints_is_reported_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    weights = {f"layers.{n}.weight": np.random.default_rng(n).standard_normal((8, 6)) for n in range(3)}
    save_file(weights, tmp_path / "a.safetensors")
    save_file(
        {name: value + (name == "layers.1.weight") for name, value in weights.items()}, tmp_path / "b.safetensors"
    )

    code, _ = repeated(capsys, tmp_path, ["checkpoint", tmp_path / "a.safetensors", tmp_path / "b.safetensors"], ALL)

    assert code == 1


def test_the_result_is_read_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, captures: tuple[Path, Path]
) -> None:
    text = align(capsys, "diff", *captures, "--json", "-")[1]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    code, printed, _ = align(capsys, "report", "-", "--json", "-")

    assert (code, printed) == (1, text)


def written(capsys: pytest.CaptureFixture[str], tmp_path: Path, saved: Path) -> str:
    """Everything that a redacted report writes, as one text."""
    out = tmp_path / "redacted"
    _, text, _ = align(capsys, "report", saved, "--all", "--redact", *files(out, ALL))
    return text + "".join((out / kind).read_text(encoding="utf-8") for kind in ALL)


def test_what_leaves_the_company_names_no_host_no_folder_and_no_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, captures: tuple[Path, Path]
) -> None:
    saved = tmp_path / "result.json"
    align(capsys, "diff", *captures, "--json", saved)
    whole = saved.read_text(encoding="utf-8")
    assert all(secret in whole for secret in SECRETS)

    cleared = written(capsys, tmp_path, saved)

    assert [secret for secret in (*SECRETS, str(tmp_path)) if secret in cleared] == []
    found = json.loads((tmp_path / "redacted" / "json").read_text(encoding="utf-8"))
    run = found["runs"]["reference"]
    assert (run["path"], run["host"], run["command"], run["process_id"]) == ("gpu.h5", "redacted", ["redacted"], 0)
    assert run["environment"] == {"MASTER_ADDR": "redacted", "DATA": "redacted"}
    assert run["outcome"] == "exception: OSError: data.bin is missing on redacted"
    assert run["notes"] == ["see redacted and redacted for x.bin"]
    assert run["same_start"] == {"seed": 1, "init_from": "gpu.h5"}
    assert (run["device_name"], run["versions"]) == ("NVIDIA A100", {"torch": "2.1.0"})
    assert found["records"] == json.loads(whole)["records"]


def test_two_files_of_one_name_stay_two_without_their_folders(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    paths = []
    for number, side in enumerate(("gpu", "npu")):
        (tmp_path / side).mkdir()
        paths.append(Model(Setup(seed=number)).write(tmp_path / side / "run.h5"))
    saved = tmp_path / "result.json"
    align(capsys, "diff", *paths, "--json", saved)

    text = align(capsys, "report", saved, "--redact")[1]
    found = json.loads(align(capsys, "report", saved, "--redact", "--json", "-")[1])

    assert "are the same file" not in text
    assert [found["runs"][side]["path"] for side in ("reference", "candidate")] == ["run.h5", "2/run.h5"]


def test_an_acceptance_is_reported_and_redacted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from align.reports.accept_json import accept_json

    result = document_samples.captured()
    secret = replace(
        result,
        reference=replace(
            result.reference, path="/home/me/zeppelin/gpu.h5", run=RUN, notes=("read from /mnt/gpu-07/x",)
        ),
        floors=("/home/me/zeppelin/floor.h5",),
        policy=replace(result.policy, path="/mnt/policies/ours.toml"),
    )
    saved = tmp_path / "accept.json"
    saved.write_text(accept_json(secret), encoding="utf-8")

    code, text, _ = align(capsys, "report", saved)
    cleared = written(capsys, tmp_path, saved)

    assert code == 0
    assert text.startswith("PASS  /home/me/zeppelin/gpu.h5 (reference) against runs/npu.h5 (candidate)\n")
    assert [secret for secret in SECRETS if secret in cleared] == []
    assert "ours.toml" in cleared


PATHS = {
    "in /home/me/train.py, line 3": "in train.py, line 3",
    "'~/runs/gpu.h5'": "'gpu.h5'",
    r"C:\Users\me\train.py failed": "train.py failed",
    r"\\server\share\a.h5": "a.h5",
    "https://wandb.corp/run/3": "redacted",
    "10.0.0.1:29500 timed out": "redacted timed out",
    "torch 2.1.0.1 and 1 / 3 of input/output": "torch redacted and 1 / 3 of input/output",
    "0.5 % (3/4) at layers.0/attn": "0.5 % (3/4) at layers.0/attn",
    "||a - b|| / ||a||": "||a - b|| / ||a||",
}
"""Free text, and what stays of it; a version of four numbers looks like an address."""


@pytest.mark.parametrize("text", PATHS)
def test_folders_and_addresses_in_sentences_are_left_out(text: str) -> None:
    result = inspect_samples.nan()
    said = say("Look: {}", text)

    cleared = redacted(replace(result, summary=said, run=replace(result.run, notes=(text,))))

    assert cleared.summary == f"Look: {PATHS[text]}"
    assert isinstance(cleared.summary, Sentence)
    assert (cleared.summary.template, cleared.summary.arguments) == ("Look: {}", (PATHS[text],))
    assert cleared.run.notes == (PATHS[text],)


@pytest.mark.parametrize(("verdict", "code"), [("aligned", 0), ("diverged", 1), ("incomparable", 2)])
def test_the_exit_code_is_that_of_the_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, verdict: str, code: int
) -> None:
    from align.reports.json_report import diff_json
    from tests import report_samples

    found: Any = json.loads(diff_json(report_samples.equality()))
    saved = tmp_path / "result.json"
    saved.write_text(json.dumps({**found, "verdict": verdict}), encoding="utf-8")

    assert align(capsys, "report", saved)[0] == code


def test_what_cannot_be_done_is_said_and_writes_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    broken = tmp_path / "broken.json"
    broken.write_text('{"format": "align/1", "verdict"', encoding="utf-8")
    attempts: list[tuple[list[str | Path], str]] = [
        (
            ["report", broken, "--html", page],
            f"Cannot read '{broken}': it is cut off in line 1. Write it again with --json.",
        ),
        (
            ["report", broken, "--json", "-", "--markdown", "-"],
            "Cannot print --json - and --markdown -: one of them has stdout for itself. Name a file for the other.",
        ),
        (
            ["report", broken, "--html", tmp_path],
            f"Cannot write '{tmp_path}': it is a folder. Name a file in it.",
        ),
    ]
    for arguments, sentence in attempts:
        code, text, said = align(capsys, *arguments)
        assert (code, text, said) == (2, "", f"align: {sentence}\n")
    assert not page.exists()
