"""The page of a comparison in a real browser: without network, without script, and with both."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from align.reports.html import diff_page
from tests import report_samples
from tests.browsing import CONTRAST, Opened, Pages
from tests.page_samples import HOSTILE, RESULTS, written

FIRST = "layers.2.mlp.act"
SEEN_ROWS = "#table tbody tr[data-row]"


@pytest.fixture
def diverged(pages: Pages, tmp_path: Path) -> Iterator[Opened]:
    """The page of two runs that part in one module, open."""
    with pages.open(written("diverged", tmp_path)) as opened:
        yield opened
        assert opened.said == []


def shown(opened: Opened) -> str:
    return opened.text("#shown")


@pytest.mark.parametrize("name", ["diverged", "nonfinite", "equality", "incomparable", "hostile"])
def test_page_opens_in_silence_in_both_languages_and_fits(name: str, pages: Pages, tmp_path: Path) -> None:
    result = RESULTS[name]()

    with pages.open(written(name, tmp_path), width=400) as opened:
        assert opened.text("h1").replace("`", "") == result.summary.replace("`", "")
        assert opened.too_wide() == []
        assert (opened.page.locator(SEEN_ROWS).count() > 0) == bool(result.comparisons)
        opened.page.locator("#language").click()
        assert opened.page.locator("html").get_attribute("lang") == "zh-CN"
        assert opened.too_wide() == []

    assert opened.said == []


@pytest.mark.parametrize("name", ["diverged", "nonfinite", "aligned"])
def test_rows_are_the_same_with_and_without_script(name: str, pages: Pages, tmp_path: Path) -> None:
    page = written(name, tmp_path)
    with pages.open(page, scripts=False) as opened:
        plain = {row[0]: row for row in opened.cells("#table-static tbody tr")}

    with pages.open(page) as opened:
        drawn = opened.cells(SEEN_ROWS)

    assert len(plain) == min(200, len(RESULTS[name]().comparisons))
    assert drawn
    assert drawn == [plain[row[0]] for row in drawn]


def test_page_without_script_shows_sentence_findings_figures_and_rows(pages: Pages, tmp_path: Path) -> None:
    result = report_samples.diverged()

    with pages.open(written("diverged", tmp_path), scripts=False) as opened:
        assert opened.text("h1") == result.summary
        assert opened.page.locator(".card:visible").count() == 2
        assert opened.page.locator("figure svg:visible").count() >= 4
        assert opened.page.locator("#table-static tbody tr:visible").count() == 200
        assert opened.page.locator("#runs tbody tr:visible").count() == 12
        assert opened.page.locator("button:visible, canvas:visible, input:visible").count() == 0


def test_page_whose_script_fails_is_read_as_without_script(pages: Pages, tmp_path: Path) -> None:
    path = written("diverged", tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace('id="align-data">{', 'id="align-data">'), encoding="utf-8")

    with pages.open(path) as opened:
        assert opened.page.locator("#table-static tbody tr:visible").count() == 200
        assert opened.page.locator("button:visible, canvas:visible").count() == 0

    assert len(opened.said) == 1


def test_names_that_try_to_run_are_text(pages: Pages, tmp_path: Path) -> None:
    with pages.open(written("hostile", tmp_path)) as opened:
        opened.page.locator("#filter").fill("onerror s:origin")
        assert [row[3] for row in opened.cells(SEEN_ROWS)] == [HOSTILE]
        assert opened.page.locator("img").count() == 0
        assert HOSTILE in opened.text("#tree")

    assert opened.said == []


KEYS = "s:, p:, t:, step:, f:, m:"
PHASES = "init, input, forward, loss, backward, gradient, update, param"


NOTHING = [
    ("zzz", "No row matches 'zzz'.", "没有行匹配 'zzz'。"),
    ("mlp zzz attn", "No row matches 'zzz'.", "没有行匹配 'zzz'。"),
    ("mlp.act attn", "No row matches all of 'mlp.act', 'attn'.", "没有行同时匹配 'mlp.act', 'attn'。"),
    (
        "stat:foo",
        f"No row matches 'stat:foo'. There is no key 'stat:'; keys are {KEYS}.",
        f"没有行匹配 'stat:foo'。没有筛选键 'stat:'；可用的键为 {KEYS}。",
    ),
    (
        "mlp s:foo",
        "No row matches 's:foo'. Statuses in this table: first, equal, within, origin, propagated, notjudged.",
        "没有行匹配 's:foo'。本表中的状态：first, equal, within, origin, propagated, notjudged。",
    ),
    (
        "p:sideways",
        f"No row matches 'p:sideways'. Phases in this table: {PHASES}.",
        f"没有行匹配 'p:sideways'。本表中的阶段：{PHASES}。",
    ),
    (
        "t:>many", "No row matches 't:>many'. Behind t: stands a number, as in t:>7.",
        "没有行匹配 't:>many'。t: 之后应为数字，例如 t:>7。",
    ),
    ("t:>1e30", "No row matches 't:>1e30'.", "没有行匹配 't:>1e30'。"),
    (
        "step:77", "No row matches 'step:77'. Steps in this table: init, 0, 1.",
        "没有行匹配 'step:77'。本表中的步：初始, 0, 1。",
    ),
    ("f:9", "No row matches 'f:9'. Findings are f:1 to f:2.", "没有行匹配 'f:9'。诊断结论为 f:1 至 f:2。"),
    ("m:no.such", "No row matches 'm:no.such'.", "没有行匹配 'm:no.such'。"),
]  # fmt: skip
"""Searches without rows, and what is said of them in English and in Chinese."""


def test_searches_without_rows_say_why_in_both_languages(diverged: Opened) -> None:
    reason = diverged.page.locator("#nothing")
    assert (reason.get_attribute("role"), reason.inner_text()) == ("status", "")

    def reasons(none: str) -> list[str]:
        said = []
        for query, *_ in NOTHING:
            diverged.page.locator("#filter").fill(query)
            assert shown(diverged) == none
            said.append(reason.inner_text())
        return said

    assert reasons("0 of 298 rows.") == [english for _, english, _ in NOTHING]
    assert diverged.violations(within="div:has(> #nothing)") == []
    diverged.page.locator("#language").click()
    assert reason.inner_text() == NOTHING[-1][2]
    assert reasons("0 / 298 行。") == [chinese for _, _, chinese in NOTHING]


def test_searches_of_the_tree_and_of_small_tables_say_why_they_find_nothing(diverged: Opened) -> None:
    diverged.page.locator("#tree-search").fill("no such module")
    assert diverged.text("#tree-nothing") == "No row matches 'no such module'."
    assert diverged.page.locator("#tree-nothing").get_attribute("role") == "status"
    field = diverged.page.locator("#runs .table-tools input").first
    field.fill("torch zzz")
    reason = diverged.page.locator("#runs p.nothing").first
    assert reason.inner_text() == "No row matches 'zzz'."
    assert reason.get_attribute("role") == "status"
    field.fill("torch")
    assert reason.inner_text() == ""


def test_filters_narrow_the_rows_and_stay_in_the_address(diverged: Opened, tmp_path: Path) -> None:
    field = diverged.page.locator("#filter")
    said = {}
    for query in (
        "layers.*.mlp.act output",
        "s:origin",
        "s:first,notjudged",
        "p:backward step:1",
        "step:init",
        "t:>7",
        "f:1",
        f"m:{FIRST} p:forward",
        "no such module",
    ):
        field.fill(query)
        said[query] = shown(diverged)
    assert said == {
        "layers.*.mlp.act output": "16 of 298 rows.",
        "s:origin": "1 of 298 rows.",
        "s:first,notjudged": "25 of 298 rows.",
        "p:backward step:1": "48 of 298 rows.",
        "step:init": "8 of 298 rows.",
        "t:>7": "1 of 298 rows.",
        "f:1": "1 of 298 rows.",
        f"m:{FIRST} p:forward": "4 of 298 rows.",
        "no such module": "0 of 298 rows.",
    }
    assert diverged.text("#nothing") == "No row matches 'no'."
    diverged.page.locator("#clear").click()
    assert diverged.page.locator("#nothing").inner_text() == ""
    assert shown(diverged) == "298 rows."
    assert diverged.cells("#table tr.first")[0][3] == FIRST

    for status in ("origin", "equal"):
        diverged.page.locator(f'[data-status="{status}"]').click()
    assert shown(diverged) == "13 of 298 rows."
    assert field.input_value() == "s:origin,equal"
    diverged.page.locator("#filter-phase").select_option("forward")
    diverged.page.locator('[data-column="times"] button').click()
    address = diverged.page.url.partition(".html")[2]
    assert address == "#?q=s%3Aorigin%2Cequal%20p%3Aforward&sort=-times"

    diverged.page.goto("about:blank")
    diverged.page.goto(written("diverged", tmp_path).as_uri() + address)
    assert shown(diverged) == "1 of 298 rows."
    assert diverged.page.locator('[data-status="equal"]').get_attribute("aria-pressed") == "true"
    assert diverged.page.locator('[data-column="times"]').get_attribute("aria-sort") == "descending"


def test_sorting_puts_the_largest_first_and_what_has_no_number_last(diverged: Opened) -> None:
    times = diverged.page.locator('[data-column="times"]')

    times.locator("button").click()
    assert diverged.cells(SEEN_ROWS)[0][3:7] == [FIRST, "output.0", "\u25a0 origin", "33,900x"]
    assert times.get_attribute("aria-sort") == "descending"
    diverged.page.locator("#table-frame").evaluate("frame => { frame.scrollTop = frame.scrollHeight; }")
    diverged.page.wait_for_selector('[aria-rowindex="299"]')
    assert diverged.cells(SEEN_ROWS)[-1][6] == ""

    times.locator("button").click()
    assert times.get_attribute("aria-sort") == "ascending"
    diverged.page.locator('[data-column="module"] button').click()
    assert diverged.cells(SEEN_ROWS)[0][3] == "<GPT>"


def test_csv_holds_the_filtered_rows_and_no_formula(pages: Pages, tmp_path: Path) -> None:
    with pages.open(written("hostile", tmp_path)) as opened:
        opened.page.locator("#filter").fill("s:origin")
        with opened.page.expect_download() as download:
            opened.page.locator("#csv").click()
        text = download.value.path().read_bytes()

    assert text.startswith(b"\xef\xbb\xbf")
    titles, row = csv.reader(io.StringIO(text.decode("utf-8-sig")))
    assert titles[:7] == ["number", "step", "phase", "module", "tensor", "status", "times"]
    assert row[:6] == ["47", "0", "forward", f"'{HOSTILE}", "output.0", "origin"]
    assert float(row[7]) == pytest.approx(report_samples.JUMP)


def test_columns_come_on_demand(diverged: Opened) -> None:
    diverged.page.locator("summary", has_text="Columns").click()
    diverged.page.get_by_label("candidate RMS").check()
    diverged.page.get_by_label("floor", exact=True).uncheck()

    titles = diverged.page.locator("#table thead .printed").evaluate_all("all => all.map(each => each.textContent)")
    assert titles[-1] == "candidate RMS"
    assert "floor" not in titles
    assert diverged.cells(SEEN_ROWS)[0][-1] == "1.000"


def test_tree_opens_at_the_first_difference_and_is_walked_by_keys(diverged: Opened) -> None:
    page = diverged.page
    chosen = page.locator('#tree [aria-selected="true"]')
    assert "first difference" in chosen.inner_text()
    assert page.locator("#tree [role=treeitem]").count() == 15

    page.locator('#tree [tabindex="0"]').focus()
    labels = []
    for key in ("ArrowUp", "ArrowLeft", "ArrowLeft", "ArrowRight", "Home", "End", "l"):
        page.keyboard.press(key)
        labels.append(page.locator("#tree :focus .name").inner_text())
    assert labels == ["fc1", "mlp", "mlp", "mlp", "batch, loss, random numbers", "3", "layers"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert diverged.text("#detail h3") == "layers.0"
    page.locator("#tree-search").fill("fc2")
    assert page.locator("#tree [role=treeitem]").count() == 14
    page.locator("#tree-search").fill("")
    page.locator("#tree-above").check()
    assert page.locator("#tree .state", has_text="within").count() == 0
    page.locator("#tree-worst").click()
    assert diverged.text("#detail h3") == f"{FIRST} GELU"
    assert "33,900x" in diverged.text("#detail")
    page.locator("#detail button", has_text="Show its rows").click()
    assert shown(diverged) == "8 of 298 rows."


def test_pictures_are_walked_by_keys_and_select_everywhere(diverged: Opened) -> None:
    page = diverged.page

    page.locator("#along").focus()
    page.keyboard.press("ArrowLeft")
    assert diverged.text("#along-said") == "layers.2.mlp.act input.0: within, 1.1x"
    page.keyboard.press("]")
    assert diverged.text("#along-said") == "layers.2.mlp.act output.0: origin, 33,900x"
    page.keyboard.press("]")
    page.keyboard.press("Enter")
    assert diverged.text("#detail h3") == "layers.2.mlp.fc2 Linear"
    assert [row[0] for row in diverged.cells("#table tr.chosen")] == ["48"]
    page.locator("#along-step").select_option("1")
    assert diverged.text("#along-said") == "input_ids value: equal, equal"

    page.locator("#heat").focus()
    assert diverged.text("#heat-said") == "layers.2.mlp.act, step 0: 33,900x"
    page.keyboard.press("ArrowRight")
    assert diverged.text("#heat-said").startswith("layers.2.mlp.act, step 1: propagated, ")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    assert diverged.text("#detail h3") == f"{FIRST} GELU"
    page.locator("#heat-section summary").click()
    assert diverged.cells("#heat-table tbody tr")[0][:4] == [FIRST, "0", "33,900x", "origin"]
    page.locator("#heat-table th button", has_text="step").click()
    assert diverged.cells("#heat-table tbody tr")[0][1] == "1"


def test_findings_lead_to_their_rows(diverged: Opened) -> None:
    diverged.page.locator("#f-1 button", has_text="Show its row").click()
    assert shown(diverged) == "1 of 298 rows."
    diverged.page.locator("#f-1 button", has_text="223").click()
    assert shown(diverged) == "223 of 298 rows."
    diverged.page.locator("h1").click()
    for key, chosen in (("n", "48"), ("n", "49"), ("p", "48"), ("j", "49"), ("k", "48")):
        diverged.page.keyboard.press(key)
        assert [row[0] for row in diverged.cells("#table tr.chosen")] == [chosen]
    diverged.page.locator('nav a[href="#runs"]').click()
    assert diverged.page.url.endswith("#runs?q=s%3Apropagated&row=48")


def test_language_theme_and_keys(diverged: Opened) -> None:
    page = diverged.page
    page.locator("#filter").fill("s:origin")
    page.locator("h1").click()
    page.keyboard.press("l")
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    assert page.title().startswith("\u672a\u5bf9\u9f50 ")
    assert diverged.cells(SEEN_ROWS)[0][5] == "\u25a0 \u6e90\u5934"
    assert "33,900 \u500d" in diverged.text("#tree")
    page.keyboard.press("d")
    assert page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor") == "rgb(15, 19, 24)"
    page.keyboard.press("l")
    assert page.url.endswith("#?q=s%3Aorigin&lang=en&theme=dark")
    assert shown(diverged) == "1 of 298 rows."

    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    assert page.evaluate("() => document.activeElement.id") == "help-close"
    page.keyboard.press("Escape")
    assert page.locator("#help").is_hidden()
    assert page.evaluate("() => document.activeElement.id") == "help-button"
    page.keyboard.press("/")
    assert page.evaluate("() => document.activeElement.id") == "filter"
    page.keyboard.press("d")
    assert diverged.page.locator("#filter").input_value() == "s:origind"
    page.locator("#help-button").click()
    page.locator("#keys-on").uncheck()
    page.locator("#help-close").click()
    page.keyboard.press("l")
    assert page.locator("html").get_attribute("lang") == "en"


def test_commands_can_be_copied(diverged: Opened) -> None:
    diverged.page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    diverged.page.locator("#reproduce button").first.click()
    diverged.page.wait_for_selector("#live:has-text('Copied.')", state="attached")

    assert diverged.page.evaluate("() => navigator.clipboard.readText()") == "align diff runs/gpu.h5 runs/npu.h5"


def test_facts_are_sorted_and_filtered(diverged: Opened) -> None:
    page = diverged.page
    tools = page.locator("#runs .table-tools").first
    tools.locator("input").fill("npu")
    assert tools.locator(".shown").inner_text() == "4 of 12 rows"
    tools.locator("input").fill("")
    page.locator("#runs th button", has_text="candidate").first.click()
    cells = [row[2] for row in diverged.cells("#runs table.facts:first-of-type tbody tr")][:12]
    assert cells.index("3") == 0


def test_printed_page_has_all_and_no_controls(pages: Pages, tmp_path: Path) -> None:
    with pages.open(written("diverged", tmp_path), scheme="dark") as opened:
        page = opened.page
        page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        assert page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.locator("button:visible, input:visible, select:visible, canvas:visible").count() == 0
        assert page.locator("#table-static tbody tr:visible").count() == 200
        assert page.locator("#difference .scroll > svg:visible, #heat-part .scroll > svg:visible").count() == 3
        assert page.locator("details:not([open]):not(.twin)").count() == 0
        assert "DIVERGED" in opened.text(".verdict")
        assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
        page.evaluate("() => dispatchEvent(new Event('afterprint'))")
        assert page.locator("details[open]").count() == 0


def test_page_keeps_the_rules_of_accessibility(pages: Pages, tmp_path: Path) -> None:
    with pages.open(written("nonfinite", tmp_path)) as opened:
        opened.page.evaluate("() => document.querySelectorAll('details').forEach(each => { each.open = true; })")
        # Rows are alike: a few of each table are enough to look at.
        opened.page.evaluate(
            "() => document.querySelectorAll('tbody tr:nth-child(n + 6)').forEach(row => row.remove())"
        )
        assert opened.violations() == []
        opened.page.locator("#theme").click()
        opened.page.locator("#help-button").click()
        assert opened.violations(CONTRAST) == []


def test_a_large_page_opens_at_its_first_difference(pages: Pages, tmp_path: Path) -> None:
    result = report_samples.huge(steps=3)
    path = tmp_path / "huge.html"
    path.write_text(diff_page(result), encoding="utf-8")
    with pages.open(path) as opened:
        assert shown(opened) == f"{len(result.comparisons):,} rows."
        assert opened.cells("#table tr.first")[0][3] == "layers.20.mlp.act"
        assert opened.page.locator(SEEN_ROWS).count() < 60
        folded = opened.page.locator("#tree .group .name")
        assert folded.all_inner_texts() == ["0 \u2026 19 (20)", "21 \u2026 40 (20)"]
        folded.first.click()
        assert opened.page.locator("#tree .name").all_inner_texts()[5:25] == [str(number) for number in range(20)]
    assert opened.said == []
