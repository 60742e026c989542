"""The page of two checkpoints: real files, the real command line, a real browser without network."""

from __future__ import annotations

import csv
import dataclasses
import re
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from align.checkpoint_records import CheckpointResult, CheckpointSide, EntryRow
from align.cli import main
from align.commands import checkpoint_files
from align.records import Verdict
from align.relations import RelationKind
from align.reports import checkpoint_phrases
from align.reports.checkpoint_entries import (
    CATEGORIES,
    Category,
    category_of,
    moved_entries,
    relations_of,
    shown_entries,
)
from align.reports.checkpoint_html import checkpoint_page
from align.reports.checkpoint_json import checkpoint_document
from align.reports.checkpoint_rules import map_lines, rename_options
from align.reports.checkpoint_text import checkpoint_text
from align.reports.language import LANGUAGES
from align.reports.markdown import checkpoint_markdown
from align.reports.reading import as_saved, read_file
from tests.browsing import Opened, Pages
from tests.checkpoint_samples import State, changed, llama, meta, write

HOSTILE = '"><img src=x onerror=alert(1)></script><script>alert(2)</script>\u202e=cmd()'
LARGE = 10_000


def spoilt(state: State) -> None:
    """Of each kind of difference one."""
    state["layers.0.attention.wo.weight"] += 0.001 * torch.randn(32, 32, generator=torch.Generator().manual_seed(1))
    state["layers.1.feed_forward.w1.weight"] = state["layers.1.feed_forward.w1.weight"].t().contiguous()
    state["layers.1.feed_forward.w2.weight"] *= 0.5
    state["norm.weight"] = state["norm.weight"].to(torch.bfloat16)
    del state["layers.0.ffn_norm.weight"]
    state["ema.decay"] = torch.ones(3)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("checkpoints")
    reference = llama()
    ours = write(folder / "a.safetensors", reference)
    return ours, write(folder / "b.safetensors", changed(meta(reference), spoilt))


