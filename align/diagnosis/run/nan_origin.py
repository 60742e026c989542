"""AL601 in one run: the first NaN, or Inf that is no overflow, that does harm, and what made it of finite numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from align import wording
from align.diagnosis.registry import run_rule
from align.diagnosis.run import nan_sentences
from align.diagnosis.run import nonfinite_telling as tell
from align.inspection import Inspection
from align.inspection.nonfinite_kind import is_overflow
from align.records import Finding, Phase, Place, Severity, TimelineRow
from align.sentences import say

CODE = "AL601"
LABEL = "nan-origin"


GROWN = 1e3
"""A loss that is so many times the greatest of its first steps has no bound any more, whatever its noise is."""

FIRST = 3
LOWER = " A loss that grows like this comes of a learning rate that is too high, or of gradients that are not clipped."


@run_rule(CODE, LABEL, rank=40)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The first start that is no overflow; an error where it did harm or lets no step through, else a warning."""
    row = inspection.nonfinite.uncaptured
    if row is not None:
        yield _not_captured(inspection, row)
        return
    start, is_error = tell.accused(inspection)
    view = inspection.view
    if start is None or is_overflow(start, view.modules, view.run):
        return
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if is_error else Severity.WARNING,
        say(
            "{}{}{}",
            nan_sentences.summary(view, start),
            tell.seen_first(view, start),
            tell.fate(inspection, start, lasting=is_error),
        ),
        nan_sentences.advice(view, start),
        tell.place(start),
        {**tell.evidence(start), **nan_sentences.settings(view, start)},
        tell.arguments(start),
    )


def _not_captured(inspection: Inspection, row: TimelineRow) -> Finding:
    """A loss that is not finite in a step of which only the timeline is known."""
    view = inspection.view
    recovered = any(not other.nonfinite for other in view.timeline if other.step > row.step)
    before = [step for step in view.steps if step < row.step]
    known = (
        say("; the captured {} {} finite", wording.steps(before), "is" if len(before) == 1 else "are") if before else ""
    )
    again = "Later losses are finite again." if recovered else "It stays so to the end of the run."
    grown = _grown(view.timeline, row)
    known_of_it = {"step": row.step, "captured": list(view.steps), "recovered": recovered}
    return Finding(
        CODE,
        LABEL,
        Severity.WARNING if recovered else Severity.ERROR,
        say(
            "The loss is not finite in {}, for the first time{}. {}{} Where it starts cannot be told: that step was "
            "not captured.",
            wording.step(row.step),
            known,
            grown,
            again,
        ),
        say(
            "Capture it and the step before: `align capture --steps {}:{} --stop SCRIPT`, then inspect that.{}",
            max(row.step - 1, 0),
            row.step + 1,
            LOWER if grown else "",
        ),
        Place(step=row.step, phase=str(Phase.LOSS), name="loss", slot="value"),
        known_of_it,
        known_of_it,
    )


def _grown(timeline: Sequence[TimelineRow], bad: TimelineRow) -> str:
    """How the loss grew before it was no longer finite, as a sentence with a blank behind; empty where it did not."""
    before = [row for row in timeline if row.step < bad.step and math.isfinite(row.loss)]
    first = max((abs(row.loss) for row in before[:FIRST]), default=0.0)
    if len(before) <= FIRST or not abs(before[-1].loss) > GROWN * first > 0.0:
        return ""
    return say(
        "Before, it grew from {} in {} to {} in {}. ",
        wording.loss(before[0].loss),
        wording.step(before[0].step),
        wording.loss(before[-1].loss),
        wording.step(before[-1].step),
    )
