"""Which column of a file is which quantity, by its name, or by what the user says."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from align.curve_files.names import EXPORTED, asked_for, is_validation, loss_rank, plain, rank_of, step_rank, words
from align.curve_files.shown import listed, option, shown
from align.curve_files.tables import Column, Table
from align.curve_records import Quantity
from align.errors import CurveError
from align.sentences import joined, say

_FEW = 0.1
"""A column with fewer values than this share of the fullest is a remark in a log, or a mean at the end."""
_SECONDS_SINCE_1970 = 1e8
_NAMELESS = "column "
_NEAREST = 3
_BESIDE_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Choice:
    """The names of the columns that are taken, and of that which gives the steps (None: rows are counted)."""

    taken: Mapping[Quantity, str]
    steps: str | None


def choose(table: Table, asked: Mapping[Quantity, str], path: str) -> Choice:
    """Choose the columns of a table; raises CurveError where the loss is missing, or may be more than one of them."""
    taken = {quantity: _asked(table, quantity, name, path) for quantity, name in asked.items()}
    nameless = _nameless(table)
    steps = nameless[1] if nameless else None
    if Quantity.LOSS not in taken:
        taken[Quantity.LOSS] = nameless[0] if nameless else _loss(table, path)
    if steps is None or steps in taken.values():
        steps = _steps(table, set(taken.values()), table.columns[taken[Quantity.LOSS]])
    for quantity in Quantity:
        if quantity not in taken:
            name = _best(table.columns, partial(rank_of, quantity=quantity), set(taken.values()))
            if name is not None:
                taken[quantity] = name
    return Choice({quantity: taken[quantity] for quantity in Quantity if quantity in taken}, steps)


def _asked(table: Table, quantity: Quantity, name: str, path: str) -> str:
    """The column that the user names: by its name, or by its number where columns have none."""
    found = [column for column in table.columns if column == name]
    found = found or [column for column in table.columns if asked_for(column, name)]
    found = found or [column for column in table.columns if column == f"{_NAMELESS}{name}"]
    if len(found) == 1:
        return found[0]
    if found:
        ways = joined(" or ", (option(quantity, column) for column in found))
        raise CurveError(
            say(
                "Cannot tell which column of '{}' is meant by '{}': it may be {}. Choose with {}.",
                path,
                shown(name),
                listed(found),
                ways,
            )
        )
    if any(asked_for(column, name) for column in table.names):
        raise CurveError(
            say(
                "Cannot take the column '{}' of '{}': it holds no numbers. {}",
                shown(name),
                path,
                _others(table, quantity),
            )
        )
    near = difflib.get_close_matches(name[:200], [column[:200] for column in table.names], n=_NEAREST, cutoff=0.5)
    ways = joined(" or ", (option(quantity, column) for column in near))
    nearest = (
        say("The nearest are {}: choose with {}.", listed(near), ways)
        if len(near) > 1
        else say("The nearest is {}: choose with {}.", listed(near), ways)
    )
    raise CurveError(
        say("Cannot find the column '{}' in '{}'. {}", shown(name), path, nearest if near else _others(table, quantity))
    )


def _others(table: Table, quantity: Quantity) -> str:
    """What can be taken instead."""
    if not table.names:
        return say("It has no columns with numbers.")
    return say("Its columns are {}: choose one with --column {}=NAME.", listed(table.names), str(quantity))


def _loss(table: Table, path: str) -> str:
    """The column of the loss."""
    ranks = {name: rank for name in table.columns if (rank := loss_rank(name)) is not None}
    best = [name for name, rank in ranks.items() if rank == min(ranks.values())]
    found = _different(table, _during_training(table, _full(table, best)))
    if not found:
        raise CurveError(say("Cannot find a loss in '{}'. {}", path, _others(table, Quantity.LOSS)))
    if len(found) > 1:
        ways = joined(" or ", (option(Quantity.LOSS, name) for name in found[:_NEAREST]))
        raise CurveError(
            say(
                "Cannot tell which column of '{}' is the loss: it may be {}. Choose with {}.", path, listed(found), ways
            )
        )
    return found[0]


def _full(table: Table, names: Sequence[str]) -> list[str]:
    """The names without columns that have few values, and without the mean that a Trainer writes at its end."""
    most = max((len(table.columns[name].rows) for name in names), default=0)
    full = [name for name in names if len(table.columns[name].rows) >= _FEW * most]
    if any(words(name)[-2:] == ("train", "runtime") for name in table.names):
        inner = [
            name for name in full if words(name)[-2:] != ("train", "loss") or len(words(name)) == len(("train", "loss"))
        ]
        full = inner or full
    return full


def _during_training(table: Table, names: Sequence[str]) -> list[str]:
    """The names without losses that always stand beside one of validation, where another does not."""
    beside = np.zeros(table.count, dtype=bool)
    for name, column in table.columns.items():
        if is_validation(name):
            beside[column.rows] = True
    alone = [name for name in names if not beside[table.columns[name].rows].all()]
    return alone or list(names)


def _different(table: Table, names: Iterable[str]) -> list[str]:
    """The names without columns that hold the same numbers as an earlier one."""
    found: list[str] = []
    for name in names:
        if not any(_same(table.columns[name], table.columns[other]) for other in found):
            found.append(name)
    return found


def _same(one: Column, other: Column) -> bool:
    return np.array_equal(one.rows, other.rows) and np.array_equal(one.values, other.values, equal_nan=True)


def _best(names: Iterable[str], rank: Callable[[str], int | None], without: set[str]) -> str | None:
    """The column whose name ranks best, None where none does."""
    ranks = {name: place for name in names if name not in without and (place := rank(name)) is not None}
    return min(ranks, key=lambda name: ranks[name], default=None)


def _steps(table: Table, taken: set[str], loss: Column) -> str | None:
    """The column of steps: the one whose name is best among those that most rows of the loss have."""
    beside = [
        name
        for name, column in table.columns.items()
        if np.isin(loss.rows, column.rows, assume_unique=True).mean() >= _BESIDE_SHARE
    ]
    for names in (beside, list(table.columns)):
        found = _best(names, step_rank, taken)
        found = found or next((name for name in names if name not in taken and _counts(table, name)), None)
        if found is not None:
            return found
    return None


def _nameless(table: Table) -> tuple[str, str | None] | None:
    """Loss and steps of a table whose names do not say it: rows of numbers alone, and exports of TensorBoard.

    TensorBoard exports `Wall time,Step,Value`, or lists of these three; MLflow keeps lines of time, value and step.
    """
    if {plain(name) for name in table.names} == EXPORTED:
        return next(
            name for name in table.names if plain(name) == "value"
        ), None if "step" not in table.columns else "step"
    names = list(table.columns)
    if not names or not all(name == f"{_NAMELESS}{place}" for place, name in enumerate(names, start=1)):
        return None
    if len(names) == 1:
        return names[0], None
    if len(names) == len(("step", "loss")) and _counts(table, names[0]):
        return names[1], names[0]
    if len(names) == len(("time", "step", "value")) and (table.columns[names[0]].values > _SECONDS_SINCE_1970).all():
        for steps, loss in ((names[1], names[2]), (names[2], names[1])):
            if _counts(table, steps):
                return loss, steps
    return None


def _counts(table: Table, name: str) -> bool:
    """Whether a column without a name can be that of steps: whole numbers that rise."""
    values = table.columns[name].values
    return name.startswith(_NAMELESS) and bool((np.diff(values) > 0).all() and (values == np.floor(values)).all())
