"""Names from files as sentences show them: short, on one line, and without control characters."""

from __future__ import annotations

from collections.abc import Iterable

from align.sentences import joined, say

_LONGEST = 80
_MOST = 12


def shown(name: str) -> str:
    """A name of bounded length whose control characters are written out."""
    text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in name[: _LONGEST + 1])
    return text if len(name) <= _LONGEST else text[: _LONGEST - 3] + "..."


def listed(names: Iterable[str]) -> str:
    """Names in quotes, the first of many only."""
    every = list(names)
    text = joined(", ", (f"'{shown(name)}'" for name in every[:_MOST]))
    return text if len(every) <= _MOST else say("{} and {} more", text, f"{len(every) - _MOST:,}")


def option(quantity: str, name: str) -> str:
    """How a column is chosen on the command line."""
    text = f"{quantity}={shown(name)}"
    return f"--column {text}" if text.replace("=", "").replace("/", "").isidentifier() else f'--column "{text}"'
