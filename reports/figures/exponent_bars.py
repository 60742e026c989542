"""The bars of a histogram of exponents: what a format holds, what a panel shows of it, and the share of each bar."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from align.records import Exponents, Magnitudes

SIDE_WIDTH = 4
"""Octaves that the bars of zeros and of infinities are wide, and apart from the others by half of it."""
SUBNORMAL_WIDTH = 8
"""Octaves that the subnormals of wide formats take in the picture: their zone has 7 or 23, far away."""
SHORTEST = 20
"""Octaves that a panel shows at least."""


@dataclass(frozen=True, slots=True)
class Range:
    """What a format can hold, as powers of two: the smallest number, the smallest normal one, the greatest exponent."""

    smallest: int
    normal: int
    largest: int
    wide: bool

    @property
    def bias(self) -> int:
        """What an exponent code is above its exponent."""
        return self.largest


RANGES = {
    "float16": Range(-24, -14, 15, wide=False),
    "bfloat16": Range(-133, -126, 127, wide=True),
    "float32": Range(-149, -126, 127, wide=True),
}


@dataclass(frozen=True, slots=True)
class Window:
    """What a panel shows, in octaves: the begin of the subnormals, of the normal numbers, and the end of these."""

    subnormal: int
    normal: int
    end: int

    @property
    def zero(self) -> tuple[float, float]:
        """Where the bar of zeros stands."""
        return self.subnormal - 1.5 * SIDE_WIDTH, self.subnormal - 0.5 * SIDE_WIDTH

    @property
    def beyond(self) -> tuple[float, float]:
        """Where the bar of what is not finite stands."""
        return self.end + 0.5 * SIDE_WIDTH, self.end + 1.5 * SIDE_WIDTH


def sides_of(entry: Exponents) -> tuple[Magnitudes, ...]:
    """What is known of the tensor: both runs, the reference first, or the one run."""
    return (entry.candidate,) if entry.reference is None else (entry.reference, entry.candidate)


def window_of(entry: Exponents) -> Window:
    """All that a narrow format holds; of a wide one the octaves that have elements, and some around them.

    Where the runs have other formats, that of the wider one.
    """
    format_ = max((RANGES[side.dtype] for side in sides_of(entry)), key=lambda each: each.largest)
    if not format_.wide:
        return Window(format_.smallest, format_.normal, format_.largest + 1)
    ends = [_occupied(side) for side in sides_of(entry)]
    low, high = min(first for first, _ in ends) - 2, max(last for _, last in ends) + 3
    spare = max(0, SHORTEST - (high - low))
    low = max(format_.normal, low - spare // 2)
    high = min(format_.largest + 1, max(high + (spare + 1) // 2, low + SHORTEST))
    return Window(low - SUBNORMAL_WIDTH, low, high)


def limits_of(entry: Exponents, window: Window) -> tuple[int, ...]:
    """The begins of the normal numbers and of what is too large, of each format, as far as the panel shows them."""
    formats = {RANGES[side.dtype] for side in sides_of(entry)}
    ends = {end for format_ in formats for end in (format_.normal, format_.largest + 1)}
    return tuple(sorted(end for end in ends if window.normal <= end <= window.end))


def _occupied(side: Magnitudes) -> tuple[int, int]:
    """The least and the greatest exponent that elements have; uncounted, 20 octaves below the last."""
    bias = RANGES[side.dtype].bias
    codes = np.flatnonzero(np.asarray(side.codes[1:-1]))
    if len(codes):
        return int(codes[0]) + 1 - bias, int(codes[-1]) + 1 - bias
    last = math.frexp(side.largest)[1] - 1 if side.largest > 0 else 0
    return last - SHORTEST, last


def edges_of(window: Window) -> list[float]:
    """Where the bars of a panel begin and end, one after another."""
    return [
        *window.zero,
        window.subnormal,
        *range(window.normal, window.end + 1),
        *window.beyond,
    ]


def shares_of(side: Magnitudes, window: Window) -> list[float]:
    """The share of each bar, NaN for none: zeros, a gap, subnormals, each octave, a gap, what is not finite."""
    octaves = [0.0] * (window.end - window.normal)
    normal = side.count - side.zeros - side.subnormals - side.nonfinite
    if side.codes:
        bias = RANGES[side.dtype].bias
        for code, number in enumerate(side.codes[1:-1], 1):
            place = code - bias - window.normal
            if 0 <= place < len(octaves):
                octaves[place] = float(number)
    elif normal:
        first, last = window.normal, math.frexp(side.largest)[1] - 1 if side.largest > 0 else window.normal
        for place in range(max(0, min(last, window.end - 1) - first) + 1):
            octaves[place] = float(normal)
    counts = [side.zeros, 0, side.subnormals, *octaves, 0, side.nonfinite]
    return [number / side.count if number else math.nan for number in counts]
