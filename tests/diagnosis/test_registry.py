"""The registry of rules, its order, and the page that describes the codes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from align.comparison import Walk
from align.diagnosis import all_rules, rule
from align.errors import UsageError
from align.records import Finding

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"


def test_codes_and_labels_are_unique_and_well_formed() -> None:
    rules = all_rules()
    assert len({known.label for known in rules}) == len(rules) == len({known.code for known in rules})
    assert all(re.fullmatch(r"AL[1-8]\d\d", known.code) for known in rules)


def test_a_code_is_given_once() -> None:
    def find(_: Walk) -> Iterator[Finding]:
        return iter(())

    message = (
        "Cannot register rule AL401 of tests.diagnosis.test_registry.test_a_code_is_given_once.<locals>.find: "
        "align.diagnosis.origin_module.find has that code. Give one of them another."
    )
    all_rules()
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        rule("AL401", "another-origin")(find)


def test_every_code_has_its_paragraph() -> None:
    headings = re.findall(r"^## (AL\d+) `([a-z-]+)`$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(headings) == sorted((known.code, known.label) for known in all_rules())
