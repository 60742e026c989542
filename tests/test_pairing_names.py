"""Which modules answer each other where their names differ: by rules, by place, and by what they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align.errors import UsageError
from align.matching.looks import CallLook, Look, Looks
from align.matching.names import NameMatch
from align.matching.rules import MapRule, read_rules
from align.matching.summary import begins, grouped
from align.pairing import NamePairs, pair_names
from align.records import PairedNames

WIDTH = 16


@dataclass
class Model:
    """Modules in the order in which they run: what `Looks` would be told by a capture."""

    looks: dict[str, Look] = field(default_factory=dict)

    def add(self, name: str, class_name: str, *shapes: tuple[int, ...], weights: Sequence[int] = ()) -> None:
        """One module; a leaf has an output of its width, and weights only where they are given."""
        order = len(self.looks)
        call = CallLook(order, ((4, WIDTH),), ((4, shapes[0][0] if shapes else WIDTH),), None)
        parameters = tuple((f"p{place}", shape) for place, shape in enumerate(shapes))
        self.looks[name] = Look(name, class_name, bool(shapes), parameters, tuple(weights), (call, call), 1)

    def seen(self) -> Looks:
        """As a capture tells it."""
        root = next((name for name in self.looks if name.startswith("<")), "")
        return Looks(self.looks, root)

    def without(self, *places: str) -> Model:
        """The model without some modules and all that they hold."""
        left = {
            name: look
            for name, look in self.looks.items()
            if not any(name == place or name.startswith(f"{place}.") for place in places)
        }
        return Model(left)

    def renamed(self, table: Mapping[str, str], prefix: str = "") -> tuple[Model, dict[str, str]]:
        """The same with other words in the names, and which name became which."""
        names = {
            name: name if name.startswith("<") else prefix + ".".join(table.get(part, part) for part in name.split("."))
            for name in self.looks
        }
        return Model({names[name]: replace(look, name=names[name]) for name, look in self.looks.items()}), names


def _transformer(layers: int, *, same_weights: bool = False) -> Model:
    model = Model()
    model.add("<Net>", "Net")
    model.add("embed", "Embedding", (50, WIDTH), weights=[1])
    for layer in range(layers):
        block = f"h.{layer}"
        number = 100 if same_weights else 100 * (layer + 1)
        model.add(block, "Block")
        model.add(f"{block}.norm", "LayerNorm", (WIDTH,))
        model.add(f"{block}.attn", "Attention")
        for place, part in enumerate(("q", "k", "v")):
            model.add(f"{block}.attn.{part}", "Linear", (WIDTH, WIDTH), weights=[number + place])
        model.add(f"{block}.up", "Linear", (64, WIDTH), weights=[number + 7])
        model.add(f"{block}.act", "GELU")
        model.add(f"{block}.down", "Linear", (WIDTH, 64), weights=[number + 8])
    model.add("head", "Linear", (50, WIDTH), weights=[2])
    return model


def _pair(ours: Model, theirs: Model, rules: Sequence[MapRule] = ()) -> NamePairs:
    looks = ours.seen(), theirs.seen()
    return pair_names(ours.looks, theirs.looks, (), rules, lambda: looks)


def _other_start(model: Model) -> Model:
    return Model(
        {name: replace(look, weights=tuple(-number for number in look.weights)) for name, look in model.looks.items()}
    )


OTHER_WORDS = {"embed": "tok", "h": "layers", "norm": "ln", "attn": "self_attn", "q": "q_proj", "k": "k_proj",
               "v": "v_proj", "up": "fc1", "act": "activation", "down": "fc2", "head": "out"}  # fmt: skip


@pytest.mark.parametrize("prefix", ["", "net."])
@pytest.mark.parametrize("same_start", [True, False])
def test_renamed_modules_are_found(prefix: str, *, same_start: bool) -> None:
    ours = _transformer(3)
    theirs, names = (ours if same_start else _other_start(ours)).renamed(OTHER_WORDS, prefix)
    found = _pair(ours, theirs)
    assert {name: found.of(name) for name in ours.looks} == names
    assert found.only_reference == found.only_candidate == ()
    assert min(match.confidence for match in found.matches) > 0.8


PARTS = sorted({part for name in _transformer(1).looks for part in name.split(".") if part.isalpha()})
WORDS = st.text("abcdefghij_", min_size=3, max_size=6).filter(lambda word: word not in PARTS)
"""Other names; one that another module has already would be that module."""


@settings(max_examples=50, deadline=None)
@given(
    words=st.lists(WORDS, min_size=11, max_size=11, unique=True),
    kept=st.sets(st.sampled_from(PARTS)),
    data=st.data(),
)
def test_no_insertion_or_deletion_shifts_the_rest(words: list[str], kept: set[str], data: st.DataObject) -> None:
    whole = _transformer(3)
    table = {part: word for part, word in zip(PARTS, words, strict=False) if part not in kept}
    places = [name for name in whole.looks if name != "<Net>"]
    ours = whole.without(*data.draw(st.sets(st.sampled_from(places), max_size=2), "only in the candidate"))
    left = whole.without(*data.draw(st.sets(st.sampled_from(places), max_size=2), "only in the reference"))
    theirs, names = left.renamed(table)
    found = _pair(ours, theirs)
    with_parameters = {name for name in ours.looks if name in names and ours.looks[name].weights}
    assert {name: found.of(name) for name in with_parameters} == {name: names[name] for name in with_parameters}


@pytest.mark.parametrize("place", [0, 1, 3])
def test_one_more_numbered_module_shifts_none(place: int) -> None:
    ours = _transformer(3)
    longer = _transformer(4)
    # The layer at this place is the one more; those behind it have the next number.
    moved = {str(number): str(number + (number >= place)) for number in range(3)}
    theirs, names = ours.renamed(moved)
    extra = {name: look for name, look in longer.looks.items() if name.startswith("h.3")}
    more, _ = Model(extra).renamed({"3": str(place)})
    found = _pair(ours, Model({**theirs.looks, **more.looks}))
    assert {name: found.of(name) for name in ours.looks} == names
    assert set(found.only_candidate) == set(more.looks)


def test_equally_many_numbered_modules_keep_their_numbers_whatever_they_hold() -> None:
    ours = _transformer(2)
    swapped, _ = ours.renamed({"0": "1", "1": "0"})
    found = _pair(ours, swapped)
    assert all(found.of(name) == name for name in ours.looks)
    assert found.matches == ()


def test_layers_that_nothing_tells_apart_keep_their_numbers() -> None:
    ours, theirs = _transformer(2, same_weights=True), _transformer(3, same_weights=True)
    found = _pair(ours, theirs)
    assert found.matches == ()
    assert {name.split(".")[1] for name in found.only_candidate} == {"2"}


def test_another_number_of_modules_of_other_kinds_is_told_by_their_kinds() -> None:
    ours, theirs = Model(), Model()
    for model, kinds in ((ours, "LRL"), (theirs, "NLRL")):
        for number, kind in enumerate(kinds):
            shape = {"L": ((WIDTH, WIDTH),), "N": ((WIDTH,),), "R": ()}[kind]
            model.add(f"net.{number}", {"L": "Linear", "N": "LayerNorm", "R": "ReLU"}[kind], *shape)
    found = _pair(ours, theirs)
    assert dict(found.partner) == {"net.0": "net.1", "net.1": "net.2", "net.2": "net.3"}
    assert found.only_candidate == ("net.0",)


def test_a_name_that_both_have_stays_whatever_its_class() -> None:
    ours, theirs = Model(), Model()
    ours.add("proj", "Linear", (WIDTH, WIDTH))
    theirs.add("proj", "LoraLinear")
    theirs.add("proj.base", "Linear", (WIDTH, WIDTH))
    found = _pair(ours, theirs)
    assert dict(found.partner) == {"proj": "proj"}
    assert found.only_candidate == ("proj.base",)


def test_one_fused_module_leaves_the_rest_in_pairs() -> None:
    ours = _transformer(2)
    looks = dict(ours.looks)
    for layer in range(2):
        for part in "qkv":
            del looks[f"h.{layer}.attn.{part}"]
    theirs = Model(looks)
    theirs.add("h.0.attn.qkv", "Linear", (3 * WIDTH, WIDTH))
    theirs.add("h.1.attn.qkv", "Linear", (3 * WIDTH, WIDTH))
    found = _pair(ours, theirs)
    assert set(found.only_reference) == {f"h.{layer}.attn.{part}" for layer in range(2) for part in "qkv"}
    assert found.only_candidate == ("h.0.attn.qkv", "h.1.attn.qkv")
    assert found.matches == ()


def test_modules_that_nothing_tells_apart_are_not_guessed() -> None:
    ours, theirs = _transformer(1), _transformer(1)
    ours.add("extra", "Linear", (WIDTH, WIDTH))
    theirs.add("aaa", "Linear", (WIDTH, WIDTH))
    theirs.add("bbb", "Linear", (WIDTH, WIDTH))
    found = _pair(ours, theirs)
    assert found.only_reference == ("extra",)
    assert found.only_candidate == ("aaa", "bbb")


def test_other_shapes_of_parameters_are_another_module() -> None:
    ours, theirs = _transformer(1), _transformer(1)
    ours.add("extra", "Linear", (WIDTH, 8))
    theirs.add("other", "Linear", (WIDTH, 9))
    assert _pair(ours, theirs).only_reference == ("extra",)


def test_calls_in_another_order_are_told_by_their_weights() -> None:
    ours = _transformer(2)
    looks = list(ours.looks.values())
    for start in (5, 14):
        looks[start : start + 2] = reversed(looks[start : start + 2])
    assert [look.name for look in looks[5:7]] == ["h.0.attn.k", "h.0.attn.q"]
    again = [
        replace(look, ends=(replace(look.ends[0], order=order), replace(look.ends[0], order=order)))
        for order, look in enumerate(looks)
        if look.ends is not None
    ]
    theirs, names = Model({look.name: look for look in again}).renamed(OTHER_WORDS)
    found = _pair(ours, theirs)
    assert {name: found.of(name) for name in ours.looks} == names


def test_weights_that_were_exchanged_are_not_taken_for_another_name() -> None:
    ours = _transformer(1)
    looks = dict(ours.looks)
    looks["h.0.attn.q"] = replace(looks["h.0.attn.q"], weights=ours.looks["h.0.attn.k"].weights)
    looks["h.0.attn.k"] = replace(looks["h.0.attn.k"], weights=ours.looks["h.0.attn.q"].weights)
    theirs, names = Model(looks).renamed(OTHER_WORDS)
    found = _pair(ours, theirs)
    assert found.of("h.0.attn.q") == names["h.0.attn.q"]
    assert found.of("h.0.attn.k") == names["h.0.attn.k"]


# Rules


def _rules(folder: Path, text: str) -> tuple[MapRule, ...]:
    path = folder / "rules.txt"
    path.write_text(text, encoding="utf-8")
    return read_rules(path)


def test_the_first_rule_that_matches_counts(tmp_path: Path) -> None:
    rules = _rules(tmp_path, "# a comment\n\nh\\.(\\d+)\\.a -> layers.\\1.first  # the attention\nh -> layers\n")
    found = pair_names(["h.0.a.q", "h.0.b", "hh"], ["layers.0.first.q", "layers.0.b", "hh"], (), rules)
    assert dict(found.partner) == {"h.0.a.q": "layers.0.first.q", "h.0.b": "layers.0.b", "hh": "hh"}
    assert found.notes == ()


def test_a_rule_is_stronger_than_an_equal_name(tmp_path: Path) -> None:
    rules = _rules(tmp_path, "h\\.0 -> h.1\n")
    found = pair_names(["h.0", "h.1"], ["h.0", "h.1"], (), rules)
    assert found.of("h.0") == "h.1"
    assert found.of("h.1") == ""
    assert (found.only_reference, found.only_candidate) == (("h.1",), ("h.0",))


def test_a_rule_takes_a_begin_away_or_puts_one_before_all(tmp_path: Path) -> None:
    found = pair_names(["net.a", "net.b"], ["a", "b"], (), _rules(tmp_path, "net ->\n"))
    assert dict(found.partner) == {"net.a": "a", "net.b": "b"}
    found = pair_names(["a", "b"], ["net.a", "net.b"], (), _rules(tmp_path, "(.+) -> net.\\1\n"))
    assert dict(found.partner) == {"a": "net.a", "b": "net.b"}


def test_rules_that_do_nothing_are_told(tmp_path: Path) -> None:
    rules = _rules(tmp_path, "wte -> embed\nfc -> lin\nhead -> out\n")
    path = tmp_path / "rules.txt"
    found = pair_names(["fc", "head", "fc.sub"], ["out", "fc", "fc.sub"], (), rules)
    assert found.notes == (
        f"The rule in line 1 of '{path}', 'wte -> embed', matches no name of the reference that is left to it.",
        (
            f"The rule in line 2 of '{path}', 'fc -> lin', matches 2 names of the reference, but the candidate has no "
            "free module of a name that it makes."
        ),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = b", "Cannot read line 1 of '{path}', 'a = b': write PATTERN -> REPLACEMENT, such as {example}."),
        (" -> b", "Cannot read line 1 of '{path}', '-> b': write PATTERN -> REPLACEMENT, such as {example}."),
        (
            "# x\n(a -> b",
            (
                "Cannot read line 2 of '{path}', '(a -> b': '(a' is no regular expression (missing ), unterminated "
                "subpattern). Mend the pattern."
            ),
        ),
        (
            r"a -> \1",
            (
                r"Cannot read line 1 of '{path}', 'a -> \1': the replacement '\1' cannot be used (invalid group "
                r"reference 1 at position 1). Name groups that the pattern has, as \1 or \g<name>."
            ),
        ),
        ("# only this", "Cannot use the rules of '{path}': it holds none. Write one a line, such as {example}."),
        (None, "Cannot read the rules of '{path}': there is no such file. Check the path given to --map."),
    ],
)
def test_rules_that_cannot_be_read_are_refused(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "rules.txt"
    if text is not None:
        path.write_text(text)
    expected = message.replace("{path}", str(path)).replace("{example}", r"'model\.h\.(\d+) -> layers.\1'")
    with pytest.raises(UsageError, match=f"^{re.escape(expected)}$"):
        read_rules(path)


def test_rules_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rules.txt"
    path.write_bytes(b"\xff\xfe\x00")
    expected = (
        rf"Cannot read the rules of '{path}': it is no text in UTF-8. Write one rule a line, such as "
        r"'model\.h\.(\d+) -> layers.\1'."
    )
    with pytest.raises(UsageError, match=f"^{re.escape(expected)}$"):
        read_rules(path)


# What is said of it


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ("h.3.attn.q", "layers.3.attn.q", ("h", "layers")),
        ("h.3.attn.q", "layers.3.attn.query", ("h.N.attn.q", "layers.N.attn.query")),
        ("h.3.fc", "h.4.fc", ("h.N", "h.N+1")),
        ("embed", "net.embed", ("", "net")),
        ("<Net>", "<Port>", ("<Net>", "<Port>")),
    ],
)
def test_names_are_told_by_how_they_begin(ours: str, theirs: str, expected: tuple[str, str]) -> None:
    assert begins(ours, theirs) == expected


def test_groups_are_as_sure_as_their_least_sure_pair() -> None:
    matches = [NameMatch(f"h.{n}", f"layers.{n}", "aligned", 1.0 - n / 10, ("order", "class")) for n in range(3)]
    assert grouped([NameMatch("<A>", "<B>", "root"), *matches]) == (
        PairedNames("h", "layers", 3, "aligned", 0.8, ("order", "class")),
        PairedNames("<A>", "<B>", 1, "root", 1.0),
    )


def test_names_are_compared_at_once_where_all_are_equal() -> None:
    def never() -> tuple[Looks, Looks]:
        raise AssertionError

    names = pair_names(["a", "b"], ["b", "a"], (), (), never)
    assert names == NamePairs({"a": "a", "b": "b"})


def test_the_widths_of_the_model_are_as_they_should_be() -> None:
    assert np.prod(_transformer(1).looks["h.0.up"].parameters[0][1]) == 64 * WIDTH
