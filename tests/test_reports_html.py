"""The page of a comparison as text: what it holds, what it must never hold, how large it is."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import math
import re
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from align.records import DiffResult, Status
from align.reports.html import diff_page
from align.reports.kept_rows import kept_rows
from align.reports.language import ENGLISH, LANGUAGES
from align.reports.packed import exact, logarithmic
from align.reports.timeline_table import make_timeline
from tests import page_samples, report_samples
from tests.test_reports_text import SAMPLES

TEMPLATES = Path(__file__).parents[1] / "reports" / "templates"
FIGURE = re.compile(r'<svg viewBox="0 0 [0-9.]+ [0-9.]+" aria-hidden="true" focusable="false">.*?</svg>', re.DOTALL)


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def shown_part(page: str) -> str:
    """The body in the language asked for, without its pictures, words and scripts."""
    body = page.partition('<div id="page">')[2].partition('<template id="other-language"')[0]
    return FIGURE.sub("<svg/>", body)


def data_of(page: str) -> dict[str, Any]:
    """What the scripts of a page read."""
    data: dict[str, Any] = json.loads(page.partition('id="align-data">')[2].partition("</script>")[0])
    return data


def numbers(column: dict[str, str]) -> list[float]:
    """A packed column, as `records.js` reads it."""
    kinds = {"u1": "<u1", "u2": "<u2", "u4": "<u4", "f4": "<f4", "log": "<i2"}
    return list(np.frombuffer(base64.b64decode(column["data"]), kinds[column["kind"]]).tolist())


def test_page_is_the_golden_one_apart_from_its_figures(golden: Callable[[str, str], None]) -> None:
    page = shown_part(page_samples.page_of("equality"))
    for element in ("figure", "details"):
        page = re.sub(
            f'<{element} ?(class="(figure|twin)"|aria-[^>]*)>.*?</{element}>', f"<{element}/>", page, flags=re.DOTALL
        )

    golden("diff_equality.html", page)


@pytest.mark.parametrize("name", SAMPLES)
def test_page_holds_every_sentence_and_needs_nothing_from_outside(name: str) -> None:
    result = SAMPLES[name]()
    page = page_samples.page_of(name)

    text = html.unescape(re.sub("</?code>", "`", shown_part(page)))
    assert f"<h1>{result.summary}</h1>" in text
    for finding in result.findings:
        assert finding.code in text
        assert finding.label in text
        assert finding.summary in text
        assert finding.advice in text

    assert "http:" not in page
    assert "https:" not in page
    assert not re.findall(r'(?:src|href)="(?!#|data:,|data:image/png;base64,")', page)
    assert not re.findall(r"url\((?!#)", page)
    assert "@import" not in page

    for body in page.split('<template id="other-language"'):
        ids = re.findall(r' id="([^"]*)"', body)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'<a [^>]*href="#([^"]*)"', body.partition('id="align-words"')[0])) <= set(ids)


def test_page_is_the_same_every_time() -> None:
    assert diff_page(SAMPLES["equality"]()) == page_samples.page_of("equality")


def test_policy_names_the_scripts_of_the_page_and_nothing_else() -> None:
    page = page_samples.page_of("diverged")

    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert len(scripts) == 2
    policy = " ".join(f"'sha256-{each}'" for each in hashes)
    assert (
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; img-src data:; "
        f'script-src {policy}"'
    ) in page


def test_templates_have_no_handlers_and_trust_no_input() -> None:
    for path in TEMPLATES.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "|safe" not in text.replace(" ", "")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(", text)
        assert not re.search(r"\son[a-z]+=", text)


def test_names_cannot_become_elements() -> None:
    name = "</script><img src=x onerror=alert(1)>\u202e"

    page = diff_page(page_samples.renamed(report_samples.diverged(), "layers.2.mlp.act", name))

    assert "<img" not in page
    assert "\u202e" not in page
    assert page.count("</script>") == 4
    assert html.escape("</script><img src=x onerror=alert(1)>\\u202e") in page


def test_a_difference_below_the_resolution_is_not_called_equal() -> None:
    table = shown_part(page_samples.page_of("aligned")).partition('id="table-static"')[2]

    assert html.unescape(table).count('<td class="number">< 4.2e-8</td>') == 4


def test_data_of_the_page_is_what_was_compared() -> None:
    result = report_samples.nonfinite()
    data = data_of(page_samples.page_of("nonfinite"))

    assert data["length"] == data["total"] == len(result.comparisons)
    first = data["first"]
    assert str(result.comparisons[first].key) == "step 1, forward: layers.1.attn output.0"
    statuses = [data["statuses"][int(flags) & 7] for flags in numbers(data["flags"])]
    assert statuses == [str(pair.status) for pair in result.comparisons]
    relative = numbers(data["columns"]["relative"])
    for pair, number in zip(result.comparisons, relative, strict=True):
        expected = math.nan if pair.relative_l2 is None else pair.relative_l2
        assert number == pytest.approx(expected, rel=6e-6, nan_ok=True)
    lengths = [count for _, _, count in data["steps"]]
    assert [step for step, _, _ in data["steps"]] == [-1, 0, 1]
    assert sum(lengths) == data["length"]
    counts = data["nonfinite"]
    assert numbers(counts["candidate_nans"])[numbers(counts["rows"]).index(first)] == 512


def test_steps_that_are_alike_are_held_once() -> None:
    data = data_of(page_samples.page_of("diverged"))

    assert data["steps"] == [[-1, 0, 8], [0, 1, 145], [1, 1, 145]]
    assert [len(numbers(sequence)) for sequence in data["sequences"]] == [8, 145]


def test_many_numbers_are_packed_to_a_fifth_of_a_percent() -> None:
    values = [None, 0.0, math.inf, math.nan, 1.0, 0.031, 7.25e-9, 6.5e4, 1e-40]

    column = logarithmic(values)
    codes = numbers(column) if column else []

    assert codes[:5] == [-32768, -32767, 32767, 32766, 0]
    assert [10 ** (code / 1000) for code in codes[5:8]] == pytest.approx([0.031, 7.25e-9, 6.5e4], rel=1.2e-3)
    assert codes[8] == -32000
    assert logarithmic([None, None]) is None
    assert exact([None]) is None


@pytest.fixture(scope="module")
def huge() -> DiffResult:
    """A comparison of twenty thousand tensors."""
    return report_samples.huge()


def test_too_many_rows_are_reduced_to_what_matters(huge: DiffResult) -> None:
    pairs = huge.comparisons
    first = next(place for place, pair in enumerate(pairs) if pair.status is Status.ORIGIN)

    kept = kept_rows(pairs, first, 5000)

    assert len(kept) < 5000
    assert first in kept
    assert list(kept) == sorted(kept)
    modules = {(pair.key.step, pair.key.name) for pair in pairs}
    assert {(pairs[place].key.step, pairs[place].key.name) for place in kept} == modules
    assert kept_rows(pairs, first) == range(len(pairs))


def test_a_page_of_twenty_thousand_tensors_is_small(huge: DiffResult) -> None:
    page = diff_page(huge)

    assert len(huge.comparisons) > 20_000
    assert len(page.encode()) < 1_700_000
    assert data_of(page)["columns"]["relative"]["kind"] == "log"


def test_a_simulated_device_is_named_in_the_head() -> None:
    head = page_samples.page_of("diverged").partition("</header>")[0]

    assert "simulated NPU</span>" in head
    assert "The candidate ran on a simulated NPU: this proves nothing about real hardware." in head
    assert "simulated NPU</span>" not in page_samples.page_of("aligned").partition("</header>")[0]


def test_a_phase_that_was_not_captured_is_said_to_be_missing() -> None:
    result = report_samples.aligned()
    kept = tuple(pair for pair in result.comparisons if str(pair.key.phase) in {"init", "input", "forward", "loss"})

    page = diff_page(dataclasses.replace(result, comparisons=kept))

    assert "this phase was not captured on both sides" in page


def test_page_says_how_to_make_it_again() -> None:
    page = html.unescape(page_samples.page_of("diverged"))

    assert "align diff runs/gpu.h5 runs/npu.h5</pre>" in page
    assert "align capture -o runs/npu.h5 --device npu --steps 0:3 train.py --steps 12</pre>" in page
    assert "torch_npu 2.1.0.post8" in page.partition('id="reproduce"')[2]


def relative_luminance(color: str) -> float:
    """Of a colour such as #0b5c8a, as WCAG defines it."""
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else math.pow((part + 0.055) / 1.055, 2.4) for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_keep_their_contrast_and_classes_their_order(theme: str) -> None:
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    part = style if theme == "light" else style.partition('[data-theme="dark"]')[2]
    colors: dict[str, float] = {}
    for name, color in re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part):
        colors.setdefault(name, relative_luminance(color))

    def contrast(one: str, other: str) -> float:
        low, high = sorted((colors[one], colors[other]))
        return (high + 0.05) / (low + 0.05)

    for ink, ground in (
        *(("ink", "page"), ("muted", "page"), ("muted", "card"), ("link", "page"), ("on-note", "note")),
        *((f"on-{role}", role) for role in ("error", "warning", "pass")),
    ):
        assert contrast(ink, ground) >= 4.5, (ink, ground)
    for mark in ("error", "inherited", "explained", "limit"):
        assert contrast(mark, "page") >= 3, mark
    classes = [colors[f"heat-{number}"] for number in range(7)]
    assert classes == sorted(classes, reverse=theme == "light")


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

    assert f"<dt>Same start</dt><dd>{sentence}</dd>" in page_samples.page_of("prepared")
    assert "Same start" not in page_samples.page_of("aligned")


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
