"""One answer of all ranks of a job to each question, and whether files are of one job at all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from align import wording
from align.errors import ComparisonError
from align.inspection.view import RunView
from align.records import Reply, RunInfo, State
from align.sentences import capital, say

WORST_FIRST = (State.BAD, State.UNKNOWN, State.GOOD, State.ABSENT)

APART = 600.0
"""Seconds between the end of one rank and the start of another of one job: none, but for clocks that are set apart."""


def merged(replies: Sequence[tuple[int, Reply]]) -> Reply:
    """The worst answer of the ranks to one question, each given with the number of its rank.

    What is bad is told with its ranks. What some ranks cannot tell and others can is answered by those that can.
    """
    bad = [(rank, reply) for rank, reply in replies if reply.state is State.BAD]
    if bad:
        return _told(bad, len(replies))
    known = [(rank, reply) for rank, reply in replies if reply.state is State.GOOD]
    unknown = [(rank, reply) for rank, reply in replies if reply.state is State.UNKNOWN]
    if unknown and not known:
        return _told(unknown, len(replies))
    if not known:
        return replies[0][1]
    first = _told(known, len(replies))
    if not unknown:
        return first
    others = say(" It cannot be told of {}.", wording.ranks([rank for rank, _ in unknown]))
    return Reply(first.question, first.state, say("{}{}", first.sentence, others))


def _told(replies: Sequence[tuple[int, Reply]], total: int) -> Reply:
    """The answer of the first of some ranks; with their numbers where other ranks answer otherwise."""
    (_, first), *_ = replies
    if len(replies) == total and all(reply.sentence == first.sentence for _, reply in replies):
        return first
    alike = [rank for rank, reply in replies if reply.sentence == first.sentence]
    if len(replies) == total:
        return Reply(first.question, first.state, say("{}: {} The other ranks alike.", _begin(alike), first.sentence))
    return Reply(first.question, first.state, say("{}: {}", _begin([rank for rank, _ in replies]), first.sentence))


def _begin(numbers: Sequence[int]) -> str:
    return capital(wording.ranks(numbers))


def check_one_job(views: Sequence[RunView]) -> None:
    """Refuse files that are not of one job; raises ComparisonError with what differs."""
    first = views[0]
    ranks: dict[int, RunView] = {}
    for view in views:
        if view.run.world_size != first.run.world_size:
            ranks_of_first = wording.plural(first.run.world_size, "rank")
            others = wording.count(view.run.world_size)
            raise _refusal(first, view, say("one is of a job of {}, the other of {}", ranks_of_first, others))
        if view.run.rank in ranks:
            raise _refusal(ranks[view.run.rank], view, say("both are rank {}", view.run.rank))
        ranks[view.run.rank] = view
        if view.run.script_hash != first.run.script_hash:
            raise _refusal(first, view, say("they ran different scripts, or versions of one script"))
        if _one_after_the_other(first.run, view.run):
            raise _refusal(first, view, say("one had ended ({}) before the other began", _ended(first.run, view.run)))


def _refusal(first: RunView, other: RunView, reason: str) -> ComparisonError:
    return ComparisonError(
        say(
            "Cannot inspect '{}' and '{}' together: {}, so they are not of one job. Remove the files of the older "
            "job, or name one file.",
            first.path,
            other.path,
            reason,
        )
    )


def _one_after_the_other(one: RunInfo, other: RunInfo) -> bool:
    """Whether one run began well after the other had ended."""
    times = [[_time(text) for text in (run.started, run.ended)] for run in (one, other)]
    (begin, end), (other_begin, other_end) = times
    gaps = [
        (later - earlier).total_seconds()
        for earlier, later in ((end, other_begin), (other_end, begin))
        if earlier is not None and later is not None
    ]
    return any(gap > APART for gap in gaps)


def _ended(one: RunInfo, other: RunInfo) -> str:
    """The end of the run that ended first."""
    known = [(time, run.ended) for run in (one, other) if (time := _time(run.ended)) is not None]
    return min(known)[1]


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        return None
