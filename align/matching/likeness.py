"""How alike two modules are: by what a port of a model to other code keeps, with the reasons and one score."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.matching.alignment import FORBIDDEN, Matrix, alike_words, closeness, equal
from align.matching.looks import Look, Looks

# How much each likeness weighs in the score, by judgement: what a port keeps weighs more than what it changes. Equal
# initial weights that are no constants cannot be chance; names are what was changed. Measured on GPT-2, Llama, a CNN,
# networks with a GRU and a mixture of experts (9 captures) with 47,000 modules to pair: some or all parts of the names
# were random words, up to two modules with all they hold taken from either run. With equal initial weights 0.1 % were
# missed and 0.1 % paired wrongly, with other weights and values 0.5 % and 0.3 %; all but a few of the wrong ones had
# lost their true partner.
WEIGHTS: Mapping[str, float] = {
    "initial weights": 4.0,
    "class": 3.0,
    "parameter shapes": 3.0,
    "output values": 3.0,
    "output shapes": 2.0,
    "parent": 3.0,
    "name": 2.0,
    "input shapes": 1.0,
    "leaf": 1.0,
    "calls": 1.0,
}

FEWEST_WEIGHTS = 6.0
"""So much must be known of two modules, in units of the weights above: class and name alone are not enough."""
SAME_VALUES = 0.9
"""Outputs that lie closer than a tenth of their norm are the same values; others may differ for any reason."""
AGREES = 0.9
"""A likeness from here on is told as a reason."""
STARTS_ALIKE = 0.5
"""Where so many weights of the smaller model are weights of the other, both start from the same ones: drawn twice, none
would be."""


def likenesses(
    left: Sequence[Look], right: Sequence[Look], parents: Matrix, end: int, *, same_start: bool
) -> Iterator[tuple[str, Matrix]]:
    """How alike modules are in each respect, from 0 to 1; NaN where that is not known or says nothing.

    `parents` are 1 where the modules around are a pair; `end` chooses the first (0) or the last (1) call of each;
    `same_start` says that other initial weights speak against a pair.
    """
    calls = [[look.ends[end] if look.ends is not None else None for look in side] for side in (left, right)]
    outputs = equal(*([None if call is None else call.outputs for call in side] for side in calls))
    yield "output shapes", outputs
    values = closeness(*([None if call is None else call.value for call in side] for side in calls))
    yield "output values", np.where((values >= SAME_VALUES) & (outputs == 1.0), 1.0, np.nan)
    yield "input shapes", equal(*([None if call is None else call.inputs for call in side] for side in calls))
    weights = equal([look.weights or None for look in left], [look.weights or None for look in right])
    if not same_start:
        weights[weights == 0.0] = np.nan
    yield "initial weights", weights
    classes = alike_words([look.class_name or "" for look in left], [look.class_name or "" for look in right])
    classes[[look.class_name is None for look in left], :] = np.nan
    classes[:, [look.class_name is None for look in right]] = np.nan
    yield "class", classes
    yield "parameter shapes", _shapes(left, right)
    yield "parent", parents
    yield "name", alike_words([look.last for look in left], [look.last for look in right])
    yield "leaf", equal([look.leaf for look in left], [look.leaf for look in right])
    yield "calls", equal([look.calls for look in left], [look.calls for look in right])


def start_alike(ours: Looks, theirs: Looks) -> bool:
    """Whether nearly all weights of the smaller model are weights of the other."""
    sides = [{digest for look in looks.by_name.values() for digest in look.weights} for looks in (ours, theirs)]
    smaller = min(map(len, sides))
    return smaller > 0 and len(sides[0] & sides[1]) >= STARTS_ALIKE * smaller


def _shapes(left: Sequence[Look], right: Sequence[Look]) -> Matrix:
    """1 for equal shapes of parameters; that two modules have none says nothing."""
    found = equal([look.shapes for look in left], [look.shapes for look in right])
    none = [np.array([not look.parameters for look in side], dtype=bool) for side in (left, right)]
    found[none[0][:, None] & none[1][None, :]] = np.nan
    return found


def scores_of(shape: tuple[int, int], likenesses: Iterable[tuple[str, Matrix]]) -> tuple[Matrix, NDArray[np.uint16]]:
    """The weighted mean of what is known, and what agrees as one bit each; other shapes of parameters forbid a pair."""
    total, known = np.zeros(shape), np.zeros(shape)
    other, reasons = np.zeros(shape, bool), np.zeros(shape, np.uint16)
    for name, found in likenesses:
        total += WEIGHTS[name] * np.nan_to_num(found)
        known += WEIGHTS[name] * ~np.isnan(found)
        reasons |= np.where(found >= AGREES, np.uint16(1 << _NAMES.index(name)), np.uint16(0))
        if name == "parameter shapes":
            other = found == 0.0
    scores: Matrix = np.divide(total, known, out=np.zeros(shape), where=known >= FEWEST_WEIGHTS)
    scores[other] = FORBIDDEN
    return scores, reasons


_NAMES = tuple(WEIGHTS)


def words_of(bits: Any) -> tuple[str, ...]:
    """The names of the likenesses that agree."""
    return tuple(name for place, name in enumerate(_NAMES) if int(bits) >> place & 1)
