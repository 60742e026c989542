"""Writes a capture file so that every finished step survives whatever ends the process."""

from __future__ import annotations

import atexit
import json
import os
import re
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import h5py
import numpy as np
from numpy.typing import NDArray

from align.capture_checks import join_texts, run_text, step_checksum, text_checksums, with_checksums
from align.capture_format import (
    FORMAT_VERSION,
    MODULE_DTYPE,
    TIMELINE_DTYPE,
    encode_text,
    step_group,
)
from align.capture_index import Texts, pack_step
from align.errors import CaptureError, CaptureFileError
from align.kept_values import LARGE, ArraySource, KeptValues, Values, contiguous, space, value_paths, with_shared
from align.records import INIT_STEP, Fact, ModuleInfo, RunInfo, TensorRecord, TimelineRow
from align.sentences import say
from align.sketch import SIGN_TABLE_ID
from align.space_limit import LEAST_FREE, SpaceLimit
from align.staging import PAGE, Source
from align.steady_file import SteadyFile

Handle: TypeAlias = Values
"""Values that have no name yet; dropping the handle gives their space back."""

_CHUNK_ROWS = {"names": 512, "name_bytes": 8192, "name_checksums": 512, "modules": 256, "timeline": 256}
_RUN_SLACK = 4096
_META_BLOCK = 1 << 13
_CACHE = 1 << 22
_ELSEWHERE = say("Choose another place with -o.")
_H5_ERRORS = (OSError, RuntimeError, ValueError, KeyError)


