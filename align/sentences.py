"""Sentences that keep what they are made from, so that they can be said again in another language."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Sentence(str):
    """English text made from a template, such as `{} tensors differ`, and what stands in its places.

    It is that text in every respect. The arguments are sentences themselves, other text, or numbers; text that is no
    sentence is a name, or a sentence without any place.
    """

    __slots__ = ("arguments", "template")
    template: str
    arguments: tuple[Any, ...]

    def __new__(cls, text: str, template: str, arguments: tuple[Any, ...]) -> Sentence:
        """The text, which is not made anew."""
        made = super().__new__(cls, text)
        made.template, made.arguments = template, arguments
        return made

    def __getnewargs__(self) -> tuple[str, str, tuple[Any, ...]]:  # type: ignore[override]
        """What copies are made from."""
        return str(self), self.template, self.arguments

    def __add__(self, other: str) -> str:
        """This and another sentence."""
        return joined("", (self, other))

    def __radd__(self, other: str) -> str:
        """Another sentence and this."""
        return joined("", (other, self))

    def strip(self, chars: str | None = None, /) -> str:
        """The sentence without blanks around it."""
        return Sentence(super().strip(chars), self.template, self.arguments)

    rstrip = lstrip = strip


def say(template: str, *arguments: Any) -> str:
    """The sentence that a template makes of its arguments."""
    return Sentence(template.format(*arguments), template, arguments)


def joined(separator: str, parts: Iterable[str]) -> str:
    """Parts behind one another, as `separator.join(parts)` has them."""
    listed = tuple(parts)
    return Sentence(separator.join(listed), separator.join(["{}"] * len(listed)), listed)


def capital(text: str) -> str:
    """The begin of a sentence."""
    begun = text[:1].upper() + text[1:]
    if isinstance(text, Sentence):
        return Sentence(begun, text.template, text.arguments)
    return Sentence(begun, text.replace("{", "{{").replace("}", "}}"), ())
