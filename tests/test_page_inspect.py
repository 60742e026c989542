"""The page of an inspection: what it holds, what it must never hold, and how it looks in a real browser."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from align.records import InspectResult
from align.reports.html import diff_page
from align.reports.inspect_html import inspect_page
from tests import inspect_samples, report_samples
from tests.conftest import Browser
from tests.inspect_samples import SAMPLES
from tests.test_reports_html import FIGURE

PAGES: dict[str, Callable[[], InspectResult]] = {**SAMPLES, "hostile": inspect_samples.hostile}

MEASURE = """
<script>
(function () {
  var seen = {};
  seen.inner = document.documentElement.clientWidth;
  seen.scroll = document.documentElement.scrollWidth;
  seen.wide = Array.prototype.filter.call(document.querySelectorAll("body *"), function (element) {
    return !element.closest(".scroll") && element.getBoundingClientRect().right > seen.inner + 1;
  }).map(function (element) { return element.tagName + " " + element.className; });
  seen.background = getComputedStyle(document.body).backgroundColor;
  var note = document.body.appendChild(document.createElement("pre"));
  note.id = "said";
  note.textContent = JSON.stringify(seen);
}());
</script>
"""


@cache
def page_of(name: str) -> str:
    return inspect_page(PAGES[name]())


def text_of(page: str) -> str:
    """The words of a page, commands between backticks again."""
    body = re.sub("</?code>", "`", page.partition("<body>")[2])
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", body)).split())


def seen(browser: Browser, page: str, folder: Path, *flags: str) -> dict[str, Any]:
    """What a script of the test measures on the page; the page's policy is taken away to let it run."""
    path = folder / "measured.html"
    page = re.sub("<meta http-equiv[^>]*>", "", page)
    path.write_text(page.replace("</body>", MEASURE + "</body>"), encoding="utf-8")
    dom, console = browser.dom(path, *flags)
    assert console == []
    measured: dict[str, Any] = json.loads(html.unescape(dom.partition('<pre id="said">')[2].partition("</pre>")[0]))
    return measured


def in_a_frame(page: str, folder: Path, width: int) -> str:
    """A page in a frame of some width: the window of a headless browser is never narrower than 500."""
    (folder / "framed.html").write_text(page, encoding="utf-8")
    return f'<iframe src="framed.html" style="border:0;width:{width}px;height:900px"></iframe>'


def test_page_is_the_golden_one_apart_from_its_figures(golden: Callable[[str, str], None]) -> None:
    page = FIGURE.sub("<svg/>", page_of("nan"))

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
    assert page.count("<figure") == {"healthy": 4, "collapse": 4, "nan": 3, "job": 3}.get(name, 0)


@pytest.mark.parametrize("name", PAGES)
def test_page_needs_nothing_and_lets_nothing_run(name: str) -> None:
    page = page_of(name)

    assert "script-src 'none'" in page
    assert "<script" not in page
    assert "http:" not in page
    assert "https:" not in page
    assert not re.findall(r'(?:src|href)="(?!#|data:,")', page)
    assert not re.findall(r"url\((?!#)", page)
    assert "@import" not in page


@pytest.mark.parametrize("name", PAGES)
def test_every_element_has_its_own_id_and_every_link_a_target(name: str) -> None:
    page = page_of(name)

    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    links = re.findall(r'<a [^>]*href="#([^"]*)"', page)
    labels = " ".join(re.findall(r'aria-labelledby="([^"]*)"', page)).split()
    assert set(links) | set(labels) <= set(ids)


@pytest.mark.parametrize("name", PAGES)
def test_page_can_be_read_by_those_who_do_not_see_it(name: str) -> None:
    page = page_of(name)

    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", page)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for opening in re.findall(r'<div class="scroll[^>]*>', page):
        assert 'tabindex="0" role="region" aria-label' in opening
    assert len(re.findall(r"<figure aria-labelledby=", page)) == page.count("<figure")
    for figure in FIGURE.findall(page):
        assert "#0101" not in figure
        assert not re.search(r">@\w+@?<", figure)
    assert '<html lang="en">' in page
    assert page.index('<a class="skip" href="#questions">') < page.index("<header>")


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
    quiet, marked = map(page_of, ("nan", "collapse"))

    assert "skipped step" not in quiet
    assert "NaN or Inf</li>" in quiet
    assert "skipped step</li>" in marked
    assert "NaN or Inf</li>" not in marked


def test_skipped_steps_stand_under_the_loss_scale() -> None:
    page = page_of("collapse")

    scale = page.index("<strong>Loss scale</strong>")
    assert scale < page.index("<h3>Skipped steps</h3>") < page.index("<strong>Gradient norm</strong>")
    assert '<h2 id="t-1-title">Headroom to the largest number of the format</h2>' in page


def test_consequences_are_folded_under_their_cause() -> None:
    for page, line in (
        (page_of("nan"), "Explains 2 more findings: parameters-not-updated"),
        (diff_page(report_samples.explained()), "Explains 4 more findings: initial-weights-differ"),
    ):
        cause = page.partition('id="f-1"')[2]
        assert cause.index('<details class="explains">') < cause.index(f"<summary>{line}") < cause.index('id="f-2"')


@pytest.mark.parametrize("name", ["collapse", "unknown", "hostile"])
def test_page_opens_in_silence_and_fits_its_window(name: str, browser: Browser, tmp_path: Path) -> None:
    measured = seen(browser, page_of(name), tmp_path, "--window-size=1280,900")

    assert measured["scroll"] <= measured["inner"]
    assert measured["wide"] == []
    assert measured["background"] == "rgb(255, 255, 255)"


def test_narrow_and_dark_pages_are_whole(browser: Browser, tmp_path: Path) -> None:
    for name in ("nan", "hostile"):
        page = re.sub("<meta http-equiv[^>]*>", "", page_of(name))
        page = page.replace("</body>", MEASURE.replace("document.body.appendChild", "parent.document.body.appendChild"))
        page = page.replace('document.createElement("pre")', 'parent.document.createElement("pre")')
        frame = tmp_path / "frame.html"
        frame.write_text(in_a_frame(page, tmp_path, 390), encoding="utf-8")
        dom, console = browser.dom(frame, "--allow-file-access-from-files", "--blink-settings=preferredColorScheme=0")
        assert console == []
        measured = json.loads(html.unescape(dom.partition('<pre id="said">')[2].partition("</pre>")[0]))
        assert measured["inner"] <= 390
        assert (measured["scroll"], measured["wide"]) == (measured["inner"], [])
        assert measured["background"] == "rgb(15, 19, 24)"


def test_page_can_be_printed(browser: Browser, tmp_path: Path) -> None:
    path, target = tmp_path / "report.html", tmp_path / "report.pdf"
    path.write_text(page_of("nan"), encoding="utf-8")

    browser.run(path, f"--print-to-pdf={target}")

    assert target.read_bytes().startswith(b"%PDF")
