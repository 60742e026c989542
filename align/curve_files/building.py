"""From the rows of a file to one value a step: numbering, resumed runs, losses that were NaN."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from align.curve_files.choosing import Choice
from align.curve_files.logs import SO_FAR
from align.curve_files.names import NAN_ITERATIONS, SKIPPED, is_validation, plain, seconds_in, words
from align.curve_files.recorded import FILLED, fillers, megatron_losses, since_the_row_before, skipped_steps
from align.curve_files.shown import shown
from align.curve_files.tables import Column, Table
from align.curve_records import CurveKind, Curves, Quantity
from align.errors import CurveError
from align.sentences import say

_NUMBERED_SHARE = 0.5
_LARGEST_STEP = 2.0**53
Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """What is recorded in each row: values, whether one is recorded, and whether a loss was NaN or Inf."""

    values: dict[Quantity, Numbers]
    recorded: dict[Quantity, Mask]
    nonfinite: Mask


def build_curves(table: Table, choice: Choice, path: str, sha256: str) -> Curves:
    """The curves of a table; raises CurveError where no loss is recorded in it."""
    notes = list(table.notes)
    steps, numbered = _numbering(table, choice, notes)
    rows = _recorded_rows(table, choice, steps, notes)
    used = numbered & np.logical_or.reduce(list(rows.recorded.values()))
    if not (rows.recorded[Quantity.LOSS] & used).any():
        raise CurveError(
            say(
                "Cannot find a loss in '{}': the column '{}' holds no value that was recorded. Choose another "
                "column with --column loss=NAME.",
                path,
                choice.taken[Quantity.LOSS],
            )
        )
    whole = steps[used].astype(np.int64)
    unique, places = np.unique(whole, return_inverse=True)
    columns: dict[Quantity, Numbers] = {}
    nonfinite = np.zeros(len(unique), dtype=bool)
    for quantity, recorded in rows.recorded.items():
        there = recorded[used]
        columns[quantity] = np.full(len(unique), np.nan)
        columns[quantity][places[there]] = rows.values[quantity][used][there]
        if quantity is Quantity.LOSS:
            nonfinite[places[there]] = rows.nonfinite[used][there]
            _note_repeats(unique, places[there], notes)
    _zero_for_nan(table, choice, columns, nonfinite, notes)
    kept = [quantity for quantity in columns if quantity is Quantity.LOSS or not np.isnan(columns[quantity]).all()]
    counts = _skip_counts(table, used, unique, places)
    return Curves(
        path=path,
        kind=table.kind,
        steps=unique,
        columns={quantity: columns[quantity] for quantity in kept},
        nonfinite=nonfinite,
        skipped=_skipped(table.kind, counts, unique, notes),
        taken={quantity: choice.taken[quantity] for quantity in kept},
        sha256=sha256,
        notes=tuple(notes),
    )


def _numbering(table: Table, choice: Choice, notes: list[str]) -> tuple[Numbers, Mask]:
    """The step of each row, and which rows have one."""
    loss = table.columns[choice.taken[Quantity.LOSS]]
    any_taken = np.logical_or.reduce([table.columns[name].written(table.count) for name in choice.taken.values()])
    counted = np.cumsum(any_taken) - 1.0
    column = table.steps or (table.columns[choice.steps] if choice.steps else None)
    if column is None:
        notes.append(say("The file has no column of steps: its rows are numbered from 0."))
        return counted, any_taken
    steps = column.spread(table.count)
    whole = np.isfinite(steps) & (np.abs(steps) < _LARGEST_STEP)
    whole[whole] = steps[whole] == np.floor(steps[whole])
    if whole[loss.rows].mean() < _NUMBERED_SHARE:
        notes.append(say("Most rows have no step: the rows are numbered from 0."))
        return counted, any_taken
    if _begins_anew_each_epoch(table, steps, whole & loss.written(table.count)):
        notes.append(say("The steps begin anew in each epoch: the rows are numbered from 0."))
        return counted, any_taken
    lost = int((any_taken & ~whole).sum())
    if lost:
        notes.append(say("Rows without a whole number as their step: {}. They were left out.", f"{lost:,}"))
    if "samples" in words(choice.taken[Quantity.LOSS]):
        notes.append(say("The steps of the file count samples."))
    return steps, whole


def _begins_anew_each_epoch(table: Table, steps: Numbers, rows: Mask) -> bool:
    """Whether steps fall back only where an epoch ends, which is no run that was resumed."""
    epochs = next((column for name, column in table.columns.items() if plain(name) == "epoch"), None)
    if epochs is None:
        return False
    here, epoch = steps[rows], epochs.spread(table.count)[rows]
    back = np.flatnonzero(np.diff(here) <= 0)
    return len(back) > 0 and bool((np.diff(epoch)[back] > 0).all())


def _recorded_rows(table: Table, choice: Choice, steps: Numbers, notes: list[str]) -> _Rows:
    """What of the written cells is recorded, row by row."""
    values: dict[Quantity, Numbers] = {}
    recorded: dict[Quantity, Mask] = {}
    nonfinite = np.zeros(table.count, dtype=bool)
    for quantity, name in choice.taken.items():
        column = table.columns[name]
        if quantity is Quantity.LOSS:
            values[quantity], recorded[quantity], nonfinite = _losses(table, column, name, steps, notes)
        else:
            there = column.written(table.count)
            if quantity is Quantity.GRADIENT_NORM:
                if table.kind in FILLED:
                    there[column.rows] = ~fillers(column.values, np.zeros(len(column.rows), dtype=bool))
                # Megatron-LM prints 0 where it skipped the update before it knew the norm.
                there &= ~((column.spread(table.count) == 0) & (_named(table, SKIPPED) > 0))
            factor = seconds_in(name) if quantity is Quantity.SECONDS else 1.0
            values[quantity], recorded[quantity] = column.spread(table.count) * factor, there
    return _Rows(values, recorded, nonfinite)


def _losses(table: Table, column: Column, name: str, steps: Numbers, notes: list[str]) -> tuple[Numbers, Mask, Mask]:
    """The loss of each row, whether it is recorded, and whether it was NaN or Inf."""
    values = column.spread(table.count)
    if table.kind is CurveKind.MEGATRON_LOG:
        skipped = _named(table, SKIPPED)
        nan = _named(table, NAN_ITERATIONS)
        iterations = np.isfinite(steps)
        values, there, nonfinite = megatron_losses(values, steps, skipped, nan)
        return values, there & iterations, nonfinite & iterations
    there = column.written(table.count)
    if table.kind not in FILLED:
        return values, there, there & ~np.isfinite(values)
    validation = np.zeros(table.count, dtype=bool)
    for other, beside in table.columns.items():
        if is_validation(other):
            validation[beside.rows[np.isfinite(beside.values)]] = True
    filling = fillers(column.values, validation[column.rows])
    there[column.rows] = ~filling
    if filling.any():
        notes.append(
            say(
                "Rows with nan or 0 in the column '{}' where no loss was logged: {}. They were left out.",
                shown(name),
                f"{int(filling.sum()):,}",
            )
        )
    return values, there, there & ~np.isfinite(values)


def _named(table: Table, names: tuple[str, ...]) -> Numbers:
    """The largest value of the columns with these names in each row; NaN where none has one."""
    found = np.full(table.count, np.nan)
    for name, column in table.columns.items():
        if plain(name) in names:
            found = np.fmax(found, column.spread(table.count))
    return found


def _note_repeats(unique: NDArray[np.int64], places: NDArray[np.int64], notes: list[str]) -> None:
    """Say which steps have a loss more than once."""
    repeated = unique[np.bincount(places, minlength=len(unique)) > 1]
    if len(repeated):
        notes.append(
            say(
                "Steps that are in the file more than once, as of a resumed run or of several processes: {}, from step "
                "{} to step {}. The later value was taken.",
                f"{len(repeated):,}",
                int(repeated[0]),
                int(repeated[-1]),
            )
        )


def _zero_for_nan(
    table: Table, choice: Choice, columns: dict[Quantity, Numbers], nonfinite: Mask, notes: list[str]
) -> None:
    """A loss of exactly 0 whose gradient norm is NaN was NaN: the Trainer of transformers leaves NaN out of its sum.

    With `logging_nan_inf_filter`, which is on by default, a NaN loss adds the mean since the last row, and that is 0
    once all since then were NaN (`_inner_training_loop` in transformers/trainer.py).
    """
    if Quantity.GRADIENT_NORM not in choice.taken:
        return
    norm = table.columns[choice.taken[Quantity.GRADIENT_NORM]]
    if not np.isnan(norm.values).any():
        return
    hidden = (columns[Quantity.LOSS] == 0) & np.isnan(columns[Quantity.GRADIENT_NORM])
    if hidden.any():
        columns[Quantity.LOSS][hidden] = np.nan
        nonfinite |= hidden
        notes.append(
            say(
                "Steps whose loss is written as 0 beside a gradient norm of nan: {}. Their losses were NaN, which the "
                "Trainer of transformers leaves out of its sum.",
                f"{int(hidden.sum()):,}",
            )
        )


def _skip_counts(table: Table, used: Mask, unique: NDArray[np.int64], places: NDArray[np.int64]) -> Numbers:
    """What the file says of skipped attempts at each step, NaN where nothing."""
    counts, totals = _named(table, SKIPPED)[used], _named(table, (plain(SO_FAR),))[used]
    spread, so_far = np.full(len(unique), np.nan), np.full(len(unique), np.nan)
    for target, given in ((spread, counts), (so_far, totals)):
        there = ~np.isnan(given)
        target[places[there]] = given[there]
    grown = since_the_row_before(so_far, unique)
    return np.where(np.isnan(spread), grown, spread)


def _skipped(kind: CurveKind, counts: Numbers, steps: NDArray[np.int64], notes: list[str]) -> Mask:
    """Which steps were skipped; counts that rows of several steps hold are told in a note."""
    skipped = skipped_steps(kind, counts, steps)
    rest = int(np.nan_to_num(counts[~skipped]).sum())
    if rest:
        notes.append(say("Skipped steps that are counted in rows of several steps, and not marked: {}.", f"{rest:,}"))
    return skipped
