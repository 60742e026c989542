"""Text in columns of a terminal, in which East Asian wide characters take two, and where its lines may be broken."""

from __future__ import annotations

import re
from collections.abc import Iterator
from unicodedata import combining, east_asian_width

_ATOMS = re.compile(
    r"`[^`]*`|[\u201c\u2018\u3008-\u3010\uff08]*"
    r"(?:`[^`]*`|[\u2e80-\u2fff\u3003-\u3007\u3040-\u9fff\uac00-\ud7af\uff21-\uffef]|[^\s`\u2e80-\uffef]+|[^\s])"
    r"[\u2019\u201d\u3001\u3002\u3009-\u3011\uff01\uff09\uff0c\uff0e\uff1a\uff1b\uff1f]*"
)
"""What lines are never broken in: a command, a word, or one ideograph, with the signs that belong to it."""


def width(text: str) -> int:
    """How many columns the text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def padded(text: str, size: int, *, right: bool = False) -> str:
    """The text with blanks behind it, or before it, so that it takes so many columns."""
    blanks = " " * (size - width(text))
    return f"{blanks}{text}" if right else f"{text}{blanks}"


def is_wide(text: str) -> bool:
    """Whether any character takes two columns."""
    return width(text) > len(text)


def folded(text: str, size: int, first: str, rest: str) -> Iterator[str]:
    """Lines of at most `size` columns, broken between ideographs and at blanks; `first` and `rest` begin them."""
    line, empty, end = first, True, 0
    for found in _ATOMS.finditer(text):
        blank = " " * (found.start() > end and not empty)
        end = found.end()
        if not empty and width(line) + len(blank) + width(found.group()) > size:
            yield line
            line, blank = rest, ""
        line, empty = f"{line}{blank}{found.group()}", False
    if not empty:
        yield line


def kept(text: str, size: int) -> str:
    """As many characters from the begin as have room in so many columns."""
    taken = 0
    for place, char in enumerate(text):
        taken += width(char)
        if taken > size:
            return text[:place]
    return text
