"""The page of a comparison as text: what it holds, what it must never hold, how large it is."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import re
import string
from collections.abc import Callable
from pathlib import Path

import pytest

from align.records import DiffResult, TensorKey
from align.reports.html import diff_page
from align.reports.language import ENGLISH, LANGUAGES
from align.reports.timeline_table import make_timeline
from tests import report_samples
from tests.test_reports_text import SAMPLES

TEMPLATES = Path(__file__).parents[1] / "reports" / "templates"
FIGURE = re.compile(r'<svg viewBox="0 0 [0-9.]+ [0-9.]+" aria-hidden="true" focusable="false">.*?</svg>', re.DOTALL)


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def renamed(result: DiffResult, old: str, new: str) -> DiffResult:
    """The result with another name for one module, everywhere that a report shows it."""

    def key(given: TensorKey) -> TensorKey:
        return dataclasses.replace(given, name=given.name.replace(old, new))

    pairs = tuple(
        dataclasses.replace(
            pair,
            reference=dataclasses.replace(pair.reference, key=key(pair.reference.key)),
            candidate=dataclasses.replace(pair.candidate, key=key(pair.candidate.key)),
        )
        for pair in result.comparisons
    )
    first = result.first_divergence
    return dataclasses.replace(
        result,
        summary=result.summary.replace(old, new),
        comparisons=pairs,
        first_divergence=first and dataclasses.replace(first, name=first.name.replace(old, new)),
        findings=tuple(
            dataclasses.replace(
                finding,
                summary=finding.summary.replace(old, new),
                advice=finding.advice.replace(old, new),
                where=dataclasses.replace(finding.where, name=finding.where.name.replace(old, new)),
            )
            for finding in result.findings
        ),
        only_candidate=tuple(map(key, result.only_candidate)),
    )


def test_page_is_the_golden_one_apart_from_its_figures(golden: Callable[[str, str], None]) -> None:
    page = FIGURE.sub("<svg/>", diff_page(report_samples.equality()))
    for element in ("style", "script"):
        page = re.sub(f"<{element}>.*?</{element}>", f"<{element}/>", page, flags=re.DOTALL)

    golden("diff_equality.html", re.sub("sha256-[^']*", "sha256-", page))


@pytest.mark.parametrize("name", SAMPLES)
def test_page_holds_every_sentence_and_number(name: str) -> None:
    result = SAMPLES[name]()

    page = html.unescape(re.sub("</?code>", "`", diff_page(result)))

    assert f"<h1>{result.summary}</h1>" in page
    for finding in result.findings:
        assert finding.code in page
        assert finding.label in page
        assert finding.summary in page
        assert finding.advice in page


@pytest.mark.parametrize("name", SAMPLES)
def test_page_needs_nothing_from_outside(name: str) -> None:
    page = diff_page(SAMPLES[name]())

    assert "http:" not in page
    assert "https:" not in page
    assert not re.findall(r'(?:src|href)="(?!#|data:,")', page)
    assert not re.findall(r"url\((?!#)", page)
    assert "@import" not in page


@pytest.mark.parametrize("name", SAMPLES)
def test_page_gives_every_element_its_own_id(name: str) -> None:
    ids = re.findall(r' id="([^"]*)"', diff_page(SAMPLES[name]()))

    assert len(ids) == len(set(ids))


def test_page_is_the_same_every_time() -> None:
    assert diff_page(report_samples.diverged()) == diff_page(report_samples.diverged())


def test_policy_names_the_script_of_the_page() -> None:
    page = diff_page(report_samples.diverged())

    script = page.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page


def test_templates_have_no_handlers_and_trust_no_input() -> None:
    for path in TEMPLATES.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "|safe" not in text.replace(" ", "")
        assert "innerHTML" not in text
        assert not re.search(r"\son[a-z]+=", text)


def test_names_cannot_become_elements() -> None:
    hostile = "</script><img src=x onerror=alert(1)>\u202e"

    page = diff_page(renamed(report_samples.diverged(), "layers.2.mlp.act", hostile))

    assert "<img" not in page
    assert "\u202e" not in page
    assert page.count("</script>") == 2
    assert html.escape("</script><img src=x onerror=alert(1)>\\u202e") in page


def test_a_difference_below_the_resolution_is_not_called_equal() -> None:
    page = diff_page(report_samples.aligned())

    assert html.unescape(page).count('<td class="number">< 4.2e-8</td>') == 2


def test_data_of_the_page_can_be_read() -> None:
    result = report_samples.nonfinite()
    page = diff_page(result)

    data = json.loads(page.partition('id="align-data">')[2].partition("</script>")[0])

    assert data["length"] == len(result.comparisons)
    assert data["columns"]["relative"][data["first"]] == "NaN"


def test_a_page_of_twenty_thousand_tensors_is_small() -> None:
    result = report_samples.huge()
    page = diff_page(result)

    assert len(result.comparisons) > 20_000
    assert len(page.encode()) < 3_000_000
    assert page.count("<tr") < 320


def test_a_simulated_device_is_named_in_the_head() -> None:
    head = diff_page(report_samples.diverged()).partition("</header>")[0]

    assert "simulated NPU</span>" in head
    assert "The candidate ran on a simulated NPU: this proves nothing about real hardware." in head
    assert "simulated NPU</span>" not in diff_page(report_samples.aligned())


def test_figures_mark_the_first_difference_by_name() -> None:
    figures = FIGURE.findall(diff_page(report_samples.diverged()))

    assert len(figures) == 3
    assert "layers.2.mlp.act output.0" in figures[0]
    assert "layers.2.mlp.act output.0" not in figures[1]
    for figure in figures:
        assert "#0101" not in figure
        assert not re.search(r">@\w+@?<", figure)


def test_a_phase_that_was_not_captured_is_said_to_be_missing() -> None:
    result = report_samples.aligned()
    kept = tuple(pair for pair in result.comparisons if str(pair.key.phase) in {"init", "input", "forward", "loss"})

    page = diff_page(dataclasses.replace(result, comparisons=kept))

    assert "Backward: gradients: nothing to draw (this phase was not captured on both sides)." in page


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_have_the_same_words_and_places(language: str) -> None:
    words = LANGUAGES[language]

    assert words.keys() == ENGLISH.keys()
    assert {key: placeholders(text) for key, text in words.items()} == {
        key: placeholders(text) for key, text in ENGLISH.items()
    }


def test_page_says_how_the_runs_were_made_comparable() -> None:
    sentence = (
        "Made comparable: the candidate took its initial weights and batches from gpu.h5; dropout was off in both; "
        "seed 1 in the reference."
    )

    assert f"<dt>Same start</dt><dd>{sentence}</dd>" in diff_page(report_samples.prepared())
    assert "Same start" not in diff_page(report_samples.aligned())


def test_page_has_the_timelines_side_by_side() -> None:
    table = make_timeline(report_samples.prepared(), ENGLISH)

    assert table.titles == (
        *("step", "learning rate", "loss scale", "loss scale after", "gradient norm", "clip norm", "clip limit"),
        "remarks",
    )
    assert table.rows[:2] == (
        (
            "0",
            "3.0e-4",
            "65,536 (2^16)",
            "65,536 (2^16) / 32,768 (2^15)",
            "1.500",
            "1.900",
            "1.000",
            "\u2013 / skipped",
        ),
        (
            *("1", "3.0e-4", "65,536 (2^16) / 32,768 (2^15)", "65,536 (2^16) / 32,768 (2^15)"),
            *("1.480", "1.880", "1.000", "\u2013 / saturated"),
        ),
    )
    assert (len(table.rows), table.more) == (20, 5)


def test_timeline_leaves_out_what_no_run_has() -> None:
    assert make_timeline(report_samples.aligned(), ENGLISH).titles == ("step", "learning rate", "gradient norm")
    assert make_timeline(report_samples.incomparable(), ENGLISH).titles == ()
