"""What is written of acceptance is what it does: the page of the docs, the words of both languages."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import click

from align.acceptance import built_in_policies, read_policy
from align.acceptance.policy_keys import FORMS
from align.cli_accept import accept
from align.curve_records import Quantity
from align.reports.accept_phrases import CHINESE, ENGLISH
from align.reports.chinese import accept_oddities, acceptance
from scripts.write_criteria import PAGE, page

SENTENCES = {**acceptance.SENTENCES, **accept_oddities.SENTENCES}
ROOT = Path(__file__).resolve().parents[2]


def places(text: str) -> list[str]:
    """The places of a template, by number or name."""
    fields = [field for _, field, _, _ in Formatter().parse(text) if field is not None]
    return sorted(field or str(number) for number, field in enumerate(fields))


def test_the_table_of_criteria_is_that_of_the_default_policy() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text, read_policy()), "Run 'python scripts/write_criteria.py'."


def test_the_page_tells_of_every_criterion_and_policy() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [code for code in FORMS if text.count(f"`{code}`") < 2] == []
    assert [name for name in built_in_policies() if f"| `{name}` |" not in text] == []


def test_the_help_names_every_policy() -> None:
    option = next(each for each in accept.params if each.name == "policy")
    assert isinstance(option, click.Option)
    assert option.help == f"The limits: {', '.join(built_in_policies())}, or a TOML file."


def test_the_policy_of_the_page_is_one(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    path = tmp_path / "policy.toml"
    path.write_text(block, encoding="utf-8")
    assert read_policy(str(path)).name == "project-7"


def test_both_languages_have_the_same_words() -> None:
    assert list(ENGLISH) == list(CHINESE)
    assert {key: places(text) for key, text in ENGLISH.items()} == {key: places(text) for key, text in CHINESE.items()}
    assert {f"criterion_{code}" for code in FORMS} <= set(ENGLISH)
    assert {f"quantity_{quantity}" for quantity in Quantity} <= set(ENGLISH)


def test_every_source_can_be_said_in_chinese() -> None:
    policies = [read_policy(name) for name in built_in_policies()]
    sources = [each.source for policy in policies for each in policy.settings if each.source]
    sources += [policy.floor_source for policy in policies if policy.floor_source]
    assert [source for source in sources if source not in SENTENCES] == []


def test_chinese_sentences_have_the_same_places() -> None:
    assert [text for text, said in SENTENCES.items() if places(text) != places(said)] == []
