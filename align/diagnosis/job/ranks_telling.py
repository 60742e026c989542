"""What the rules on several ranks say alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from align import wording
from align.inspection import Job
from align.inspection.ranks import names_of
from align.records import Owner
from align.sentences import say

MOST_NAMED = 3
PAIR = 2
GENERATORS = {"torch": "torch", "device": "the device"}
"""Whose generator drew numbers, in words."""


def ranks(job: Job, places: Iterable[int]) -> str:
    """`rank 1`, `ranks 0 and 2`, `both ranks`, `all 4 ranks`, by the places in the list of files."""
    numbers = sorted({number(job, place) for place in places})
    if len(numbers) == len(job.ranks) > 1:
        return "both ranks" if len(numbers) == PAIR else say("all {} ranks", wording.count(len(numbers)))
    if len(numbers) == 1:
        return say("rank {}", numbers[0])
    return say(
        "ranks {}",
        wording.listing([str(each) for each in numbers]) if len(numbers) == PAIR else wording.ranges(numbers),
    )


def number(job: Job, place: int) -> int:
    """The number of a rank by its place in the list of files."""
    return job.ranks[place].view.run.rank


def owners(found: Sequence[Owner]) -> str:
    """`fc weight, fc bias, head weight and 5 more`."""
    return wording.listing(names_of(found[:MOST_NAMED]), len(found))
