"""How the gradients of layers that follow on one another part: by a factor that grows with each of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from align.records import Comparison, Phase

NUMBERED = re.compile(r"^(.*?\.)(\d+)((?:\..*)?)$")
FEWEST_LAYERS = 3

STEADY = 0.3
"""The factor of each layer is the mean one where its logarithm is so near to it, relatively."""

BEYOND_FLOOR = 7.0
"""The growth of one layer counts from so many times what rounding may part the gradient by (the limit of the walk)."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The norm of a gradient is `nearest` times the reference's at `last`, and `furthest` times at `first`.

    `last` is the layer that the backward reaches first. Each of `layers` layers multiplies the factor by `gain`.
    """

    gain: float
    layers: int
    last: str
    nearest: float
    first: str
    furthest: float


def growth_of(origin: Comparison, scale: float, comparisons: Iterable[Comparison]) -> Growth | None:
    """How the gradient that differs first grows over the layers; None where it is not steady, or there are no layers.

    `scale` undoes the loss scales.
    """
    key = origin.key
    place = NUMBERED.match(key.name)
    if place is None or key.phase is not Phase.BACKWARD:
        return None
    begin, number, end = place.groups()
    ratios: dict[int, float] = {}
    for each in comparisons:
        other = each.key
        found = NUMBERED.match(other.name)
        if found is None or (found[1], found[3]) != (begin, end):
            continue
        if (other.step, other.micro, other.phase, other.slot, other.call) == (
            key.step, key.micro, key.phase, key.slot, key.call,
        ):  # fmt: skip
            ratio = _ratio(each, scale)
            if ratio is None:
                return None
            ratios[int(found[2])] = ratio
    layers = sorted((layer for layer in ratios if layer <= int(number)), reverse=True)
    if len(layers) < FEWEST_LAYERS or layers[0] - layers[-1] != len(layers) - 1:
        return None
    gains = [math.log(ratios[after] / ratios[before]) for before, after in pairwise(layers)]
    mean = sum(gains) / len(gains)
    near = all(abs(gain - mean) <= STEADY * abs(mean) for gain in gains)
    if not near or abs(mean) <= BEYOND_FLOOR * origin.floor or mean * math.log(ratios[layers[0]]) <= 0.0:
        return None
    return Growth(
        math.exp(mean),
        len(layers),
        f"{begin}{layers[0]}{end}",
        ratios[layers[0]],
        f"{begin}{layers[-1]}{end}",
        ratios[layers[-1]],
    )


def _ratio(each: Comparison, scale: float) -> float | None:
    ours, theirs = each.reference.stats, each.candidate.stats
    if ours is None or theirs is None or not (ours.norm > 0.0 and theirs.norm > 0.0) or theirs.nonfinite:
        return None
    return theirs.norm * scale / ours.norm
