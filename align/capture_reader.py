"""Reads a capture file: the run, its timeline, and the records of each finished step."""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from align.capture_checks import check_table, sealed, split_texts, step_checksum, text_checksums
from align.capture_format import (
    FACT_DTYPE,
    FACT_FIELDS,
    FORMAT_VERSION,
    INDEX_FIELDS,
    LAYOUT,
    MODULE_FIELDS,
    TIMELINE_DTYPE,
    TIMELINE_FIELDS,
    Field,
    decode_text,
    step_group,
    step_number,
    table_dtype,
    upgraded,
    value_path,
)
from align.capture_index import StepTables, highest_text, unpack_facts, unpack_records
from align.damage import ELSEWHERE, reading
from align.errors import CaptureFileError, NewerCaptureFile, NotACaptureFile, TruncatedCaptureFile
from align.records import INIT_STEP, Fact, ModuleInfo, RunInfo, TensorRecord, TimelineRow
from align.sentences import say
from align.steady_file import SteadyFile
from align.value_source import ValueSource
from align.value_types import as_numbers, file_type, storage_dtype

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
UNFINISHED = "unfinished"
WEIGHTS = frozenset({".pt", ".pth", ".bin", ".ckpt", ".safetensors"})
"""How the names of checkpoints end."""
_ATTEMPTS = 3
_MEMBERS = frozenset(entry.path[1:] for entry in LAYOUT if entry.path.count("/") == 1)


