"""The page of an inspection: what it holds, what it must never hold, and how it behaves in a real browser."""

from __future__ import annotations

import csv
import dataclasses
import html
import math
import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from align.cli import main
from align.records import Column, Curve, Finding, InspectResult, Place, Severity, Shown, Table
from align.reports import inspect_phrases
from align.reports.bars import make_bars
from align.reports.figures.fitting import fitting_scales
from align.reports.html import diff_page
from align.reports.inspect_html import inspect_page
from align.reports.inspect_sections import SECTIONS
from align.reports.language import ENGLISH, LANGUAGES
from align.reports.run_series import make_curves
from align.reports.run_tables import make_table
from align.sentences import say
from tests import inspect_samples, report_samples
from tests.browsing import Pages
from tests.inspect_samples import SAMPLES
from tests.test_reports_html import FIGURE

CASES = Path(__file__).parents[1] / "fixtures" / "cases"
PAGES: dict[str, Callable[[], InspectResult]] = {**SAMPLES, "hostile": inspect_samples.hostile}


@cache
def page_of(name: str, language: str = "en") -> str:
    return inspect_page(PAGES[name](), LANGUAGES[language])


def shown_of(page: str) -> str:
    """The page without its other language and its scripts."""
    return re.sub("<template.*?</template>|<script.*?</script>", "", page, flags=re.DOTALL)


def text_of(page: str) -> str:
    """The words of a page, commands between backticks again."""
    body = re.sub("</?code>", "`", shown_of(page).partition("<body>")[2])
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", body)).split())


