"""Writes a capture file so that every finished step survives whatever ends the process."""

from __future__ import annotations

import atexit
import json
import os
import re
import weakref
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import h5py
import numpy as np

from align.capture_format import (
    FORMAT_VERSION,
    INDEX_DTYPE,
    MODULE_DTYPE,
    PHASES,
    TIMELINE_DTYPE,
    encode_text,
    step_group,
    value_path,
)
from align.errors import CaptureError, CaptureFileError
from align.records import TensorStats
from align.steady_file import SteadyFile
from align.value_types import file_type, storage_dtype

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from align.records import ModuleInfo, RunInfo, TensorRecord, TimelineRow

Handle: TypeAlias = h5py.h5d.DatasetID
"""Values that are in the file without a name yet; dropping the handle gives their space back."""

_NO_STATS = TensorStats(0)
_PHASE_NUMBERS = {phase: number for number, phase in enumerate(PHASES)}
_CHUNK_ROWS = {"names": 1024, "modules": 256, "timeline": 512}
_RUN_SLACK = 16384
_META_BLOCK = 1 << 13
_CACHE = 1 << 25
_H5_ERRORS = (OSError, RuntimeError, ValueError, KeyError)


class CaptureWriter:
    """One capture file being written; only the process that opened it ever touches it.

    Every object of a step is written without a name, flushed, and only then linked and flushed again: what the
    root of the file points to is always complete, so that a killed process leaves a file that opens.
    """

    def __init__(self, path: str | os.PathLike[str], run: RunInfo, *, force: bool = False) -> None:
        self.path = Path(path)
        self.bytes_written = 0
        self._steady = _create(self.path, force=force)
        self._file = _open_hdf5(self._steady)
        self._failure: CaptureFileError | None = None
        self._closed = False
        self._run_place = (0, 0)
        self._texts: dict[str, int] = {}
        self._new_texts: list[str] = []
        self._committed: set[int] = set()
        _open_writers.add(self)
        with self._guard():
            self._file.attrs["align_format"] = np.int64(FORMAT_VERSION)
            _append_only(self._file, "names", h5py.string_dtype())
            _append_only(self._file, "modules", MODULE_DTYPE)
            _append_only(self._file, "timeline", TIMELINE_DTYPE)
            self._write_run(run)
            self._settle()

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._closed

    @property
    def failed(self) -> bool:
        """Whether a write failed; nothing more is written then."""
        return self._failure is not None

    def add_values(self, array: NDArray[Any], dtype: str) -> Handle:
        """Write the values now; `commit` gives them their name. bfloat16 and float8 come as unsigned integers."""
        stored = storage_dtype(dtype) or array.dtype.newbyteorder("<")
        data = np.asarray(array, dtype=stored, order="C")
        with self._guard():
            handle = self._write(data, file_type(dtype, data.dtype))
        self.bytes_written += data.nbytes
        return handle

    def commit(self, step: int, records: Sequence[TensorRecord], values: Mapping[int, Handle]) -> None:
        """Write a finished step: its index, its sketches and the names of its values (order -> handle).

        The handles are used up: they are closed.
        """
        if step in self._committed:
            msg = f"Cannot write step {step} to '{self.path}': it is already there. Commit every step once."
            raise CaptureFileError(msg)
        handles = _with_shared(records, values)
        paths = _value_paths(records, handles, self.path)
        index, sketches = self._index(records, handles)
        with self._guard():
            group = h5py.h5g.create(self._file.id, None)
            h5py.h5o.link(self._write(index, h5py.h5t.py_create(INDEX_DTYPE, logical=True)), group, b"index")
            h5py.h5o.link(self._write(sketches, h5py.h5t.IEEE_F32LE), group, b"sketches")
            _link_values(group, paths, handles)
            h5py.h5o.link(group, self._file.id, step_group(step).encode())
            self._append_texts()
            for handle in values.values():
                handle.close()
            self._settle()
        self._committed.add(step)
        self.bytes_written += index.nbytes + sketches.nbytes

    def append_modules(self, modules: Sequence[ModuleInfo]) -> None:
        """Append to the module table; a later row of the same name replaces an earlier one."""
        rows = [
            (
                self._text(module.name),
                self._text(module.class_name),
                module.leaf,
                -1 if module.compute_dtype is None else self._text(module.compute_dtype),
                module.matmul,
                module.conv,
                module.piecewise,
            )
            for module in modules
        ]
        self._append("modules", np.array(rows, dtype=MODULE_DTYPE))

    def append_timeline(self, rows: Sequence[TimelineRow]) -> None:
        """Append to the timeline; `flush` makes it visible to readers."""
        table = [
            (
                row.step,
                row.loss,
                row.learning_rate,
                row.loss_scale,
                row.gradient_norm,
                row.seconds,
                row.skipped,
                row.nonfinite,
                row.micros,
                self._text(row.optimizer),
            )
            for row in rows
        ]
        self._append("timeline", np.array(table, dtype=TIMELINE_DTYPE))

    def update_run(self, run: RunInfo) -> None:
        """Replace the facts of the run and flush."""
        with self._guard():
            self._write_run(run)
            self._settle()

    def flush(self) -> None:
        """Make the timeline and the modules visible to readers, now or, while a step is being written, with it."""
        with self._guard():
            # Values without a name would become part of what must not change any more.
            if not h5py.h5f.get_obj_count(self._file.id, h5py.h5f.OBJ_DATASET):
                self._settle()

    def close(self, run: RunInfo) -> None:
        """Write the last facts of the run and close; after a failed write, save what can be saved, without raising."""
        if self._closed:
            return
        self._closed = True
        try:
            if not self.failed:
                with self._guard():
                    self._write_run(run)
                    self._file.close()
                    self._steady.settle()
        finally:
            if self.failed:
                self._close_failed(run)
            self._steady.close()

    def abandon(self) -> None:
        """Close without writing: the file stays what it was when its last step was finished."""
        self._closed = True
        self._steady.give_up(OSError("abandoned"))
        with suppress(*_H5_ERRORS):
            self._file.close()

    def _close_failed(self, run: RunInfo) -> None:
        """Let HDF5 write its remains into the void, then put the facts of the run over the old ones."""
        with suppress(*_H5_ERRORS):
            self._file.close()
        start, size = self._run_place
        data = _run_text(run)
        if len(data) <= size:
            with suppress(OSError):
                self._steady.overwrite(start, data.ljust(size))

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Turn the first failed write into a sentence, and keep the file as the last flush left it."""
        if self._failure is not None:
            raise self._failure
        try:
            yield
        except _H5_ERRORS as error:
            self._fail(error)
        except BaseException as stop:
            # Raised by a signal handler, perhaps inside HDF5, which is of no use any more then.
            self._fail(stop, raises=False)
            raise
        if self._steady.error is not None:
            self._fail(self._steady.error)
        interruption, self._steady.interruption = self._steady.interruption, None
        if interruption is not None:
            raise interruption

    def _fail(self, error: BaseException, *, raises: bool = True) -> None:
        self._steady.give_up(OSError(str(error)))
        msg = f"Cannot write '{self.path}': {_reason(error)}. The steps that were finished before are in the file."
        self._failure = CaptureFileError(msg)
        if raises:
            raise self._failure from error

    def _settle(self) -> None:
        self._file.flush()
        self._steady.settle()
        run = self._file["run"]
        self._run_place = (run.id.get_offset(), run.dtype.itemsize)

    def _write(self, data: NDArray[Any], kind: Any) -> Handle:  # noqa: ANN401 - h5py has no types
        """Write an array into a dataset without a name."""
        dataset = h5py.h5d.create(self._file.id, None, kind, _space(data.shape), _contiguous())
        if data.size:
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, data, kind)
        return dataset

    def _text(self, text: str) -> int:
        """The position of a text in /names."""
        position = self._texts.get(text)
        if position is None:
            position = self._texts[text] = len(self._texts)
            self._new_texts.append(text)
        return position

    def _append_texts(self) -> None:
        if self._new_texts:
            _extend(self._file["names"], np.array([encode_text(text) for text in self._new_texts], dtype=object))
            self._new_texts = []

    def _append(self, table: str, rows: NDArray[Any]) -> None:
        with self._guard():
            self._append_texts()
            _extend(self._file[table], rows)
        self.bytes_written += rows.nbytes

    def _write_run(self, run: RunInfo) -> None:
        """Write the facts of the run in place; a new dataset only where they have outgrown the old one."""
        data = _run_text(run)
        old = self._file.get("run")
        if old is not None and len(data) <= old.dtype.itemsize:
            old[()] = data.ljust(old.dtype.itemsize)
            return
        if old is not None:
            del self._file["run"]
        size = len(data) + _RUN_SLACK
        self._file.create_dataset("run", data=np.array(data.ljust(size), dtype=h5py.string_dtype("utf-8", size)))

    def _index(
        self, records: Sequence[TensorRecord], handles: Mapping[int, Handle]
    ) -> tuple[NDArray[np.void], NDArray[np.float32]]:
        """The rows of the index and the sketches of a step; a shared tensor's sketch is kept once."""
        rows = []
        pieces: list[NDArray[np.float32]] = []
        places: dict[int, tuple[int, int]] = {}
        by_order: dict[int, TensorRecord] = {}
        end = 0
        for record in records:
            known = record if record.same_as is None else by_order.get(record.same_as, record)
            by_order[record.order] = known
            place = (-1, 0)
            if known is not record and record.same_as in places:
                place = places[record.same_as]
            elif record.sketch is not None:
                piece = record.sketch[: record.numel]
                place = (end, len(piece))
                end += len(piece)
                pieces.append(piece)
            places[record.order] = place
            rows.append(self._row(record, known, place, record.order in handles))
        sketches = np.concatenate(pieces, dtype=np.float32) if pieces else np.zeros(0, dtype=np.float32)
        return np.array(rows, dtype=INDEX_DTYPE), sketches

    def _row(
        self, record: TensorRecord, known: TensorRecord, place: tuple[int, int], has_values: bool
    ) -> tuple[Any, ...]:
        key = record.key
        stats = record.stats or known.stats
        digest = known.hash if record.hash is None else record.hash
        taken = stats or _NO_STATS
        text = self._text
        return (
            record.order,
            _PHASE_NUMBERS[key.phase],
            text(key.name),
            text(key.slot),
            key.micro,
            key.call,
            text(record.within),
            record.within_call,
            text(record.dtype),
            text(",".join(map(str, record.shape))),
            -1 if record.same_as is None else record.same_as,
            record.total,
            has_values,
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
            record.resolution or known.resolution,
            *place,
        )


