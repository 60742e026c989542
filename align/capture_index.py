"""The index of a step: one row per record, packed for the file and unpacked from it; its facts likewise."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.capture_format import FACT_DTYPE, INDEX_DTYPE, PHASES
from align.records import Fact, FactValue, TensorKey, TensorRecord, TensorStats

_NO_STATS = TensorStats(0)
_PHASE_NUMBERS = {phase: number for number, phase in enumerate(PHASES)}
_TEXT_COLUMNS = ("name", "slot", "within", "dtype", "shape", "layout")
_FACT_TEXTS = ("name", "slot", "text")
_UNKNOWN, _BOOLEAN, _INTEGER, _REAL, _TEXT = range(5)
_NOWHERE = (-1, 0, -1, 0, -1, 0)
_EXACT_INTEGERS = 1 << 53


@dataclass(frozen=True, slots=True, eq=False)
class StepTables:
    """What a step's group holds besides values; the last three are empty in most steps."""

    index: NDArray[np.void]
    sketches: NDArray[np.float32]
    facts: NDArray[np.void]
    row_hashes: NDArray[np.uint64]
    exponents: NDArray[np.int64]

    def named(self) -> dict[str, NDArray[Any]]:
        """The tables by their names in the file, in the order in which the checksum takes them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Pool:
    """One-dimensional arrays joined to one; each is known by its place and length."""

    def __init__(self) -> None:
        self._pieces: list[NDArray[Any]] = []
        self._end = 0

    def add(self, piece: NDArray[Any] | None) -> tuple[int, int]:
        """Where the piece begins and how long it is; (-1, 0) for none."""
        if piece is None:
            return -1, 0
        self._pieces.append(piece)
        self._end += len(piece)
        return self._end - len(piece), len(piece)

    def joined(self, dtype: Any) -> NDArray[Any]:
        """All pieces in the order in which they came."""
        return np.concatenate([np.zeros(0, dtype=dtype), *self._pieces], dtype=dtype)


class Texts:
    """The positions of texts in /names; texts that are new wait to be written."""

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}
        self._new: list[str] = []

    def position(self, text: str) -> int:
        """Where the text stands, or will stand, in /names."""
        found = self._positions.get(text)
        if found is None:
            found = self._positions[text] = len(self._positions)
            self._new.append(text)
        return found

    def take_new(self) -> list[str]:
        """The texts that are not in /names yet, in their order; they count as written then."""
        new, self._new = self._new, []
        return new


def pack_step(
    records: Sequence[TensorRecord], with_values: Collection[int], facts: Iterable[Fact], texts: Texts
) -> StepTables:
    """The tables of a step; what belongs to a shared tensor is kept once."""
    rows = []
    sketches, hashes, exponents = Pool(), Pool(), Pool()
    places: dict[int, tuple[int, ...]] = {}
    originals: dict[int, TensorRecord] = {}
    for record in records:
        original = record if record.same_as is None else originals.get(record.same_as, record)
        originals[record.order] = original
        place = _NOWHERE if original is record else places[original.order]
        # For n <= K all numbers of a sketch behind the n-th are 0; a complex number counts twice.
        parts = record.numel * (2 if record.dtype.startswith("complex") else 1)
        sketch = None if record.sketch is None else record.sketch[:parts]
        place = (
            *(place[:2] if place[0] >= 0 else sketches.add(sketch)),
            *(place[2:4] if place[2] >= 0 else hashes.add(record.row_hashes)),
            *(place[4:] if place[4] >= 0 else exponents.add(record.exponents)),
        )
        places[record.order] = place
        rows.append(
            (
                *_key_columns(record, texts),
                record.order in with_values,
                *_measures(record, original),
                *place[:2],
                record.recomputed,
                texts.position(record.layout) if record.layout else -1,
                *place[2:],
            )
        )
    return StepTables(
        np.array(rows, dtype=INDEX_DTYPE),
        sketches.joined(np.float32),
        np.array([_fact_row(fact, texts) for fact in facts], dtype=FACT_DTYPE),
        hashes.joined(np.uint64),
        exponents.joined(np.int64),
    )


def unpack_records(step: int, tables: StepTables, texts: Sequence[str]) -> list[TensorRecord]:
    """The records of a step in the order of the index."""
    index = tables.index
    columns = [index[name].tolist() for name in INDEX_DTYPE.names or ()]
    shapes = {position: _parse_shape(texts[position]) for position in set(index["shape"].tolist())}
    return [_record(step, row, (texts, shapes), tables) for row in zip(*columns, strict=True)]


def unpack_facts(step: int, facts: NDArray[np.void], texts: Sequence[str]) -> list[Fact]:
    """The facts of a step in the order in which they were noted."""
    return [
        Fact(
            TensorKey(step, PHASES[phase], texts[name], texts[slot], micro, call),
            texts[text] if kind == _TEXT else _number(kind, number),
        )
        for phase, name, slot, micro, call, kind, number, text in facts.tolist()
    ]


def highest_text(index: NDArray[np.void]) -> int:
    """The last position in /names that the rows of an index or of facts refer to, -1 if there are no rows."""
    columns = _TEXT_COLUMNS if index.dtype == INDEX_DTYPE else _FACT_TEXTS
    return max((int(index[name].max()) for name in columns if len(index)), default=-1)


def _key_columns(record: TensorRecord, texts: Texts) -> tuple[Any, ...]:
    """The columns from `order` to `total`."""
    key = record.key
    position = texts.position
    return (
        record.order,
        _PHASE_NUMBERS[key.phase],
        position(key.name),
        position(key.slot),
        key.micro,
        key.call,
        position(record.within),
        record.within_call,
        position(record.dtype),
        position(",".join(map(str, record.shape))),
        -1 if record.same_as is None else record.same_as,
        record.total,
    )


def _measures(record: TensorRecord, original: TensorRecord) -> tuple[Any, ...]:
    """The columns from `has_hash` to `resolution`; what a shared record lacks, the original has."""
    stats = record.stats or original.stats
    digest = original.hash if record.hash is None else record.hash
    taken = stats or _NO_STATS
    return (
        digest is not None,
        stats is not None,
        digest or 0,
        taken.count,
        taken.minimum,
        taken.maximum,
        taken.total,
        taken.total_squares,
        taken.zeros,
        taken.nans,
        taken.positive_infs,
        taken.negative_infs,
        taken.subnormals,
        record.resolution or original.resolution,
    )


def _record(
    step: int,
    row: tuple[Any, ...],
    words: tuple[Sequence[str], dict[int, tuple[int, ...]]],
    tables: StepTables,
) -> TensorRecord:
    texts, shapes = words
    (order, phase, name, slot, micro, call, within, within_call, dtype, shape, same_as, total, has_values,
     has_hash, has_stats, digest, *numbers, resolution, start, length,
     recomputed, layout, rows, rows_length, exponents, exponents_length) = row  # fmt: skip
    # By position: keywords double the time of the two largest constructors.
    return TensorRecord(
        TensorKey(step, PHASES[phase], texts[name], texts[slot], micro, call),
        order,
        texts[dtype],
        shapes[shape],
        TensorStats(*numbers) if has_stats else None,
        digest if has_hash else None,
        tables.sketches[start : start + length] if start >= 0 else None,
        resolution,
        None if same_as < 0 else same_as,
        texts[within],
        within_call,
        total,
        has_values,
        recomputed,
        texts[layout] if layout >= 0 else "",
        tables.row_hashes[rows : rows + rows_length] if rows >= 0 else None,
        tables.exponents[exponents : exponents + exponents_length] if exponents >= 0 else None,
    )


def _fact_row(fact: Fact, texts: Texts) -> tuple[Any, ...]:
    key, position = fact.key, texts.position
    kind, number, text = _coded(fact.value)
    return (
        _PHASE_NUMBERS[key.phase],
        position(key.name),
        position(key.slot),
        key.micro,
        key.call,
        kind,
        number,
        -1 if text is None else position(text),
    )


def _coded(value: FactValue) -> tuple[int, float, str | None]:
    """Kind, number and text of a value; an integer that no float64 holds becomes a text."""
    if value is None:
        return _UNKNOWN, 0.0, None
    if isinstance(value, bool):
        return _BOOLEAN, float(value), None
    if isinstance(value, int):
        return (_INTEGER, float(value), None) if abs(value) <= _EXACT_INTEGERS else (_TEXT, 0.0, str(value))
    if isinstance(value, float):
        return _REAL, value, None
    return _TEXT, 0.0, value


def _number(kind: int, number: float) -> FactValue:
    if kind == _UNKNOWN:
        return None
    if kind == _BOOLEAN:
        return bool(number)
    return int(number) if kind == _INTEGER else number


def _parse_shape(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()
