"""`align inspect` as it is typed: what it prints and writes, and what it says of what it cannot read."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest

from align.capture_format import FORMAT_VERSION
from align.cli import main
from align.commands import inspect_files
from align.records import RunInfo
from align.reports.inspect_html import inspect_page
from align.reports.inspect_json import inspect_json
from align.reports.inspect_text import inspect_text
from tests import numpy_run
from tests.builders import write_capture
from tests.report_samples import timeline


def run(*words: str | Path) -> int:
    """The exit code of one command in this process."""
    try:
        return int(main(["inspect", *map(str, words)], prog_name="align", standalone_mode=False) or 0)
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return numpy_run.make(tmp_path_factory.mktemp("inspect") / "run.h5", evidence=1)


def test_text_page_and_json_are_those_of_one_inspection(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, document = tmp_path / "run.html", tmp_path / "run.json"

    run(capture, "--html", page, "--json", document)

    said = capsys.readouterr()
    result = inspect_files(str(capture))
    assert said.out == inspect_text(result)
    assert said.err == f"align: wrote {document}\nalign: wrote {page}\n"
    assert page.read_text(encoding="utf-8") == inspect_page(result)
    assert document.read_text(encoding="utf-8") == inspect_json(result)
    assert json.loads(document.read_text(encoding="utf-8"))["captured"] == [0, 1]


def test_json_alone_and_all_of_the_text(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = inspect_files(str(capture))

    run(capture, "--json", "-")
    assert capsys.readouterr().out == inspect_json(result)
    run(capture, "--all")
    assert capsys.readouterr().out == inspect_text(result, whole=True)


def test_a_capture_without_tensors_is_told_by_its_timeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_capture(tmp_path / "bare.h5", {}, timeline=timeline(4))

    run(path)

    assert capsys.readouterr().out.split("\n")[0].endswith(": 4 steps, no step captured")


def test_a_run_that_ended_before_the_steps_asked_for_is_not_called_healthy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = RunInfo(outcome="finished", steps_requested="100:103", steps_seen=4)
    path = write_capture(tmp_path / "beyond.h5", {}, run=asked, timeline=timeline(4))

    code = run(path)

    assert code == 2
    assert inspect_files(str(path)).summary == (
        "No step was captured, since the capture holds none of the steps that were asked for (100-102): the run had 4 "
        "steps (0-3). The timeline alone tells nothing wrong, and not whether the run is healthy; capture it again "
        "with --steps 0:3."
    )
    assert capsys.readouterr().out.startswith("UNKNOWN  beyond.h5 on ")


def test_a_capture_that_was_killed_is_inspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = numpy_run.make(tmp_path / "killed.h5", run=RunInfo(outcome="unfinished", steps_seen=2))

    run(path)

    out = capsys.readouterr().out
    assert out.split("\n")[1].startswith("The run did not end by itself: it was killed or is still running (the last")


def test_all_ranks_of_a_job_are_read_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in range(2):
        numpy_run.make(tmp_path / f"job.rank000{rank}.h5", run=RunInfo(outcome="finished", rank=rank, world_size=4))

    run(tmp_path / "job.h5")

    text = capsys.readouterr().out
    assert "  job.rank0000.h5 and 1 more rank on " in text
    assert "note: 2 of 4 ranks were read; the file named without its rank stands for all of them." in text


def newer(folder: Path) -> tuple[Path, str]:
    path = numpy_run.make(folder / "newer.h5", run=RunInfo(outcome="finished", align_version="9.0"))
    with h5py.File(path, "r+") as file:
        file.attrs["align_format"] = FORMAT_VERSION + 1
    return path, (
        f"Cannot read '{path}': it has capture format {FORMAT_VERSION + 1}, written by align 9.0, and this align reads "
        f"formats up to {FORMAT_VERSION}. Update it with 'pip install -U torch-align'."
    )


def empty(folder: Path) -> tuple[Path, str]:
    path = write_capture(folder / "empty.h5", {})
    return path, (
        f"Cannot inspect '{path}': it holds no finished step and no row of a timeline. Capture it again and let at "
        "least one training step end."
    )


def missing(folder: Path) -> tuple[Path, str]:
    path = folder / "missing.h5"
    return path, (
        f"Cannot read '{path}': there is no such file. Check the path, or make it with 'align capture -o {path}'."
    )


def checkpoint(folder: Path) -> tuple[Path, str]:
    path = folder / "model.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data.pkl", b"\x80\x02}.")
    return path, (
        f"Cannot read '{path}': it is not an HDF5 file; for files of weights use `align checkpoint`. Name a file that "
        "'align capture' wrote."
    )


@pytest.mark.parametrize("make", [newer, empty, missing, checkpoint])
def test_what_cannot_be_read_is_one_sentence(
    make: Callable[[Path], tuple[Path, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, sentence = make(tmp_path)

    code = run(path, "--html", tmp_path / "never.html", "--json", tmp_path / "never.json")

    said = capsys.readouterr()
    assert (code, said.out, said.err) == (2, "", f"align: {sentence}\n")
    assert not list(tmp_path.glob("never.*"))


def test_two_files_are_not_inspected_together(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run("gpu.h5", capture)

    sentence = (
        "Cannot inspect 2 files at once: `align inspect gpu.h5` looks at one run, with all its ranks. To compare two "
        f"runs: `align diff gpu.h5 {capture}`."
    )
    assert (code, capsys.readouterr()) == (2, ("", f"align: {sentence}\n"))


def test_a_report_that_cannot_be_written_is_told_before_the_work(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "nowhere" / "run.html"
    reason = f"the folder '{target.parent}' does not exist"
    sentence = f"Cannot write '{target}': {reason}. Make it first, or name another file."

    for words in ((capture, "--html", target), (tmp_path / "missing.h5", "--json", target)):
        assert run(*words) == 2
        assert capsys.readouterr() == ("", f"align: {sentence}\n")
    assert run(capture, "--json", capture) == 2
    assert "it is an HDF5 file, such as a capture." in capsys.readouterr().err
