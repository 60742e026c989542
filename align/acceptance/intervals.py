"""Rows that stand for several steps: a log that has every step against one that has means over ten.

Megatron-LM and the Trainer of transformers log the mean since their last row, other scripts the loss of one step. No
file says which: of two logs with different intervals the finer one is taken both ways, and the way is kept in which
both go together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from align.curve_records import Curves, Quantity

FEWEST = 10
"""So many common rows tell means from single losses."""
REGULAR = 0.9
"""The share of rows that follow at the usual distance."""
BETTER = 0.5
"""Means are taken where they leave less than this share of the scatter that single losses leave. Means over two
batches scatter by 0.7 of what single ones do, so that a log of single losses never takes them by chance."""

SMALLEST = 1e-3
"""Of the largest loss: differences are relative to no less."""

Steps = NDArray[np.int64]
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Averaged:
    """A run whose rows are means of `rows` of its own; `late` says that they end one row before the number says."""

    curves: Curves
    rows: int
    late: bool


def spacing(steps: Steps) -> int:
    """The usual distance of two neighbours, 1 where there are none."""
    return int(np.median(np.diff(steps))) if len(steps) > 1 else 1


def averaged(fine: Curves, coarse: Curves) -> Averaged | None:
    """The finer run as means at the other's steps, None where its intervals are no finer or single losses fit better.

    Only the loss is averaged: norms and rates of a row are those of its last step. Both have a loss at all their steps.
    """
    ours, theirs = spacing(fine.steps), spacing(coarse.steps)
    common = np.intersect1d(fine.steps, coarse.steps, assume_unique=True)
    if len(common) < FEWEST or theirs <= ours or theirs % ours:
        return None
    if not (_regular(fine.steps) and _regular(coarse.steps)):
        return None
    rows = theirs // ours
    # A log that counts from 0 calls the tenth step 9, one that counts from 1 calls it 10 and begins with it.
    ways = [Averaged(_means(fine, rows, 0), rows, late=False)]
    if fine.steps[0] == 0 and coarse.steps[0] == theirs:
        ways.append(Averaged(_means(fine, rows, 1), rows, late=True))
    best = min(ways, key=lambda way: _scatter(way.curves, coarse))
    return best if _scatter(best.curves, coarse) < BETTER * _scatter(fine, coarse, common) else None


def _regular(steps: Steps) -> bool:
    return bool((np.diff(steps) == spacing(steps)).mean() >= REGULAR)


def _means(fine: Curves, rows: int, late: int) -> Curves:
    """Each row as the mean of `rows` ending with it, or so many rows before; only where they follow without a gap."""
    distance = spacing(fine.steps)
    last = np.arange(rows - 1 + late, len(fine.steps))
    whole = fine.steps[last] - fine.steps[last - rows + 1 - late] == distance * (rows - 1 + late)
    last = last[whole]
    # Scalers leave out the steps that they skip, and so do the means of logs.
    left_out = fine.nonfinite & fine.skipped
    loss = np.where(fine.nonfinite, 0.0, fine.columns[Quantity.LOSS])
    sums, kept, lost = (
        np.concatenate(([0.0], np.cumsum(values))) for values in (loss, ~fine.nonfinite, fine.nonfinite & ~left_out)
    )
    end = last + 1 - late
    count, broken = kept[end] - kept[end - rows], lost[end] - lost[end - rows] > 0
    none = broken | (count == 0)
    means = np.where(none, np.nan, (sums[end] - sums[end - rows]) / np.maximum(count, 1))
    columns = {quantity: values[last] for quantity, values in fine.columns.items()}
    return replace(
        fine,
        steps=fine.steps[last],
        columns={**columns, Quantity.LOSS: means},
        nonfinite=none,
        skipped=fine.skipped[last],
    )


def _scatter(one: Curves, other: Curves, steps: Sequence[int] | Steps | None = None) -> float:
    """How far apart both losses are from step to step, a steady difference left aside."""
    common = np.intersect1d(one.steps, other.steps, assume_unique=True) if steps is None else np.asarray(steps)
    ours, theirs = (each.columns[Quantity.LOSS][np.searchsorted(each.steps, common)] for each in (one, other))
    kept = np.isfinite(ours) & np.isfinite(theirs)
    if kept.sum() < FEWEST:
        return float("inf")
    largest = max(float(np.abs(theirs[kept]).max()), float(np.finfo(np.float64).tiny))
    relative = (ours[kept] - theirs[kept]) / np.maximum(np.abs(theirs[kept]), SMALLEST * largest)
    return float(np.median(np.abs(relative - np.median(relative))))
