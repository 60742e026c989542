"""Layers and steps as fields: the worst tensor of each module in each step. No drawing here."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from align.records import INIT_STEP, Status
from align.reports import rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from align.records import Comparison, DiffResult

MOST_ROWS, MOST_COLUMNS = 80, 60
"""Fields of the picture: of all classes mixed they take less than 120 KB."""
USUAL_LIMIT = 7.0
"""The limit that the classes are drawn for where no tensor has one."""
FIXED = (1.0, 2.0)
UPPER = (30.0, 300.0, 1e4)
FAR_ABOVE, FAR_ABOVE_LIMIT = 1e5, 100.0
"""From here on, and from so many limits on, the classes above the limit share a scale of their own."""
LOW_SHARE, NARROWEST = 0.1, 2.0
"""That scale begins where so many of the fields above the limit lie below; a class is at least so wide, as a factor."""
CLASSES = 7
PARTED = 3
"""The first class above the limit (report.md, section 4.1)."""
DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Field:
    """One module in one step. `times` are those of the floor with the limit of its tensor put at the usual one.

    Of inherited differences they count the unit of rounding: their floor is what they inherit. `times` is None of what
    has no number. `name` is the module of the worst tensor.
    """

    times: float | None
    status: Status
    name: str
    step: int

    @property
    def rank(self) -> tuple[bool, float]:
        """What is worst is shown: the non-finite, then the largest."""
        return self.status is Status.NONFINITE, -1.0 if self.times is None else self.times


@dataclass(frozen=True, slots=True, eq=False)
class Heat:
    """The fields by row and column; `labels` are module names, `columns` the first step of each column.

    `limit` is the usual limit, `merged` how many modules and steps share a field at most. `first` is the field of the
    first difference, `first_name` and `first_step` say what it is; `origins` are the fields in which any starts.
    `modules` and `steps` count all of them. `ends` are the upper ends of all classes but the last, which ends at `top`,
    the largest field, where that is far above the limit, and else is open (None).
    """

    fields: Mapping[tuple[int, int], Field]
    labels: tuple[str, ...]
    columns: tuple[int, ...]
    limit: float
    merged: tuple[int, int]
    first: tuple[int, int] | None
    modules: int
    steps: int
    first_name: str = ""
    first_step: int = 0
    origins: frozenset[tuple[int, int]] = frozenset()
    ends: tuple[float, ...] = ()
    top: float | None = None

    def class_of(self, field: Field) -> int | None:
        """The class of a field from 0 to 6, None of what has no number or is equal to the bit."""
        if field.times is None:
            return None
        return bisect_right(self.ends, field.times)


def make_heat(result: DiffResult) -> Heat:
    """The fields of a comparison: rows in execution order, as many of them and of the steps as a picture holds."""
    pairs = [pair for pair in result.comparisons if pair.key.step != INIT_STEP and _counts(pair)]
    limit = _usual_limit(pairs)
    names = list(dict.fromkeys(pair.key.name for pair in pairs))
    steps = sorted({pair.key.step for pair in pairs})
    row_of, labels = _rows(names)
    column_of, columns, merged = _columns(steps)
    fields: dict[tuple[int, int], Field] = {}
    origins = set()
    for pair in pairs:
        place = row_of[pair.key.name], column_of[pair.key.step]
        if pair.status is Status.ORIGIN:
            origins.add(place)
        field = Field(_times(pair, limit), pair.status, pair.key.name, pair.key.step)
        if place not in fields or field.rank > fields[place].rank:
            fields[place] = field
    shared: dict[int, int] = defaultdict(int)
    for row in row_of.values():
        shared[row] += 1
    first = result.comparisons[index].key if (index := rows.first_index(result)) is not None else None
    at = None if first is None or first.step not in column_of else (row_of.get(first.name), column_of[first.step])
    return Heat(
        fields,
        labels,
        columns,
        limit,
        (max(shared.values(), default=1), merged),
        None if at is None or at[0] is None else (at[0], at[1]),
        len(names),
        len(steps),
        "" if first is None else first.name,
        0 if first is None else first.step,
        frozenset(origins),
        *_scale(fields.values(), limit),
    )


def _scale(fields: Iterable[Field], limit: float) -> tuple[tuple[float, ...], float | None]:
    """The ends of the classes, and the largest field where the upper classes are laid out up to it.

    Behind a large difference everything would be of one class; a logarithmic scale from the smaller fields above the
    limit to the largest keeps them apart.
    """
    above = sorted(field.times for field in fields if field.times is not None and limit <= field.times < math.inf)
    if not above or above[-1] < max(FAR_ABOVE, FAR_ABOVE_LIMIT * limit):
        return tuple(sorted((*FIXED, limit, *UPPER))), None
    low, top = above[int(LOW_SHARE * len(above))], above[-1]
    pace = max(NARROWEST, (top / low) ** (1 / (CLASSES - PARTED)))
    upper = (float(f"{top / pace**classes:.0e}") for classes in range(CLASSES - PARTED - 1, 0, -1))
    return (*FIXED, limit, *upper), top


def _counts(pair: Comparison) -> bool:
    return pair.status is not Status.NOT_JUDGED


def _times(pair: Comparison, limit: float) -> float | None:
    if pair.status is Status.PROPAGATED and pair.relative_l2 is not None and pair.unit > 0:
        return pair.relative_l2 / pair.unit
    if pair.times_floor is None or rows.is_equal(pair):
        return None
    return pair.times_floor * limit / pair.limit if pair.limit > 0 else pair.times_floor


def _usual_limit(pairs: Iterable[Comparison]) -> float:
    """The lowest limit that was applied: those of very small tensors are higher."""
    return min((pair.limit for pair in pairs if pair.limit > 0), default=USUAL_LIMIT)


def _rows(names: Sequence[str]) -> tuple[dict[str, int], tuple[str, ...]]:
    """A row for each module; of too many, for each parent as deep as there is room; at last for each stretch."""
    for depth in range(DEEPEST, 0, -1):
        groups = list(dict.fromkeys(_to_depth(name, depth) for name in names))
        if len(groups) <= MOST_ROWS and (depth > 1 or len(groups) > 1 or len(names) == 1):
            places = {group: place for place, group in enumerate(groups)}
            return {name: places[_to_depth(name, depth)] for name in names}, tuple(groups)
    stretch = -(-len(names) // MOST_ROWS)
    return {name: place // stretch for place, name in enumerate(names)}, tuple(names[::stretch])


def _to_depth(name: str, depth: int) -> str:
    return ".".join(name.split(".")[:depth])


def _columns(steps: Sequence[int]) -> tuple[dict[int, int], tuple[int, ...], int]:
    """A column for each step, or for each few that follow one another."""
    stretch = max(1, -(-len(steps) // MOST_COLUMNS))
    return {step: place // stretch for place, step in enumerate(steps)}, tuple(steps[::stretch]), stretch
