"""Which numbers of a column were recorded, and which only fill a cell where nothing was logged.

An empty cell was never a number. `nan` and an exact 0 may be either, and are judged by where they stand. They fill
cells

* before the first number of the column;
* in rows of validation, where the loss of training stands in other rows;
* between numbers that stand at a regular distance of two rows and more, as of a loss that is logged every ten steps
  into a table with a row for each. At the places of that grid they are values, and behind its last number, too, once a
  place of the grid has passed.

Everywhere else `nan` is a loss that was NaN, and 0 is a loss of 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from align.curve_records import CurveKind

Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]

FILLED = frozenset({CurveKind.CSV, CurveKind.JSON, CurveKind.JSON_LINES})
"""Tables have a cell for each column in each row; in logs and event files a number is there because it was logged."""
_FEWEST = 3
"""So many numbers make a grid."""
_GRID_SHARE = 0.5
"""At least this share of the places of a grid hold a number; numbers in a dense column stand on one by chance only."""
_VALIDATION_SHARE = 0.5


def fillers(values: Numbers, validation: Mask) -> Mask:
    """Which of the written cells of a column only fill them; `validation` are cells in rows with a validation loss."""
    filling = np.zeros(len(values), dtype=bool)
    numbers = np.isfinite(values) & (values != 0)
    if not numbers.any():
        return filling
    if validation[numbers].mean() < _VALIDATION_SHARE:
        filling |= np.isnan(values) & validation
    for filler in (np.isnan(values), values == 0):
        places = np.flatnonzero(~filling & (numbers | filler))
        filling[places[_fill(filler[places])]] = True
    return filling


def _fill(filler: Mask) -> Mask:
    """Which of the fillers in a column stand where nothing was logged."""
    numbers = np.flatnonzero(~filler)
    places = np.arange(len(filler))
    first, last = int(numbers[0]), int(numbers[-1])
    filling = filler & (places < first)
    distance = int(np.gcd.reduce(np.diff(numbers))) if len(numbers) >= _FEWEST else 1
    if distance > 1 and len(numbers) >= _GRID_SHARE * ((last - first) // distance + 1):
        filling |= filler & ((places - first) % distance != 0)
    return filling


def megatron_losses(values: Numbers, steps: Numbers, skipped: Numbers, nan: Numbers) -> tuple[Numbers, Mask, Mask]:
    """Losses of rows of Megatron-LM: the values, whether one is recorded, and whether it was NaN or Inf.

    A row without a loss, or with 0, is one of skipped iterations where all of its iterations were skipped. Otherwise
    its mean was NaN, which Megatron-LM does not print. Iterations that it counts as NaN make the loss of their row one
    that was not finite, also where the mean of the others is a number.
    """
    spans = _spans(steps)
    empty = np.isnan(values) | (values == 0)
    bad = np.nan_to_num(nan) > 0
    idle = empty & (np.nan_to_num(skipped) >= spans) & ~bad
    lost = empty & ~idle
    return np.where(lost, np.nan, values), ~idle, lost | bad | np.isinf(values)


def _spans(steps: Numbers) -> Numbers:
    """For how many steps each row stands: since the row before, and as most do for the first and after a resume."""
    gaps = np.diff(steps, prepend=np.nan)
    rising = gaps[gaps > 0]
    usual = float(np.median(rising)) if len(rising) else 1.0
    return np.where(gaps > 0, gaps, usual)


def skipped_steps(kind: CurveKind, counts: Numbers, steps: NDArray[np.int64]) -> Mask:
    """Which steps made no update, from what the file says of each (NaN where nothing).

    The logs of Megatron-LM and DeepSpeed count skipped steps; a row that stands for several is marked where all were.
    """
    known = np.nan_to_num(counts)
    if kind not in {CurveKind.MEGATRON_LOG, CurveKind.DEEPSPEED_LOG}:
        return known > 0
    spans = np.maximum(_spans(steps.astype(np.float64)), 1)
    if (known > spans).any():
        # More attempts than steps: the rows are numbered, and how many steps each stands for is not known.
        return np.zeros(len(steps), dtype=bool)
    return known >= spans


def since_the_row_before(totals: Numbers, steps: NDArray[np.int64]) -> Numbers:
    """How much a total grew from one row that has it to the next; NaN in the others, and where it began before."""
    there = np.flatnonzero(~np.isnan(totals))
    grown = np.full(len(totals), np.nan)
    if len(there):
        grown[there] = np.diff(totals[there], prepend=0.0)
        begun = float(steps[there[0]]) <= _spans(steps[there].astype(np.float64))[0]
        grown[there[0]] = totals[there[0]] if begun else np.nan
        grown[grown < 0] = np.nan
    return grown
