"""The scalars of one event of TensorBoard, read from its protobuf bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_EVENT_STEP: Final = 2
_EVENT_SUMMARY: Final = 5
_SUMMARY_VALUE: Final = 1
_VALUE_TAG: Final = 1
_VALUE_SIMPLE: Final = 2
_VALUE_TENSOR: Final = 8
_TENSOR_TYPE: Final = 1
_TENSOR_CONTENT: Final = 4
_CONTENT: Final = {1: "<f", 2: "<d", 3: "<i", 4: "<B", 5: "<h", 6: "<b", 9: "<q", 17: "<H", 19: "<e"}
"""How a number of each type is written in the content of a tensor."""
_BFLOAT16: Final = 14
_FLOATS, _DOUBLES, _INTEGERS, _LONGS, _HALVES = 5, 6, 7, 10, 13
_SIGNED: Final = 1 << 63
_LONGEST_VARINT: Final = 63


def scalars_of(event: bytes) -> tuple[int, list[tuple[str, float]]]:
    """The step of an event and its scalars by their tags; raises ValueError, IndexError or struct.error for others."""
    step, found = 0, []
    for number, kind, value in _fields(event):
        if number == _EVENT_STEP and kind == _VARINT and isinstance(value, int):
            step = value - 2 * _SIGNED if value >= _SIGNED else value
        elif number == _EVENT_SUMMARY and isinstance(value, bytes):
            for inner, _, part in _fields(value):
                if inner == _SUMMARY_VALUE and isinstance(part, bytes):
                    scalar = _scalar(part)
                    if scalar is not None:
                        found.append(scalar)
    return step, found


def _scalar(data: bytes) -> tuple[str, float] | None:
    """The tag and number of a value, None where it is no scalar."""
    tag, number = "", None
    for field, kind, value in _fields(data):
        if isinstance(value, bytes):
            if field == _VALUE_TAG:
                tag = value.decode("utf-8", "replace")
            elif field == _VALUE_TENSOR:
                number = _tensor(value)
            elif field == _VALUE_SIMPLE and kind == _FIXED32:
                number = struct.unpack("<f", value)[0]
    return None if number is None else (tag, number)


def _tensor(data: bytes) -> float | None:
    """The number of a tensor of one element, None for any other."""
    dtype, content, numbers = 0, b"", []
    for field, kind, value in _fields(data):
        if isinstance(value, int):
            if field == _TENSOR_TYPE:
                dtype = value
            elif field in {_INTEGERS, _LONGS, _HALVES}:
                numbers.append(_from_integer(field, value, dtype))
        elif field == _TENSOR_CONTENT:
            content = value
        elif field in {_FLOATS, _DOUBLES}:
            form = "<f" if field == _FLOATS else "<d"
            numbers += [number for (number,) in struct.iter_unpack(form, value)]
        elif field in {_INTEGERS, _LONGS, _HALVES} and kind == _BYTES:
            numbers += [_from_integer(field, packed, dtype) for packed in _varints(value)]
    if content and dtype == _BFLOAT16 and len(content) == struct.calcsize("<H"):
        return _from_integer(_HALVES, int.from_bytes(content, "little"), dtype)
    if content and dtype in _CONTENT and len(content) == struct.calcsize(_CONTENT[dtype]):
        return float(struct.unpack(_CONTENT[dtype], content)[0])
    return numbers[0] if len(numbers) == 1 else None


def _from_integer(field: int, value: int, dtype: int) -> float:
    """The number that an integer of a tensor stands for."""
    if field != _HALVES:
        return float(value - 2 * _SIGNED if value >= _SIGNED else value)
    bits = value & 0xFFFF
    data = struct.pack("<I", bits << 16) if dtype == _BFLOAT16 else struct.pack("<H", bits)
    return float(struct.unpack("<f" if dtype == _BFLOAT16 else "<e", data)[0])


def _fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """The fields of a message: number, kind, and an integer or the bytes; numbers of fixed width are bytes."""
    at, end = 0, len(data)
    while at < end:
        key = data[at]
        at += 1
        if key & 0x80:
            key, at = _varint(data, at - 1)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield key >> 3, kind, value
            continue
        if kind == _BYTES:
            length, at = _varint(data, at)
        else:
            length = {_FIXED32: 4, _FIXED64: 8}.get(kind, end + 1)
        if at + length > end:
            msg = "a field goes over the end of its message"
            raise ValueError(msg)
        yield key >> 3, kind, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An integer of 7 bits a byte, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value & (2 * _SIGNED - 1), at
        shift += 7
        if shift > _LONGEST_VARINT:
            msg = "an integer has no end"
            raise ValueError(msg)


def _varints(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value
