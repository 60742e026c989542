"""Terminal text of a comparison of two checkpoints: the verdict, the renaming in a line, the findings, the counts."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from align import wording
from align.records import Severity, Verdict
from align.reports.card_lines import Above, findings_and_notes
from align.reports.cards import make_cards
from align.reports.language import ENGLISH, Language
from align.reports.lines import STYLES, Line, Screen, columns, plain, print_lines, wrapped
from align.reports.visible import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from align.checkpoint_records import CheckpointResult, CheckpointSide, EntryRow

ROLES = {Verdict.ALIGNED: "pass", Verdict.DIVERGED: "error", Verdict.INCOMPARABLE: "unknown"}
NAME_WIDTH = 60
EQUAL = "equal"


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
    said = frozenset({visible(result.summary), *_next_steps(result)})
    cards = make_cards(result.findings, phrases)
    yield from findings_and_notes(
        cards, [visible(note) for note in result.notes], Above(len(head), said), screen, phrases
    )
    if screen.whole:
        yield from _entries(result)


def _head(result: CheckpointResult, phrases: Language, screen: Screen) -> Iterator[Line]:
    ours, theirs = _side(result.reference), _side(result.candidate)
    yield from wrapped(
        f"{visible(result.reference.path)} ({phrases['reference']}: {ours}) {phrases['against']} "
        f"{visible(result.candidate.path)} ({phrases['candidate']}: {theirs})",
        screen.width, style=STYLES[ROLES[result.verdict]], first=f"{phrases[result.verdict]}  ",
    )  # fmt: skip
    yield from wrapped(visible(result.summary), screen.width)
    for advice in _next_steps(result):
        yield from wrapped(f"{phrases['next_step']}: {advice}", screen.width, style="bold")
    yield from wrapped(_counted(result), screen.width)


def _next_steps(result: CheckpointResult) -> list[str]:
    first = result.findings[0] if result.findings else None
    told = first is not None and first.severity is Severity.ERROR and first.summary == result.summary
    return [visible(first.advice)] if told and first is not None and first.advice else []


def _side(side: CheckpointSide) -> str:
    return f"{side.what}, {wording.plural(side.entries, 'entry', 'entries')}, {_size(side.size)}"


def _size(size: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"


def _counted(result: CheckpointResult) -> str:
    """How many entries are in each relation, in one line."""
    relations = {
        name: count
        for name, count in result.counts.items()
        if name not in ("paired", "merged", "only_reference", "only_candidate")
    }
    parts = [f"{wording.count(count)} {name}" for name, count in sorted(relations.items(), key=lambda one: -one[1])]
    if result.counts.get("merged"):
        parts.append(f"{wording.count(result.counts['merged'])} merged or split")
    parts += [
        f"{wording.count(result.counts[f'only_{side}'])} only in the {side}"
        for side in ("reference", "candidate")
        if result.counts.get(f"only_{side}")
    ]
    return f"Entries: {', '.join(parts)}." if parts else ""


def _entries(result: CheckpointResult) -> Iterator[Line]:
    """A table of all entries, those that differ first."""
    rows = sorted(result.rows, key=lambda row: row.relation == EQUAL)
    cells = [["reference", "candidate", "relation", "relative L2"], *map(_cells, rows)]
    cells += [[shortened(name, NAME_WIDTH), "-", "only in the reference", ""] for name in result.only_reference]
    cells += [["-", shortened(name, NAME_WIDTH), "only in the candidate", ""] for name in result.only_candidate]
    yield "", ""
    for number, line in enumerate(columns(cells, frozenset({3}))):
        yield f"  {line}", "" if number else "bold"


def _cells(row: EntryRow) -> list[str]:
    other = "=" if row.candidate == row.reference else shortened(row.candidate, NAME_WIDTH)
    relative = "" if row.relative_l2 is None else wording.relative(row.relative_l2)
    return [shortened(row.reference, NAME_WIDTH), other, shortened(row.said or row.relation, NAME_WIDTH), relative]
