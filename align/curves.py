"""The losses of two runs side by side: whether they drift apart for good, or differ by a constant share.

Every step of a run is in its timeline, so this sees what happens long after the captured steps. Training is chaotic:
losses of healthy runs on two devices part, too, the more the nearer they come to 0. So a difference counts relative to
the loss or to a share of the first one, whichever is larger, and as the mean of many steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from align.records import TimelineRow
from align.standard_error import deviations_from_zero

SMALLEST_LOSS = 0.2
"""A difference is never measured against less than this share of the first loss. A small network that learns its digits
by heart differs between two healthy bf16 runs by up to 29 % of its own loss, which is then below 5 % of the first."""

FEWEST_STEPS = 60
SHORTEST_WINDOW = 20
WINDOW_SHARE = 20
"""Means are taken over a twentieth of the steps, at least so many."""

APART = 0.05
"""The runs have parted where the mean of every later window differs by more than this. At the end of 9 healthy pairs
(133 to 300 steps; fp32 and bf16; the CPU and the simulated NPU) it is 0.021 at most, 0.0004 where the loss is not near
0."""

LAST_SHARE = 4
BIASED = 0.005
SURE = 4.0
"""The last quarter is biased where its mean difference is larger than this and so many standard errors of it, which
take the correlation of neighbouring steps into account; not where the loss has fallen below the share of above. The
largest of the healthy pairs is 0.0004."""


@dataclass(frozen=True, slots=True)
class CurveComparison:
    """The losses of `count` common steps.

    `differences` of the candidate are relative to the reference. `apart` is the first step from which on every window
    differs, None where the last does not; `bias` is the mean difference of the last quarter, `deviations` how many of
    its standard errors that is, both 0 where the loss is near 0 there.
    """

    count: int
    apart: int | None = None
    last: float = 0.0
    largest: float = 0.0
    bias: float = 0.0
    deviations: float = 0.0

    @property
    def biased(self) -> bool:
        """Whether the candidate's loss is surely higher or lower by a constant share."""
        return abs(self.bias) > BIASED and abs(self.deviations) > SURE


def compare_curves(reference: Sequence[TimelineRow], candidate: Sequence[TimelineRow]) -> CurveComparison | None:
    """Compare the losses of the common steps of two timelines, None where they are too few to tell."""
    theirs = {row.step: row.loss for row in candidate if math.isfinite(row.loss)}
    common = [row for row in reference if math.isfinite(row.loss) and row.step in theirs]
    if len(common) < FEWEST_STEPS:
        return None
    steps = [row.step for row in common]
    ours = np.array([row.loss for row in common])
    answers = np.array([theirs[step] for step in steps])
    smallest = max(SMALLEST_LOSS * abs(float(ours[0])), np.finfo(np.float64).tiny)
    relative = (answers - ours) / np.maximum(np.abs(ours), smallest)
    window = max(SHORTEST_WINDOW, len(common) // WINDOW_SHARE)
    means = np.convolve(relative, np.full(window, 1.0 / window), mode="valid")
    far = np.abs(means) > APART
    near = np.flatnonzero(~far)
    begin = 0 if not len(near) else int(near[-1]) + 1
    last = relative[-max(len(relative) // LAST_SHARE, 1) :]
    near_zero = float(np.mean(ours[-len(last) :])) < smallest
    return CurveComparison(
        count=len(common),
        apart=steps[begin] if begin < len(means) else None,
        last=float(means[-1]),
        largest=float(np.abs(means).max()),
        bias=0.0 if near_zero else float(last.mean()),
        deviations=0.0 if near_zero else deviations_from_zero(last),
    )