def _create(path: Path, *, force: bool) -> SteadyFile:
    """Create the file, or say why it cannot be created."""
    if path.is_dir():
        msg = f"Cannot write '{path}': it is a folder. Name a file, as in '{path / 'run.h5'}'."
        raise CaptureError(msg)
    if path.exists() and not force:
        msg = f"Cannot write '{path}': it exists. Choose another name, or give --force to overwrite it."
        raise CaptureError(msg)
    if not path.parent.is_dir():
        msg = f"Cannot write '{path}': the folder '{path.parent}' does not exist. Create it first."
        raise CaptureError(msg)
    try:
        return SteadyFile.create(path, overwrite=force)
    except OSError as error:
        msg = f"Cannot write '{path}': {_reason(error)}. Choose another place with -o."
        raise CaptureError(msg) from error


def _open_hdf5(steady: SteadyFile) -> h5py.File:
    """A new HDF5 file with room in the cache for the directory of a large step, so that it is written only once."""
    file = h5py.File(steady, "w", libver="earliest", meta_block_size=_META_BLOCK)
    config = file.id.get_mdc_config()
    config.set_initial_size = True
    config.initial_size = config.min_size = config.max_size = _CACHE
    file.id.set_mdc_config(config)
    return file


def _append_only(file: h5py.File, name: str, dtype: Any) -> None:  # noqa: ANN401 - h5py has no types
    file.create_dataset(name, shape=(0,), maxshape=(None,), chunks=(_CHUNK_ROWS[name],), dtype=dtype)


