"""The kept values of one record, read in pieces: past HDF5 where they lie in one block of the file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from align.damage import damaged, reading
from align.records import TensorRecord
from align.sentences import say, told
from align.steady_file import SteadyFile
from align.value_types import file_type, storage_dtype

Box = tuple[tuple[int, ...], tuple[int, ...]]
"""The first index and the length along each dimension."""


class ValueSource:
    """The values of one tensor in a capture file, in logical row-major order.

    `stored` is the numpy dtype of what `read` gives: that of the file; bfloat16 and float8 as unsigned integers.
    """

    def __init__(self, path: Path, dataset: h5py.Dataset, record: TensorRecord, steady: SteadyFile) -> None:
        self.dtype = record.dtype
        self.shape: tuple[int, ...] = dataset.shape
        self.numel = math.prod(self.shape)
        if self.shape != record.shape:
            msg = say("the values of '{}' have the shape {}, not {}", record.key, self.shape, record.shape)
            raise ValueError(msg)
        self.stored: np.dtype[Any] = storage_dtype(record.dtype) or dataset.dtype
        self._path = path
        self._key = record.key
        self._dataset = dataset
        self._steady = steady
        self._kind = file_type(record.dtype, self.stored)
        # HDF5 knows no offset of values that are compressed, in chunks, in other files or in their own header.
        self._offset = dataset.id.get_offset() if dataset.id.get_type() == self._kind else None

    @property
    def contiguous(self) -> bool:
        """Whether the values are one block of the file, as `align` writes them; a repacked file may have others."""
        return self._offset is not None

    def read(self, start: int, target: NDArray[Any]) -> None:
        """Fill a one-dimensional array of the dtype `stored` with the elements from `start` on."""
        if self._offset is None:
            with reading(self._path):
                self._read_boxes(start, target)
            return
        room = target.view(np.uint8).data
        try:
            count = self._steady.read_at(self._offset + start * self.stored.itemsize, room)
        except OSError as error:
            raise damaged(self._path, told(error)) from error
        if count < len(room):
            raise damaged(self._path, say("it ends before the values of {} do", self._key))

    def _read_boxes(self, start: int, target: NDArray[Any]) -> None:
        done = 0
        for first, lengths in boxes(self.shape, start, len(target)):
            count = math.prod(lengths)
            self._read_box(first, lengths, target[done : done + count])
            done += count

    def _read_box(self, first: tuple[int, ...], lengths: tuple[int, ...], target: NDArray[Any]) -> None:
        chosen = self._dataset.id.get_space()
        if first:
            chosen.select_hyperslab(first, lengths)
        self._dataset.id.read(h5py.h5s.create_simple((len(target),)), chosen, target, self._kind)


def boxes(shape: tuple[int, ...], start: int, count: int) -> Iterator[Box]:
    """Split `count` row-major elements from `start` on into boxes, in their order; a scalar is one empty box."""
    if not shape:
        yield (), ()
        return
    inner = math.prod(shape[1:])
    while count > 0:
        row, offset = divmod(start, inner)
        if offset == 0 and count >= inner:
            rows = count // inner
            taken = rows * inner
            yield (row, *(0 for _ in shape[1:])), (rows, *shape[1:])
        else:
            taken = min(inner - offset, count)
            for first, lengths in boxes(shape[1:], offset, taken):
                yield (row, *first), (1, *lengths)
        start += taken
        count -= taken