class CaptureWriter:
    """One capture file being written; only the process that opened it ever touches it.

    A step becomes part of the file when `commit` returns, whole or not at all. After a failed write every call
    but `close` raises the same CaptureFileError, and the file keeps what was committed before.

    No values are kept once the file would be larger than `max_bytes`, or when a smaller part of the disk than
    `least_free` is free; `values_stopped` says so from the next step on. All else is written as before.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        run: RunInfo,
        *,
        force: bool = False,
        max_bytes: int | None = None,
        least_free: float = LEAST_FREE,
    ) -> None:
        self.path = Path(path)
        self.bytes_written = 0
        self.closed = False
        self.values_stopped = ""
        self._steady = _create(self.path, force=force)
        self._file = _open_hdf5(self._steady)
        self._kept = KeptValues(self._file, self._steady)
        self._limit = SpaceLimit(self.path.absolute(), max_bytes, least_free)
        self._failure: CaptureFileError | None = None
        self._run_place = (0, 0)
        self._texts = Texts()
        self._committed: set[int] = set()
        _open_writers.add(self)
        try:
            self._begin(run_text(run))
        except CaptureFileError as error:
            self.abandon()
            if self.path.is_file():
                self.path.unlink()
            reason = _reason(error.__cause__ or error)
            raise CaptureError(say("Cannot write '{}': {}. {}", self.path, reason, _ELSEWHERE)) from error

    @property
    def failed(self) -> bool:
        """Whether a write failed; nothing more is written then."""
        return self._failure is not None

    @property
    def values_kept(self) -> bool:
        """Whether there is room for values."""
        return not self._limit.reason

    def add_values(self, array: NDArray[Any], dtype: str) -> Handle | None:
        """Keep the values of an array as it is now; bfloat16 and float8 come as unsigned integers."""
        return self.keep(ArraySource(array, dtype))

    def keep(self, source: Source) -> Handle | None:
        """Keep values as they are now, None where there is no more room; `commit` gives them their name."""
        with self._guard():
            if not self._limit.allows(source.nbytes, self._size):
                return None
            values = self._kept.reserve(source)
        try:
            self._kept.fill(values, source)
        except OSError as error:
            raise self._fail(error) from error
        self.bytes_written += source.nbytes
        return values

    def commit(
        self,
        step: int,
        records: Sequence[TensorRecord],
        values: Mapping[int, Handle | None],
        facts: Sequence[Fact] = (),
    ) -> None:
        """Write a finished step: its tables and the names of its values (order -> what `keep` returned).

        A record that is the same tensor as an earlier one gets a hard link to the values of that one. A handle may
        be given again with a later step.
        """
        if step in self._committed:
            msg = say("Cannot write step {} to '{}': it is already there. Commit every step once.", step, self.path)
            raise CaptureFileError(msg)
        handles = with_shared(records, values)
        paths = value_paths(records, handles, self.path)
        tables = pack_step(records, handles, facts, self._texts).named()
        with self._guard():
            group = h5py.h5g.create(self._file.id, None)
            for name, table in tables.items():
                if len(table) or name in {"index", "sketches"}:
                    kind = h5py.h5t.py_create(table.dtype, logical=True)
                    h5py.h5o.link(self._write(table, kind), group, name.encode())
            digest = np.array(step_checksum(step, tables.values()), dtype=np.uint64)
            h5py.h5o.link(self._write(digest, h5py.h5t.STD_U64LE), group, b"checksum")
            self._kept.name(group, step_group(step), paths, handles)
            h5py.h5o.link(group, self._file.id, step_group(step).encode())
            self._append_texts()
            self._settle()
        self._committed.add(step)
        if self._limit.reason and not self.values_stopped and _lacks_values(records, handles):
            since = "the initial parameters" if step == INIT_STEP else f"step {step}"
            self.values_stopped = f"Values are not kept from {since} on: {self._limit.reason}"
        self.bytes_written += sum(table.nbytes for table in tables.values())

    def append_modules(self, modules: Sequence[ModuleInfo]) -> None:
        """Append to the module table; a later row of the same name replaces an earlier one."""
        position = self._texts.position
        rows = [
            (
                position(module.name),
                position(module.class_name),
                module.leaf,
                -1 if module.compute_dtype is None else position(module.compute_dtype),
                module.matmul,
                module.conv,
                module.piecewise,
                position(json.dumps(module.config, sort_keys=True)) if module.config else -1,
                module.chooses,
                module.normalises,
                0,
            )
            for module in modules
        ]
        self._append("modules", with_checksums(np.array(rows, dtype=MODULE_DTYPE)))

    def append_timeline(self, rows: Sequence[TimelineRow]) -> None:
        """Append to the timeline; `flush` or the next `commit` makes it visible to readers."""
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
                self._texts.position(row.optimizer),
                row.loss_scale_after,
                row.clip_norm,
                row.clip_limit,
                row.overflow,
                0,
            )
            for row in rows
        ]
        self._append("timeline", with_checksums(np.array(table, dtype=TIMELINE_DTYPE)))

    def update_run(self, run: RunInfo) -> None:
        """Replace the facts of the run; `flush` or the next `commit` makes them visible to readers."""
        facts = run_text(run)
        with self._guard():
            self._write_run(facts)
        self.flush()

    def flush(self) -> None:
        """Make what was appended visible to readers: now, or with the step if values are waiting for `commit`."""
        with self._guard():
            # Settling would freeze values that may still be dropped.
            if not self._kept.waiting:
                self._settle()

    def close(self, run: RunInfo) -> None:
        """Write the last facts of the run and close; after a failed write, save what can be saved, without raising."""
        if self.closed:
            return
        self.closed = True
        facts = run_text(run)
        try:
            if not self.failed:
                with self._guard():
                    self._kept.drain()
                    self._write_run(facts)
                    self._file.close()
                    self._steady.settle()
        finally:
            if self.failed:
                self._close_failed(facts)
            self._kept.stop()
            self._steady.close()

    def abandon(self) -> None:
        """Close without writing: the file stays what it was when it was last settled."""
        self.closed = True
        self._steady.give_up(OSError("abandoned"))
        with suppress(*_H5_ERRORS):
            self._file.close()
        self._kept.stop()
        self._steady.close()

    def _close_failed(self, facts: bytes) -> None:
        """Let HDF5 write its remains into the void, then put the facts of the run over the old ones."""
        with suppress(*_H5_ERRORS):
            self._file.close()
        start, size = self._run_place
        if len(facts) <= size:
            with suppress(OSError):
                self._steady.overwrite(start, facts.ljust(size))

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Turn the first failed write into a sentence, and keep the file as it was last settled."""
        if self._failure is not None:
            raise self._failure
        try:
            self._kept.release()
            yield
        except _H5_ERRORS as error:
            raise self._fail(error) from error
        except BaseException as stop:
            # A signal handler raised, perhaps inside HDF5, which is of no use any more then.
            self._fail(stop)
            raise
        if self._steady.error is not None:
            raise self._fail(self._steady.error) from self._steady.error
        interruption, self._steady.interruption = self._steady.interruption, None
        if interruption is not None:
            raise interruption

    def _fail(self, error: BaseException) -> CaptureFileError:
        self._steady.give_up(OSError(str(error)))
        self._failure = CaptureFileError(
            say(
                "Cannot write '{}': {}. The steps that were finished before are in the file.", self.path, _reason(error)
            )
        )
        return self._failure

    def _begin(self, facts: bytes) -> None:
        with self._guard():
            self._file.attrs["align_format"] = np.int64(FORMAT_VERSION)
            self._file.attrs["sign_table"] = np.int64(SIGN_TABLE_ID)
            _append_only(self._file, "names", h5py.string_dtype())
            _append_only(self._file, "name_bytes", np.dtype(np.uint8))
            _append_only(self._file, "name_checksums", np.dtype(np.uint32))
            _append_only(self._file, "modules", MODULE_DTYPE)
            _append_only(self._file, "timeline", TIMELINE_DTYPE)
            self._write_run(facts)
            self._settle()

    def _size(self) -> int:
        return self._kept.size

    def _settle(self) -> None:
        self._kept.drain()
        self._file.flush()
        self._steady.settle()
        self._kept.settled()
        run = self._file["run"]
        self._run_place = (run.id.get_offset(), run.dtype.itemsize)

    def _write(self, data: NDArray[Any], kind: Any) -> Any:
        """Write an array into a dataset without a name."""
        dataset = h5py.h5d.create(self._file.id, None, kind, space(data.shape), contiguous())
        if data.size:
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, data, kind)
        return dataset

    def _append_texts(self) -> None:
        texts = self._texts.take_new()
        if texts:
            encoded = [encode_text(text) for text in texts]
            _extend(self._file["names"], np.array(encoded, dtype=object))
            _extend(self._file["name_bytes"], join_texts(encoded))
            _extend(self._file["name_checksums"], text_checksums(encoded))

    def _append(self, table: str, rows: NDArray[Any]) -> None:
        with self._guard():
            self._append_texts()
            _extend(self._file[table], rows)
        self.bytes_written += rows.nbytes

    def _write_run(self, facts: bytes) -> None:
        """Write the facts of the run in place; a new dataset only where they have outgrown the old one."""
        old = self._file.get("run")
        if old is not None and len(facts) <= old.dtype.itemsize:
            old[()] = facts.ljust(old.dtype.itemsize)
            return
        if old is not None:
            del self._file["run"]
        size = len(facts) + _RUN_SLACK
        self._file.create_dataset("run", data=np.array(facts.ljust(size), dtype=h5py.string_dtype("utf-8", size)))


