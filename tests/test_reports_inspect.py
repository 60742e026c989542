"""The text and the JSON of an inspection, whole."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from align.records import Column, Curve, Reply, Severity, Shown, State, Table
from align.reports.inspect_json import inspect_json
from align.reports.inspect_text import inspect_text, print_inspection
from align.reports.language import ENGLISH
from align.reports.run_series import make_curves
from align.reports.run_tables import make_table
from align.reports.timeline_table import make_run_timeline
from tests import inspect_samples, report_samples
from tests.inspect_samples import SAMPLES
from tests.test_reports_json import strict
from tests.test_reports_text import Terminal


@pytest.mark.parametrize("name", SAMPLES)
def test_text_is_the_golden_one(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"inspect_{name}.txt", inspect_text(SAMPLES[name]()))


@pytest.mark.parametrize("name", SAMPLES)
def test_text_is_a_screen_at_most(name: str) -> None:
    lines = inspect_text(SAMPLES[name]()).splitlines()

    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100


def test_all_of_the_text_has_what_was_folded() -> None:
    result = inspect_samples.nan()

    text = " ".join(inspect_text(result, whole=True).split())

    for finding in result.findings:
        assert finding.summary in text
        assert finding.advice in text
    for reply in result.replies:
        assert reply.question in text
    assert "No activation checkpoint in this run." in text


def test_many_questions_are_cut_to_a_line_each_and_what_is_bad_is_not() -> None:
    long = "This sentence says so much that it takes more than one line of a terminal of a hundred columns. " * 2
    replies = tuple(
        Reply(f"question {number}", State.BAD if number == 3 else State.GOOD, f"{number}: {long}".rstrip())
        for number in range(18)
    )

    lines = inspect_text(dataclasses.replace(inspect_samples.healthy(), replies=replies)).splitlines()

    assert len(lines) <= 40
    assert [line[:19] for line in lines if line.endswith(" ...")][:3] == [
        "  ok   question 1  ",
        "  ok   question 2  ",
        "  ok   question 4  ",
    ]
    bad = next(place for place, line in enumerate(lines) if "question 3" in line)
    assert " ".join(" ".join(lines[bad : bad + 3]).split()) == f"BAD question 3 {replies[3].sentence}"


def test_many_findings_fit_on_a_screen_and_the_last_are_counted() -> None:
    result = inspect_samples.nan()
    cause = result.findings[0]
    others = tuple(
        dataclasses.replace(cause, code=f"AL9{number:02}", severity=Severity.WARNING, summary=f"Warning {number}.")
        for number in range(50)
    )

    lines = inspect_text(dataclasses.replace(result, findings=(cause, *others))).splitlines()

    assert len(lines) <= 40
    assert "  error AL601 nan-origin  layers.1.attn grad_input.0, step 1, backward" in lines
    assert "  warning AL900 nan-origin: Warning 0." in lines
    (more,) = [line for line in lines if line.endswith("more: --all shows them.")]
    named = sum(line.startswith("  warning ") for line in lines)
    assert more == f"  and {50 - named} more: --all shows them."


def test_print_to_a_terminal_has_colour_and_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TERM", "xterm"), ("COLUMNS", "100")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()

    print_inspection(inspect_samples.nan(), stream)

    plain = stream.getvalue()
    assert plain.startswith("\x1b[1;31mUNHEALTHY  npu.h5 on Ascend910B3")
    for code in ("\x1b[1;31m", "\x1b[1m", "\x1b[33m", "\x1b[36m", "\x1b[0m"):
        plain = plain.replace(code, "")
    assert plain == inspect_text(inspect_samples.nan())


def test_print_to_a_file_has_no_colour() -> None:
    stream = io.StringIO()

    print_inspection(inspect_samples.nan(), stream)

    assert stream.getvalue() == inspect_text(inspect_samples.nan())


def test_hostile_names_are_shown_as_escapes() -> None:
    for whole in (False, True):
        text = inspect_text(inspect_samples.hostile(), whole=whole)
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "\\u202e\\u001b[31m" in text


@pytest.mark.parametrize("name", SAMPLES)
def test_json_has_every_key_in_its_order(name: str) -> None:
    result = SAMPLES[name]()

    read = strict(inspect_json(result))

    assert list(read) == [
        *("format", "command", "verdict", "summary", "first_divergence", "findings", "sentences", "replies", "tables"),
        *("counts", "runs", "paths", "captured", "exponents", "modules", "timeline"),
    ]
    assert (read["format"], read["verdict"], read["summary"]) == ("align/1", str(result.verdict), result.summary)
    assert [finding["explained_by"] for finding in read["findings"]] == [
        finding.explained_by for finding in result.findings
    ]
    assert read["timeline"]["candidate"]["length"] == len(result.timeline)


def test_json_names_the_first_wrong_place_or_null() -> None:
    assert strict(inspect_json(inspect_samples.healthy()))["first_divergence"] is None
    assert strict(inspect_json(inspect_samples.nan()))["first_divergence"] == {
        "step": 1,
        "phase": "backward",
        "name": "layers.1.attn",
        "slot": "grad_input.0",
        "micro": 0,
        "call": 0,
        "rank": None,
    }


def test_json_has_the_tables_with_all_rows_and_plain_numbers() -> None:
    result = inspect_samples.collapse()

    headroom, skips = strict(inspect_json(result))["tables"]

    assert (headroom["name"], len(headroom["rows"])) == ("headroom", 60)
    assert skips == {
        "name": "skipped_steps",
        "title": "Skipped steps",
        "lead": "What was the first tensor with Inf or NaN in each step that was skipped.",
        "columns": [
            {"title": "step", "shown": "count"},
            {"title": "scale before", "shown": "scale"},
            {"title": "scale after", "shown": "scale"},
            {"title": "first tensor", "shown": "name"},
        ],
        "rows": [list(row) for row in result.tables[1].rows],
        "question": "loss scale",
        "curve": "loss_scale",
    }


def test_json_is_read_by_other_tools_whatever_the_numbers() -> None:
    assert json.loads(inspect_json(inspect_samples.hostile()))["tables"][0]["rows"][0][2:] == ["nan", "inf", None]


@pytest.mark.parametrize(
    ("shown", "cell", "text"),
    [
        (Shown.TEXT, "as\x07it is", "as\\u0007it is"),
        (Shown.NAME, "n" * 200, f"{'n' * 58}...{'n' * 59}"),
        (Shown.COUNT, 39812, "39,812"),
        (Shown.NUMBER, 65504.0, "65,504"),
        (Shown.NUMBER, 3, "3.000"),
        (Shown.SHARE, 0.0003, "0.03 %"),
        (Shown.RELATIVE, 1.3e-4, "1.3e-4"),
        (Shown.TIMES, 6.4, "6.4x"),
        (Shown.LOSS, 2.31479, "2.3148"),
        (Shown.SCALE, 65536.0, "65,536 (2^16)"),
        (Shown.SECONDS, 0.318, "318 ms"),
        (Shown.SECONDS, math.nan, "NaN"),
        (Shown.TEXT, True, "yes"),
        (Shown.SHARE, None, "not known"),
    ],
)
def test_cells_are_written_as_their_column_says(shown: Shown, cell: Any, text: str) -> None:
    table = make_table(Table("t", "T", "L", (Column("c", shown),), ((cell,),)), ENGLISH)

    assert (table.rows, table.cut) == (((text,),), "")
    assert table.titles[0].number == (shown not in {Shown.TEXT, Shown.NAME})


def test_a_long_table_says_how_many_rows_it_shows() -> None:
    table = make_table(inspect_samples.headroom(layers=260), ENGLISH)

    assert (len(table.rows), table.cut) == (200, "200 of 260 rows are shown; the JSON report has all.")


def test_curves_say_what_there_is_to_see() -> None:
    said = {curve.curve: curve.sentence for curve in make_curves(inspect_samples.collapse(), ENGLISH)}

    assert said == {
        Curve.LOSS: "From 3.4000 in step 0 to 1.0824 in step 199. Between 1.0801 (step 187) and 3.4000 (step 0).",
        Curve.LOSS_SCALE: (
            "From 65,536 (2^16) in step 0 to 2^-3 in step 199. Between 2^-3 (step 194) and 65,536 (2^16) (step 0). "
            "19 steps were skipped: 31, 40, 49, 58, 67, 76, 85, 94, and 11 more."
        ),
        Curve.GRADIENT_NORM: "From 41.50 in step 0 to 1.500 in step 199. Between 1.500 (step 1) and 41.50 (step 0).",
        Curve.SECONDS: "Half of the steps took 306 ms or less; the longest took 2.40 s, step 0.",
    }


def test_curves_of_a_run_with_nan_say_which_steps_have_no_number() -> None:
    curves = {curve.curve: curve for curve in make_curves(inspect_samples.nan(), ENGLISH)}

    assert curves[Curve.LOSS].sentence == (
        "From 3.4000 in step 0 to 3.2232 in step 1. Not finite in 4 steps, the first is step 2."
    )
    assert curves[Curve.LOSS].lost == (2, 3, 4, 5)
    assert curves[Curve.LOSS].captured == ((0, 1),)
    assert (curves[Curve.LOSS_SCALE].sentence, curves[Curve.LOSS_SCALE].drawable) == (
        "No loss scaling in this run.",
        False,
    )
    # NaN is what was not recorded: only clipping says that it was seen.
    assert curves[Curve.GRADIENT_NORM].lost == ()
    assert curves[Curve.SECONDS].sentence == "318 ms in every step."


def test_a_long_run_is_thinned_and_keeps_its_extremes() -> None:
    rows = report_samples.timeline(20_000)
    spiked = dataclasses.replace(rows[12_345], loss=99.0)
    result = dataclasses.replace(inspect_samples.healthy(), timeline=(*rows[:12_345], spiked, *rows[12_346:]))

    loss = make_curves(result, ENGLISH)[0]

    assert len(loss.points) <= 1500
    assert (12_345, 99.0) in loss.points


def test_the_values_per_step_are_those_around_the_first_wrong_place() -> None:
    table = make_run_timeline(inspect_samples.collapse(), ENGLISH)

    assert table.titles == (
        *("step", "loss", "learning rate", "loss scale", "loss scale after", "gradient norm", "clip norm"),
        *("clip limit", "time", "optimizer", "remarks"),
    )
    assert (table.rows[0][0], table.rows[-1][0], table.more) == ("15", "54", 160)
    assert table.rows[16] == (
        *("31", "1.2845", "3.0e-4", "65,536 (2^16)", "32,768 (2^15)", "1.500", "1.500", "1.000", "306 ms"),
        *("AdamW", "skipped"),
    )
