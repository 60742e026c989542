"""Sentences that keep what they are made from, so that they can be said again in another language."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, TypeAlias

CAPITAL = "^{}"
"""The template of what begins a sentence: its one argument with a capital, where the language has such."""

SMALL = "_{}"
"""The template of a sentence inside another: its one argument without the capital that it begins with."""

TRIMMED = "|{}"
"""The template of a sentence whose one argument may have blanks around it, which it leaves out."""

Tree: TypeAlias = "str | list[Any]"
"""A sentence as JSON holds it: text as it is, or `[template, [arguments...]]`, each argument a tree again."""


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


def say(template: str, *arguments: Any) -> str:
    """The sentence that a template makes of its arguments."""
    return Sentence(template.format(*arguments), template, arguments)


def joined(separator: str, parts: Iterable[str]) -> str:
    """Parts behind one another, as `separator.join(parts)` has them."""
    listed = tuple(parts)
    if len(listed) == 1:
        return listed[0]
    return Sentence(separator.join(listed), separator.join(["{}"] * len(listed)), listed)


def capital(text: str) -> str:
    """The begin of a sentence."""
    return Sentence(_CASES[CAPITAL](text), CAPITAL, (text,))


def small(text: str) -> str:
    """A sentence that stands inside another."""
    return Sentence(_CASES[SMALL](text), SMALL, (text,))


def trimmed(text: str) -> str:
    """A sentence that may be without its first or last part, without the blanks that this leaves."""
    return Sentence(_CASES[TRIMMED](text), TRIMMED, (text,)) if text != text.strip() else text


def told(error: BaseException, longest: int | None = None) -> str:
    """What an error says, as the sentence that it was made with; `str` of the error is its English text alone.

    Of a text that is no sentence, as other libraries write them, so many characters.
    """
    first = error.args[0] if error.args else ""
    return first if isinstance(first, Sentence) else str(error)[:longest]


def tree(text: Any) -> Tree:
    """A sentence as JSON holds it; words of an enumeration, such as a phase, are sentences without any place."""
    if isinstance(text, Sentence):
        return [text.template, [tree(argument) for argument in text.arguments]]
    return [str(text), []] if isinstance(text, Enum) else str(text)


def read(found: Any) -> str:
    """The sentence of a tree; raises ValueError for what is none."""
    if isinstance(found, str):
        return found
    if not (isinstance(found, list) and len(found) == 2 and isinstance(found[0], str) and isinstance(found[1], list)):  # noqa: PLR2004 - template and arguments
        message = say("no sentence: {}", str(found)[:100])
        raise ValueError(message)
    template, arguments = found[0], tuple(map(read, found[1]))
    try:
        text = _CASES[template](*arguments) if template in _CASES else template.format(*arguments)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        message = say("no template of {} arguments: {}", len(arguments), template[:100])
        raise ValueError(message) from error
    return Sentence(text, template, arguments)


_CASES: Mapping[str, Callable[[str], str]] = {
    CAPITAL: lambda text: text[:1].upper() + text[1:],
    SMALL: lambda text: text[:1].lower() + text[1:],
    TRIMMED: lambda text: text.strip(),
}
