"""The languages of reports: phrases by key, and the templates of sentences in other words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from string import Formatter
from typing import Any

from align.reports import phrases
from align.sentences import CAPITAL, SMALL, TRIMMED, Sentence, joined, say

CODES = ("en", "zh")
VARIABLES = ("ALIGN_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
"""Where the environment says which language is wanted; the first that says anything counts."""

NAMES = frozenset({
    "all", "backward", "batches", "cast", "checkpoint", "clipping", "column", "columns", "data", "drop", "dtype",
    "element", "elements", "evaluation", "format", "forward", "gradient", "init", "input", "limit", "module", "more",
    "names", "off", "offset", "one", "optimizer", "order", "param", "parameter", "parameters", "phase", "place",
    "ranks", "recompute", "reduction", "rng", "row", "rows", "s", "scaler", "share", "slices", "targets", "tensor",
    "training", "update", "zeros",
})  # fmt: skip
"""Words that are names of modules and arguments, too: those are left, the words themselves are sentences or phases."""
PROBE = {"en": "", "zh": "\u5bf9\u9f50"}
"""What an encoding has to hold for a language to be read in it."""


@dataclass(frozen=True, slots=True, eq=False)
class Language(Mapping[str, str]):
    """One language: `phrases` are what reports say themselves, by key; `sentences` the templates of all other text.

    `sentences` maps an English template to that of this language, with the same places. What it does not know is
    said in English. `labels` are names that stand beside the labels of findings, `evidence` those of their
    numbers, `facts` those of the facts of a run.
    """

    code: str
    phrases: Mapping[str, str]
    sentences: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, key: str) -> str:
        """The phrase of a key; what its `format` is given is said in this language, too."""
        phrase = self.phrases[key]
        return Phrase(phrase, self) if self.sentences else phrase

    def __iter__(self) -> Iterator[str]:
        """The keys of phrases."""
        return iter(self.phrases)

    def __len__(self) -> int:
        """How many phrases there are."""
        return len(self.phrases)

    def said(self, text: Any) -> str:
        """A sentence in this language; names, and numbers that are no sentences, as they are."""
        if not self.sentences or not isinstance(text, str):
            return str(text)
        if isinstance(text, Sentence):
            return self._made(text.template, text.arguments)
        word = str(text)
        return word if type(text) is str and word in NAMES else self.sentences.get(word, word)

    def headed(self, title: str, text: str) -> str:
        """Text with its title before it: `Next step: ...`."""
        return self.said(say("{}: {}", title, text))

    def listed(self, words: Iterable[str]) -> str:
        """Words that are no names, such as phases, in a list."""
        return self.said(joined(", ", [self.word(word) for word in words]))

    def clauses(self, parts: Iterable[str]) -> str:
        """The parts that there are, with a comma between them that is none of a list: `step 0, forward`."""
        said = [self.word(part) for part in parts if part]
        return filled("{}" + self.sentences.get(", {}", ", {}") * (len(said) - 1), said) if said else ""

    def word(self, text: str) -> str:
        """A sentence, or a word that is no name, such as a phase, in this language."""
        return self.said(text) if isinstance(text, Sentence) else self.sentences.get(text, text)

    def beside(self, label: str) -> str:
        """A label, and what it is called in this language."""
        return f"{label} {self.labels[label]}" if label in self.labels else label

    def _made(self, template: str, arguments: tuple[Any, ...]) -> str:
        names = _quoted(template)
        parts = [
            argument if place in names and type(argument) is str else self.said(argument)
            for place, argument in enumerate(arguments)
        ]
        if template in {CAPITAL, SMALL, TRIMMED}:
            return parts[0].strip()
        known = self.sentences.get(template)
        return filled(known if known is not None else self._list(template) or _punctuated(template, parts), parts)

    def _list(self, template: str) -> str:
        """The template of a list of any length, as `{} or {} or {}`, from that of what stands between its parts."""
        first, *between, last = template.split("{}") if "{}" in template else ("", "", "")
        separator = between[0] if between and not first and not last and len(set(between)) == 1 else ""
        return self.sentences[separator].join(["{}"] * (len(between) + 1)) if separator in self.sentences else ""


class Phrase(str):
    """A phrase whose places are filled with what is said in its language."""

    __slots__ = ("language",)
    language: Language

    def __new__(cls, text: str, language: Language) -> Phrase:
        """The phrase as it is."""
        made = super().__new__(cls, text)
        made.language = language
        return made

    def format(self, *arguments: Any, **words: Any) -> str:
        """The phrase with its places filled."""
        said = {name: self.language.said(word) for name, word in words.items()}
        return filled(self, [self.language.said(argument) for argument in arguments], said)


_FORMATTER = Formatter()
_IDEOGRAPH = "\u3400-\u9fff"
_FULL = "\uff0c\u3002\uff1b\uff1a\u3001\uff01\uff1f"
_OPEN, _CLOSED = "\uff08\u300a\u201c", "\uff09\u300b\u201d"
_NO_BLANK = re.compile(f"[{_IDEOGRAPH}{_FULL}{_OPEN}{_CLOSED}]")
_ENDS_FULL = re.compile(f"[{_FULL}{_OPEN}{_CLOSED}]$")
_BEGINS_FULL = re.compile(f"^[{_FULL}{_OPEN}{_CLOSED}]")
_QUOTES = ("'", "`")
_OPENS = re.compile(r"(?<![\w}])'$")
_WORD = re.compile(r"[A-Za-z0-9`'<\[+-]")
_MARKS = {", ": "\uff0c", "; ": "\uff1b", ": ": "\uff1a", ". ": "\u3002", " (": "\uff08", ") ": "\uff09", ")": "\uff09"}
_LAST = {".": "\u3002", ":": "\uff1a", ";": "\uff1b"}
LONGEST_WORD = 16
"""Characters of what stands in a list of words; longer parts are clauses."""


def filled(template: str, arguments: list[str], words: Mapping[str, str] | None = None) -> str:
    """A Chinese template with its places filled: one blank between Chinese and Latin words, none beside other signs.

    What stands in a place may begin or end with a blank, or with the stop that follows it. Names and commands in
    quotes stay as they are: a path may be Chinese, too.
    """
    text, number, literals, quoted = "", 0, "", False
    for literal, place, _, _ in _FORMATTER.parse(template):
        text = text + literal if quoted else _beside(text, literal)
        literals += literal
        quoted = any(literals.count(quote) % 2 for quote in _QUOTES)
        if place is None:
            continue
        if place and not place.isdecimal():
            more = (words or {})[place]
        else:
            more = arguments[int(place) if place else number]
            number += 1
        text = text + more if quoted else _beside(text, more)
    return text


@cache
def _quoted(template: str) -> frozenset[int]:
    """The places of an English template in quotes: what stands there is a path or a name, whatever word it is."""
    pieces = list(_FORMATTER.parse(template))
    found, before = set(), ""
    for number, (literal, place, _, _) in enumerate(pieces):
        before += literal
        after = pieces[number + 1][0] if number + 1 < len(pieces) else ""
        alone = _OPENS.search(before) is not None and after.startswith("'")
        if place is not None and (alone or before.count("`") % 2):
            found.add(int(place) if place.isdecimal() else number)
        before += "{}"
    return frozenset(found)


def _beside(text: str, more: str) -> str:
    """Two pieces of a sentence with one blank or none between them."""
    left, right = text.rstrip(" "), more.lstrip(" ")
    if not left or not right:
        return text + more
    last, first = left[-1], right[0]
    if _ENDS_FULL.match(last) or _BEGINS_FULL.match(first):
        # What ends with a stop is not given another.
        return left + (right[1:] if last == first and last in _FULL else right)
    chinese = _NO_BLANK.match(last), _NO_BLANK.match(first)
    if all(chinese):
        return left + right
    if (chinese[0] and _WORD.match(first)) or (chinese[1] and (_WORD.match(last) or last in ")]>`'%")):
        return f"{left} {right}"
    return text + more


def _punctuated(template: str, parts: list[str]) -> str:
    """A template without words, as `{}, {} ({})`, with the signs of Chinese where it joins Chinese."""
    if any(char.isalpha() for char in template.replace("{}", "")):
        return template
    chinese = any(_NO_BLANK.search(part) for part in parts)
    words = all(len(part) <= LONGEST_WORD and not _ENDS_FULL.search(part) for part in parts)
    pieces = template.split("{}")
    if not chinese:
        return template.replace(", ", "\u3001")
    return "{}".join(_sign(piece, last=place == len(pieces) - 1, words=words) for place, piece in enumerate(pieces))


def _sign(piece: str, *, last: bool, words: bool) -> str:
    if words and piece == ", ":
        return "\u3001"
    for mark, sign in _MARKS.items():
        piece = piece.replace(mark, sign)
    return "".join(_LAST.get(char, char) for char in piece) if last and piece in _LAST else piece


ENGLISH = Language("en", phrases.ENGLISH, {})


def language(code: str) -> Language:
    """The language of a code; Chinese is loaded only where it is asked for."""
    if code == ENGLISH.code:
        return ENGLISH
    from align.reports import chinese

    return chinese.LANGUAGE


class _Languages(Mapping[str, Language]):
    """All languages by their codes."""

    def __getitem__(self, code: str) -> Language:
        if code not in CODES:
            raise KeyError(code)
        return language(code)

    def __iter__(self) -> Iterator[str]:
        return iter(CODES)

    def __len__(self) -> int:
        return len(CODES)


LANGUAGES: Mapping[str, Language] = _Languages()


def asked(environment: Mapping[str, str] = os.environ) -> str:
    """The code of the language that the environment asks for; English where it names no other that is known."""
    said = next((environment[name] for name in VARIABLES if environment.get(name)), "")
    return "zh" if said.lower().startswith("zh") else ENGLISH.code


def chosen(code: str | None, encoding: str | None, environment: Mapping[str, str] = os.environ) -> Language:
    """The language of a code; without one that of the environment, where the encoding of the terminal can hold it."""
    if code is not None:
        return language(code)
    code = asked(environment)
    try:
        PROBE[code].encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return ENGLISH
    return language(code)
