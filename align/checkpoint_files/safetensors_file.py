"""Safetensors files: the header is checked and read here, the values are read by position.

The library is not used: what it hands out are pages of a mapping, or whole tensors. Walking once through a file of
2.8 GB raised the peak of the process by 2,702 MB with slices of `safe_open(framework="np")`, and by 1 MB this way
(`benchmarks/checkpoint_reading.py --library`); it also needs another package for bfloat16 and float8.

The format: 8 bytes, the length N of the header as a little-endian number; N bytes of JSON, padded with blanks, from
names to `dtype`, `shape` and `data_offsets` (begin, end) behind the header, with an optional `__metadata__` of texts;
then the data, which the tensors fill without gaps or overlaps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from align.checkpoint_files.entries import ITEM_BITS, MOST_DIMENSIONS, Entry
from align.checkpoint_files.spans import COPY_AGAIN, FileSpan, OpenFile, unreadable
from align.sentences import say, told

DTYPES: Mapping[str, str] = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
    "F6_E2M3": "float6_e2m3fn",
    "F6_E3M2": "float6_e3m2fn",
    "F4": "float4_e2m1fn",
}
LARGEST_HEADER = 100_000_000
"""The format's own limit (MAX_HEADER_SIZE of the library)."""
LENGTH_BYTES = 8


class _Place(NamedTuple):
    """What the header says of one tensor; the offsets count from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def read_safetensors(file: OpenFile) -> dict[str, Entry]:
    """The tensors of a file, in the order of the header; raises CheckpointError where it breaks the format's rules."""
    header, start = _header(file)
    places = {name: _place(file, name, value) for name, value in header.items() if name != "__metadata__"}
    _check_layout(file, places, file.size - start)
    return {
        name: Entry(name, place.dtype, place.shape, FileSpan(file, start + place.begin), file=file.path.name)
        for name, place in places.items()
    }


def _header(file: OpenFile) -> tuple[dict[str, Any], int]:
    """The header, and where the data begins."""
    length = int.from_bytes(file.read(0, LENGTH_BYTES), "little")
    room = file.size - LENGTH_BYTES
    if file.size < LENGTH_BYTES or not 0 < length <= LARGEST_HEADER:
        raise _broken(
            file, say("it is no safetensors file: its first 8 bytes say that its header has {} bytes", f"{length:,}")
        )
    if length > room:
        raise unreadable(
            file.path,
            say("it is truncated: its header has {} bytes and {} are there", f"{length:,}", f"{max(room, 0):,}"),
            COPY_AGAIN,
        )
    try:
        header = json.loads(file.read(LENGTH_BYTES, length).decode("utf-8"), object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise _broken(file, say("the header of {} bytes is no JSON ({})", f"{length:,}", told(error, 100))) from error
    if not isinstance(header, dict):
        raise _broken(file, say("its header is no table of tensors"))
    return header, LENGTH_BYTES + length


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table of JSON; raises ValueError where a name stands in it twice."""
    table = dict(pairs)
    if len(table) != len(pairs):
        msg = say("a name stands in it twice")
        raise ValueError(msg)
    return table


def _place(file: OpenFile, name: str, value: Any) -> _Place:
    """What the header says of one tensor, each field checked."""
    if not isinstance(value, dict) or not {"dtype", "shape", "data_offsets"} <= value.keys():
        raise _broken(file, say("its header says nothing of use about '{}'", name[:100]))
    dtype = DTYPES.get(value["dtype"]) if isinstance(value["dtype"], str) else None
    if dtype is None:
        raise unreadable(
            file.path,
            say("'{}' has the dtype {}, which is not known here", name[:100], repr(str(value["dtype"])[:30])),
            say("Update align, or convert the tensor."),
        )
    shape, offsets = value["shape"], value["data_offsets"]
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:  # noqa: PLR2004 - begin and end
        raise _broken(
            file, say("shape {} or place {} of '{}' make no sense", str(shape)[:60], str(offsets)[:60], name[:100])
        )
    if len(shape) > MOST_DIMENSIONS:
        raise _broken(file, say("'{}' has {} dimensions, which no tensor has", name[:100], f"{len(shape):,}"))
    begin, end = offsets
    needed = (math.prod(shape) * ITEM_BITS[dtype] + 7) // 8
    if end - begin != needed:
        raise _broken(
            file,
            say("'{}' of shape {} needs {} bytes and has {}", name[:100], shape, f"{needed:,}", f"{end - begin:,}"),
        )
    return _Place(dtype, tuple(shape), begin, end)


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(number) is int and 0 <= number < 1 << 63 for number in value)


def _check_layout(file: OpenFile, places: Mapping[str, _Place], size: int) -> None:
    """The tensors fill the data without gaps and overlaps, and the file holds all of it."""
    end = 0
    for name, place in sorted(places.items(), key=lambda item: (item[1].begin, item[1].end)):
        if place.begin != end:
            overlaps = say("the data of '{}' overlaps the tensor before it", name[:100])
            raise _broken(
                file, overlaps if place.begin < end else say("the data of '{}' leaves a gap before it", name[:100])
            )
        end = place.end
    if end > size:
        raise unreadable(
            file.path,
            say("it is truncated: its tensors have {} bytes and {} are there", f"{end:,}", f"{size:,}"),
            COPY_AGAIN,
        )
    if end < size:
        raise _broken(file, say("{} bytes follow the last tensor, which belong to none", f"{size - end:,}"))


def _broken(file: OpenFile, reason: str) -> Exception:
    return unreadable(file.path, reason, say("Save or download it again."))
