"""Text as Markdown of issue trackers (GitHub's and GitLab's): nothing in a name formats, links, mentions or refers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from align.reports.visible import visible

BREAK = "<!-- -->"
"""Ends a word for issue trackers and shows nothing: what follows an `@` or a `#` is no user and no number then."""

_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_REFERENCE = re.compile(r'[@#~](?=[\w"/])|[!%&$](?=[\d"])|GH-(?=\d)|:(?=//)|(?<=www)\.')
"""What would mention a user, or refer to an issue, a merge request, a label, a milestone, an epic or a page."""
_BLOCK = re.compile(r"^(?:#{1,6}|[-+=]+|\d{1,9}[.)])(?=\s|$)")
"""What would begin a heading, a list or a rule at the begin of a line."""
_HTML = re.compile("[&<>]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_COMMAND = re.compile("`([^`]+)`")
_TICKS = re.compile("`+")


def escaped(text: str) -> str:
    """Text that is shown as it is, in a paragraph and in the cell of a table."""
    return _begun(_inline(text))


def sentence(text: str, *, cell: bool = False) -> str:
    """A sentence in which commands between backticks stay code."""
    pieces = _COMMAND.split(text)
    return _begun(
        "".join(code(piece, cell=cell) if number % 2 else _inline(piece) for number, piece in enumerate(pieces))
    )


def _inline(text: str) -> str:
    shown = _SPECIAL.sub(lambda found: f"\\{found.group()}", _HTML.sub(_entity, visible(text)))
    return _REFERENCE.sub(lambda found: f"{found.group()}{BREAK}", shown)


def _entity(found: re.Match[str]) -> str:
    return _ENTITIES[found.group()]


def _begun(shown: str) -> str:
    """Markdown at the begin of a line, where some signs mean more."""
    return _BLOCK.sub(lambda found: f"{found.group()[:-1]}\\{found.group()[-1]}", shown.strip(" "))


def code(text: str, *, cell: bool = False) -> str:
    """A name or a command as code; in a cell of a table its bars are escaped."""
    shown = visible(text)
    if not shown.strip():
        return escaped(shown)
    fence = "`" * (max(map(len, _TICKS.findall(shown)), default=0) + 1)
    pad = " " if shown[0] in "` " or shown[-1] in "` " else ""
    inner = shown.replace("|", "\\|") if cell else shown
    return f"{fence}{pad}{inner}{pad}{fence}"


def block(lines: Iterable[str]) -> list[str]:
    """Lines of commands as a block of code."""
    shown = [visible(line) for line in lines]
    fence = "`" * max(3, 1 + max((len(ticks) for line in shown for ticks in _TICKS.findall(line)), default=0))
    return [fence, *shown, fence, ""]


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """A table whose cells are Markdown already; the columns with these numbers stand to the right."""
    marks = ["---:" if place in right else "---" for place in range(len(titles))]
    return [_row(titles), _row(marks), *(_row(row) for row in rows), ""]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell or ' ' for cell in cells)} |"


def listed(entries: Iterable[str]) -> list[str]:
    """A list whose entries are Markdown already; nothing where there is none."""
    lines = [f"- {entry}" for entry in entries]
    return [*lines, ""] if lines else []


def folded(title: str, lines: Sequence[str]) -> list[str]:
    """Lines that are seen once they are opened."""
    return ["<details>", f"<summary>{escaped(title)}</summary>", "", *lines, "</details>", ""] if lines else []
