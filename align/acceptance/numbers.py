"""How shares are written where they are held against limits: with a digit more than elsewhere."""

from __future__ import annotations

from align import wording
from align.sentences import say

SMALL, LARGE = 0.001, 0.1
"""Between them a share has two decimals as percent; above one is enough, and below it has two digits."""


def share(number: float) -> str:
    """A share of 1 as percent: `0.47 %`, `1.27 %`, `12.4 %`, `0.036 %`."""
    return say("{} %", f"{100 * number:.2f}") if SMALL <= abs(number) < LARGE else wording.percent(number)
