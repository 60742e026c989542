"""The values of tensors from the hook to their place in the file.

Large values get their dataset at once, at a page of the file, and go there through `Staging`. Small ones wait in
memory: a dataset that is made under its name costs one call of HDF5 less, and many small writes become one.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from align.capture_format import value_path
from align.errors import CaptureFileError
from align.records import TensorRecord
from align.sentences import say
from align.staging import BUFFER_SIZE, PAGE, Source, Staging, Wait, page_aligned
from align.steady_file import SteadyFile
from align.value_types import as_stored, file_type

LARGE = 1 << 16
"""From so many bytes on values begin at a page of the file; less would waste too much of it (half a page each)."""
MOST_IN_MEMORY = 64 << 20
"""How many bytes of small values wait for their step."""
_SLAB = 1 << 20
_ALIGNED = 16


class ArraySource:
    """The values of a numpy array; bfloat16 and float8 come as unsigned integers."""

    def __init__(self, array: NDArray[Any], dtype: str) -> None:
        data = as_stored(array, dtype)
        self.shape: tuple[int, ...] = data.shape
        self.dtype = dtype
        self.stored: np.dtype[Any] = data.dtype
        self.nbytes: int = data.nbytes
        self._flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)

    def copy_into(self, room: memoryview, start: int) -> None:
        """Fill the room with the bytes from `start` on."""
        np.frombuffer(room, np.uint8)[:] = self._flat[start : start + len(room)]

    def allocate(self, size: int) -> memoryview:
        """Memory of the process."""
        return page_aligned(size)


class Values:
    """Values that are kept and have no name yet; dropping the object gives their space back."""

    __slots__ = ("__weakref__", "data", "dataset", "dtype", "home", "named", "offset", "shape", "stored", "wait")

    def __init__(self, source: Source) -> None:
        self.shape = source.shape
        self.dtype = source.dtype
        self.stored = source.stored
        self.data: memoryview | None = None
        self.wait: Wait | None = None
        self.dataset: Any = None
        self.home: tuple[str, tuple[str, ...]] | None = None
        self.offset = 0
        self.named = False

    @property
    def kind(self) -> Any:
        """Their type in the file."""
        return file_type(self.dtype, self.stored)


class KeptValues:
    """The values of one file that have been taken and not yet named."""

    def __init__(self, file: h5py.File, steady: SteadyFile) -> None:
        self._file = file
        self._steady = steady
        self._staging = Staging(steady.write_behind, steady.give_up)
        self._placed: list[tuple[weakref.ref[Values], Any]] = []
        self._frozen: list[Any] = []
        self._dropped = False
        self._unnamed: weakref.WeakValueDictionary[int, Values] = weakref.WeakValueDictionary()
        self._count = 0
        self._slabs: list[memoryview] = []
        self._slab, self._used = 0, 0

    @property
    def waiting(self) -> bool:
        """Whether there are values that may still be dropped."""
        return bool(self._unnamed)

    @property
    def size(self) -> int:
        """The size that the file will have with the values taken so far, in bytes, less its directory."""
        return int(self._file.id.get_filesize()) + self._slab * _SLAB + self._used

    def reserve(self, source: Source) -> Values:
        """Make room in the file for large values; small ones need none yet."""
        values = Values(source)
        if source.nbytes >= LARGE:
            # Another thread will write there, where HDF5 may have had something else.
            self._steady.write_gathered()
            self._place(values)
        elif self._slab * _SLAB + self._used + source.nbytes > MOST_IN_MEMORY:
            self._put_down_small()
        return values

    def fill(self, values: Values, source: Source) -> None:
        """Copy the values to where they wait; nothing of HDF5 is touched, so whatever this raises does no harm."""
        if values.dataset is None:
            room = self._room(source)
            values.wait = source.copy_into(room, 0) if source.nbytes else None
            values.data = room
        elif values.offset % PAGE or values.offset < self._steady.settled:
            self._fill_now(source, values.offset)
        else:
            self._staging.put(source, values.offset)
        self._count += 1
        self._unnamed[self._count] = values

    def name(self, group: Any, step: str, paths: Mapping[int, tuple[str, ...]], handles: Mapping[int, Values]) -> None:
        """Give every value its path in the group of a step, which has no name itself yet.

        In the order of the paths, so that each group is made once and closed before the next: HDF5 takes half as long
        again while thousands of objects are open.
        """
        chain: list[tuple[str, Any]] = []
        for order, levels in sorted(paths.items(), key=lambda item: item[1]):
            parent = _parent(group, levels[:-1], chain)
            values, name = handles[order], _utf8(levels[-1])
            if values.dataset is not None:
                h5py.h5o.link(values.dataset, parent, name, _utf8_links())
            elif values.home is not None:
                self._link_again(values.home, parent, name, (group, step))
            else:
                made = self._dataset(values, parent, name)
                values.offset, values.home = made.get_offset(), (step, levels)
                self._write_small(values)
            values.named = True

    def _link_again(self, home: tuple[str, tuple[str, ...]], parent: Any, name: bytes, here: tuple[Any, str]) -> None:
        """Give values that were closed when they had got their name another one."""
        group, step = here
        path = "/".join(home[1] if home[0] == step else (home[0], *home[1]))
        parent.links.create_hard(name, group if home[0] == step else self._file.id, _utf8(path), _utf8_links())

    def settled(self) -> None:
        """A step was written: forget what has its name now, keep the space of what has none."""
        for watch, dataset in self._placed:
            values = watch()
            if values is None or not values.named:
                # It lies before the settled end now: others that were given its space would be held in memory.
                self._frozen.append(dataset)
        self._placed.clear()
        for number, values in list(self._unnamed.items()):
            if values.named:
                del self._unnamed[number]
        self._clear_slabs()

    def drain(self) -> None:
        """Return when all values that were taken are in the file, but for the small ones."""
        self._steady.interruption = self._staging.drain() or self._steady.interruption

    def release(self) -> None:
        """Give back the space of dropped values at the end of the file, before others get theirs.

        Nothing may be on its way there then. Space that others lie behind is not given back: it would be used in a
        later step, before the settled end.
        """
        if self._dropped:
            self._dropped = False
            if self._placed and self._placed[-1][0]() is None:
                self.drain()
            while self._placed and self._placed[-1][0]() is None:
                self._placed.pop()

    def _place(self, values: Values) -> None:
        """Give values a dataset without a name."""
        values.dataset = self._dataset(values)
        values.offset = values.dataset.get_offset()
        self._placed.append((weakref.ref(values, self._note_dropped), values.dataset))

    def _note_dropped(self, _: weakref.ref[Values]) -> None:
        self._dropped = True

    def stop(self) -> None:
        """End the thread that writes."""
        self._staging.stop()

    def _dataset(self, values: Values, group: Any = None, name: bytes | None = None) -> Any:
        where = self._file.id if group is None else group
        links = None if name is None else _utf8_links()
        return h5py.h5d.create(where, name, values.kind, space(values.shape), contiguous(), links)

    def _room(self, source: Source) -> memoryview:
        """Room for small values, in memory that is used again after the step."""
        start = -(-self._used // _ALIGNED) * _ALIGNED
        if start + source.nbytes > _SLAB:
            self._slab, start = self._slab + 1, 0
        if self._slab == len(self._slabs):
            self._slabs.append(source.allocate(_SLAB))
        self._used = start + source.nbytes
        return self._slabs[self._slab][start : self._used]

    def _clear_slabs(self) -> None:
        """Use the memory again from its begin, unless something in it still waits."""
        if all(values.data is None for values in self._unnamed.values()):
            self._slab, self._used = 0, 0

    def _put_down_small(self) -> None:
        """Move the small values from memory to the file, still without a name."""
        small = [values for values in self._unnamed.values() if values.data is not None]
        for values in small:
            self._place(values)
            self._write_small(values)
        self._steady.write_gathered()
        self._clear_slabs()

    def _write_small(self, values: Values) -> None:
        """Write values whose dataset was made just now: beside its header, so that both go to the file at once."""
        if values.data:
            if values.wait is not None:
                values.wait.synchronize()
            self._steady.write_later(values.data, values.offset)
        values.data = values.wait = None

    def _fill_now(self, source: Source, offset: int) -> None:
        """Write large values where HDF5 has put them into space that was in use before."""
        done = 0
        while done < source.nbytes:
            room = memoryview(bytearray(min(source.nbytes - done, BUFFER_SIZE)))
            wait = source.copy_into(room, done)
            if wait is not None:
                wait.synchronize()
            self._steady.seek(offset + done)
            self._steady.write(room)
            done += len(room)


def with_shared(records: Sequence[TensorRecord], values: Mapping[int, Values | None]) -> dict[int, Values]:
    """The handles by order, also for records that are the same tensor as an earlier one."""
    handles = {order: kept for order, kept in values.items() if kept is not None}
    for record in records:
        if record.same_as in handles and record.order not in handles:
            handles[record.order] = handles[record.same_as]
    return handles


def value_paths(
    records: Sequence[TensorRecord], handles: Mapping[int, Values], path: Path
) -> dict[int, tuple[str, ...]]:
    """Where in the step's group each record's values go."""
    paths: dict[int, tuple[str, ...]] = {}
    seen = set()
    for record in records:
        if record.order in handles:
            levels = value_path(record.key)[1:]
            if levels in seen:
                raise CaptureFileError(
                    say("Cannot write '{}': two records are both {}. Give each its own call or slot.", path, record.key)
                )
            seen.add(levels)
            paths[record.order] = levels
    return paths


def _parent(group: Any, levels: tuple[str, ...], chain: list[tuple[str, Any]]) -> Any:
    """The group of these levels; `chain` are those that are open, from the outermost."""
    kept = 0
    while kept < min(len(levels), len(chain)) and chain[kept][0] == levels[kept]:
        kept += 1
    del chain[kept:]
    for level in levels[kept:]:
        above = chain[-1][1] if chain else group
        chain.append((level, h5py.h5g.create(above, _utf8(level), _utf8_links())))
    return chain[-1][1] if chain else group


@lru_cache(maxsize=1)
def contiguous() -> Any:
    """One block a dataset, without times, so that equal captures are equal files."""
    layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    layout.set_layout(h5py.h5d.CONTIGUOUS)
    layout.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    layout.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    layout.set_obj_track_times(False)
    return layout


@lru_cache(maxsize=1024)
def space(shape: Sequence[int]) -> Any:
    """The dataspace of a shape."""
    return h5py.h5s.create_simple(shape) if shape else h5py.h5s.create(h5py.h5s.SCALAR)


def _utf8(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


@lru_cache(maxsize=1)
def _utf8_links() -> Any:
    links = h5py.h5p.create(h5py.h5p.LINK_CREATE)
    links.set_char_encoding(h5py.h5t.CSET_UTF8)
    return links
