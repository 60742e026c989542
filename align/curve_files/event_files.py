"""TensorBoard event files: TFRecord frames around messages of which the scalars are read.

The frame of a record is its length (8 bytes), the checksum of that (4), the data, and the checksum of the data (4).
The fields of the messages are those of tensorflow's event.proto, summary.proto and tensor.proto.
"""

from __future__ import annotations

import itertools
import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from align.curve_files.crc32c import masked_crc, masked_crcs
from align.curve_files.event_values import scalars_of
from align.curve_files.source import Source
from align.curve_files.tables import Column, Table, TableBuilder, as_column
from align.curve_records import CurveKind
from align.sentences import say

_HEADER = 12
_CHECKED_LENGTH = 1 << 16
"""Longer records, such as graphs and images, hold no scalars that anybody draws; their data is not looked at."""
_TOGETHER = 4096
_Record = tuple[bytes, int, int]
"""The data, the checksum that it should have, and the checksum that its length should have."""


def is_event_file(head: bytes) -> bool:
    """Whether a file begins with the frame of a record."""
    return len(head) >= _HEADER and masked_crc(head[:8]) == int.from_bytes(head[8:_HEADER], "little")


def read_events(sources: Sequence[Source], wanted: Callable[[str], bool]) -> Table:
    """A table with a row for each event that holds scalars, of all files of a run one after another."""
    builder = TableBuilder(wanted)
    rows, steps = array("q"), array("d")
    for source in sources:
        for step, scalars in _events(source):
            rows.append(builder.add(scalars))
            steps.append(step)
    column: Column = as_column(rows, steps)
    return Table(CurveKind.TENSORBOARD, builder.count, builder.columns(), builder.names, steps=column)


@dataclass(slots=True)
class _Frames:
    """Cuts records out of blocks, which go from one into the next."""

    source: Source
    damaged: bool = False

    def records(self) -> Iterator[_Record]:
        """Each record that is not too long."""
        rest = b""
        skip = 0
        blocks = self.source.blocks()
        for block in blocks:
            data = rest + block if rest else block
            place = min(skip, len(data))
            skip -= place
            while not skip and len(data) - place >= _HEADER:
                length, checksum = struct.unpack_from("<QI", data, place)
                end = place + _HEADER + length + 4
                if (end > len(data) or length > _CHECKED_LENGTH) and masked_crc(data[place : place + 8]) != checksum:
                    self.damaged = True
                    break
                if length > _CHECKED_LENGTH:
                    skip = max(0, end - len(data))
                    place = min(end, len(data))
                    continue
                if end > len(data):
                    break
                yield data[place + _HEADER : end - 4], int.from_bytes(data[end - 4 : end], "little"), checksum
                place = end
            rest = data[place:]
            if self.damaged:
                break
        for _ in blocks:
            pass
        if (rest or skip) and not self.damaged:
            self.source.cut = True


def _events(source: Source) -> Iterator[tuple[int, list[tuple[str, float]]]]:
    """The step and the scalars of each event; a record that is damaged is left out, a damaged length ends the file."""
    frames = _Frames(source)
    records = frames.records()
    damaged = 0
    while waiting := list(itertools.islice(records, _TOGETHER)):
        checksums = masked_crcs([data for data, _, _ in waiting]).tolist()
        for (data, expected, of_length), checksum in zip(waiting, checksums, strict=True):
            if checksum == expected:
                step, scalars = _parsed(data)
                if scalars:
                    yield step, scalars
                continue
            damaged += 1
            if masked_crc(struct.pack("<Q", len(data))) != of_length:
                frames.damaged = True
                break
        if frames.damaged:
            break
    for _ in records:
        pass
    if frames.damaged:
        source.notes.append(say("The event file '{}' is damaged: it was read up to there.", source.path.name))
    elif damaged:
        source.notes.append(
            say(
                "Records of the event file '{}' that are damaged: {}. They were left out.",
                source.path.name,
                f"{damaged:,}",
            )
        )


def _parsed(data: bytes) -> tuple[int, list[tuple[str, float]]]:
    """The step and scalars of a record; none of one that is no event."""
    try:
        return scalars_of(data)
    except (ValueError, IndexError, struct.error):
        return 0, []