def _extend(table: h5py.Dataset, rows: NDArray[Any]) -> None:
    start = table.shape[0]
    table.resize(start + len(rows), axis=0)
    table[start:] = rows


def _run_text(run: RunInfo) -> bytes:
    facts = asdict(replace(run, format_version=FORMAT_VERSION))
    return json.dumps(facts, default=str).encode("ascii")


def _with_shared(records: Sequence[TensorRecord], values: Mapping[int, Handle]) -> dict[int, Handle]:
    """The handles by order, also for records that are the same tensor as an earlier one."""
    handles = dict(values)
    for record in records:
        if record.same_as in handles and record.order not in handles:
            handles[record.order] = handles[record.same_as]
    return handles


def _value_paths(
    records: Sequence[TensorRecord], handles: Mapping[int, Handle], path: Path
) -> dict[int, tuple[str, ...]]:
    """Where in the step's group each record's values go."""
    paths: dict[int, tuple[str, ...]] = {}
    seen = set()
    for record in records:
        if record.order in handles:
            levels = value_path(record.key)[1:]
            if levels in seen:
                msg = f"Cannot write '{path}': two records are both {record.key}. Give each its own call or slot."
                raise CaptureFileError(msg)
            seen.add(levels)
            paths[record.order] = levels
    return paths


