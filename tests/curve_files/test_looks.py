"""What `align diff` says of files that are no captures: logs of a loss are told with the command that compares them."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from align.cli import main
from tests import numpy_run
from tests.running import environment


def diff(*words: str | Path) -> int:
    """The exit code of one comparison in this process."""
    try:
        return int(main(["diff", *map(str, words)], prog_name="align", standalone_mode=False) or 0)
    except SystemExit as ended:
        return int(ended.code or 0)


def table(folder: Path) -> str:
    (folder / "curve.csv").write_text("step,loss\n0,2.5\n1,2.25\n2,2.125\n")
    return "curve.csv"


def log(folder: Path) -> str:
    (folder / "run.log").write_text("starting\nstep 0 loss 2.5\nstep 1 loss 2.25\n")
    return "run.log"


def trainer(folder: Path) -> str:
    history = [{"step": step, "loss": 2.5 / (step + 1)} for step in range(3)]
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": 2, "log_history": history}, indent=1))
    return "trainer_state.json"


def events(folder: Path) -> str:
    writer: Any = import_module("tensorboardX").SummaryWriter(str(folder / "runs"))
    for step in range(3):
        writer.add_scalar("train/loss", 2.5 / (step + 1), step)
    writer.close()
    return "runs"


NO_FILE_OF_HDF5 = "it is not an HDF5 file. Name a file that 'align capture' wrote."


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (table, NO_FILE_OF_HDF5),
        (log, NO_FILE_OF_HDF5),
        (trainer, NO_FILE_OF_HDF5),
        (events, "it is a folder. Name a capture file in it."),
    ],
)
def test_a_log_of_the_loss_is_told_with_what_compares_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], make: Any, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    name = make(tmp_path)
    numpy_run.make(tmp_path / "run.h5")

    assert diff("run.h5", name, "--lang", "en") == 2

    assert capsys.readouterr().err == (
        f"align: Cannot read '{name}': {reason} It holds a loss curve; `align accept run.h5 {name}` compares loss "
        "curves.\n"
    )


def prose(folder: Path) -> str:
    (folder / "notes.txt").write_text("The final loss was 2.5, which is fine.\n")
    return "notes.txt"


def settings(folder: Path) -> str:
    (folder / "config.json").write_text(json.dumps({"learning_rate": 0.1, "steps": [1, 2, 3]}))
    return "config.json"


def binary(folder: Path) -> str:
    (folder / "data.raw").write_bytes(bytes(range(256)) * 40)
    return "data.raw"


def other_table(folder: Path) -> str:
    (folder / "names.csv").write_text("city,people\nBern,134\nGenf,203\n")
    return "names.csv"


@pytest.mark.parametrize("make", [prose, settings, binary, other_table])
def test_what_is_no_log_is_not_called_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], make: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    name = make(tmp_path)

    assert diff(name, name, "--lang", "en") == 2

    assert capsys.readouterr().err == f"align: Cannot read '{name}': {NO_FILE_OF_HDF5}\n"


def test_a_comparison_of_captures_does_not_load_what_reads_logs(tmp_path: Path) -> None:
    path = numpy_run.make(tmp_path / "run.h5")
    program = (
        "import sys\nfrom align.cli import main\n"
        f"main(['diff', {str(path)!r}, {str(path)!r}], standalone_mode=False)\n"
        "print([name for name in sys.modules if name.startswith('align.curve_files')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment()
    )
    assert done.stdout.splitlines()[-1] == "[]"
