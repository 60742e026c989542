"""The entries of two checkpoints as rows of a table: what each is, the worst first; which stand at another place."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from align import wording
from align.reports.visible import visible

if TYPE_CHECKING:
    from align.checkpoint_records import CheckpointResult, EntryRow


class Category(IntEnum):
    """What an entry is to its answer in a few words, the worst first."""

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

    @property
    def word(self) -> str:
        """The name in lower case, which phrases and the state of the page use."""
        return self.name.lower()


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


@dataclass(frozen=True, slots=True)
class Shown:
    """One row of the table: an entry and its answer, either of them empty where there is none."""

    reference: str
    candidate: str
    category: Category
    row: EntryRow | None = None


def shown_entries(result: CheckpointResult) -> tuple[Shown, ...]:
    """All entries, the worst first, within a category in the order of the reference."""
    found = [Shown(row.reference, row.candidate, category_of(row), row) for row in result.rows]
    found += [Shown(name, "", Category.MISSING) for name in result.only_reference]
    found += [Shown("", name, Category.EXTRA) for name in result.only_candidate]
    return tuple(sorted(found, key=lambda entry: entry.category))


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
