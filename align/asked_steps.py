"""The steps that a capture was asked for, where the run ended before the first of them."""

from __future__ import annotations

from align import wording
from align.records import RunInfo
from align.sentences import joined, say

FEW = 3
"""As many steps as `align capture` takes where none are named."""


def none_of_asked(run: RunInfo) -> str:
    """What was asked for and what the run had: `none of the steps that were asked for (100-102): the run had ...`.

    Empty where the run had no step, or where one of its steps was asked for: something else is to blame then.
    """
    parts = [part.strip() for part in run.steps_requested.split(" every ")[0].split(",")]
    ranges = [part.partition(":") for part in parts]
    firsts = [first for first, _, _ in ranges]
    if not run.steps_seen or not all(first.isdecimal() and int(first) >= run.steps_seen for first in firsts):
        return ""
    asked = joined(", ", (_dashed(*one) for one in ranges))
    had = say("{} ({})", wording.plural(run.steps_seen, "step"), wording.ranges(range(run.steps_seen)))
    return say("none of the steps that were asked for ({}): the run had {}", asked, had)


def within(run: RunInfo) -> str:
    """The option that asks for the first steps that the run has: `--steps 0:3`."""
    return f"--steps 0:{min(FEW, run.steps_seen)}"


def _dashed(first: str, colon: str, end: str) -> str:
    """`100:103` as `100-102`, `100:` as `100 and later`."""
    if not colon:
        return first
    if not end:
        return say("{} and later", first)
    last = int(end) - 1
    return first if last == int(first) else f"{first}-{last}"
