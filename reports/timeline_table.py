"""Timelines as tables: of two runs a value that both have stands once; of one run all that is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from align import wording
from align.reports.rows import window
from align.reports.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from align.records import DiffResult, InspectResult, TimelineRow
    from align.reports.language import Language

MOST_ROWS = 20
MOST_ROWS_OF_ONE = 40
"""Of one run, whose table has one value a cell."""
UNKNOWN = "\u2013"
BETWEEN = " / "


@dataclass(frozen=True, slots=True)
class TimelineTable:
    """Titles and rows of the first steps; a cell with a slash has the reference's value before the candidate's."""

    titles: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    more: int = 0


def make_timeline(result: DiffResult, phrases: Language) -> TimelineTable:
    """The first steps of both runs, with the columns of which anything is known."""
    ours = {row.step: row for row in result.reference_timeline}
    theirs = {row.step: row for row in result.candidate_timeline}
    every = sorted({*ours, *theirs})
    steps = every[:MOST_ROWS]
    columns = [
        (name, [_cell(cell, ours.get(step), theirs.get(step), phrases) for step in steps])
        for name, cell in _COLUMNS.items()
    ]
    return _table(steps, columns, len(every) - len(steps), phrases)


def make_run_timeline(result: InspectResult, phrases: Language) -> TimelineTable:
    """The steps around the first wrong place, else the first ones, with the columns of which anything is known."""
    wrong = None if result.first is None else result.first.step
    focus = next((place for place, row in enumerate(result.timeline) if row.step == wrong), None)
    shown = [result.timeline[place] for place in window(len(result.timeline), focus, MOST_ROWS_OF_ONE)]
    columns = [(name, [cell(row, phrases) for row in shown]) for name, cell in _RUN_COLUMNS.items()]
    return _table([row.step for row in shown], columns, len(result.timeline) - len(shown), phrases)


def _table(
    steps: Sequence[int], columns: Sequence[tuple[str, Sequence[str]]], more: int, phrases: Language
) -> TimelineTable:
    known = [(name, cells) for name, cells in columns if any(cells)]
    if not known:
        return TimelineTable()
    titles = (phrases["col_step"], *(phrases[f"timeline_{name}"] for name, _ in known))
    rows = zip(map(str, steps), *(cells for _, cells in known), strict=True)
    return TimelineTable(titles, tuple(rows), more)


def _cell(
    text: Callable[[TimelineRow, Language], str],
    ours: TimelineRow | None,
    theirs: TimelineRow | None,
    phrases: Language,
) -> str:
    """The value of both runs, or the reference's and the candidate's; nothing where neither has one."""
    values = [None if row is None else text(row, phrases) for row in (ours, theirs)]
    if values[0] == values[1] or not any(values):
        return values[0] or ""
    return BETWEEN.join(value or UNKNOWN for value in values)


def _number(name: str, text: Callable[[float], str]) -> Callable[[TimelineRow, Language], str]:
    def cell(row: TimelineRow, _: Language) -> str:
        number: float = getattr(row, name)
        return "" if math.isnan(number) else text(number)

    return cell


def _remarks(row: TimelineRow, phrases: Language) -> str:
    flags: Sequence[tuple[str, bool]] = (
        ("skipped", row.skipped),
        ("nonfinite", row.nonfinite),
        ("saturated", row.overflow),
    )
    return ", ".join(phrases[f"timeline_{name}"] for name, holds in flags if holds)


_COLUMNS: dict[str, Callable[[TimelineRow, Language], str]] = {
    "learning_rate": _number("learning_rate", wording.relative),
    "loss_scale": _number("loss_scale", wording.loss_scale),
    "loss_scale_after": _number("loss_scale_after", wording.loss_scale),
    "gradient_norm": _number("gradient_norm", wording.value),
    "clip_norm": _number("clip_norm", wording.value),
    "clip_limit": _number("clip_limit", wording.value),
    "remarks": _remarks,
}

_RUN_COLUMNS: dict[str, Callable[[TimelineRow, Language], str]] = {
    "loss": _number("loss", wording.loss),
    **{name: cell for name, cell in _COLUMNS.items() if name != "remarks"},
    "seconds": _number("seconds", wording.seconds),
    "micros": lambda row, _: str(row.micros) if row.micros > 1 else "",
    "optimizer": lambda row, _: visible(row.optimizer),
    "remarks": _remarks,
}
