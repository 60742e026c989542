"""How runs ended that did not end by themselves: killed, by an exception, by an exit code."""

from __future__ import annotations

from collections.abc import Sequence

from align import wording
from align.inspection.view import RunView
from align.requests import is_alive
from align.sentences import joined, say, small

UNFINISHED, EXCEPTION, EXIT = "unfinished", "exception: ", "exit"
"""How `RunInfo.outcome` begins."""


def ending(views: Sequence[RunView]) -> str:
    """One sentence on how the run, or the first such rank of a job, ended; empty where all ended by themselves.

    A run that `--stop` ended, or whose capture ended before it, is none of these.
    """
    told = [(view, how) for view in views if (how := _how(view))]
    if not told:
        return ""
    view, how = told[0]
    known = say("{} ({}).", how, _known(view))
    if len(views) == 1:
        return known
    others = (_others(len(told) - 1),) if told[1:] else ()
    return joined(" ", (say("Rank {}: {}", view.run.rank, small(known)), *others))


def _how(view: RunView) -> str:
    """What ended it, without the full stop; empty where it ended by itself."""
    run = view.run
    if run.outcome.startswith(EXCEPTION):
        return say("The run did not end by itself: an exception ended it, {}", run.outcome.removeprefix(EXCEPTION))
    if run.outcome.startswith(EXIT):
        code = run.outcome.partition("code ")[2]
        return say("The script ended with exit code {}" if code.isdecimal() else "The script ended with '{}'", code)
    if run.outcome != UNFINISHED:
        return ""
    alive = is_alive(run)
    if alive is None:
        return "The run did not end by itself: it was killed or is still running"
    return "The run is still running" if alive else "The run did not end by itself: it was killed"


def _known(view: RunView) -> str:
    """The last captured step and the last of the timeline."""
    captured = say("the last captured step is {}", max(view.steps)) if view.steps else "no step was captured"
    if not view.timeline:
        return captured
    return joined(", ", (captured, say("the last step of the timeline is {}", view.timeline[-1].step)))


def _others(ranks: int) -> str:
    if ranks == 1:
        return "1 more rank did not end by itself."
    return say("{} more ranks did not end by themselves.", wording.count(ranks))
