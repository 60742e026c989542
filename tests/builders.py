"""Records, capture files and comparisons for tests, made from numpy arrays through the real file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from align.capture_file import CaptureWriter, open_capture
from align.comparison import Walk, compare
from align.diagnosis import diagnose
from align.hashing import hash_bytes, row_hashes
from align.records import (
    DiffResult,
    Fact,
    ModuleInfo,
    Phase,
    RunInfo,
    TensorKey,
    TensorRecord,
    TensorStats,
    TimelineRow,
)
from align.sketch import sketch_array

Array: TypeAlias = NDArray[Any]

RESOLUTION = 0.7 * 2.0**-24


def statistics_of(array: Array) -> TensorStats:
    """The statistics of an array as a capture holds them."""
    values = array.astype(np.float64).reshape(-1)
    finite = values[np.isfinite(values)]
    return TensorStats(
        count=values.size,
        minimum=float(finite.min()) if finite.size else 0.0,
        maximum=float(finite.max()) if finite.size else 0.0,
        total=float(finite.sum()),
        total_squares=float(finite @ finite),
        zeros=int(np.count_nonzero(finite == 0.0)),
        nans=int(np.count_nonzero(np.isnan(values))),
        positive_infs=int(np.count_nonzero(values == np.inf)),
        negative_infs=int(np.count_nonzero(values == -np.inf)),
    )


def record_of(key: TensorKey, array: Array, order: int = 0, **more: Any) -> TensorRecord:
    """A record of an array; integers, initial tensors and batches get a hash, floats a sketch; batches one a row."""
    floating = array.dtype.kind == "f"
    must_be_equal = not floating or key.phase in {Phase.INIT, Phase.INPUT}
    has_rows = array.ndim > 0 and (key.phase is Phase.INPUT or (key.phase is Phase.LOSS and not floating))
    if has_rows and "row_hashes" not in more:
        more["row_hashes"] = row_hashes(array)
    return TensorRecord(
        key=key,
        order=order,
        dtype=more.pop("dtype", str(array.dtype)),
        shape=array.shape,
        stats=statistics_of(array),
        hash=hash_bytes(array) if must_be_equal else None,
        sketch=sketch_array(array) if floating else None,
        resolution=RESOLUTION if floating and array.size > 251 else 0.0,
        **more,
    )


def write_capture(
    path: Path,
    steps: Mapping[int, Sequence[TensorRecord]],
    *,
    modules: Sequence[ModuleInfo] = (),
    run: RunInfo | None = None,
    timeline: Sequence[TimelineRow] = (),
    facts: Mapping[int, Sequence[Fact]] | None = None,
) -> Path:
    """Write records through the real file."""
    info = run or RunInfo(outcome="finished")
    writer = CaptureWriter(path, info)
    for step, records in steps.items():
        ordered = [replace(record, order=order) for order, record in enumerate(records)]
        writer.commit(step, ordered, {}, (facts or {}).get(step, ()))
    writer.append_modules(modules)
    writer.append_timeline(timeline)
    writer.close(info)
    return path


def walk_files(reference: Path, candidate: Path, *, renames: Sequence[tuple[str, str]] = ()) -> Walk:
    """Compare two files as `align diff` does."""
    with open_capture(reference) as ours, open_capture(candidate) as theirs:
        return compare(ours, theirs, renames)


def diff_files(reference: Path, candidate: Path, *, renames: Sequence[tuple[str, str]] = ()) -> DiffResult:
    """Compare and diagnose two files as `align diff` does."""
    return diagnose(walk_files(reference, candidate, renames=renames))
