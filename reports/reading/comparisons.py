"""The pairs of a document back into comparisons, with all that a report shows of each."""

from __future__ import annotations

import math
from typing import Any

from align.records import Aspect, Comparison, Phase, Status, TensorKey, TensorRecord, TensorStats
from align.reports.reading.columns import Columns, read_columns
from align.reports.reading.values import MOST, Misread, read_word
from align.sentences import say

HASH_DIGITS = 16
LENGTH_DIGITS = 18
"""More digits has no length of a tensor."""
_HEXADECIMAL = frozenset("0123456789abcdef")


def read_keys(value: Any, place: str) -> tuple[TensorKey, ...]:
    """The keys of tensors that one side alone has."""
    return tuple(_keys(read_columns(value, place)))


def read_comparisons(value: Any, place: str) -> tuple[Comparison, ...]:
    """The pairs in execution order; raises Misread for what is no table of pairs.

    The records know what the document knows of them. The order is the place in the table.
    """
    table = read_columns(value, place)
    keys = _keys(table)
    sides = [_records(table, keys, "reference"), _records(table, _answers(table, keys), "candidate")]
    statuses = table.words("status", lambda word, at: read_word(Status, word, at))
    aspects = table.words("aspect", lambda word, at: read_word(Aspect, word, at), Aspect.SIZE)
    names = ("relative_l2", "unit", "floor", "times_floor", "limit", "part")
    rows = zip(*sides, statuses, *(table.numbers(name) for name in names), aspects, strict=True)
    return tuple(
        Comparison(
            ours, theirs, status, relative, _or_zero(unit), _or_zero(floor), times, _or_zero(limit), aspect, part
        )
        for ours, theirs, status, relative, unit, floor, times, limit, part, aspect in rows
    )


def _or_zero(value: float | None) -> float:
    """The number; -0.0 stays what it is."""
    return 0.0 if value is None else value


def _keys(table: Columns) -> list[TensorKey]:
    phases = table.words("phase", lambda word, at: read_word(Phase, word, at))
    return [
        TensorKey(*parts)
        for parts in zip(
            table.integers("step"), phases, table.texts("name"), table.texts("slot"),
            table.integers("micro", 0), table.integers("call", 0), strict=True,
        )
    ]  # fmt: skip


def _answers(table: Columns, keys: list[TensorKey]) -> list[TensorKey]:
    """The keys of the candidate's tensors: the reference's, unless the table has others."""
    if "candidate_name" not in table.columns:
        return keys
    names, slots = table.texts("candidate_name"), table.texts("candidate_slot")
    numbers = table.integers("candidate_micro"), table.integers("candidate_call")
    return [
        TensorKey(key.step, key.phase, *parts)
        for key, parts in zip(keys, zip(names, slots, *numbers, strict=True), strict=True)
    ]


def _records(table: Columns, keys: list[TensorKey], side: str) -> list[TensorRecord]:
    dtypes = table.texts(f"{side}_dtype")
    shapes = table.words(f"{side}_shape", read_shape)
    hashes = table.words(f"{side}_hash", _hash, _NO_HASH)
    resolutions = table.numbers("resolution")
    stats = _stats(table, side, dtypes, shapes)
    return [
        TensorRecord(key, order, dtype, shape, of, found[0], resolution=resolution or 0.0)
        for order, (key, dtype, shape, of, found, resolution) in enumerate(
            zip(keys, dtypes, shapes, stats, hashes, resolutions, strict=True)
        )
    ]


def _stats(table: Columns, side: str, dtypes: list[str], shapes: list[tuple[int, ...]]) -> list[TensorStats | None]:
    numbers = (table.numbers(f"{side}_{name}") for name in ("absolute_maximum", "mean", "rms"))
    counts = (table.counts(f"{side}_{name}") for name in ("nans", "infs", "zeros", "subnormals"))
    rows: Any = zip(dtypes, shapes, *numbers, *counts, strict=True)
    return [None if row[5] is None or row[6] is None else _of_tensor(row[0], row[1], row[2:5], row[5:]) for row in rows]


def _of_tensor(
    dtype: str, shape: tuple[int, ...], numbers: tuple[float | None, ...], counts: tuple[int | None, ...]
) -> TensorStats:
    """The statistics that give these numbers: a float without a greatest magnitude has no finite element."""
    largest, mean, rms = numbers
    nans, infs, zeros, subnormals = (number or 0 for number in counts)
    count, odd = math.prod(shape), nans + infs
    if "float" in dtype:
        count = odd if largest is None else max(count, odd + 1)
    finite = count - odd
    return TensorStats(
        count=count,
        maximum=largest or 0.0,
        total=_or_zero(mean) * finite,
        total_squares=_or_zero(rms) * _or_zero(rms) * finite,
        zeros=zeros,
        nans=nans,
        positive_infs=infs,
        subnormals=subnormals,
    )


_NO_HASH: tuple[int | None] = (None,)


def _hash(word: str, place: str) -> tuple[int | None]:
    """The hash in a tuple, so that none is a value too."""
    if word and (len(word) != HASH_DIGITS or not _HEXADECIMAL.issuperset(word)):
        raise Misread(place, say("is {}, not a hash of {} hexadecimal digits", repr(word[:40]), HASH_DIGITS))
    return (int(word, 16),) if word else _NO_HASH


def read_shape(word: str, place: str) -> tuple[int, ...]:
    """The lengths of `4x64x96`; of a scalar none."""
    parts = word.split("x") if word else []
    if not all(part.isascii() and part.isdigit() and len(part) <= LENGTH_DIGITS for part in parts):
        raise Misread(place, say("is {}, not a shape such as '4x64x96'", repr(word[:40])))
    lengths = tuple(map(int, parts))
    if math.prod(lengths) >= MOST:
        raise Misread(place, say("is {}, which no tensor has", repr(word[:40])))
    return lengths
