"""The acceptance document in a real browser, and on paper."""

from __future__ import annotations

import dataclasses
import io
import re
import unicodedata
from pathlib import Path

import pytest

from align.reports.accept_html import accept_page
from align.reports.accept_view import document_id
from align.reports.language import LANGUAGES
from align.reports.writing import write_text
from tests import document_samples
from tests.browsing import Opened, Pages
from tests.document_samples import ACCEPTANCES


def written(name: str, folder: Path, language: str = "en") -> Path:
    path = folder / "accept.html"
    write_text(str(path), accept_page(ACCEPTANCES[name](), LANGUAGES[language]))
    return path


def sheets(opened: Opened) -> list[str]:
    """The text of each sheet of paper, without ligatures."""
    import pypdf

    pdf = opened.page.pdf(prefer_css_page_size=True)
    texts = [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(pdf)).pages]
    return [unicodedata.normalize("NFKC", text) for text in texts]


def test_the_document_says_all_without_network_and_scripts(pages: Pages, tmp_path: Path) -> None:
    with pages.open(written("failing", tmp_path), scripts=False) as opened:
        assert opened.said == []
        assert opened.text("#result .badge") == "\u2715 FAIL"
        assert opened.text("h1").startswith("Missed: 4 of 11 required criteria. First: From step 601 on the losses")
        missed = opened.page.locator(".missed li").all_inner_texts()
        assert [text.partition(":")[0] for text in missed] == [
            "8. divergence at the end",
            "9. mean loss error, relative",
            "10. worst window of the loss",
            "11. bias of the last quarter",
        ]
        rows = opened.cells("table.criteria tr:not(.told)")
        assert [row[0] for row in rows[1:]] == [str(number) for number in range(1, 17)]
        assert rows[8][1:4] == ["divergence at the end*", "2.98 %", "<= 1.00 %"]
        assert "align accept" in opened.text("tr.told >> nth=0")
        assert opened.page.locator("#curves svg").count() >= 1
        signed = [row[0] for row in opened.cells("table.signed tbody tr")]
        assert signed == ["Tested by", "Reviewed by", "Approved by", "Conditions"]
        assert opened.page.locator("details[open]").count() == 0


def test_the_document_prints_on_few_sheets_with_the_signatures_together(pages: Pages, tmp_path: Path) -> None:
    with pages.open(written("failing", tmp_path)) as opened:
        english = sheets(opened)
        opened.page.click("#language")
        chinese = sheets(opened)

    name = document_id(document_samples.failing())
    for texts, words in (
        (english, ("Tested by", "Approved by", "rejected", "Conditions")),
        (chinese, ("\u6d4b\u8bd5\u4eba", "\u6279\u51c6\u4eba", "\u4e0d\u540c\u610f", "\u9644\u52a0\u6761\u4ef6")),
    ):
        assert 2 <= len(texts) <= 4
        holding = [number for number, text in enumerate(texts) if words[0] in text]
        assert len(holding) == 1
        assert all(word in texts[holding[0]] for word in (*words, name))
    assert all(name in text for text in english)
    assert "FAIL" in english[0]
    assert "What was compared" in english[0]
    assert "3f3f3f3f" in english[0]
    for control in ("Print", "Keys", "Save as CSV", "Dark"):
        assert not any(re.search(rf"\b{control}\b", text) for text in english)


def test_the_document_switches_language_and_breaks_no_rule_of_access(pages: Pages, tmp_path: Path) -> None:
    path = written("captured", tmp_path, "zh")
    with pages.open(path) as opened:
        assert opened.said == []
        assert opened.violations() == []
        assert opened.text("#result .badge") == "\u2713 \u901a\u8fc7"
        assert "\u6a21\u62df NPU" in opened.text("#result")
        opened.page.click("#language")
        assert opened.text("#result .badge") == "\u2713 PASS"
        assert "The candidate ran on a simulated NPU" in opened.text("#result")
        differing = [row[0].split()[-1] for row in opened.cells("table.compared tr.differs")]
        assert differing == ["device", "software", "precision"]
    with pages.open(path, scheme="dark", width=400) as opened:
        assert opened.violations() == []
        assert opened.too_wide() == []


def test_too_few_steps_stand_in_the_badge(pages: Pages, tmp_path: Path) -> None:
    with pages.open(written("preliminary", tmp_path)) as opened:
        assert (
            opened.text("#result .badge") == "\u2713 PASS (preliminary: 200 steps, the policy asks for 1,000 or more)"
        )
        assert "200 were compared, so the result is preliminary." in opened.text("#limits")


def test_names_stay_names(pages: Pages, tmp_path: Path) -> None:
    with pages.open(written("hostile", tmp_path)) as opened:
        assert opened.said == []
        assert opened.page.locator("td script, li script").count() == 0
        assert "</td><script>alert(1)</script>" in opened.text("h1")
        assert "\\u202e" in opened.text("h1")
        assert 2 <= len(sheets(opened)) <= 5


def test_the_same_inputs_give_the_same_document_number() -> None:
    result = document_samples.failing()
    later = dataclasses.replace(result, made="2027-02-03 04:05:06+00:00", title="other", notes=("note",))
    moved = dataclasses.replace(result, reference=dataclasses.replace(result.reference, path="elsewhere/gpu.csv"))
    other = dataclasses.replace(result, candidate=dataclasses.replace(result.candidate, sha256="0" * 64))

    assert re.fullmatch("align-accept-[0-9a-f]{12}", document_id(result))
    assert document_id(later) == document_id(moved) == document_id(result)
    assert document_id(other) != document_id(result)
    assert document_id(document_samples.passing()) != document_id(result)


@pytest.mark.parametrize("name", ["passing", "hostile"])
def test_the_document_asks_nothing_of_the_network(name: str) -> None:
    page = accept_page(ACCEPTANCES[name]())

    sources = re.findall(r"""(?:src|href)=["']?([^"'\s>]*)|url\(([^)]*)\)""", page)
    assert {first or second for first, second in sources if not (first or second).startswith(("#", "data:"))} == set()
