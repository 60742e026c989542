"""The page of a comparison in a real browser: without network, without script, and with both."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from align.records import DiffResult
from align.reports.html import diff_page
from align.reports.writing import write_text
from tests import report_samples
from tests.conftest import Browser
from tests.test_reports_html import renamed
from tests.test_reports_text import SAMPLES

ROW = re.compile(r"<tr(?: class=\"first\")?>\s*(<td.*?)</tr>", re.DOTALL)

DRIVER = """
<script>
(function () {
  function rows() {
    return Array.prototype.map.call(document.querySelectorAll("#table tbody tr"), function (row) {
      return Array.prototype.map.call(row.cells, function (cell) { return cell.textContent.trim(); });
    });
  }
  function click(selector) { document.querySelector(selector).click(); }
  function type(text) {
    var field = document.getElementById("filter");
    field.value = text;
    field.dispatchEvent(new Event("input"));
  }
  function shown() { return document.getElementById("shown").textContent; }
  var said = {};
  STEPS
  var note = document.body.appendChild(document.createElement("pre"));
  note.id = "said";
  note.textContent = JSON.stringify(said);
}());
</script>
"""


def written(result: DiffResult, folder: Path) -> Path:
    path = folder / "report.html"
    write_text(str(path), diff_page(result))
    return path


def without_script(result: DiffResult, folder: Path) -> Path:
    """The page under a policy that lets no script run; a browser with scripts switched off cannot say what it shows."""
    page = re.sub("script-src '[^']*'", "script-src 'none'", diff_page(result))
    path = folder / "quiet.html"
    path.write_text(page, encoding="utf-8")
    return path


def table(dom: str) -> list[list[str]]:
    """The text of the table's cells."""
    body = dom.partition('id="table"')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    rows = []
    for row in ROW.findall(body):
        cells = re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)
        rows.append([html.unescape(re.sub("<[^>]*>", "", cell)).strip() for cell in cells])
    return rows


def driven(browser: Browser, result: DiffResult, folder: Path, steps: str) -> str:
    """What a script of the test saw on the page, as JSON; the page's policy is taken away to let it run."""
    page = re.sub("<meta http-equiv[^>]*>", "", diff_page(result))
    path = folder / "driven.html"
    path.write_text(page.replace("</body>", DRIVER.replace("STEPS", steps) + "</body>"), encoding="utf-8")
    dom, console = browser.dom(path)
    assert console == []
    return html.unescape(dom.partition('<pre id="said">')[2].partition("</pre>")[0])


@pytest.fixture(scope="module")
def seen(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[str, list[str]]]:
    """What a browser makes of the page of a sample, which it opens once."""

    @cache
    def opened(name: str) -> tuple[str, list[str]]:
        return browser.dom(written(SAMPLES[name](), tmp_path_factory.mktemp("page")))

    return opened


@pytest.mark.parametrize("name", SAMPLES)
def test_page_opens_in_silence_with_verdict_and_rows(name: str, seen: Callable[[str], tuple[str, list[str]]]) -> None:
    result = SAMPLES[name]()

    dom, console = seen(name)

    assert console == []
    assert html.escape(result.summary, quote=False).replace("&#39;", "'") in dom
    assert len(table(dom)) == min(200, len(result.comparisons))


@pytest.mark.parametrize("name", SAMPLES)
def test_rows_are_the_same_with_and_without_script(
    name: str, seen: Callable[[str], tuple[str, list[str]]], browser: Browser, tmp_path: Path
) -> None:
    result = SAMPLES[name]()

    with_script, _ = seen(name)
    without, _ = browser.dom(without_script(result, tmp_path))

    assert ('class="scripted"' in with_script) == bool(result.comparisons)
    assert 'class="scripted"' not in without

    assert table(with_script) == table(without)


def test_page_without_script_shows_sentence_figures_and_rows(browser: Browser, tmp_path: Path) -> None:
    result = report_samples.diverged()

    dom, _ = browser.dom(without_script(result, tmp_path))

    assert f"<h1>{result.summary}</h1>" in dom
    assert dom.count("<figure") == 3
    assert len(table(dom)) == 200


def test_names_that_try_to_run_are_text(browser: Browser, tmp_path: Path) -> None:
    hostile = '"><img src=x onerror=alert(1)><script>alert(2)</script>'
    result = renamed(report_samples.diverged(), "layers.2.mlp.act", hostile)

    dom, console = browser.dom(written(result, tmp_path))

    assert console == []
    assert "<img" not in dom
    assert hostile in [row[3] for row in table(dom)]


def test_sorting_puts_the_largest_first_and_then_the_smallest(browser: Browser, tmp_path: Path) -> None:
    steps = """
    click('th[data-column="times"] button');
    said.largest = rows()[0].slice(3, 7);
    said.order = document.querySelector('th[data-column="times"]').getAttribute("aria-sort");
    click('th[data-column="module"] button');
    said.first = rows()[0][3];
    """

    said = driven(browser, report_samples.diverged(), tmp_path, steps)

    assert said == (
        '{"largest":["layers.2.mlp.act","output.0","\u25a0 origin","33,900x"],"order":"descending","first":"<GPT>"}'
    )


def test_filters_narrow_the_rows_and_clear_brings_them_back(browser: Browser, tmp_path: Path) -> None:
    steps = """
    type("layers.*.mlp.act output");
    said.named = shown();
    click('[data-status="origin"]');
    said.origin = shown();
    type("no such module");
    said.none = shown();
    click("#clear");
    said.all = shown();
    click("#next");
    said.next = shown();
    click("#to-first");
    said.first = document.querySelector("tr.first").cells[3].textContent;
    """

    said = driven(browser, report_samples.diverged(), tmp_path, steps)

    assert said == (
        '{"named":"Rows 1 to 8 of 8 that match (298 in all)","origin":"Rows 1 to 1 of 1 that match (298 in all)",'
        '"none":"No row matches. Clear the filter.","all":"Rows 1 to 200 of 298",'
        '"next":"Rows 201 to 298 of 298","first":"layers.2.mlp.act"}'
    )


def test_a_large_page_opens_at_its_first_difference(browser: Browser, tmp_path: Path) -> None:
    steps = (
        'said.shown = shown().split(" of ")[1]; said.first = document.querySelector("tr.first").cells[3].textContent;'
    )

    said = driven(browser, report_samples.huge(), tmp_path, steps)

    total = f"{len(report_samples.huge().comparisons):,}"
    assert said == f'{{"shown":"{total}","first":"layers.20.mlp.act"}}'


def test_page_can_be_printed(browser: Browser, tmp_path: Path) -> None:
    target = tmp_path / "report.pdf"

    browser.run(without_script(report_samples.diverged(), tmp_path), f"--print-to-pdf={target}")

    assert target.read_bytes().startswith(b"%PDF")
