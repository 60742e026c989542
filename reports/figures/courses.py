"""One value of two runs over their steps, and what is said of it: a sentence and a table. No drawing here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from align import wording
from align.reports.figures.lines import Line, at_common_steps, even_places, make_line
from align.reports.figures.picture import Title, Valued

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.records import DiffResult, TimelineRow
    from align.reports.language import Language

SIDES = ("reference", "candidate")
MOST_ROWS = 24
"""Rows of a twin: spread evenly over the steps, with the largest difference and what was not finite."""
SAME_RATE = 1e-9
"""Learning rates that differ by less were computed in another order."""


@dataclass(frozen=True, slots=True)
class Course:
    """One value of both runs. `name` is `loss`, `gradient_norm` or `learning_rate`; `written` writes its values."""

    name: str
    reference: Line
    candidate: Line
    written: Callable[[float], str]

    @property
    def drawable(self) -> bool:
        """Whether one run has two points to join, or one and a loss of it."""
        return any(len(line.known) + min(len(line.lost), 1) > 1 and len(line.known) for line in self.lines)

    @property
    def lines(self) -> tuple[Line, Line]:
        """Both runs, the reference first."""
        return self.reference, self.candidate

    @property
    def differs(self) -> bool:
        """Whether the runs have other values at any common step."""
        _, ours, theirs = at_common_steps(self.reference, self.candidate)
        return bool((np.abs(theirs - ours) > SAME_RATE * np.abs(ours)).any())


def course_of(
    name: str, value: Callable[[TimelineRow], float], written: Callable[[float], str], result: DiffResult
) -> Course:
    """One value of both timelines."""
    sides = [_line(rows, value, lost=name == "loss") for rows in (result.reference_timeline, result.candidate_timeline)]
    return Course(name, sides[0], sides[1], written)


def _line(rows: Sequence[TimelineRow], value: Callable[[TimelineRow], float], *, lost: bool) -> Line:
    ordered = sorted({row.step: row for row in rows}.values(), key=lambda row: row.step)
    values = [value(row) for row in ordered]
    gone = [lost and row.nonfinite and not math.isfinite(found) for row, found in zip(ordered, values, strict=True)]
    return make_line([row.step for row in ordered], values, gone)


def norm_of(row: TimelineRow) -> float:
    """The gradient norm of a step, before clipping where the run clips: behind it all norms are the limit."""
    return row.gradient_norm if math.isnan(row.clip_norm) else row.clip_norm


def course_sentence(course: Course, differences: Line, phrases: Language) -> str:
    """What is to be seen: where both runs begin and end, how far they are apart, what was not finite."""
    sides = [_side(side, line, course, phrases) for side, line in zip(SIDES, course.lines, strict=True)]
    said = [phrases["figure_courses"].format(reference=sides[0], candidate=sides[1])]
    if len(differences.steps):
        said.append(_apart(differences, phrases))
    elif all(len(line.known) for line in course.lines):
        common = len(at_common_steps(*course.lines)[0]) > 0
        said.append(phrases["figure_no_relative" if common else "figure_no_common"])
    for side, line in zip(SIDES, course.lines, strict=True):
        if len(line.lost):
            key = "figure_lost_one" if len(line.lost) == 1 else "figure_lost_many"
            count, step = wording.count(len(line.lost)), wording.count(int(line.lost[0]))
            said.append(phrases[key].format(side=phrases[f"figure_{side}"], count=count, step=step))
    return phrases["figure_between"].join(said)


def _side(side: str, line: Line, course: Course, phrases: Language) -> str:
    word = phrases[f"figure_side_{side}"]
    known = np.flatnonzero(np.isfinite(line.values))
    if not len(known):
        return phrases["figure_course_none"].format(side=word)
    (first, last), steps = (float(line.values[place]) for place in known[[0, -1]]), line.steps[known]
    words = {"side": word, "first": course.written(first), "first_step": wording.count(int(steps[0]))}
    if len(known) == 1:
        return phrases["figure_course_one"].format(**words)
    if bool((line.known == first).all()):
        return phrases["figure_course_same"].format(**words)
    ends = {"last": course.written(last), "last_step": wording.count(int(steps[-1]))}
    return phrases["figure_course"].format(**words, **ends)


def _apart(differences: Line, phrases: Language) -> str:
    sizes = np.abs(differences.values)
    if not sizes.any():
        key = "figure_equal_one" if len(sizes) == 1 else "figure_equal"
        return phrases[key].format(count=wording.count(len(sizes)))
    place, median = int(sizes.argmax()), float(np.median(sizes))
    return phrases["figure_largest" if median else "figure_largest_one"].format(
        largest=signed_percent(float(differences.values[place]), phrases),
        step=wording.count(int(differences.steps[place])),
        median=percent(median, phrases),
    )


def percent(share: float, phrases: Language) -> str:
    """A share as percent in the page's language."""
    return phrases.said(wording.percent(share)) if share else "0"


def signed_percent(share: float, phrases: Language) -> str:
    """`+0.31 %`."""
    sign = "-" if share < 0 else "+" if share > 0 else ""
    return f"{sign}{percent(abs(share), phrases)}"


def course_twin(
    course: Course, differences: Line, phrases: Language
) -> tuple[tuple[Title, ...], tuple[tuple[str, ...], ...], int]:
    """The values at steps spread over the run, where it differs most, and where it first was not finite."""
    steps = np.union1d(course.reference.steps, course.candidate.steps)
    wanted = [line.lost[0] for line in course.lines if len(line.lost)]
    if len(differences.steps):
        wanted.append(differences.steps[np.abs(differences.values).argmax()])
    places = even_places(len(steps), MOST_ROWS, np.searchsorted(steps, wanted).tolist())
    sides = [dict(zip(line.steps.tolist(), line.values.tolist(), strict=True)) for line in course.lines]
    apart = dict(zip(differences.steps.tolist(), differences.values.tolist(), strict=True))
    rows = []
    for step in steps[places].tolist():
        values = ["" if step not in side else _value(side[step], course, phrases) for side in sides]
        away = Valued(signed_percent(apart[step], phrases), apart[step]) if step in apart else ""
        rows.append((str(step), *values, away))
    titles = ("figure_step", "figure_reference", "figure_candidate", "figure_relative")
    return tuple(Title(phrases[key]) for key in titles), tuple(rows), len(steps) - len(rows)


def _value(value: float, course: Course, phrases: Language) -> str:
    return Valued(phrases.said(course.written(value)), value) if math.isfinite(value) else "NaN/Inf"
