"""Several tensors read as the one that was made of them, without putting them together."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from align.checkpoint_files.entries import Entry


class JoinedSpan:
    """Stretches of tensors, one behind the other: (entry, first byte, number of bytes) of each."""

    __slots__ = ("_ends", "_stretches")

    def __init__(self, stretches: Sequence[tuple[Entry, int, int]]) -> None:
        self._stretches = stretches
        self._ends = list(accumulate(length for _, _, length in stretches))

    def read_into(self, start: int, target: memoryview) -> None:
        """Fill `target` with the bytes from `start` on."""
        done = 0
        while done < len(target):
            number = bisect_right(self._ends, start + done)
            entry, begin, length = self._stretches[number]
            inside = start + done - (self._ends[number] - length)
            count = min(length - inside, len(target) - done)
            entry.read_into(begin + inside, target[done : done + count])
            done += count
