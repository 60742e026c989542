"""Why a phase of a run is not known, and what to capture for it: the end of a sentence on what cannot be told."""

from __future__ import annotations

from collections.abc import Iterable

from align import wording
from align.inspection.view import RunView
from align.records import Phase
from align.sentences import say

NO_STEP = "no step was captured; capture steps 0 to 2 with --steps 0:3."
STATISTICS_ONLY = "statistics do not hold it; capture with --detail sketch."


def unusable(view: RunView) -> str:
    """Why no captured step says how parameters move; empty where a step says it."""
    if not view.steps:
        return NO_STEP
    rows = {row.step: row for row in view.timeline}
    captured = [rows[step] for step in view.steps if step in rows]
    if len(captured) < len(view.steps) or not all(row.skipped or row.nonfinite for row in captured):
        return ""
    usable = [row.step for row in view.timeline if not row.skipped and not row.nonfinite]
    then = say("; capture others, such as --steps {}:{}", max(usable[0] - 1, 0), usable[0] + 2) if usable else ""
    if all(row.skipped for row in captured):
        which = (
            say("all captured steps were skipped ({})", wording.steps(view.steps))
            if usable
            else "every step was skipped"
        )
        return say("{}{}.", which, then)
    return say("no captured step is finite ({}){}.", wording.steps(view.steps), then)


def lacking(view: RunView, phases: Iterable[Phase]) -> str:
    """Why one of these phases has nothing in any captured step; empty where all of them have something.

    What was not asked for is told with the option that asks for it; what was asked for and was not seen is told so.
    """
    if not view.steps:
        return NO_STEP
    missing = [phase for phase in phases if phase not in view.phases()]
    if not missing:
        return ""
    asked = set(view.run.phases)
    unasked = [phase for phase in missing if asked and str(phase) not in asked]
    if unasked or not asked:
        return say("the capture has no phase {}; capture with --phases all.", _listed(unasked or missing))
    return unusable(view) or say("in {} nothing was seen of the phase {}.", wording.steps(view.steps), _listed(missing))


def _listed(phases: Iterable[Phase]) -> str:
    return wording.listing([str(phase) for phase in phases])
