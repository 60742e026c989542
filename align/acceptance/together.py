"""Whether two losses rise and fall together, as those of runs on the same batches do."""

from __future__ import annotations

import math

import numpy as np

from align.acceptance.scale import Losses
from align.acceptance.statistics import changes, lagged_correlations

FEWEST = 50
"""With so many steps two unrelated losses are correlated by 0.3 in one pair of fifty, with fewer too often."""

STRANGE = 0.3
"""Repeats of a run on the same batches go together by more, as healthy pairs do."""

BEGINNING = 5
APART = 0.005
"""Rounding moves the first few losses by less than this share: it is the limit for two devices (MindFormers)."""


def step_correlations(losses: Losses, lags: int) -> dict[int, float] | None:
    """The correlation at each lag, None where a loss does not change.

    Where enough steps are not near 0 the others are left out: what is little but noise says nothing of the batches.
    """
    away = losses.only(~losses.near)
    found = _at_lags(away, lags) if len(away) >= FEWEST else None
    return _at_lags(losses, lags) if found is None else found


def beginning_apart(losses: Losses) -> float:
    """The mean relative difference of the first few steps; 0 where there are none."""
    return float(np.abs(losses.relative[:BEGINNING]).mean()) if len(losses) else 0.0


def another_training(losses: Losses) -> bool:
    """Whether two runs differ by more than rounding: they begin apart, and do not go together step by step.

    Runs that are chaotic do not go together either, but begin alike.
    """
    found = step_correlations(losses, 0) if len(losses) >= FEWEST else None
    return found is not None and found[0] < STRANGE and beginning_apart(losses) > max(APART, losses.unit)


def _at_lags(losses: Losses, lags: int) -> dict[int, float] | None:
    if len(losses) < 3:  # noqa: PLR2004 - two changes
        return None
    ours, theirs = changes(losses.reference, losses.scale), changes(losses.candidate, losses.scale)
    found = lagged_correlations(ours, theirs, min(lags, len(ours) // 4))
    return None if math.isnan(found[0]) else found