def _create(path: Path, *, force: bool) -> SteadyFile:
    """Create the file, or say why it cannot be created."""
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where a name is too long
        raise CaptureError(
            say("Cannot write '{}': it is a folder. Name a file in it, as in '{}'.", path, path / "run.h5")
        )
    try:
        return SteadyFile.create(path, overwrite=force)
    except FileExistsError as error:
        msg = say(
            "Cannot write '{}': it exists. Name another file, or replace it with --force (in Python, force=True).", path
        )
        raise CaptureError(msg) from error
    except FileNotFoundError as error:
        if path.parent.is_dir():
            raise CaptureError(say("Cannot write '{}': no file can be made there. {}", path, _ELSEWHERE)) from error
        raise CaptureError(
            say("Cannot write '{}': there is no folder '{}'. Create it first.", path, path.parent)
        ) from error
    except OSError as error:
        raise CaptureError(say("Cannot write '{}': {}. {}", path, _reason(error), _ELSEWHERE)) from error


def _open_hdf5(steady: SteadyFile) -> h5py.File:
    """A new HDF5 file with room in the cache for the directory of a large step, so that it is written only once."""
    file = h5py.File(
        steady,
        "w",
        libver="earliest",
        meta_block_size=_META_BLOCK,
        alignment_threshold=LARGE,
        alignment_interval=PAGE,
    )
    config = file.id.get_mdc_config()
    config.set_initial_size = True
    config.initial_size = config.min_size = config.max_size = _CACHE
    file.id.set_mdc_config(config)
    return file


def _append_only(file: h5py.File, name: str, dtype: Any) -> None:
    file.create_dataset(name, shape=(0,), maxshape=(None,), chunks=(_CHUNK_ROWS[name],), dtype=dtype)


def _extend(table: h5py.Dataset, rows: NDArray[Any]) -> None:
    start = table.shape[0]
    table.resize(start + len(rows), axis=0)
    table[start:] = rows


def _lacks_values(records: Sequence[TensorRecord], handles: Mapping[int, Handle]) -> bool:
    return any(record.order not in handles for record in records)


def _reason(error: BaseException) -> str:
    """What the operating system said, without Python's frame around it."""
    number = getattr(error, "errno", None)
    text = os.strerror(number) if number else re.sub(r"\s+", " ", str(error)) or type(error).__name__
    return text[:1].lower() + text[1:]


_open_writers: weakref.WeakSet[CaptureWriter] = weakref.WeakSet()


@atexit.register
def _abandon_all() -> None:
    """HDF5 closes what is open when the process ends, too late for the Python code under it; so close it before."""
    for writer in list(_open_writers):
        if not writer.closed:
            writer.abandon()
