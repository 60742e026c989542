"""Checksums of what a capture file holds, so that a damaged file is told from a run that differs."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.capture_format import FORMAT_VERSION
from align.hashing import hash_bytes, row_hashes
from align.records import RunInfo
from align.sentences import say

CHECKSUM = "checksum"
_SEAL = b', "checksum": "'
_END = b'"}'
_WORD = (1 << 64) - 1


def step_checksum(step: int, tables: Iterable[NDArray[Any]]) -> int:
    """The checksum of one step: of its number and the hashes of its tables."""
    parts = [step & _WORD, *(hash_bytes(_bytes_of(table) if table.dtype.names else table) for table in tables)]
    return hash_bytes(np.array(parts, dtype=np.uint64))


def row_checksums(rows: NDArray[np.void]) -> NDArray[np.uint64]:
    """The checksum of each row of a table: of all its columns but the last, which holds the checksum."""
    if not len(rows):
        return np.zeros(0, dtype=np.uint64)
    return row_hashes(np.ascontiguousarray(_bytes_of(rows)[:, : -np.dtype(np.uint64).itemsize]))


def with_checksums(rows: NDArray[np.void]) -> NDArray[np.void]:
    """The rows with their checksums filled in."""
    rows[CHECKSUM] = row_checksums(rows)
    return rows


def text_checksums(texts: Sequence[bytes]) -> NDArray[np.uint32]:
    """The CRC-32 of each text."""
    return np.array([zlib.crc32(text) for text in texts], dtype=np.uint32)


def join_texts(texts: Sequence[bytes]) -> NDArray[np.uint8]:
    """All texts with a NUL behind each."""
    return np.frombuffer(b"".join(text + b"\0" for text in texts), dtype=np.uint8)


def split_texts(data: NDArray[np.uint8]) -> list[bytes]:
    """The texts that `join_texts` joined."""
    return data.astype(np.uint8, copy=False).tobytes().split(b"\0")[:-1]


def run_text(run: RunInfo) -> bytes:
    """The facts of the run as one JSON object, sealed."""
    facts = {field.name: getattr(run, field.name) for field in fields(run)}
    return seal(json.dumps({**facts, "format_version": FORMAT_VERSION}, default=_plain).encode("ascii"))


def _plain(value: Any) -> Any:
    """What JSON has no word for: any mapping is an object, all else its text."""
    return dict(value) if isinstance(value, Mapping) else str(value)


def seal(facts: bytes) -> bytes:
    """One JSON object with its own checksum as the last entry."""
    return facts[:-1] + _SEAL + f"{hash_bytes(np.frombuffer(facts, dtype=np.uint8)):016x}".encode() + _END


def sealed(data: bytes) -> bytes:
    """The JSON object without its checksum; raises ValueError where they do not fit each other."""
    facts, seal_mark, _ = data.rstrip(b" \0").rpartition(_SEAL)
    facts += b"}"
    if not seal_mark or seal(facts) != data.rstrip(b" \0"):
        msg = say("the facts of the run do not fit their checksum")
        raise ValueError(msg)
    return facts


def check_table(rows: NDArray[Any], dtype: np.dtype[np.void], name: str) -> None:
    """Raise ValueError where a row of a table is not what was written."""
    if rows.dtype != dtype or rows.ndim != 1 or not np.array_equal(rows[CHECKSUM], row_checksums(rows)):
        msg = say("the table '{}' does not fit its checksums", name)
        raise ValueError(msg)


def _bytes_of(rows: NDArray[np.void]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), rows.dtype.itemsize)
