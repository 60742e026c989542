"""Whether numbers are draws of one distribution, and which default initialisation a tensor looks like."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from align.sentences import say

Numbers = NDArray[np.float64]

SAMPLE = 16384
"""At most so many numbers enter a distribution test, at even distances: 0.8 % of the distribution are then seen."""

FEWEST = 32
"""Of fewer elements no distribution is told."""

TWO_SAMPLES = 1.95
"""Kolmogorov-Smirnov: two draws of n numbers are further apart than this times sqrt(2/n) once in 1,000 times."""

ONE_SAMPLE = 1.95
"""A draw of n is further from its own distribution than this times 1/sqrt(n) once in 1,000 times."""

DEVIATIONS = 4.0
"""A mean and a spread may be so many standard errors from those of the distribution."""

SLACK = 1.75
"""What a tensor is not is told with wider limits (7 standard errors): one draw in 1,000 does not look like its own."""

TAIL = 1.6
"""The largest of n normal numbers lies within 1.6 deviations of sqrt(2 ln n) of them: measured over 20,000 draws each
of 32 to 1,000 numbers but for 1 in 1,000 (-1.4 to 1.7 of 32, -1.1 to 1.3 of 1,000; less of more)."""

GAPS = 20.0
"""The largest of n uniform numbers is nearer to the bound than 20/n of it but for e^-20 of all draws."""

PLAIN_DEVIATIONS = (1.0, 0.02, 0.01, 0.006)
"""Normal deviations that libraries use whatever the shape: torch's embedding, GPT-2 and BERT, ViT's and others'."""

MOST_LAYERS = 200
ENOUGH = 4096
"""GPT-2 scales projections by the number of layers; of fewer elements every spread would be that of some number."""


@dataclass(frozen=True, slots=True)
class Spread:
    """What the tests need of a tensor: element count, extremes, mean and standard deviation."""

    count: int
    minimum: float
    maximum: float
    mean: float
    deviation: float


class Uniform(NamedTuple):
    """Uniform numbers between -bound and bound."""

    bound: float
    name: str


class Normal(NamedTuple):
    """Normal numbers around zero."""

    deviation: float
    name: str