def _link_values(group: h5py.h5g.GroupID, paths: Mapping[int, tuple[str, ...]], handles: Mapping[int, Handle]) -> None:
    """Give every value its path, opening each group on the way once."""
    groups = {(): group}
    for order, levels in paths.items():
        parent = group
        for depth in range(1, len(levels)):
            above, parent = parent, groups.get(levels[:depth])
            if parent is None:
                parent = groups[levels[:depth]] = h5py.h5g.create(above, _utf8(levels[depth - 1]), _utf8_links())
        h5py.h5o.link(handles[order], parent, _utf8(levels[-1]), _utf8_links())


def _utf8(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


@lru_cache(maxsize=1)
def _utf8_links() -> Any:  # noqa: ANN401 - h5py has no types
    links = h5py.h5p.create(h5py.h5p.LINK_CREATE)
    links.set_char_encoding(h5py.h5t.CSET_UTF8)
    return links


@lru_cache(maxsize=1)
def _contiguous() -> Any:  # noqa: ANN401 - h5py has no types
    """One block a dataset, without times, so that equal captures are equal files."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.CONTIGUOUS)
    plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    plist.set_obj_track_times(False)
    return plist


@lru_cache(maxsize=1024)
def _space(shape: tuple[int, ...]) -> Any:  # noqa: ANN401 - h5py has no types
    return h5py.h5s.create_simple(shape) if shape else h5py.h5s.create(h5py.h5s.SCALAR)


def _reason(error: BaseException) -> str:
    """What the operating system said, out of h5py's long message."""
    found = re.search(r"errno = (\d+)", str(error))
    number = int(found.group(1)) if found else getattr(error, "errno", None)
    return os.strerror(number) if number else str(error)


_open_writers: weakref.WeakSet[CaptureWriter] = weakref.WeakSet()


@atexit.register
def _abandon_all() -> None:
    """HDF5 closes what is open when the process ends, too late for the Python code under it; so close before."""
    for writer in list(_open_writers):
        if not writer.closed:
            writer.abandon()
