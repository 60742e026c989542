"""The index of a step: one row per record, packed for the file and unpacked from it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.capture_format import INDEX_DTYPE, PHASES
from align.records import TensorKey, TensorRecord, TensorStats

_NO_STATS = TensorStats(0)
_PHASE_NUMBERS = {phase: number for number, phase in enumerate(PHASES)}
_TEXT_COLUMNS = ("name", "slot", "within", "dtype", "shape")


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


def pack_records(
    records: Sequence[TensorRecord], with_values: Collection[int], texts: Texts
) -> tuple[NDArray[np.void], NDArray[np.float32]]:
    """The rows of the index and the sketches of a step; a shared tensor's sketch is kept once."""
    rows = []
    pieces: list[NDArray[np.float32]] = []
    places: dict[int, tuple[int, int]] = {}
    originals: dict[int, TensorRecord] = {}
    end = 0
    for record in records:
        original = record if record.same_as is None else originals.get(record.same_as, record)
        originals[record.order] = original
        place = (-1, 0) if original is record else places[original.order]
        if place[0] < 0 and record.sketch is not None:
            # For n <= K all numbers behind the n-th are 0.
            pieces.append(record.sketch[: record.numel])
            place = (end, len(pieces[-1]))
            end += len(pieces[-1])
        places[record.order] = place
        rows.append((*_key_columns(record, texts), record.order in with_values, *_measures(record, original), *place))
    sketches = np.concatenate([np.zeros(0, dtype=np.float32), *pieces], dtype=np.float32)
    return np.array(rows, dtype=INDEX_DTYPE), sketches


def unpack_records(
    step: int, index: NDArray[np.void], sketches: NDArray[np.float32], texts: Sequence[str]
) -> list[TensorRecord]:
    """The records of a step in the order of the index."""
    columns = [index[name].tolist() for name in INDEX_DTYPE.names or ()]
    shapes = {position: _parse_shape(texts[position]) for position in set(index["shape"].tolist())}
    return [_record(step, row, (texts, shapes), sketches) for row in zip(*columns, strict=True)]


def highest_text(index: NDArray[np.void]) -> int:
    """The last position in /names that the rows refer to, -1 if there are no rows."""
    return max((int(index[name].max()) for name in _TEXT_COLUMNS if len(index)), default=-1)


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
    tables: tuple[Sequence[str], dict[int, tuple[int, ...]]],
    sketches: NDArray[np.float32],
) -> TensorRecord:
    texts, shapes = tables
    (order, phase, name, slot, micro, call, within, within_call, dtype, shape, same_as, total, has_values,
     has_hash, has_stats, digest, *numbers, resolution, start, length) = row  # fmt: skip
    # By position: keywords double the time of the two largest constructors.
    return TensorRecord(
        TensorKey(step, PHASES[phase], texts[name], texts[slot], micro, call),
        order,
        texts[dtype],
        shapes[shape],
        TensorStats(*numbers) if has_stats else None,
        digest if has_hash else None,
        sketches[start : start + length] if start >= 0 else None,
        resolution,
        None if same_as < 0 else same_as,
        texts[within],
        within_call,
        total,
        has_values,
    )


def _parse_shape(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()