def sample_of(numbers: Numbers) -> Numbers:
    """At most SAMPLE finite numbers, sorted."""
    flat = numbers.reshape(-1)
    step = max(-(-flat.size // SAMPLE), 1)
    step += 1 if step > 1 and flat.size % step == 0 else 0
    taken = flat[::step]
    return np.sort(taken[np.isfinite(taken)])


def same_distribution(ours: Numbers, theirs: Numbers) -> bool:
    """Whether two sorted samples may be draws of one distribution (Kolmogorov-Smirnov)."""
    if min(ours.size, theirs.size) == 0:
        return False
    both = np.concatenate([ours, theirs])
    left = np.searchsorted(ours, both, side="right") / ours.size
    right = np.searchsorted(theirs, both, side="right") / theirs.size
    fewest = math.sqrt((ours.size + theirs.size) / (ours.size * theirs.size))
    return bool(np.abs(left - right).max() < TWO_SAMPLES * fewest)


def initial_look(spread: Spread, shape: tuple[int, ...], sample: Numbers | None, unit: float) -> str:
    """The default initialisation that a tensor looks like, empty where it looks like none.

    `sample` are sorted numbers of it, None where only the statistics are known (then the shape of the distribution is
    not looked at); `unit` is the unit roundoff of its dtype, by which a bound may be exceeded.
    """
    if spread.count == 0:
        return ""
    if spread.minimum == spread.maximum:
        return {0.0: say("zeros"), 1.0: say("ones")}.get(spread.minimum, say("constant") if spread.count > 1 else "")
    if spread.count < FEWEST or len(_long(shape)) < 2:  # noqa: PLR2004 - vectors are drawn with bounds that they do not tell
        return ""
    found = (draw.name for draw in _draws(shape, spread.deviation) if _looks_like(draw, spread, sample, unit))
    return next(found, "")


def may_be(name: str, spread: Spread, shape: tuple[int, ...], sample: Numbers | None, unit: float) -> bool:
    """Whether a tensor may be a draw of the named initialisation, with limits SLACK times as wide."""
    if spread.count < FEWEST or spread.minimum == spread.maximum or len(_long(shape)) < 2:  # noqa: PLR2004 - as above
        return False
    draws = (draw for draw in _draws(shape, spread.deviation) if draw.name == name)
    return any(_looks_like(draw, spread, sample, unit, SLACK) for draw in draws)


def _looks_like(
    draw: Uniform | Normal, spread: Spread, sample: Numbers | None, unit: float, slack: float = 1.0
) -> bool:
    deviation = draw.deviation if isinstance(draw, Normal) else draw.bound / math.sqrt(3.0)
    spread_error = (1.0 / math.sqrt(2.0) if isinstance(draw, Normal) else math.sqrt(0.2)) / math.sqrt(spread.count)
    if abs(spread.mean) > slack * DEVIATIONS * deviation / math.sqrt(spread.count):
        return False
    if abs(spread.deviation / deviation - 1.0) > slack * DEVIATIONS * spread_error + unit:
        return False
    largest = max(-spread.minimum, spread.maximum)
    if isinstance(draw, Uniform) and not (
        draw.bound * (1.0 - slack * GAPS / spread.count - unit) <= largest <= draw.bound * (1.0 + max(unit, 1e-6))
    ):
        return False
    if isinstance(draw, Normal) and abs(largest / deviation - math.sqrt(2.0 * math.log(spread.count))) > slack * TAIL:
        return False
    return sample is None or _fits(draw, sample, slack)


def _fits(draw: Uniform | Normal, sample: Numbers, slack: float) -> bool:
    """Kolmogorov-Smirnov against the distribution itself."""
    if isinstance(draw, Uniform):
        expected = np.clip((sample + draw.bound) / (2.0 * draw.bound), 0.0, 1.0)
    else:
        scale = draw.deviation * math.sqrt(2.0)
        expected = np.array([0.5 * math.erfc(-number / scale) for number in sample.tolist()])
    steps = np.arange(sample.size + 1) / sample.size
    distance = max(np.abs(expected - steps[1:]).max(), np.abs(expected - steps[:-1]).max())
    return bool(distance < slack * ONE_SAMPLE / math.sqrt(sample.size))


def _draws(shape: tuple[int, ...], deviation: float) -> Iterator[Uniform | Normal]:
    """The default initialisations of torch and of common libraries for a weight of this shape."""
    rest = math.prod(shape[2:])
    fans = dict.fromkeys([(shape[1] * rest, shape[0] * rest), (shape[0] * rest, shape[1] * rest)])
    for fan_in, fan_out in fans:
        yield Uniform(1.0 / math.sqrt(fan_in), "uniform within 1/sqrt(fan in)")
        yield Uniform(math.sqrt(6.0 / (fan_in + fan_out)), "uniform within sqrt(6/(fan in + fan out))")
        yield Uniform(math.sqrt(6.0 / fan_in), "uniform within sqrt(6/fan in)")
        yield Uniform(math.sqrt(3.0 / fan_in), "uniform within sqrt(3/fan in)")
    if shape[0] % 3 == 0:  # the three gates of a GRU and the four of an LSTM are bounded by the width of the state
        yield Uniform(1.0 / math.sqrt(shape[0] // 3), "uniform within 1/sqrt(state)")
    if shape[0] % 4 == 0:
        yield Uniform(1.0 / math.sqrt(shape[0] // 4), "uniform within 1/sqrt(state)")
    for plain in PLAIN_DEVIATIONS:
        yield Normal(plain, say("normal, deviation {}", f"{plain:g}"))
    for fan_in, fan_out in fans:
        yield Normal(math.sqrt(2.0 / fan_in), "normal, deviation sqrt(2/fan in)")
        yield Normal(math.sqrt(2.0 / (fan_in + fan_out)), "normal, deviation sqrt(2/(fan in + fan out))")
        yield Normal(1.0 / math.sqrt(fan_in), "normal, deviation 1/sqrt(fan in)")
    layers = round((0.02 / deviation) ** 2 / 2.0)
    if 1 <= layers <= MOST_LAYERS and math.prod(shape) >= ENOUGH:
        yield Normal(0.02 / math.sqrt(2.0 * layers), "normal, deviation 0.02/sqrt(2 layers)")


def _long(shape: tuple[int, ...]) -> list[int]:
    return [length for length in shape if length > 1]
