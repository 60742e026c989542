"""The view of a comparison of two checkpoints: every string of the page, already written, in the order of reading."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from align import wording
from align.records import Severity, Verdict
from align.reports.bars import FULL, Bar
from align.reports.cards import Card, make_cards
from align.reports.checkpoint_entries import (
    EQUAL,
    Category,
    Moved,
    Shown,
    category_of,
    kind_text,
    moved_entries,
    relations_of,
    said_of,
)
from align.reports.checkpoint_rules import map_lines, rename_options
from align.reports.reproducing import Block
from align.reports.visible import shortened, visible

if TYPE_CHECKING:
    from align.checkpoint_records import CheckpointResult, CheckpointSide
    from align.reports.language import Language

ROLES = {Verdict.ALIGNED: "pass", Verdict.DIVERGED: "error", Verdict.INCOMPARABLE: "unknown"}
CATEGORY_ROLES: Mapping[Category, str] = {
    Category.MISSING: "error",
    Category.EXTRA: "warning",
    Category.DIFFERENT: "error",
    Category.UNKNOWN: "unknown",
    Category.STALE: "error",
    Category.PERMUTED: "warning",
    Category.TRANSPOSED: "error",
    Category.SCALED: "error",
    Category.CAST: "note",
    Category.MERGED: "note",
    Category.RENAMED: "note",
    Category.SAME: "pass",
}
SAFETENSORS = "safetensors"
"""What a side is called whose entries stand in the order of their names."""
STATIC_ROWS = 200
MOST_MOVED = 20
MOST_APART = 60
SMALLEST_APART = 1e-8
"""Where the bars of differences begin: below the rounding of float32."""
LARGEST_APART = 10.0
OTHER_VALUES = frozenset({Category.DIFFERENT, Category.STALE, Category.SCALED, Category.CAST})
"""What is only ordered otherwise has no other values."""
BF16_ROUNDING, WHOLE = 2.0**-9, 1.0
"""The unit roundoff of bf16, and a difference as large as the tensor: the two limits that the bars show."""


@dataclass(frozen=True, slots=True)
class EntryLine:
    """One row of the table of entries; the names are cut, `relative` is empty where nothing was measured."""

    word: str
    role: str
    reference: str
    candidate: str
    said: str
    way: str
    relative: str
    reference_kind: str
    candidate_kind: str


@dataclass(frozen=True, slots=True)
class Apart:
    """An entry whose values differ: how far, as text, in full, and as a bar with a logarithmic scale."""

    name: str
    said: str
    text: str
    value: float
    bar: Bar


@dataclass(frozen=True, slots=True)
class CheckpointPage:
    """Everything that the page says, in the order of reading.

    `sides` are the word, the path and what it is; `counts` the relations that occur: the word that the script knows,
    the one that is read, and how many entries are in it.
    """

    role: str
    verdict: str
    title: str
    sentence: str
    next_step: str
    sides: tuple[tuple[str, str, str], ...]
    cards: tuple[Card, ...]
    counts: tuple[tuple[str, str, int], ...]
    total: int
    lines: tuple[EntryLine, ...]
    rules: tuple[tuple[str, int], ...]
    commands: tuple[Block, ...]
    moved: tuple[Moved, ...]
    moved_line: str
    apart: tuple[Apart, ...]
    apart_limits: tuple[float, ...]
    apart_more: int
    beside: tuple[str, ...]
    reproduce: tuple[Block, ...]

    @property
    def all_same(self) -> bool:
        """Whether every entry is equal under the same name."""
        return self.total > 0 and {relation for relation, _, _ in self.counts} == {slug(EQUAL)}


def make_checkpoint_page(result: CheckpointResult, entries: Sequence[Shown], phrases: Language) -> CheckpointPage:
    """The view of a comparison; `entries` are those of `shown_entries`, which both languages share."""
    by_name = any(SAFETENSORS in str(side.what) for side in (result.reference, result.candidate))
    moved = () if by_name else moved_entries(result.rows)
    apart = _apart(result, phrases)
    names = [PurePath(side.path).name or side.path for side in (result.reference, result.candidate)]
    return CheckpointPage(
        role=ROLES[result.verdict],
        verdict=phrases[result.verdict],
        title=f"{phrases[result.verdict]} {shortened(names[0], 60)} - {shortened(names[1], 60)} - align",
        sentence=visible(phrases.said(result.summary)),
        next_step=_next_step(result, phrases),
        sides=tuple(
            (phrases[word], shortened(side.path), _side(side, phrases))
            for word, side in (("reference", result.reference), ("candidate", result.candidate))
        ),
        cards=make_cards(result.findings, phrases),
        counts=tuple((slug(each), visible(phrases.word(each)), count) for each, count in relations_of(entries).items()),
        total=len(entries),
        lines=tuple(entry_line(entry, phrases) for entry in entries[:STATIC_ROWS]),
        rules=tuple((visible(phrases.said(rule)), count) for rule, count in result.renamed),
        commands=tuple(_commands([str(rule) for rule, _ in result.renamed], phrases)),
        moved=moved[:MOST_MOVED],
        moved_line=phrases["ordering_by_name"] if by_name else _moved_line(moved, phrases),
        apart=tuple(apart[:MOST_APART]),
        apart_limits=(_share(BF16_ROUNDING), _share(WHOLE)),
        apart_more=max(0, len(apart) - MOST_APART),
        beside=tuple(visible(phrases.said(note)) for note in result.notes),
        reproduce=(
            Block(
                phrases["reproduce_checkpoint"],
                visible(shlex.join(["align", "checkpoint", result.reference.path, result.candidate.path])),
            ),
        ),
    )


def _next_step(result: CheckpointResult, phrases: Language) -> str:
    """The advice of the finding that the sentence on top is, else of the first that is no note."""
    chosen = [finding for finding in result.findings if finding.summary == result.summary]
    chosen += [finding for finding in result.findings if finding.severity is not Severity.NOTE]
    return visible(phrases.said(chosen[0].advice)) if chosen and chosen[0].advice else ""


def _side(side: CheckpointSide, phrases: Language) -> str:
    key = "entries_side_one" if side.entries == 1 else "entries_side"
    what = phrases.word(side.what)
    return visible(phrases[key].format(what=what, count=wording.count(side.entries), size=_size(side.size)))


def _size(size: int) -> str:
    unit, factor = next(((unit, factor) for unit, factor in _UNITS if size >= factor), ("B", 1.0))
    return f"{size / factor:.3g} {unit}"


_UNITS = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def slug(relation: str) -> str:
    """A relation as a word of an address: `equal-bits-differ`."""
    return "-".join(re.findall(r"[a-z0-9]+", relation.lower()))


def way_of(entry: Shown, phrases: Language) -> str:
    """How an entry found its answer; empty where it has none."""
    if entry.row is None:
        return ""
    key = f"way_{entry.row.way}"
    return phrases[key] if key in phrases else visible(entry.row.way)


def entry_line(entry: Shown, phrases: Language) -> EntryLine:
    """One row as text."""
    row = entry.row
    return EntryLine(
        word=visible(phrases.word(entry.relation)),
        role=CATEGORY_ROLES[entry.category],
        reference=shortened(entry.reference),
        candidate=shortened(entry.candidate),
        said=shortened(said_of(entry, phrases)),
        way=way_of(entry, phrases),
        relative=relative_text(None if row is None else row.relative_l2),
        reference_kind=kind_text(row.reference_dtype, row.reference_shape) if row else "",
        candidate_kind=kind_text(row.candidate_dtype, row.candidate_shape) if row else "",
    )


def relative_text(value: float | None) -> str:
    """A relative difference, empty where none was measured."""
    return "" if value is None else wording.relative(value)


def _moved_line(moved: Sequence[Moved], phrases: Language) -> str:
    if not moved:
        return phrases["ordering_same"]
    return phrases["ordering_moved_one" if len(moved) == 1 else "ordering_moved"].format(
        count=wording.count(len(moved))
    )


def _commands(rules: Sequence[str], phrases: Language) -> list[Block]:
    """What to copy: the options where no rule has a number, and lines of a file for all."""
    options, lines = rename_options(rules), map_lines(rules)
    made = []
    if lines:
        made.append(Block(phrases["renaming_map"], "\n".join(map(visible, lines))))
    if options:
        made.append(Block(phrases["renaming_option"], visible(" ".join(options))))
    return made


def _apart(result: CheckpointResult, phrases: Language) -> list[Apart]:
    """The entries whose values differ, the largest difference first; infinite ones before all."""
    found = [
        Apart(
            shortened(row.candidate),
            shortened(visible(phrases.said(row.said)) if row.said else phrases.word(row.relation)),
            wording.relative(row.relative_l2),
            row.relative_l2,
            Bar(_share(row.relative_l2), 0.0, wording.relative(row.relative_l2)),
        )
        for row in result.rows
        if row.relative_l2 is not None and row.relative_l2 > 0.0 and category_of(row) in OTHER_VALUES
    ]
    return sorted(found, key=lambda one: -one.value)


def _share(value: float) -> float:
    """Where a difference lies between the ends of a bar, in percent; the scale is logarithmic."""
    low, high = math.log10(SMALLEST_APART), math.log10(LARGEST_APART)
    if not math.isfinite(value):
        return FULL
    return FULL * min(1.0, max(0.0, (math.log10(value) - low) / (high - low)))
