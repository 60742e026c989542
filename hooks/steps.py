"""Count the steps of a run: which one is now, which are wanted, when one is over.

A step is one attempt to update, from 0. It closes at the next training forward, at the next top-level
backward, or at the end of the run, so that attempts with no backward between them are one step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from align.errors import UsageError
from align.sentences import say

OPEN_END = 1 << 62
STEP_RANGE = re.compile(r"([0-9]+)?(:)?([0-9]+)?")


@dataclass(frozen=True, slots=True)
class StepChoice:
    """The steps to capture: half-open ranges in ascending order, of each the first and then every n-th.

    Of the ranges of `whole` every step is chosen.
    """

    ranges: tuple[tuple[int, int], ...]
    every: int = 1
    whole: tuple[tuple[int, int], ...] = ()

    def __contains__(self, step: int) -> bool:
        chosen = any(first <= step < end and not (step - first) % self.every for first, end in self.ranges)
        return chosen or any(first <= step < end for first, end in self.whole)

    def over_after(self, step: int) -> bool:
        """Whether no wanted step comes after this one."""
        chosen = any(self._next(first, step) < end for first, end in self.ranges)
        return not chosen and not any(step + 1 < end for _, end in self.whole)

    def with_range(self, first: int, end: int) -> StepChoice:
        """The same and all steps of one more range; earlier ones of this kind that are over by then are forgotten."""
        ahead = (one for one in self.whole if one[1] > first)
        return replace(self, whole=tuple(sorted({*ahead, (first, end)})))

    def _next(self, first: int, step: int) -> int:
        """The next step after this one that a range beginning at `first` would choose."""
        return first if step < first else step + self.every - (step - first) % self.every


def parse_steps(text: str, every: int = 1) -> StepChoice:
    """Read `0:3`, `5`, `0:3,100,1000:1002` or `10:` (all from 10 on).

    Raises UsageError where the text is none of these, or where `every` is below 1.
    """
    ranges = []
    if every < 1:
        raise UsageError(say("Cannot capture every {} steps: --every takes 1 or more.", every))
    if not isinstance(text, str):
        raise UsageError(_wrong_steps(text))
    for part in text.split(","):
        match = STEP_RANGE.fullmatch(part.strip())
        if match is None or not part.strip() or part.strip() == ":":
            raise UsageError(_wrong_steps(text))
        first = int(match[1] or 0)
        if match[2] is None:
            end = first + 1
        else:
            end = int(match[3]) if match[3] else OPEN_END
        if end <= first:
            raise UsageError(_wrong_steps(text))
        ranges.append((first, end))
    return StepChoice(tuple(sorted(ranges)), every)


def _wrong_steps(text: str) -> str:
    return say(
        "Cannot read the steps '{}': give ranges such as 0:3 (steps 0, 1 and 2), single steps such as 100, or both as "
        "0:3,100.",
        text,
    )


@dataclass(slots=True)
class StepClock:
    """Where the run is: the step of now, and whether an attempt to update has already been made in it."""

    choice: StepChoice
    step: int = 0
    attempted: bool = False

    @property
    def wanted(self) -> bool:
        """Whether the step of now is captured."""
        return self.step in self.choice

    @property
    def next_forward_wanted(self) -> bool:
        """Whether a forward that begins now would be captured."""
        return self.step + int(self.attempted) in self.choice

    def advance(self) -> None:
        """The step is over."""
        self.step += 1
        self.attempted = False


def describe_steps(steps: Sequence[int]) -> str:
    """`[0, 1, 2, 7]` -> `0-2, 7`."""
    runs: list[tuple[int, int]] = []
    for step in steps:
        if runs and step == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], step)
        else:
            runs.append((step, step))
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
