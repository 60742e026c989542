"""What the Markdown of all results has in common: head, findings, tables of values, commands, and a longest text."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from align import wording
from align.reports.markdown_text import block, code, escaped, folded, listed, sentence, table
from align.sentences import joined, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from align.reports.cards import Card
    from align.reports.language import Language
    from align.reports.reproducing import Block

ROWS = 20
"""Rows of a table; an issue tracker is no place for more."""
FINDINGS = 10
"""Causes that are told whole."""
LONGEST = 60_000
"""Characters of the whole: GitHub takes 65,536 in a comment."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The numbers of the columns that are names and of those that stand to the right; `first` is a row set in bold."""

    names: frozenset[int] = frozenset()
    right: frozenset[int] = frozenset()
    first: int | None = None


PLAIN = Columns()


def finished(lines: Iterable[str], t: Language) -> str:
    """The lines as one text, cut at the end of a line where issue trackers would not take it."""
    text = "\n".join(lines).rstrip("\n") + "\n"
    if len(text) <= LONGEST:
        return text
    kept = text[: text.rindex("\n", 0, LONGEST)]
    opened = kept.count("<details>") - kept.count("</details>")
    return "\n".join([kept, "", *["</details>", ""] * opened, f"**{escaped(t['markdown_cut'])}**", ""])


def head(verdict: str, about: str, said: str, next_step: str, t: Language) -> list[str]:
    """The verdict as words, the sentence, and what to do next; `about` is Markdown already."""
    lines = [f"**{escaped(verdict)}** {about}", "", sentence(said), ""]
    return [*lines, titled(t["markdown_next"], sentence(next_step), t), ""] if next_step else lines


def titled(title: str, text: str, t: Language) -> str:
    """Markdown with a title in bold before it."""
    begun = escaped(t["markdown_colon"].format(title=title))
    return f"**{begun}** {text}"


def section(title: str, lines: Sequence[str]) -> list[str]:
    """Lines under a title; nothing where there are none."""
    return [f"### {escaped(title)}", "", *lines] if lines else []


def findings(cards: Sequence[Card], said: frozenset[str], t: Language) -> list[str]:
    """Each cause with its evidence and advice, without what was `said` above; consequences in a line."""
    if not cards:
        return section(t["markdown_findings"], [escaped(t["markdown_no_finding"]), ""])
    lines: list[str] = []
    for number, card in enumerate(cards[:FINDINGS], 1):
        lines += _finding(number, card, said, t)
    return section(t["markdown_findings"], [*lines, *more(len(cards), FINDINGS, t)])


def _finding(number: int, card: Card, said: frozenset[str], t: Language) -> list[str]:
    place = f", {escaped(card.place)}" if card.place else ""
    lines = [f"{number}. **{escaped(card.severity)} {escaped(card.code)}** {code(card.label)}{place}", ""]
    told = [text for text in (card.summary, card.ranks, card.consequence, card.explains_line) if text not in said]
    lines += [f"   {' '.join(sentence(text) for text in told if text)}", ""] if any(told) else []
    if card.evidence:
        pairs = t.said(joined(", ", (say("{}: {}", name, value) for name, value in card.evidence)))
        lines += [f"   {titled(t['evidence'], escaped(pairs), t)}", ""]
    if card.advice and card.advice not in said:
        lines += [f"   {titled(t['what_to_do'], sentence(card.advice), t)}", ""]
    return lines


def more(total: int, shown: int, t: Language) -> list[str]:
    """How many entries are not shown."""
    if total <= shown:
        return []
    return [escaped(t["markdown_more"].format(count=wording.count(total - shown))), ""]


def values(titles: Sequence[str], rows: Sequence[Sequence[str]], t: Language, columns: Columns = PLAIN) -> list[str]:
    """A table of the first rows; nothing where there is none."""
    if not rows:
        return []
    cells = [[_cell(cell, place, columns) for place, cell in enumerate(row)] for row in rows[:ROWS]]
    if columns.first is not None:
        cells[columns.first] = [f"**{cell}**" if cell else cell for cell in cells[columns.first]]
    return [*table([escaped(title) for title in titles], cells, columns.right), *more(len(rows), ROWS, t)]


def _cell(text: str, place: int, columns: Columns) -> str:
    if place in columns.names and text:
        return code(text, cell=True)
    return sentence(text, cell=True)


def notes(sentences: Iterable[str], t: Language) -> list[str]:
    """Notes as a list."""
    return section(t["markdown_notes"], listed(map(sentence, sentences)))


def reproduce(blocks: Iterable[Block], t: Language) -> list[str]:
    """The commands that made a result, each under its title."""
    lines = [line for each in blocks for line in (f"# {each.title}", *each.text.splitlines())]
    return section(t["markdown_reproduce"], block(lines) if lines else [])


def command(*words: str) -> str:
    """A command line that a shell reads as these words."""
    return shlex.join(words)


def unseen(sentences: Sequence[str], t: Language) -> list[str]:
    """What could not be seen, folded."""
    return folded(t["markdown_unseen"], listed(map(sentence, sentences)))
