"""The entries of two checkpoints as rows of a table: what each is, the worst first; which stand at another place."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from align import wording
from align.reports.visible import visible
from align.sentences import say

if TYPE_CHECKING:
    from align.checkpoint_records import CheckpointResult, EntryRow
    from align.reports.language import Language


class Category(IntEnum):
    """How grave it is what an entry is to its answer, the worst first; each has one relation or several."""

    MISSING = 0
    EXTRA = 1
    DIFFERENT = 2
    UNKNOWN = 3
    STALE = 4
    PERMUTED = 5
    TRANSPOSED = 6
    SCALED = 7
    CAST = 8
    MERGED = 9
    RENAMED = 10
    SAME = 11


CATEGORIES: Mapping[str, Category] = {
    "equal": Category.SAME,
    "equal, bits differ": Category.SAME,
    "stale": Category.STALE,
    "permuted": Category.PERMUTED,
    "reordered": Category.PERMUTED,
    "transposed": Category.TRANSPOSED,
    "reshaped": Category.TRANSPOSED,
    "scaled": Category.SCALED,
    "sign flipped": Category.SCALED,
    "offset": Category.SCALED,
    "cast": Category.CAST,
    "within noise": Category.CAST,
    "unknown": Category.UNKNOWN,
    "stacked": Category.MERGED,
    "grouped": Category.MERGED,
    "merged": Category.MERGED,
}
"""By the words of `EntryRow.relation`; every other relation is a difference."""


EQUAL, UNKNOWN = "equal", "unknown"
"""Words of `EntryRow.relation`; the second is no relation, and told as `not compared`."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One row of the table: an entry and its answer, either of them empty where there is none."""

    reference: str
    candidate: str
    category: Category
    row: EntryRow | None = None

    @property
    def relation(self) -> str:
        """The one word for what the entry is to its answer, in every report: `equal`, `renamed`, `few elements`."""
        if self.row is None:
            return say("only in the reference") if self.reference else say("only in the candidate")
        if self.category is Category.RENAMED:
            return say("renamed")
        return say("not compared") if self.row.relation == UNKNOWN else self.row.relation


def shown_entries(result: CheckpointResult) -> tuple[Shown, ...]:
    """All entries, the worst first, within a category in the order of the reference."""
    found = [Shown(row.reference, row.candidate, category_of(row), row) for row in result.rows]
    found += [Shown(name, "", Category.MISSING) for name in result.only_reference]
    found += [Shown("", name, Category.EXTRA) for name in result.only_candidate]
    return tuple(sorted(found, key=lambda entry: entry.category))


def relations_of(entries: Iterable[Shown]) -> dict[str, int]:
    """How many entries are in each relation, the worst relation first, then the one that most are in."""
    entries = tuple(entries)
    counted = Counter(entry.relation for entry in entries)
    graves = {entry.relation: entry.category for entry in entries}
    return dict(sorted(counted.items(), key=lambda one: (graves[one[0]], -one[1], one[0])))


def said_of(entry: Shown, phrases: Language) -> str:
    """The evidence for an entry's relation, as a phrase; empty where the relation says all."""
    if entry.row is not None and entry.row.said:
        return visible(phrases.said(entry.row.said))
    if entry.row is not None and entry.row.relation == EQUAL:
        return phrases["said_renamed" if entry.category is Category.RENAMED else "said_equal"]
    return ""


def category_of(row: EntryRow) -> Category:
    """What one entry is to its answer."""
    found = CATEGORIES.get(row.relation, Category.DIFFERENT)
    return Category.RENAMED if found is Category.SAME and row.reference != row.candidate else found


def kind_text(dtype: str, shape: Sequence[int]) -> str:
    """`bf16 [4, 1024]`, empty where nothing is known."""
    return f"{visible(wording.dtype(dtype))} [{', '.join(map(str, shape))}]" if dtype else ""


@dataclass(frozen=True, slots=True)
class Moved:
    """An entry that stands elsewhere in the order of the candidate: both places from 0."""

    reference: str
    candidate: str
    before: int
    after: int


def moved_entries(rows: Iterable[EntryRow]) -> tuple[Moved, ...]:
    """The fewest entries that have to be moved so that both files have one order, in the order of the reference.

    The others are the longest part that both have in the same order.
    """
    known = [(row, row.candidate_place) for row in rows if row.candidate_place is not None]
    places = [place for _, place in known]
    ranks = {place: rank for rank, place in enumerate(sorted(places))}
    kept = _longest_rising(places)
    return tuple(
        Moved(row.reference, row.candidate, number, ranks[place])
        for number, (row, place) in enumerate(known)
        if number not in kept
    )


def _longest_rising(values: Sequence[int]) -> frozenset[int]:
    """The places of a longest subsequence of distinct values that rises."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, value in enumerate(values):
        length = bisect_left(tails, value)
        before.append(ends[length - 1] if length else -1)
        if length == len(tails):
            tails.append(value)
            ends.append(number)
        else:
            tails[length], ends[length] = value, number
    kept, number = set(), ends[-1] if ends else -1
    while number >= 0:
        kept.add(number)
        number = before[number]
    return frozenset(kept)
