"""Results as Markdown: whole texts, and names that stay names in issue trackers."""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from align.records import Finding
from align.reports.accept_markdown import accept_markdown
from align.reports.language import LANGUAGES
from align.reports.markdown import checkpoint_markdown, diff_markdown, inspect_markdown
from align.reports.markdown_parts import LONGEST
from align.reports.markdown_text import BREAK, code, escaped, sentence, table
from align.reports.visible import visible
from tests import document_samples, inspect_samples, report_samples
from tests.test_reports_text import SAMPLES

TEXTS: dict[str, Callable[[], str]] = {
    "diff_diverged.md": lambda: diff_markdown(report_samples.diverged()),
    "diff_aligned.md": lambda: diff_markdown(report_samples.aligned()),
    "inspect_nan.md": lambda: inspect_markdown(inspect_samples.nan()),
    "checkpoint.md": lambda: checkpoint_markdown(document_samples.checkpoint()),
    "accept_failing.md": lambda: accept_markdown(document_samples.failing()),
    "accept_captured.zh.md": lambda: accept_markdown(document_samples.captured(), LANGUAGES["zh"]),
}

RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def rendered(markdown: str) -> list[Token]:
    """All tokens of a text, those inside paragraphs too."""
    tokens = RENDERER.parse(markdown)
    return [inner for token in tokens for inner in (token, *(token.children or ()))]


def shown(markdown: str) -> str:
    """The text that a reader sees."""
    text = RENDERER.render(markdown).replace(BREAK, "")
    return html.unescape(re.sub("<[^>]*>", "", text)).strip()


@pytest.mark.parametrize("name", TEXTS)
def test_markdown_is_the_golden_one(name: str, golden: Callable[[str, str], None]) -> None:
    golden(name, TEXTS[name]())


@pytest.mark.parametrize("name", SAMPLES)
def test_every_comparison_renders_with_one_table_of_tensors(name: str) -> None:
    result = SAMPLES[name]()
    text = diff_markdown(result)

    kinds = [token.type for token in rendered(text)]
    assert kinds.count("table_open") == bool(result.comparisons) + ("### Facts that differ\n\n|" in text)
    assert len(text) <= LONGEST + 200
    rows = text.partition("| step |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(rows) == min(20, len(result.comparisons))


HOSTILE = (
    "</td><script>alert(1)</script> | `x` @team #12 !3 GH-7 ~bug $x$ *a* _b_ [c](http://d) https://e www.f.g &amp;"
)


def test_names_stay_names_everywhere() -> None:
    finding = Finding(
        "AL1", HOSTILE, report_samples.PRECISION_NOTE.severity, HOSTILE, HOSTILE, evidence={HOSTILE: HOSTILE}
    )
    compared = dataclasses.replace(
        report_samples.diverged(), summary=HOSTILE, findings=(finding,), reference_path=HOSTILE
    )
    texts = [
        diff_markdown(compared),
        inspect_markdown(inspect_samples.hostile()),
        checkpoint_markdown(document_samples.checkpoint(HOSTILE)),
        accept_markdown(document_samples.hostile_acceptance()),
    ]
    for text in texts:
        tokens = rendered(text)
        links = [token for token in tokens if token.type in {"link_open", "image", "s_open"}]
        raw = {token.content.strip() for token in tokens if token.type in {"html_inline", "html_block"}}
        assert links == []
        assert {line for each in raw for line in each.splitlines()} <= {
            BREAK, "<details>", "</details>", "<summary>What could not be seen</summary>",
        }  # fmt: skip
        plain = "".join(token.content for token in tokens if token.type in {"text", "html_inline"})
        assert re.findall(r"[@#~]\w|!\d|GH-\d|://|www\.\w", plain) == []


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=40))
def test_any_text_is_shown_as_it_is(text: str) -> None:
    seen = re.sub(r" +", " ", visible(text)).strip()

    for markdown in (escaped(text), code(text)):
        assert re.sub(r"\s+", " ", shown(markdown)) == re.sub(r"\s+", " ", seen)
    cells = rendered("\n".join(table(["a", "b"], [[escaped(text), code(text, cell=True)]])))
    assert [token.type for token in cells].count("td_open") == 2


def test_commands_in_sentences_are_code() -> None:
    assert sentence("Run `align diff a|b.h5` and look at _this_ and a_b.") == (
        r"Run `align diff a|b.h5` and look at \_this\_ and a_b."
    )
    assert sentence("`a|b`", cell=True) == r"`a\|b`"


STARTS = {
    "# no heading": r"\# no heading",
    "- no list": r"\- no list",
    "12. no list": r"12\. no list",
    "0.031": "0.031",
    "-1.5": "-1.5",
    "    no code": "no code",
}


@pytest.mark.parametrize("text", STARTS)
def test_the_begin_of_a_line_means_nothing(text: str) -> None:
    assert escaped(text) == STARTS[text]


def test_a_text_too_long_for_issue_trackers_is_cut_at_a_line() -> None:
    whole = report_samples.diverged()
    long = Finding("AL1", "label", whole.findings[0].severity, "word " * 9_000, "other " * 9_000)

    text = diff_markdown(dataclasses.replace(whole, findings=(long,)))

    assert len(text) < LONGEST + 200
    assert text.endswith("\n\n**Cut here: issue trackers take no longer text. The JSON has all.**\n")


def test_a_cut_inside_of_what_is_folded_closes_it() -> None:
    whole = inspect_samples.unknown()
    replies = tuple(dataclasses.replace(each, sentence="word " * 3_500) for each in whole.replies)

    text = inspect_markdown(dataclasses.replace(whole, replies=replies))

    assert text.count("<details>") == text.count("</details>")
