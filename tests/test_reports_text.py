"""The terminal text of a comparison, whole."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable

import pytest

from align.records import DiffResult, RunInfo
from align.reports.language import ENGLISH
from align.reports.lines import wrapped
from align.reports.remarks import comparable
from align.reports.text import diff_text, print_diff
from tests import report_samples

SAMPLES: dict[str, Callable[[], DiffResult]] = {
    "diverged": report_samples.diverged,
    "aligned": report_samples.aligned,
    "prepared": report_samples.prepared,
    "equality": report_samples.equality,
    "nonfinite": report_samples.nonfinite,
    "incomparable": report_samples.incomparable,
    "explained": report_samples.explained,
    "crowded": report_samples.crowded,
}


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("name", SAMPLES)
def test_text_is_the_golden_one(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"diff_{name}.txt", diff_text(SAMPLES[name]()))


@pytest.mark.parametrize(
    ("advice", "said"),
    [
        ("Capture both with `align capture --seed 1`.", True),
        ("Run `align capture --steps 0:3 SCRIPT`, or `align capture --steps 3 ...`.", False),
        ("Run `align capture-now RUN.h5`.", False),
    ],
)
def test_a_command_without_its_script_has_a_note_on_it(advice: str, said: bool) -> None:
    result = report_samples.diverged()
    findings = (dataclasses.replace(result.findings[0], advice=advice),)

    text = diff_text(dataclasses.replace(result, findings=findings), whole=True)

    note = "note: Put your script and its arguments at the end of each `align capture` command."
    assert text.splitlines().count(note) == said


def test_a_number_and_its_percent_sign_stay_together() -> None:
    assert [text for text, _ in wrapped("a share of 12.5 % is lost", 14)] == ["a share of", "12.5 % is lost"]


@pytest.mark.parametrize("make", [*SAMPLES.values(), report_samples.huge])
def test_text_is_a_screen_at_most(make: Callable[[], DiffResult]) -> None:
    lines = diff_text(make()).splitlines()

    assert len(lines) <= 40
    assert max(map(len, lines)) <= 120


def test_all_of_the_text_has_every_finding_and_note() -> None:
    for result in (report_samples.explained(), report_samples.crowded()):
        text = " ".join(diff_text(result, whole=True).split())
        for finding in result.findings:
            assert finding.summary in text
            assert finding.advice in text
        for note in result.pairing.notes:
            assert f"note: {note}" in text
        assert "--all" not in text


def test_consequences_stand_in_one_line_under_their_cause() -> None:
    lines = diff_text(report_samples.explained()).splitlines()

    start = lines.index("  error AL201 seed-mismatch  layers.0.attn weight, before step 0, init")
    assert lines[start + 1 : start + 6] == [
        "    5 later tensors differ because of it.",
        "    Explains 4 more findings: initial-weights-differ (14 of 34 tensors), dropout-mask-differs (2),",
        "    data-order.",
        "  warning AL102 precision-mode-differs",
        "    Convolutions may use TF32 in the reference and HF32 in the candidate.",
    ]


def test_a_screen_keeps_the_cause_and_counts_what_it_leaves_out() -> None:
    result = report_samples.crowded()

    lines = diff_text(result).splitlines()

    assert "  error AL401 origin-module  layers.2.mlp.act output.0, step 0, forward" in lines
    named = sum(line.startswith("  warning AL102") for line in lines)
    assert f"  and {30 - named} more: --all shows them." in lines
    noted = sum(line.startswith("note: ") for line in lines) - 1
    # 4 notes tell of the steps, the resolution and the candidate.
    assert lines[-1] == f"note: {4 + 12 - noted} more: --all shows them."
    assert "note: The candidate's capture is unfinished: the file ends at step 2." in lines


def test_print_to_a_file_has_no_colour() -> None:
    stream = io.StringIO()

    print_diff(report_samples.diverged(), stream)

    assert stream.getvalue() == diff_text(report_samples.diverged())


def test_print_to_a_terminal_has_colour_and_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TERM", "xterm"), ("COLUMNS", "100")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()

    print_diff(report_samples.diverged(), stream)

    coloured = stream.getvalue()
    assert coloured.startswith("\x1b[1;31mDIVERGED  gpu.h5 (reference) against npu.h5 (candidate)\x1b[0m\n")
    plain = coloured
    for code in ("\x1b[1;31m", "\x1b[1m", "\x1b[33m", "\x1b[0m"):
        plain = plain.replace(code, "")
    assert plain == diff_text(report_samples.diverged())


def test_letters_that_a_stream_cannot_hold_are_escapes() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")

    print_diff(dataclasses.replace(report_samples.aligned(), summary="Aligned: caf\u00e9."), stream)

    stream.seek(0)
    assert stream.read().splitlines()[1] == r"Aligned: caf\xe9."


def test_a_command_in_a_sentence_is_never_broken() -> None:
    result = report_samples.nonfinite()

    text = diff_text(result, width=30)

    assert "\n`align show npu.h5 layers.1.attn`,\n" in text


def test_hostile_names_are_shown_as_escapes() -> None:
    result = report_samples.aligned()
    hostile = dataclasses.replace(result, summary="a\x1b[31mred\u202eb", candidate_path="x/\x07bell.h5")

    text = diff_text(hostile)

    assert text.startswith("ALIGNED  gpu.h5 (reference) against \\u0007bell.h5 (candidate)\na\\u001b[31mred\\u202eb\n")


@pytest.mark.parametrize(
    ("starts", "sentence"),
    [
        (({}, {}), ""),
        (({"seed": 1}, {"seed": 2}), "seed 1 in the reference; seed 2 in the candidate."),
        (({"seed": 1}, {"seed": 1}), "seed 1 in both."),
        (({"deterministic": True}, {}), "deterministic algorithms were on in the reference."),
        (({"init_from": "a/x.h5"}, {"batches_from": "y.h5", "batches_taken": 0}),
         "the reference took its initial weights from x.h5."),
        (({}, {"batches_from": "y.h5", "batches_as": "inputs"}),
         "the candidate took its batches (its targets are its own) from y.h5."),
        (({}, {"init_from": "x.h5", "batches_from": "x.h5", "batches_taken": 1, "batches_missed": 2}),
         "the candidate took its initial weights and 1 of 3 batches from x.h5."),
        (({}, {"batches_from": "x.h5", "batches_taken": 1, "batches_missed": 2}),
         "the candidate took 1 of 3 batches from x.h5."),
        (({}, {"batches_from": "x.h5", "batches_taken": 0, "batches_missed": 3}), ""),
    ],
)  # fmt: skip
def test_the_same_start_is_one_sentence(starts: tuple[dict[str, object], dict[str, object]], sentence: str) -> None:
    runs = [RunInfo(same_start=start) for start in starts]
    result = dataclasses.replace(report_samples.aligned(), reference=runs[0], candidate=runs[1])

    assert comparable(result, ENGLISH) == (f"Made comparable: {sentence}" if sentence else "")
