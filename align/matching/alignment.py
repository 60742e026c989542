"""Align two sequences: which entry of one answers which entry of the other, in order, with gaps on either side.

The method is that of Needleman and Wunsch (1970) with a gap that costs nothing: the pairs are those, in order, whose
gains have the largest sum. An entry whose gain is below 0 with all others stays alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

MOST_CELLS = 4_000_000
"""Three tables of so many float64 numbers are 96 MB: 2,000 entries on each side."""

FORBIDDEN = -np.inf
"""The gain of two entries that cannot be a pair."""

ENDS_ALIKE = 0.8
"""How alike two names are of which one begins or ends with the other: GPT2Attention and Attention, q and q_proj."""


class Match(NamedTuple):
    """Entry `row` of the first sequence answers entry `column` of the second.

    `margin` is by how much the sum of all gains would be smaller without this pair: 0 says that another alignment is
    as good.
    """

    row: int
    column: int
    margin: float


def align_sequences(gains: Matrix) -> list[Match]:
    """The pairs of the best alignment, in order; of several that are as good the one that pairs the first entries."""
    rows, columns = gains.shape
    if not rows or not columns:
        return []
    rest = _best_of_ends(gains)
    before = _best_of_ends(gains[::-1, ::-1])[::-1, ::-1]
    found: list[Match] = []
    row = column = 0
    while row < rows and column < columns:
        whole, gain = rest[row, column], gains[row, column]
        if gain > 0.0 and gain + rest[row + 1, column + 1] >= whole - _tolerance(whole):
            found.append(Match(row, column, 0.0))
            row, column = row + 1, column + 1
        elif rest[row, column + 1] >= whole - _tolerance(whole):
            column += 1
        else:
            row += 1
    return [_with_margin(match, gains, before, rest) for match in found]


def _best_of_ends(gains: Matrix) -> Matrix:
    """The best sum of gains from (row, column) on, to the ends of both sequences."""
    rows, columns = gains.shape
    best = np.zeros((rows + 1, columns + 1))
    for row in range(rows - 1, -1, -1):
        paired = np.maximum(gains[row] + best[row + 1, 1:], best[row + 1, :-1])
        best[row, :-1] = np.maximum.accumulate(np.maximum(paired, 0.0)[::-1])[::-1]
    return best


def _tolerance(total: float) -> float:
    """What the order of a sum may change."""
    return 1e-12 * max(1.0, abs(total))


def _with_margin(match: Match, gains: Matrix, before: Matrix, rest: Matrix) -> Match:
    """The pair with what would be lost without it: its row paired with another column, or with none."""
    row, column, _ = match
    through = before[row, :-1] + gains[row] + rest[row + 1, 1:]
    through[column] = FORBIDDEN
    alone = before[row] + rest[row + 1]
    margin = float(rest[0, 0]) - max(float(through.max()), float(alone.max()))
    return Match(row, column, max(margin, 0.0))


def codes(ours: Sequence[Any], theirs: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both sequences as numbers, the same for what is equal; None becomes -1."""
    known: dict[Any, int] = {}
    sides = ([-1 if each is None else known.setdefault(each, len(known)) for each in side] for side in (ours, theirs))
    first, second = (np.array(side, dtype=np.int64) for side in sides)
    return first, second


def equal(ours: Sequence[Any], theirs: Sequence[Any]) -> Matrix:
    """1 where two entries are equal, 0 where they are not, NaN where one of them is None."""
    first, second = codes(ours, theirs)
    found: Matrix = (first[:, None] == second[None, :]).astype(np.float64)
    found[(first < 0)[:, None] | (second < 0)[None, :]] = np.nan
    return found


def alike_words(ours: Sequence[str], theirs: Sequence[str]) -> Matrix:
    """How alike two words are, from 0 to 1."""
    first, second = ({word: place for place, word in enumerate(dict.fromkeys(side))} for side in (ours, theirs))
    table = np.array([[likeness(one, other) for other in second] for one in first]).reshape(len(first), len(second))
    rows = np.array([first[word] for word in ours], dtype=np.int64)
    columns = np.array([second[word] for word in theirs], dtype=np.int64)
    found: Matrix = table[np.ix_(rows, columns)]
    return found


@lru_cache(maxsize=65536)
def likeness(one: str, other: str) -> float:
    """1 for equal words, 0 for different numbers; else the share of letters in common, in order."""
    if one == other:
        return 1.0
    if one.isdecimal() or other.isdecimal():
        return 0.0
    low, high = re.sub(r"[_\W]", "", one.lower()), re.sub(r"[_\W]", "", other.lower())
    if low and high and any(one.endswith(other) or one.startswith(other) for one, other in ((low, high), (high, low))):
        return ENDS_ALIKE
    return ENDS_ALIKE * SequenceMatcher(None, low, high, autojunk=False).ratio()


def closeness(ours: Sequence[NDArray[Any] | None], theirs: Sequence[NDArray[Any] | None]) -> Matrix:
    """1 for equal vectors, 0 for those whose difference is as long as they are, NaN where one is missing.

    The vectors are sketches of tensors of one shape: the distance of two sketches is about that of the tensors.
    """
    found = np.full((len(ours), len(theirs)), np.nan)
    lengths = {len(each) for each in ours if each is not None} & {len(each) for each in theirs if each is not None}
    for length in lengths:
        rows, left = _stacked(ours, length)
        columns, right = _stacked(theirs, length)
        squares = (left * left).sum(axis=1)[:, None], (right * right).sum(axis=1)[None, :]
        distance = np.sqrt(np.maximum(squares[0] + squares[1] - 2.0 * (left @ right.T), 0.0))
        size = np.sqrt(np.maximum(squares[0], squares[1]))
        relative = np.divide(distance, size, out=np.zeros_like(distance), where=size > 0.0)
        found[np.ix_(rows, columns)] = np.clip(1.0 - relative, 0.0, 1.0)
    return found


def _stacked(vectors: Sequence[NDArray[Any] | None], length: int) -> tuple[NDArray[np.int64], Matrix]:
    """Where the finite vectors of a length stand, and they as rows in float64."""
    places = [
        place
        for place, each in enumerate(vectors)
        if each is not None and len(each) == length and bool(np.isfinite(each).all())
    ]
    stacked = np.array([vectors[place] for place in places], dtype=np.float64).reshape(len(places), length)
    return np.array(places, dtype=np.int64), stacked
