"""The masked CRC-32C of TFRecord files, of many short records at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_POLYNOMIAL = 0x82F63B78  # Castagnoli, reversed (RFC 3720, appendix B.4)
_MASK = 0xA282EAD8
_FEW = 8
"""From so many records of one length on they are computed side by side."""


def _table() -> list[int]:
    found = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return found


_TABLE = _table()
_NUMPY_TABLE = np.array(_TABLE, dtype=np.uint32)


def masked_crc(data: bytes | memoryview) -> int:
    """The masked CRC-32C of some bytes."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
    return _masked(value ^ 0xFFFFFFFF)


def _masked(value: int) -> int:
    return (((value >> 15) | (value << 17)) + _MASK) & 0xFFFFFFFF


def masked_crcs(records: Sequence[bytes]) -> NDArray[np.uint32]:
    """The masked CRC-32C of each record."""
    found = np.zeros(len(records), dtype=np.uint32)
    by_length: dict[int, list[int]] = {}
    for place, record in enumerate(records):
        by_length.setdefault(len(record), []).append(place)
    for length, places in by_length.items():
        if len(places) < _FEW:
            found[places] = [masked_crc(records[place]) for place in places]
            continue
        joined = b"".join([records[place] for place in places])
        columns = np.ascontiguousarray(np.frombuffer(joined, dtype=np.uint8).reshape(len(places), length).T)
        values = np.full(len(places), 0xFFFFFFFF, dtype=np.uint32)
        for column in columns:
            values = _NUMPY_TABLE[(values ^ column) & 0xFF] ^ (values >> 8)
        values ^= 0xFFFFFFFF
        found[places] = ((values >> 15) | (values << 17)) + np.uint32(_MASK)
    return found
