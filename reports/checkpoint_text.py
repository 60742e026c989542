"""Terminal text of a comparison of two checkpoints: the verdict, the renaming in a line, the findings, the counts."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from align import wording
from align.records import Severity, Verdict
from align.reports.card_lines import Above, findings_and_notes
from align.reports.cards import make_cards
from align.reports.checkpoint_entries import Shown, relations_of, said_of, shown_entries
from align.reports.kept import kept
from align.reports.language import ENGLISH, Language
from align.reports.lines import STYLES, Line, Screen, columns, plain, print_lines, wrapped
from align.reports.visible import shortened, visible
from align.sentences import joined, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from align.checkpoint_records import CheckpointResult, CheckpointSide

ROLES = {Verdict.ALIGNED: "pass", Verdict.DIVERGED: "error", Verdict.INCOMPARABLE: "unknown"}
NAME_WIDTH = 60


def checkpoint_text(result: CheckpointResult, phrases: Language = ENGLISH, *, whole: bool = False) -> str:
    """The text without colour: what fits on a screen, or with a line for every entry."""
    return plain(_lines(result, phrases, Screen(whole=whole)))


def print_checkpoint(
    result: CheckpointResult, stream: IO[str], phrases: Language = ENGLISH, *, whole: bool = False
) -> None:
    """Write the text to a stream, with colour when it is a terminal."""
    print_lines(lambda screen: _lines(result, phrases, screen), stream, whole=whole)


def _lines(result: CheckpointResult, phrases: Language, screen: Screen) -> Iterator[Line]:
    head = list(_head(result, phrases, screen))
    yield from head
    # The advice of the first finding stands under the summary only where the summary is that finding.
    said = frozenset({visible(phrases.said(result.summary)), *_next_steps(result, phrases)})
    cards = make_cards(result.findings, phrases)
    yield from findings_and_notes(
        cards, [visible(phrases.said(note)) for note in result.notes], Above(len(head), said), screen, phrases
    )
    if screen.whole:
        yield from _entries(result, phrases)


def _head(result: CheckpointResult, phrases: Language, screen: Screen) -> Iterator[Line]:
    ours, theirs = (
        say("{} ({})", visible(side.path), phrases.headed(phrases[word], _side(side, phrases)))
        for word, side in (("reference", result.reference), ("candidate", result.candidate))
    )
    yield from wrapped(
        phrases.said(say("{} {} {}", ours, phrases["against"], theirs)),
        screen.width, style=STYLES[ROLES[result.verdict]], first=f"{phrases[result.verdict]}  ",
    )  # fmt: skip
    yield from wrapped(visible(phrases.said(result.summary)), screen.width)
    for advice in _next_steps(result, phrases):
        yield from wrapped(phrases.headed(phrases["next_step"], advice), screen.width, style="bold")
    yield from wrapped(phrases.said(_counted(result)), screen.width)


def _next_steps(result: CheckpointResult, phrases: Language) -> list[str]:
    first = result.findings[0] if result.findings else None
    told = first is not None and first.severity is Severity.ERROR and first.summary == result.summary
    return [visible(phrases.said(first.advice))] if told and first is not None and first.advice else []


def _side(side: CheckpointSide, phrases: Language) -> str:
    return phrases.clauses((side.what, wording.plural(side.entries, "entry", "entries"), _size(side.size)))


def _size(size: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"


def _counted(result: CheckpointResult) -> str:
    """How many entries are in each relation, in one line, with the words of the page."""
    counted = relations_of(shown_entries(result)).items()
    parts = [say("{0} {1}", wording.count(count), say(relation)) for relation, count in counted]
    return say("Entries: {}.", joined(", ", parts)) if parts else ""


def _entries(result: CheckpointResult, phrases: Language) -> Iterator[Line]:
    """A table of all entries, the worst first."""
    titles = [
        *(phrases.word(title) for title in ("reference", "candidate", "relation")),
        phrases["entry_said"],
        phrases.word("relative L2"),
    ]
    cells = [titles, *(_cells(entry, phrases) for entry in shown_entries(result))]
    yield "", ""
    for number, line in enumerate(columns(cells, frozenset({4}))):
        yield f"  {line}", "" if number else "bold"


def _cells(entry: Shown, phrases: Language) -> list[str]:
    relative = None if entry.row is None else entry.row.relative_l2
    return [
        shortened(entry.reference, NAME_WIDTH) or "-",
        ("=" if entry.candidate == entry.reference else shortened(entry.candidate, NAME_WIDTH)) or "-",
        visible(phrases.word(entry.relation)),
        shortened(said_of(entry, phrases), NAME_WIDTH),
        "" if relative is None else phrases.said(wording.relative(kept(relative))),
    ]
