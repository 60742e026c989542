"""Bytes of tensors in files, read in pieces by position: no page of a file stays mapped, so memory stays flat."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from align.errors import CheckpointError
from align.sentences import say
from align.value_source import ValueSource, boxes


class OpenFile:
    """A file that is read by position only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        try:
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            self.size = os.fstat(self._descriptor).st_size
        except OSError as error:
            self.close()
            raise unreadable(
                path, (error.strerror or str(error)).lower(), say("Check the path and who may read it.")
            ) from (error)

    def close(self) -> None:
        """Close it; a second time does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def read_into(self, position: int, target: memoryview) -> None:
        """Fill `target` from a position on; raises CheckpointError where the file ends before."""
        done = 0
        while done < len(target):
            try:
                count = os.preadv(self._descriptor, [target[done:]], position + done)
            except OSError as error:
                raise unreadable(self.path, (error.strerror or str(error)).lower(), COPY_AGAIN) from error
            if count == 0:
                raise unreadable(
                    self.path, say("it ends at byte {}, before its tensors do", f"{self.size:,}"), COPY_AGAIN
                )
            done += count

    @contextmanager
    def mapped(self) -> Iterator[mmap.mmap]:
        """The whole file as memory, for as long as the block runs."""
        with mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ) as pages:
            yield pages

    def read(self, position: int, count: int) -> bytes:
        """Up to `count` bytes, fewer at the end of the file."""
        data = bytearray(max(min(count, self.size - position), 0))
        self.read_into(position, memoryview(data))
        return bytes(data)


class FileSpan:
    """A tensor whose bytes lie in one piece."""

    __slots__ = ("_file", "_offset")

    def __init__(self, file: OpenFile, offset: int) -> None:
        self._file = file
        self._offset = offset

    def read_into(self, start: int, target: memoryview) -> None:
        """Fill `target` with the bytes from `start` on."""
        self._file.read_into(self._offset + start, target)


class StridedSpan:
    """A view of a stored tensor (transposed, sliced, expanded), gathered from a mapping of the file.

    The pages of the mapping are handed back after each piece.
    """

    __slots__ = ("_file", "_kind", "_offset", "_shape", "_strides")

    def __init__(
        self, file: OpenFile, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], item: int
    ) -> None:
        self._file = file
        self._offset = offset
        self._shape = shape
        self._strides = tuple(stride * item for stride in strides)
        self._kind = np.dtype(f"V{item}")

    def read_into(self, start: int, target: memoryview) -> None:
        """Fill `target` with the bytes from `start` on, which are those of whole elements."""
        out = np.frombuffer(target, dtype=self._kind)
        with self._file.mapped() as pages:
            stored = np.frombuffer(pages, dtype=np.uint8)[self._offset :]
            view = np.ndarray(self._shape, self._kind, stored.data, strides=self._strides)
            done = 0
            for first, lengths in boxes(self._shape, start // self._kind.itemsize, len(out)):
                box = view[tuple(slice(low, low + length) for low, length in zip(first, lengths, strict=True))]
                out[done : done + box.size] = box.reshape(-1)
                done += box.size
            del stored, view, box


class CaptureSpan:
    """The kept values of a capture."""

    __slots__ = ("_source",)

    def __init__(self, source: ValueSource) -> None:
        self._source = source

    def read_into(self, start: int, target: memoryview) -> None:
        """Fill `target` with the bytes from `start` on, which are those of whole elements."""
        kind = self._source.stored
        self._source.read(start // kind.itemsize, np.frombuffer(target, dtype=kind))


COPY_AGAIN = say("Copy or download it again.")


def unreadable(path: str | os.PathLike[str], reason: str, advice: str) -> CheckpointError:
    """The sentence for a checkpoint that cannot be read: what was found, and what to do."""
    return CheckpointError(say("Cannot read '{}': {}. {}", os.fspath(path), reason, advice))