def write(folder: Path, name: str) -> Path:
    path = folder / f"{name}.html"
    path.write_text(page_of(name), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The page that the command line writes of a captured case."""
    folder = tmp_path_factory.mktemp("cases")

    @cache
    def made(name: str) -> Path:
        capture, path = folder / f"{name}.h5", folder / f"{name}.html"
        script = [str(CASES / f"{name}.py"), "--variant", "bad"]
        done = CliRunner().invoke(main, ["capture", "-o", str(capture), "--steps", "0:12", *script])
        assert done.exit_code == 0, done.output
        done = CliRunner().invoke(main, ["inspect", str(capture), "--html", str(path)])
        assert done.exit_code == 1, done.output
        return path

    return made


def test_page_is_the_golden_one_apart_from_its_figures(golden: Callable[[str, str], None]) -> None:
    page = FIGURE.sub("<svg/>", page_of("nan"))
    page = re.sub("<template.*?</template>", "<template/>", page, flags=re.DOTALL)
    page = re.sub("<script>.*?</script>", "<script/>", page, flags=re.DOTALL)
    page = re.sub(r"'sha256-[^']*'", "'sha256'", page)

    golden("inspect_nan.html", re.sub("<style>.*?</style>", "<style/>", page, flags=re.DOTALL))


@pytest.mark.parametrize("name", SAMPLES)
def test_page_holds_every_sentence(name: str) -> None:
    result = SAMPLES[name]()

    page = page_of(name)
    text = text_of(page)

    assert result.summary in text
    for finding in result.findings:
        assert finding.summary in text
        assert finding.advice in text
    for reply in result.replies:
        assert reply.question in text
    for table in result.tables:
        assert table.title in text
        assert table.lead in text
    assert shown_of(page).count("<figure") == {"healthy": 4, "collapse": 4, "nan": 3, "job": 3}.get(name, 0)


@pytest.mark.parametrize("name", PAGES)
def test_page_needs_nothing_and_runs_nothing_but_its_own(name: str) -> None:
    page = page_of(name)

    assert not re.search(r"https?:|@import|innerHTML", page)
    assert not re.search(r'<[a-z][^>"]*(?:"[^"]*"[^>"]*)*\son[a-z]+=', page)
    assert not re.findall(r'(?:src|href)="(?!#|data:,")', page)
    assert not re.findall(r"url\((?!#)", page)
    assert re.search("script-src( 'sha256-[^']+'){2}\"", page)


@pytest.mark.parametrize("name", PAGES)
def test_every_element_has_its_own_id_and_every_link_a_target(name: str) -> None:
    page = shown_of(page_of(name))

    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    links = re.findall(r'<a [^>]*href="#([^"]*)"', page)
    labels = " ".join(re.findall(r'aria-labelledby="([^"]*)"', page)).split()
    assert set(links) | set(labels) <= set(ids)


@pytest.mark.parametrize("name", PAGES)
def test_page_can_be_read_by_those_who_do_not_see_it(name: str) -> None:
    page = shown_of(page_of(name)).partition('<div id="help"')[0]

    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", page)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for opening in re.findall(r'<div class="scroll[^>]*>', page):
        assert 'tabindex="0" role="region" aria-label' in opening
    assert len(re.findall(r"<figure aria-labelledby=", page)) == page.count("<figure")
    for figure in FIGURE.findall(page):
        assert "#0101" not in figure
        assert not re.search(r">@\w+@?<", figure)
    assert '<html lang="en">' in page_of(name)


def test_page_is_the_same_every_time() -> None:
    assert inspect_page(inspect_samples.nan()) == page_of("nan")


def test_a_page_of_a_long_run_is_small() -> None:
    assert len(inspect_page(inspect_samples.collapse(5000)).encode()) < 1_000_000


def test_names_cannot_become_elements() -> None:
    page = page_of("hostile")

    assert "<img" not in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert html.escape("</script><img src=x onerror=alert(1)>\\u202e\\u001b[31m$x$") in page


def test_legend_explains_only_what_is_drawn() -> None:
    quiet, marked = (shown_of(page_of(name)) for name in ("nan", "collapse"))

    assert "skipped step" not in quiet
    assert "NaN or Inf</li>" in quiet
    assert "skipped step</li>" in marked
    assert "NaN or Inf</li>" not in marked


def test_skipped_steps_stand_under_the_loss_scale() -> None:
    page = shown_of(page_of("collapse"))

    scale = page.index('<h2 id="scale-title">Loss scale</h2>')
    assert scale < page.index("<h3>Skipped steps</h3>") < page.index('<h2 id="learns-title">')
    assert "<h3>Headroom to the largest number of the format</h3>" in page


def test_consequences_are_folded_under_their_cause() -> None:
    for page, line in (
        (page_of("nan"), "Explains 2 more findings: parameters-not-updated"),
        (diff_page(report_samples.explained()), "Explains 4 more findings: initial-weights-differ"),
    ):
        cause = page.partition('id="f-1"')[2]
        assert cause.index('<details class="explains">') < cause.index(f"<summary>{line}") < cause.index('id="f-2"')


def test_what_is_not_known_says_what_to_capture() -> None:
    text = text_of(page_of("unknown"))

    assert "capture with --steps 0:3." in text
    assert "No step's tensors were captured; the timeline alone is known." in text
    assert "The capture has no timeline: nothing is known" in text_of(page_of("without_timeline"))


def test_tables_of_other_analyses_have_sections_of_their_own() -> None:
    table = dataclasses.replace(inspect_samples.headroom(), name="mine", title="Mine", lead="My own.", question="")
    page = shown_of(inspect_page(dataclasses.replace(inspect_samples.healthy(), tables=(table,))))

    assert '<h2 id="t-1-title">Mine</h2>' in page
    assert '<a href="#t-1">Mine</a>' in page
    assert 'data-csv="mine"' in page


def test_bars_say_what_is_lost_and_what_is_left() -> None:
    columns = (Column("gradient", Shown.NAME), Column("zeros", Shown.SHARE), Column("below 6.1e-5", Shown.SHARE))
    lost = Table("fp16_range", "T", "L", columns, (("a weight", 0.25, 0.4),))
    room = Table("headroom", "T", "L", (Column("module", Shown.NAME), Column("share", Shown.SHARE)), (("a", 0.25),))

    one, other = make_bars(lost, lost.rows, ENGLISH), make_bars(room, room.rows, ENGLISH)

    assert one is not None
    assert other is not None
    assert [(bar.solid, round(bar.hatched, 9), bar.text) for bar in one.bars] == [
        (25.0, 30.0, "25.0 % zero, 30.0 % subnormal")
    ]
    assert [(round(bar.solid, 3), bar.text) for bar in other.bars] == [(91.667, "2.0 doublings left")]
    assert make_bars(lost, (("a weight", None, 0.4),), ENGLISH) is None
    assert make_bars(dataclasses.replace(lost, name="other"), lost.rows, ENGLISH) is None


def test_the_first_reason_is_marked_and_those_after_it_are_paled() -> None:
    columns = (Column("number", Shown.COUNT), Column("is it so that"), Column("answer"), Column("seen"))
    rows = tuple((number, "?", answer, "") for number, answer in enumerate(("no", "yes", "no", "yes"), 1))
    steps = ((0, "finite"), (1, say("{} of {} not finite", 1, 2)), (2, say("{} of {} not finite", 2, 2)))

    reasons = make_table(Table("learning", "T", "L", columns, rows), ENGLISH)
    birth = make_table(
        Table("nonfinite_steps", "T", "L", (Column("step", Shown.COUNT), Column("loss")), steps), ENGLISH
    )

    assert reasons.emphasis == ("", "first", "later", "later")
    assert birth.emphasis == ("", "first", "")
    assert make_table(inspect_samples.headroom(), ENGLISH).emphasis == ("", "", "", "")


def test_both_languages_have_the_same_words_and_places() -> None:
    english, chinese = inspect_phrases.ENGLISH, inspect_phrases.CHINESE

    assert english.keys() == chinese.keys()
    for key, phrase in english.items():
        assert sorted(re.findall(r"\{\w+\}", phrase)) == sorted(re.findall(r"\{\w+\}", chinese[key])), key
    assert {f"inspect_{anchor}" for anchor in SECTIONS} <= english.keys()


def test_the_birth_of_a_nan_is_told_step_by_step(real: Callable[[str], Path], pages: Pages, tmp_path: Path) -> None:
    with pages.open(real("where_sqrt")) as opened:
        browser = opened.page
        assert opened.cells("#birth tr.first")[0][:4] == ["0", "finite", "finite", "2 of 6 not finite"]
        assert [row[:3] for row in opened.cells('[data-csv="nonfinite_producer"] tbody tr')] == [
            ["dist input.0", "enters", "forward"],
            ["dist output.0", "leaves", "forward"],
            ["dist grad_output.0", "enters", "backward"],
            ["dist grad_input.0", "starts here", "backward"],
        ]
        assert opened.cells('[data-csv="nonfinite_later"] tbody tr')[0][:3] == ["0", "backward", "enc grad_output.0"]
        assert len(opened.cells('[data-csv="learning"] tbody tr')) == 7

        tools = browser.locator("#birth .table-tools").last
        tools.locator("input").fill("gradient bias")
        assert tools.locator(".shown").inner_text() == "3 of 27 rows"
        browser.click('[data-csv="nonfinite_later"] th:nth-child(4) button')
        with browser.expect_download() as download:
            tools.locator("button").click()
        download.value.save_as(tmp_path / "later.csv")
        lines = list(csv.reader((tmp_path / "later.csv").read_text(encoding="utf-8-sig").splitlines()))
        assert lines[0] == ["step", "phase", "tensor", "NaN", "Inf", "elements"]
        assert [line[2] for line in lines[1:]] == ["enc bias"] * 3
        assert opened.violations() == []

        browser.click("#language")
        assert opened.cells('[data-csv="nonfinite_producer"] tbody tr')[-1][1:3] == ["起点", "反向"]
        browser.emulate_media(media="print")
        assert browser.locator("button:visible, input:visible").count() == 0
        assert browser.locator("details:not([open])").count() >= 1
        assert opened.said == []


def test_a_scale_that_falls_is_drawn_with_its_causes(real: Callable[[str], Path], pages: Pages) -> None:
    with pages.open(real("overflow_collapse"), scheme="dark", width=400) as opened:
        assert opened.too_wide() == []
        assert opened.page.locator("#scale figure svg").count() >= 1
        assert opened.cells('[data-csv="loss_scale_moves"] tbody tr')[0][-1] == "forward: up output.0"
        assert [row[2] for row in opened.cells('[data-csv="learning"] tbody tr')][:3] == ["no", "yes", "not measured"]
        assert opened.page.locator('[data-csv="learning"] tr.later').count() == 5
        assert opened.violations() == []
        assert opened.said == []


def test_gradients_that_vanish_have_bars_without_script_too(real: Callable[[str], Path], pages: Pages) -> None:
    with pages.open(real("fp16_underflow"), scripts=False) as opened:
        bars = opened.page.locator("#underflow .rowbar:visible")
        assert bars.count() == 9
        assert opened.text("#underflow .bar-words").endswith("subnormal")
        assert opened.cells('[data-csv="fp16_scales"] tbody tr')[0][1:3] == ["1 (2^0)", "8 (2^3)"]
        assert opened.said == []


@pytest.mark.parametrize("name", ["collapse", "hostile"])
def test_page_opens_in_silence_and_fits_its_window(name: str, pages: Pages, tmp_path: Path) -> None:
    for width in (1280, 390):
        with pages.open(write(tmp_path, name), width=width) as opened:
            assert opened.too_wide() == []
            assert opened.said == []


def test_the_zone_of_scales_that_fit_is_that_of_all_steps() -> None:
    columns = tuple(Column(title, Shown.SCALE) for title in ("step", "scale", "lowest that fits", "highest that fits"))

    def zone(*rows: tuple[float | None, ...]) -> tuple[float, float] | None:
        table = Table("fp16_scales", "T", "L", columns, rows)
        return fitting_scales(dataclasses.replace(inspect_samples.healthy(), tables=(table,)))

    assert zone((0, 1.0, 8.0, 1024.0), (1, 1.0, 16.0, 4096.0)) == (16.0, 1024.0)
    assert zone((0, 1.0, 8.0, 16.0), (1, 1.0, 64.0, 128.0)) is None
    assert zone((0, 1.0, None, 16.0)) is None
    assert zone((0, 1.0, 8.0, math.inf)) is None
    assert fitting_scales(report_samples.diverged()) is None


def test_step_times_have_a_median_before_and_after_a_cliff() -> None:
    whole = inspect_samples.collapse()
    slow = tuple(dataclasses.replace(row, seconds=3.0 if row.step >= 120 else 1.0) for row in whole.timeline)
    cliff = Finding("AL805", "step-time-cliff", Severity.NOTE, "s", "a", Place(step=120))

    def levels(*findings: Finding) -> object:
        result = dataclasses.replace(whole, timeline=slow, findings=findings)
        return next(curve.levels for curve in make_curves(result, ENGLISH) if curve.curve is Curve.SECONDS)

    assert levels(cliff) == ((0, 119, 1.0), (120, 199, 3.0))
    assert levels(dataclasses.replace(cliff, where=Place(step=500))) == ((0, 199, 1.0),)
    assert levels() == ((0, 199, 1.0),)
    page = inspect_page(dataclasses.replace(whole, timeline=slow, findings=(cliff,)))
    assert "from here on steps take longer" in page
    assert "from here on steps take longer" not in page_of("collapse")