class Capture:
    """One capture file, open for reading; a context manager."""

    def __init__(self, path: Path, file: h5py.File, steady: SteadyFile, version: int) -> None:
        self.path = path
        self._file = file
        self._steady = steady
        self._version = version
        self._records: dict[int, list[TensorRecord]] = {}
        self._facts: dict[int, list[Fact]] = {}
        self._tables: dict[int, StepTables] = {}
        self._texts: list[str] = []

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()
            self._steady.close()

    @cached_property
    def run(self) -> RunInfo:
        """The facts of the run; of one without an end the steps that are known of."""
        with reading(self.path):
            run = _parse_run(self._file["run"][()], self._version)
            if run.outcome != UNFINISHED:
                return run
            rows = self._file["timeline"]
            last = int(rows[-1]["step"]) if len(rows) else -1
        return replace(run, steps_seen=max([run.steps_seen, last + 1, *(step + 1 for step in self.steps)]))

    @property
    def unfinished(self) -> bool:
        """Whether the run is still going on, or was killed."""
        return self.run.outcome == UNFINISHED

    @cached_property
    def steps(self) -> list[int]:
        """The captured steps that were finished, without `init`."""
        with reading(self.path):
            return sorted(step for step in map(step_number, self._file) if step is not None)

    @cached_property
    def has_init(self) -> bool:
        """Whether the parameters and buffers before step 0 were captured."""
        with reading(self.path):
            return step_group(INIT_STEP) in self._file

    @cached_property
    def modules(self) -> dict[str, ModuleInfo]:
        """What was learned of each module, by its name."""
        rows = self._read_table("modules", MODULE_FIELDS)
        texts = self._read_texts(max((max(row[0], row[1], row[3], row[7]) for row in rows), default=-1))
        with reading(self.path):
            found = [
                ModuleInfo(
                    name=texts[name],
                    class_name=texts[class_name],
                    leaf=leaf,
                    compute_dtype=None if dtype < 0 else texts[dtype],
                    matmul=matmul,
                    conv=conv,
                    piecewise=piecewise,
                    config={} if config < 0 else json.loads(texts[config]),
                    chooses=chooses,
                    normalises=normalises,
                )
                for name, class_name, leaf, dtype, matmul, conv, piecewise, config, chooses, normalises, _ in rows
            ]
        return {module.name: module for module in found}

    @cached_property
    def timeline(self) -> list[TimelineRow]:
        """One row for every step of the run."""
        rows = self._read_table("timeline", TIMELINE_FIELDS)
        names = (TIMELINE_DTYPE.names or ())[:-1]
        optimizer = names.index("optimizer")
        texts = self._read_texts(max((row[optimizer] for row in rows), default=-1))
        with reading(self.path):
            return [
                TimelineRow(**{**dict(zip(names, row, strict=False)), "optimizer": texts[row[optimizer]]})
                for row in rows
            ]

    def records(self, step: int) -> list[TensorRecord]:
        """The records of a step in execution order; `INIT_STEP` gives those before step 0."""
        if step not in self._records:
            tables = self._read_step(step)
            texts = self._read_texts(highest_text(tables.index))
            with reading(self.path):
                self._records[step] = unpack_records(step, tables, texts)
        return self._records[step]

    def facts(self, step: int) -> list[Fact]:
        """What is known of a step besides tensors, in the order in which it was noted."""
        if step not in self._facts:
            tables = self._read_step(step)
            texts = self._read_texts(highest_text(tables.facts))
            with reading(self.path):
                self._facts[step] = unpack_facts(step, tables.facts, texts)
        return self._facts[step]

    def values(self, record: TensorRecord) -> NDArray[Any]:
        """The values of a record as numbers; bfloat16 and float8 become float32 exactly."""
        return as_numbers(self.raw_values(record), record.dtype)

    def raw_values(self, record: TensorRecord) -> NDArray[Any]:
        """The values of a record as they were kept; bfloat16 and float8 as unsigned integers."""
        with reading(self.path):
            dataset = self._kept(record)
            data = np.empty(dataset.shape, dtype=storage_dtype(record.dtype) or dataset.dtype)
            if data.size:
                dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, data, file_type(record.dtype, data.dtype))
            return data

    def value_source(self, record: TensorRecord) -> ValueSource:
        """The values of a record to be read in pieces, of whatever size they are."""
        with reading(self.path):
            return ValueSource(self.path, self._kept(record), record, self._steady)

    def _kept(self, record: TensorRecord) -> h5py.Dataset:
        if not record.has_values:
            raise CaptureFileError(
                say(
                    "Cannot read the values of '{}' from '{}': they were not kept. Capture again with --detail "
                    "tensors.",
                    record.key,
                    self.path,
                )
            )
        return self._file["/".join(value_path(record.key)).encode("utf-8", "surrogatepass")]

    def _read_texts(self, highest: int) -> list[str]:
        """The texts of /names, at least up to a position; a running capture adds to them."""
        if highest >= len(self._texts):
            with reading(self.path):
                table, sums = self._file["name_bytes"], self._file["name_checksums"]
                table.id.refresh()
                sums.id.refresh()
                encoded = split_texts(table[...])
                if not np.array_equal(text_checksums(encoded), sums[...]):
                    msg = say("the table 'names' does not fit its checksums")
                    raise ValueError(msg)
                self._texts = [decode_text(data) for data in encoded]
        return self._texts

    def _read_table(self, name: str, columns: tuple[Field, ...]) -> list[tuple[Any, ...]]:
        """The rows of a table, each checked."""
        with reading(self.path):
            rows = self._file[name][...]
            check_table(rows, table_dtype(columns, self._version), name)
            found: list[tuple[Any, ...]] = upgraded(rows, columns).tolist()
            return found

    def _read_step(self, step: int) -> StepTables:
        if step not in self._tables:
            self._tables[step] = self._read_tables(step)
        return self._tables[step]

    def _read_tables(self, step: int) -> StepTables:
        if step not in self.steps and not (step == INIT_STEP and self.has_init):
            known = ", ".join(map(str, self.steps)) or say("none")
            msg = say("Cannot read step {} from '{}': it was not captured. Captured steps: {}.", step, self.path, known)
            raise CaptureFileError(msg)
        with reading(self.path):
            group = self._file[step_group(step)]
            stored = [
                _member(group, "index", table_dtype(INDEX_FIELDS, self._version)),
                _member(group, "sketches", np.dtype(np.float32)),
            ]
            if self._version > 1:
                stored.append(_member(group, "facts", FACT_DTYPE, optional=True))
                stored.append(_member(group, "row_hashes", np.dtype(np.uint64), optional=True))
                stored.append(_member(group, "exponents", np.dtype(np.int64), optional=True))
            if int(group["checksum"][()]) != step_checksum(step, stored):
                msg = say("{} does not fit its checksum", step_group(step))
                raise ValueError(msg)
            index, sketches, *rest = stored
            facts, hashes, exponents = rest or (np.zeros(0, dtype) for dtype in (FACT_DTYPE, np.uint64, np.int64))
            return StepTables(upgraded(index, INDEX_FIELDS), sketches, upgraded(facts, FACT_FIELDS), hashes, exponents)


def _member(group: h5py.Group, name: str, dtype: np.dtype[Any], *, optional: bool = False) -> NDArray[Any]:
    """One table of a step; an optional one that is not there is empty."""
    if optional and name not in group:
        return np.zeros(0, dtype=dtype)
    array: NDArray[Any] = group[name][...]
    if array.dtype != dtype or array.ndim != 1:
        msg = say("its table '{}' is not what was written", name)
        raise ValueError(msg)
    return array


def open_capture(path: str | os.PathLike[str]) -> Capture:
    """Open a capture file, also while it is being written; says in a sentence why it cannot."""
    path = Path(path)
    _check_readable(path)
    for _ in range(_ATTEMPTS - 1):
        with suppress(TruncatedCaptureFile):
            return _open(path)
        # A running capture puts its changes down in some microseconds.
        time.sleep(0.05)
    return _open(path)


