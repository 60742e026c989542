"""Sentences keep their templates through copies and JSON, and every one that the program says is there in Chinese."""

from __future__ import annotations

import ast
import copy
import json
import pickle
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from align import errors
from align.errors import AlignError
from align.records import Phase
from align.reports.chinese import CATALOGUES
from align.reports.language import LANGUAGES
from align.sentences import Sentence, capital, joined, read, say, small, tree, trimmed
from scripts import sentences as listed

NAMES = st.text(st.characters(codec="utf-8"), max_size=20)


def said(arguments: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Sentences of up to three arguments, joined, begun or put inside others."""
    template = st.sampled_from(["{} of {}", "the {0} in {1}", "{1}, then {0}", "{{}} {}: {}"])
    return st.one_of(
        st.builds(say, template, arguments, arguments),
        st.builds(joined, st.sampled_from([", ", "; or ", ""]), st.lists(arguments, min_size=2, max_size=3)),
        st.builds(capital, arguments),
        st.builds(small, arguments),
        st.builds(trimmed, arguments.map(lambda text: f" {text}")),
    )


@given(st.recursive(NAMES, said, max_leaves=12))
def test_a_sentence_is_the_same_after_json(sentence: str) -> None:
    found = read(json.loads(json.dumps(tree(sentence))))
    assert found == sentence
    assert tree(found) == tree(sentence)


def test_a_sentence_keeps_its_template_through_copies() -> None:
    sentence = say("{} tensors of {}", 3, Phase.FORWARD)
    for other in (copy.copy(sentence), copy.deepcopy(sentence), pickle.loads(pickle.dumps(sentence))):
        assert isinstance(other, Sentence)
        assert other == "3 tensors of forward"
        assert (other.template, other.arguments) == ("{} tensors of {}", (3, Phase.FORWARD))


def test_sentences_behind_one_another_keep_both() -> None:
    one, other = say("{} differ.", 3), say(" {} agree.", 4)
    assert tree(one + other) == ["{}{}", [["{} differ.", ["3"]], [" {} agree.", ["4"]]]]
    assert tree("Begin: " + one) == ["{}{}", ["Begin: ", ["{} differ.", ["3"]]]]
    assert tree(joined(", ", ["alone"])) == "alone"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        (Phase.FORWARD, ["forward", []]),
        (say("{} %", "2.4"), ["{} %", ["2.4"]]),
        (capital(say("{} of a", "b")), ["^{}", [["{} of a", ["b"]]]]),
        (small(say("In {}", 3)), ["_{}", [["In {}", ["3"]]]]),
        (trimmed(say(" {}", "a")), ["|{}", [[" {}", ["a"]]]]),
        (trimmed(say("{}", "a")), ["{}", ["a"]]),
    ],
)
def test_trees_are_templates_and_arguments(text: str, expected: Any) -> None:
    assert tree(text) == expected


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "no sentence: None"),
        (3, "no sentence: 3"),
        ([], r"no sentence: \[\]"),
        (["a"], r"no sentence: \['a'\]"),
        (["a", "b"], r"no sentence: \['a', 'b'\]"),
        ([["a"], []], r"no sentence: \[\['a'\], \[\]\]"),
        (["{} of {}", ["a"]], "no template of 1 arguments: {} of {}"),
        (["{name}", ["a"]], "no template of 1 arguments: {name}"),
        (["{0.other}", ["a"]], "no template of 1 arguments: {0.other}"),
        (["{", []], "no template of 0 arguments: {"),
        (["^{}", []], r"no template of 0 arguments: \^{}"),
    ],
)
def test_what_is_no_tree_is_refused(found: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        read(found)


def test_every_sentence_is_there_in_chinese() -> None:
    assert listed.missing() == {}


def test_every_entry_is_said_by_something() -> None:
    assert listed.unused() == {}


def test_errors_are_made_of_sentences() -> None:
    """An error that is made of plain text could not be said in another language."""
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, AlignError)}
    plain = [
        f"{path.relative_to(listed.ROOT)}:{node.lineno}"
        for folder in ("align", "hooks", "reports")
        for path in sorted((listed.ROOT / folder).rglob("*.py"))
        for node in listed.nodes(path)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in kinds
        if any(isinstance(given, (ast.JoinedStr, ast.Constant)) for given in node.args)
    ]
    assert plain == []


def test_catalogues_say_the_same_of_the_same_template() -> None:
    known: dict[str, str] = {}
    for entries in CATALOGUES.values():
        for template, chinese in entries.items():
            assert known.setdefault(template, chinese) == chinese, template


@pytest.mark.parametrize("name", CATALOGUES)
def test_entries_have_the_places_of_their_templates(name: str) -> None:
    apart = {
        template: chinese
        for template, chinese in CATALOGUES[name].items()
        if listed.places(template) != listed.places(chinese)
    }
    assert apart == {}


def test_chinese_sentences_have_chinese_stops() -> None:
    """A stop or a comma of English behind an ideograph is a slip."""
    for entries in CATALOGUES.values():
        for chinese in entries.values():
            for mark in ",;:.":
                assert not any("\u4e00" <= before <= "\u9fff" and char == mark for before, char in pairwise(chinese)), (
                    chinese
                )


def test_labels_have_names() -> None:
    from align.diagnosis.labels import LABELS

    assert sorted(LANGUAGES["zh"].labels) == sorted(LABELS.values())
