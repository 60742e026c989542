"""Statistics of curves: means over windows, spikes, correlations, where two curves part."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

NORMAL_MAD = 1.4826
"""The standard deviation of a normal distribution, in median absolute deviations."""
CLIPPED_AT = 3.0
"""Differences of neighbours count up to so many deviations: a few spikes must not decide a correlation."""
MOST_DECIMALS = 6
LARGEST = 1e9
"""What is beyond it counts as this much."""
TOGETHER = 2_000_000
"""So many numbers are looked at together; more would need gigabytes for long runs."""


def quotients(values: Values, scale: Values) -> Values:
    """The values in scales, which are above 0; at most `LARGEST` of them, so that sums of squares stay finite."""
    far = np.abs(values) / LARGEST >= scale
    return np.where(far, np.sign(values) * LARGEST, values / np.where(far, np.inf, scale))


def window_means(values: Values, window: int) -> Values:
    """The means of all windows of this length; the only mean there is where the values are fewer."""
    if not len(values):
        return np.zeros(0)
    window = min(window, len(values))
    # Sums of the whole run lose digits where the values span many orders: each block of windows has sums of its own.
    parts = []
    for start in range(0, len(values) - window + 1, TOGETHER):
        block = values[start : start + TOGETHER + window - 1]
        sums = np.concatenate(([0.0], np.cumsum(block)))
        parts.append((sums[window:] - sums[:-window]) / window)
    return np.concatenate(parts)


def around(values: Values, window: int) -> Values:
    """The mean of the values around each place; at both ends that of the nearest whole window."""
    means = window_means(values, window)
    before = (len(values) - len(means)) // 2
    return np.pad(means, (before, len(values) - len(means) - before), mode="edge")


def scatter(values: Values, window: int) -> Values:
    """The standard deviation of single values around each place, from differences of neighbours: no trend counts."""
    if len(values) < 2:  # noqa: PLR2004 - one value has no neighbour
        return np.zeros(len(values))
    squares = np.diff(values, prepend=values[:1]) ** 2
    squares[0] = squares[1]
    return np.sqrt(around(squares, window) / 2)


@dataclass(frozen=True, slots=True)
class SpikeRule:
    """A value is a spike where it is far above the median of the `window` values before it.

    Far is more than `deviations` standard deviations (by the median absolute deviation) and more than `height` times
    the median, or times `least` where the median is smaller. Of spikes within `apart` places the first stands for all.
    """

    window: int = 50
    deviations: float = 6.0
    height: float = 0.1
    apart: int = 10
    least: float = 0.0


def spikes(values: Values, rule: SpikeRule) -> NDArray[np.intp]:
    """The places of spikes."""
    window = rule.window
    if len(values) <= window:
        return np.zeros(0, dtype=np.intp)
    high = np.zeros(len(values) - window, dtype=np.bool_)
    rows = max(TOGETHER // window, 1)
    for start in range(0, len(high), rows):
        before = np.lib.stride_tricks.sliding_window_view(values[start : start + rows + window - 1], window)
        before = before[: len(high) - start]
        medians = np.median(before, axis=1)
        mads = np.median(np.abs(before - medians[:, None]), axis=1)
        far = np.maximum(rule.deviations * NORMAL_MAD * mads, rule.height * np.maximum(np.abs(medians), rule.least))
        now = values[start + window : start + window + len(medians)]
        high[start : start + len(medians)] = now - medians > far
    return _merged(np.flatnonzero(high) + window, rule.apart)


def _merged(places: NDArray[np.intp], apart: int) -> NDArray[np.intp]:
    kept: list[int] = []
    last = -math.inf
    for place in places.tolist():
        if place - last > apart:
            kept.append(place)
        last = place
    return np.array(kept, dtype=np.intp)


def changes(values: Values, scale: Values) -> Values:
    """The differences of neighbours relative to the scale, cut off where they are far from all others."""
    differences = quotients(np.diff(values), scale[1:])
    middle = np.median(differences)
    spread = NORMAL_MAD * float(np.median(np.abs(differences - middle)))
    if spread == 0.0:
        return differences
    cut: Values = np.clip(differences, middle - CLIPPED_AT * spread, middle + CLIPPED_AT * spread)
    return cut


def correlation(first: Values, second: Values) -> float:
    """Pearson's correlation, NaN where one of both does not change."""
    ours, theirs = first - first.mean(), second - second.mean()
    size = math.sqrt(float(ours @ ours)) * math.sqrt(float(theirs @ theirs))
    return float(ours @ theirs) / size if size > 0 else math.nan


def lagged_correlations(reference: Values, candidate: Values, lags: int) -> dict[int, float]:
    """The correlation at each lag; at lag 2 the candidate has what the reference had 2 places before."""
    found = {}
    for lag in range(-lags, lags + 1):
        ours = reference[: len(reference) - lag] if lag >= 0 else reference[-lag:]
        theirs = candidate[lag:] if lag >= 0 else candidate[: len(candidate) + lag]
        found[lag] = correlation(ours, theirs)
    return found


def lasting_from(means: Values, limit: float) -> int:
    """The first window from which on every mean is beyond the limit; the last at the latest."""
    near = np.flatnonzero(np.abs(means) <= limit)
    begin = 0 if not len(near) else int(near[-1]) + 1
    return min(begin, len(means) - 1)


def apart_at_the_end(values: Values, window: int) -> float:
    """The smaller mean of the two halves of the last window, 0 where their signs differ.

    One spike leaves the other half as it was.
    """
    last = values[-window:]
    half = len(last) // 2
    means = float(last[:half].mean()) if half else float(last[0]), float(last[half:].mean())
    return min(means, key=abs) if means[0] * means[1] > 0 else 0.0


def onset(values: Values, begin: int, window: int) -> int:
    """The place at which the level of the values changes most, about the window that begins at `begin`.

    Both sides have at least one value; it is 0 where the values differ from the start.
    """
    if begin == 0:
        return 0
    low, high = max(0, begin - window), min(len(values), begin + 2 * window)
    part = values[low:high]
    count = np.arange(1, len(part))
    sums = np.cumsum(part)
    before = sums[:-1] / count
    after = (sums[-1] - sums[:-1]) / (len(part) - count)
    gain = count * (len(part) - count) * (after - before) ** 2
    return low + 1 + int(np.argmax(gain))


def printed_unit(values: Values) -> float:
    """The last digit of numbers that were printed with a fixed number of decimals, 0 where they were not."""
    if len(values) < 2:  # noqa: PLR2004 - one number may end anywhere
        return 0.0
    for decimals in range(MOST_DECIMALS + 1):
        scaled = values * 10.0**decimals
        if np.all(np.abs(scaled - np.round(scaled)) <= 1e-9 * np.maximum(np.abs(scaled), 1.0)):
            return float(10.0**-decimals)
    return 0.0