def find_ranks(path: str | os.PathLike[str]) -> list[Path]:
    """The files of all ranks of a run, in order: `npu.h5` gives `npu.rank0000.h5`, ...; empty if there are none."""
    path = Path(path)
    rank = re.compile(re.escape(path.stem) + r"\.rank\d{4,}" + re.escape(path.suffix))
    return sorted(file for file in path.parent.glob("*") if rank.fullmatch(file.name))


def _holds_weights(path: Path) -> bool:
    """Whether a file has the name or the first bytes of a checkpoint: a zip archive, or the header of safetensors."""
    with path.open("rb") as stream:
        head = stream.read(9)
    return path.suffix in WEIGHTS or head[:4] == b"PK\x03\x04" or head[8:] == b"{"


def _check_readable(path: Path) -> None:
    """Say why the path cannot be read at all."""
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where a name is too long
        msg = say("Cannot read '{}': it is a folder. Name a capture file in it.", path)
        raise NotACaptureFile(msg)
    try:
        with path.open("rb") as stream:
            head = stream.read(len(_SIGNATURE))
    except FileNotFoundError as error:
        msg = say(
            "Cannot read '{}': there is no such file. Check the path, or make it with 'align capture -o {}'.",
            path,
            path,
        )
        raise NotACaptureFile(msg) from error
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        msg = say("Cannot read '{}': {}. Check who owns it and what its permissions are.", path, reason)
        raise CaptureFileError(msg) from error
    if not head:
        raise NotACaptureFile(
            say("Cannot read '{}': it is empty, its capture ended before it began. Capture again.", path)
        )
    if head != _SIGNATURE:
        other = say("; for files of weights use `align checkpoint`") if _holds_weights(path) else ""
        msg = say("Cannot read '{}': it is not an HDF5 file{}. Name a file that 'align capture' wrote.", path, other)
        raise NotACaptureFile(msg)


def _open(path: Path) -> Capture:
    steady = SteadyFile.open(path)
    try:
        # HDF5's own file access is faster, where the file needs no help.
        file = h5py.File(steady, "r") if steady.recovered else h5py.File(path, "r", locking=False)
    except OSError as error:
        steady.close()
        msg = say("Cannot read '{}': {}. {}", path, _damage(path, error), ELSEWHERE)
        raise TruncatedCaptureFile(msg) from error
    try:
        version = _check_version(path, file)
        _check_members(path, file)
        return Capture(path, file, steady, version)
    except CaptureFileError:
        file.close()
        steady.close()
        raise


def _check_version(path: Path, file: h5py.File) -> int:
    """The format version of a file that this align can read."""
    with reading(path):
        version = int(file.attrs.get("align_format", 0))
        facts = file["run"][()] if "run" in file else b""
    if not version or not facts:
        msg = say(
            "Cannot read '{}': it is an HDF5 file, but not a capture. Name a file that 'align capture' wrote.", path
        )
        raise NotACaptureFile(msg)
    if version > FORMAT_VERSION:
        with reading(path):
            author = json.loads(facts).get("align_version", "")
        msg = say(
            "Cannot read '{}': it has capture format {}, written by align {}, and this align reads formats "
            "up to {}. Update it with 'pip install -U torch-align'.",
            path,
            version,
            author,
            FORMAT_VERSION,
        )
        raise NewerCaptureFile(msg)
    with reading(path):
        _parse_run(facts, version)
    return version


def _check_members(path: Path, file: h5py.File) -> None:
    """Refuse a file with something in it that no capture has: a step whose name is damaged would be overlooked."""
    with reading(path):
        unknown = [name for name in file if name not in _MEMBERS and step_number(name) is None]
        if unknown:
            msg = say("it holds '{}', which no capture has", ascii(unknown[0])[1:-1])
            raise ValueError(msg)


def _damage(path: Path, error: OSError) -> str:
    """How many bytes are missing, where HDF5 says so."""
    if "locking flag" in str(error):
        return say("this process has it open with other locking (open it there with locking=False)")
    stored = re.search(r"stored_eof = (\d+)", str(error))
    if stored is None:
        return say("its HDF5 structure is damaged")
    return say("it is truncated: {} of {} bytes are there", path.stat().st_size, stored.group(1))


def _parse_run(data: bytes, version: int) -> RunInfo:
    """The facts of the run; what an older file lacks takes its default, what is unknown is left out."""
    facts = json.loads(sealed(data))
    known = {field.name: facts[field.name] for field in fields(RunInfo) if field.name in facts}
    for name in ("phases", "command", "optimizers", "notes", "modules_requested", "kept", "loaders", "loads"):
        if name in known:
            known[name] = tuple(known[name])
    return RunInfo(**{**known, "format_version": version})
