"""The languages of reports: phrases by key, and the templates of sentences in other words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from align.reports import phrases
from align.sentences import Sentence


@dataclass(frozen=True, slots=True, eq=False)
class Language(Mapping[str, str]):
    """One language: `phrases` are what reports say themselves, by key; `sentences` the templates of all other text.

    `sentences` maps an English template to that of this language, with the same places. What it does not know is
    said in English.
    """

    code: str
    phrases: Mapping[str, str]
    sentences: Mapping[str, str]

    def __getitem__(self, key: str) -> str:
        """The phrase of a key."""
        return self.phrases[key]

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
        if not isinstance(text, Sentence):
            return self.sentences.get(text, text)
        template = self.sentences.get(text.template, text.template)
        said = template.format(*(self.said(argument) for argument in text.arguments))
        return said if text != text.strip() else said.strip()


ENGLISH = Language("en", phrases.ENGLISH, {})

LANGUAGES: Mapping[str, Language] = {"en": ENGLISH}