@pytest.fixture(scope="module")
def page(files: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page that the command line writes, and its JSON beside it."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    options = ["--html", str(path), "--json", str(path.with_suffix(".json"))]
    done = CliRunner().invoke(main, ["checkpoint", *map(str, files), *options])
    assert f"align: wrote {path}" in done.output, done.output
    assert done.exit_code == 1
    return path


def large() -> CheckpointResult:
    """Ten thousand entries, every tenth of another dtype, every hundredth different, one of them without an end."""
    rows = []
    for number in range(LARGE):
        name = f"model.layers.{number // 10}.block.{number % 10}.self_attention.projection.weight"
        kind = "drifted" if number % 100 == 7 else "cast" if number % 10 == 3 else "equal"
        error = {"drifted": 1e-3 * (number + 1), "cast": 1e-3}.get(kind)
        error = float("inf") if number == 7 else error
        shape = (4096, number % 7 + 1)
        rows.append(
            EntryRow(name, name.replace("model.", "", 1) if number % 2 else name, kind, "", "name", error, "float32",
                     "bfloat16" if kind == "cast" else "float32", shape, shape, number)
        )  # fmt: skip
    side = CheckpointSide("a.pt", "torch", LARGE, 10**10)
    return CheckpointResult(
        side, dataclasses.replace(side, path="b.pt"), Verdict.DIVERGED, "100 entries hold other values.",
        rows=tuple(rows),
    )  # fmt: skip


def rows_of(opened: Opened) -> list[list[str]]:
    return [cells for cells in opened.cells("#entries-table tbody tr") if len(cells) > 1]


def test_the_command_writes_the_page_of_its_result(files: tuple[Path, Path], page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    result = checkpoint_files(*map(str, files))
    assert text == checkpoint_page(as_saved(result, checkpoint_document(result)))
    saved = read_file(str(page.with_suffix(".json")))
    assert isinstance(saved, CheckpointResult)
    assert checkpoint_page(saved) == text


def test_the_page_asks_nothing_of_a_network(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert not re.search(r"https?:|@import|innerHTML|\son[a-z]+=", text)
    assert not re.findall(r'(?:src|href)="(?!#|data:,)', text)
    ids = re.findall(r' id="([^"]*)"', text.partition("<template")[0])
    assert len(ids) == len(set(ids))


def test_a_reader_narrows_sorts_and_saves_the_entries(page: Path, pages: Pages, tmp_path: Path) -> None:
    with pages.open(page) as opened:
        browser = opened.page
        assert opened.text("h1").startswith("1 of 21 entries of the reference has no answer in the candidate")
        assert rows_of(opened)[0][:4] == [
            "model.layers.0.post_attention_layernorm.weight", "\u2715 only in the reference", "", "",
        ]  # fmt: skip
        assert opened.text("#entries-shown") == "22 of 22 entries."
        table = '[data-place="table"]'
        assert browser.locator(f'{table}[data-relation="stale"]').count() == 0

        browser.click(f'{table}[data-relation="permuted"]')
        browser.click(f'{table}[data-relation="transposed"]')
        assert opened.text("#entries-shown") == "5 of 22 entries."
        browser.fill("#entries-filter", "feed_forward transposed")
        assert [row[2] for row in rows_of(opened)] == ["layers.1.feed_forward.w1.weight"]
        assert "c=permuted%2Ctransposed" in browser.url
        browser.fill("#entries-filter", "no such entry")
        assert opened.text("#entries-nothing") == "No row matches 'such'."
        browser.click("#entries-clear")

        browser.click('#entries-table th[data-column="relative"] button')
        assert browser.get_attribute('#entries-table th[data-column="relative"]', "aria-sort") == "descending"
        assert rows_of(opened)[0][1] == "\u25b2 permuted"
        browser.click(f'{table}[data-relation="scaled"]')
        with browser.expect_download() as download:
            browser.click("#entries-csv")
        download.value.save_as(tmp_path / "entries.csv")
        lines = list(csv.reader((tmp_path / "entries.csv").read_text(encoding="utf-8-sig").splitlines()))
        assert lines[0][:4] == ["reference", "relation", "candidate", "evidence"]
        assert lines[1][:4] == [
            "model.layers.1.mlp.down_proj.weight", "scaled", "layers.1.feed_forward.w2.weight",
            "0.5 times the reference",
        ]  # fmt: skip
        assert float(lines[1][5]) == pytest.approx(0.5)
        assert len(lines) == 2
        assert opened.said == []

        browser.click("#language")
        assert browser.evaluate("document.documentElement.lang") == "zh-CN"
        assert opened.text("#entries-shown") == "1 / 22 个条目。"
        assert rows_of(opened)[0][1] == "\u2715 相差固定倍数"
        assert opened.violations() == []
        assert opened.said == []


def test_the_page_is_whole_in_dark_narrow_and_on_paper(page: Path, pages: Pages) -> None:
    with pages.open(page, scheme="dark", width=400) as opened:
        assert opened.too_wide() == []
        assert opened.violations() == []
        opened.page.emulate_media(media="print")
        seen = opened.page.locator(".entries-table tbody tr:visible")
        assert seen.count() == 22
        assert opened.page.locator("button:visible, input:visible").count() == 0
        assert opened.said == []


def test_without_script_the_worst_entries_and_the_rules_are_there(page: Path, pages: Pages) -> None:
    with pages.open(page, scripts=False) as opened:
        assert opened.page.locator(".entries-table tbody tr:visible").count() == 22
        assert "renamed 12" in opened.text("ul.counts")
        assert r"model\.layers\.(\d+)\.self_attn\.q_proj -> layers.\1.attention.wq" in opened.text("#renaming-1")
        assert opened.page.locator("#apart .rowbar:visible").count() == 2
        assert opened.said == []


def test_ten_thousand_entries_stay_small_and_all_can_be_found(pages: Pages, tmp_path: Path) -> None:
    path = tmp_path / "large.html"
    path.write_text(checkpoint_page(large()), encoding="utf-8")

    assert path.stat().st_size < 5_000_000
    with pages.open(path, address="#?q=layers.999") as opened:
        assert opened.text("#entries-shown") == "10 of 10,000 entries."
        opened.page.click("#entries-clear")
        assert opened.page.locator("#entries-table tbody tr").count() < 100
        opened.page.click('#entries-table th[data-column="relative"] button')
        assert rows_of(opened)[0][5] == "Inf"
        opened.page.evaluate("document.getElementById('entries-frame').scrollTop = 1e7")
        opened.page.locator('#entries-table tr[aria-rowindex="10001"]').wait_for()
        assert opened.said == []


def test_names_cannot_become_elements_or_formulas(pages: Pages, tmp_path: Path) -> None:
    row = EntryRow(HOSTILE, f"={HOSTILE}", "equal", HOSTILE, HOSTILE, 1.0, HOSTILE, "float32", (1,), (1,), 0)
    result = dataclasses.replace(
        large(), rows=(row,), only_candidate=("=1+2", HOSTILE * 200), renamed=((f"{HOSTILE} -> b", 1),),
        summary=HOSTILE, notes=(HOSTILE,),
    )  # fmt: skip
    path = tmp_path / "hostile.html"
    path.write_text(checkpoint_page(result), encoding="utf-8")

    with pages.open(path) as opened:
        assert opened.page.locator("img, script[src]").count() == 0
        assert opened.page.locator("#page script").count() == 0
        with opened.page.expect_download() as download:
            opened.page.click("#entries-csv")
        download.value.save_as(tmp_path / "entries.csv")
        assert "'=1+2" in (tmp_path / "entries.csv").read_text(encoding="utf-8-sig")
        assert opened.said == []
    assert "\u202e" not in path.read_text(encoding="utf-8")


def test_what_is_the_same_everywhere_says_so(tmp_path: Path) -> None:
    state = write(tmp_path / "a.safetensors", llama())

    text = checkpoint_page(checkpoint_files(str(state), str(state)))

    assert "All 21 entries are equal to the bit, under the same names." in text
    assert "No renaming needed." in text
    assert "A safetensors file holds its entries in the order of their names" in text
    assert "No values differ." in text
    assert "Neither file holds anything else, and everything was read." in text


def test_an_order_that_differs_is_told_of_files_that_have_one() -> None:
    rows = large().rows[:10]
    turned = tuple(dataclasses.replace(row, candidate_place=9 - number) for number, row in enumerate(rows))

    same, other = (checkpoint_page(dataclasses.replace(large(), rows=found)) for found in (rows, turned))

    assert "The entries of both stand in the same order." in same
    assert "9 entries have to be moved to give both one order." in other
    assert other.partition("<template")[0].count('data-csv="order"') == 1


def test_a_page_without_entries_needs_no_script_of_its_own() -> None:
    text = checkpoint_page(dataclasses.replace(large(), rows=()), LANGUAGES["zh"])

    assert "两个文件均不含条目。" in text
    assert 'id="align-data"' not in text


@pytest.mark.parametrize("kind", RelationKind)
def test_every_relation_has_a_category(kind: RelationKind) -> None:
    row = EntryRow("a", "a", str(kind))

    assert category_of(row) is CATEGORIES.get(str(kind), Category.DIFFERENT)
    assert {str(each) for each in RelationKind} | {"stacked", "grouped", "merged"} >= CATEGORIES.keys()
    assert category_of(EntryRow("a", "b", "equal")) is Category.RENAMED


def test_the_worst_entries_stand_first() -> None:
    result = dataclasses.replace(large(), only_reference=("gone",), only_candidate=("new",))

    categories = [entry.category for entry in shown_entries(result)]

    assert categories[:3] == [Category.MISSING, Category.EXTRA, Category.DIFFERENT]
    assert categories == sorted(categories)


@pytest.mark.parametrize(
    ("places", "moved"),
    [
        ([0, 1, 2, 3], []),
        ([3, 0, 1, 2], [("p0", 0, 3)]),
        ([10, 20, 40, 30], [("p2", 2, 3)]),
        ([2, 1, 0], [("p0", 0, 2), ("p1", 1, 1)]),
        ([], []),
    ],
    ids=["same", "first-to-last", "gaps", "reversed", "none"],
)
def test_the_fewest_entries_are_told_to_have_moved(places: list[int], moved: list[tuple[str, int, int]]) -> None:
    rows = [EntryRow(f"p{number}", f"q{number}", "equal", candidate_place=place) for number, place in enumerate(places)]
    merged = EntryRow("m", "a + b", "merged")

    found = moved_entries([merged, *rows])

    assert [(one.reference, one.before, one.after) for one in found] == moved


def test_rules_become_what_diff_takes() -> None:
    rules = ("a.N.b -> c.N.d", "head -> output", "x.N -> y", "weights kept -> z", "a.N.b.(1) -> e.N", "no rule")

    assert map_lines(rules) == (r"a\.(\d+)\.b\.\(1\) -> e.\1", r"a\.(\d+)\.b -> c.\1.d", "head -> output")
    assert rename_options(("head -> output", "a.N -> b.N")) == ("--rename head=output",)


def test_both_languages_have_the_same_words_and_places() -> None:
    english, chinese = checkpoint_phrases.ENGLISH, checkpoint_phrases.CHINESE

    assert english.keys() == chinese.keys()
    for key, phrase in english.items():
        assert sorted(re.findall(r"\{\w+\}", phrase)) == sorted(re.findall(r"\{\w+\}", chinese[key])), key


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (
            "en",
            [
                "only in the reference",
                "only in the candidate",
                "few elements",
                "permuted",
                "transposed",
                "scaled",
                "cast",
            ],
        ),
        ("zh", ["仅在标杆侧", "仅在待比对侧", "少量元素不同", "重排", "转置", "相差固定倍数", "精度转换"]),
    ],
)
def test_terminal_page_and_markdown_have_one_word_for_one_relation(
    files: tuple[Path, Path], code: str, told: list[str], tmp_path: Path
) -> None:
    language = LANGUAGES[code]

    def more(state: State) -> None:
        spoilt(state)
        state["layers.0.attention.wo.weight"] = llama()["model.layers.0.self_attn.o_proj.weight"]
        state["layers.0.attention.wo.weight"][3, 4] += 1.0

    other = write(tmp_path / "c.safetensors", changed(meta(llama()), more))
    result = checkpoint_files(str(files[0]), str(other))
    entries = shown_entries(result)
    counted = {language.word(word): count for word, count in relations_of(entries).items()}

    text = checkpoint_text(result, language, whole=True)
    static = checkpoint_page(result, language).partition("<template")[0]

    assert list(counted)[:-1] == told
    assert list(counted.values()) == [1, 1, 1, 4, 1, 1, 1, 12]
    line = "".join(text.partition(language["next_step"])[2].split("\n\n")[0].split())
    for word, count in counted.items():
        assert f"{count}{word}".replace(" ", "") in line.replace("个", "")
        assert f"<li>{word} {count}</li>" in static
        assert len(re.findall(rf" {re.escape(word)}(?: |$)", text, re.MULTILINE)) >= count
        assert static.count(f"</span> {word}</span></td>") == count
    markdown = checkpoint_markdown(result, language)
    assert [word for word in told[2:] if f" {word} " not in markdown] == []
