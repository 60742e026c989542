"""How fast values go to the file, and how large the file becomes.

Every way writes the same bytes to a new file, one after the other, again and again: a disk is never the same twice,
so only ratios within a run say anything. A capture is timed from the first tensor until its step is committed, hence
readable by others and safe from the death of the process.

    python benchmarks/writing.py [--rounds 5] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from align.capture_file import CaptureWriter, open_capture
from align.records import Phase, RunInfo, TensorKey, TensorRecord, TensorStats

LARGE, LARGE_COUNT = 16 << 20, 64
SMALL, SMALL_COUNT = 4 << 10, 10_000
WORKLOAD = Path(__file__).resolve().parent.parent / "fixtures" / "workloads" / "gpt2.py"

Array = NDArray[np.float32]
Way = Callable[[Path, Array, list[TensorRecord]], None]


def main() -> None:
    """Print all three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", default=None, help="where to write; a folder for temporary files by default")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        print_large(Path(folder), args.rounds)
        print_small(Path(folder), args.rounds)
        print_sizes(Path(folder))


def print_large(folder: Path, rounds: int) -> None:
    """Large tensors, in GB/s and relative to plain writing."""
    ways: dict[str, Way] = {"os.write": plain, "h5py create_dataset": datasets, "align, tensors": captured}
    found = measure(ways, folder, rounds, tensor_of(LARGE), LARGE_COUNT)
    total = LARGE * LARGE_COUNT
    print(f"{LARGE_COUNT} tensors of {LARGE >> 20} MiB, medians of {rounds}   {'wall':>10} {'cpu':>16}")
    for name, (wall, cpu) in found.items():
        ratio = found["os.write"][0] / wall
        print(f"  {name:38} {total / wall / 1e9:6.2f} GB/s {cpu / total * 1e9:6.2f} s/GB   {ratio:5.2f}x")


def print_small(folder: Path, rounds: int) -> None:
    """Small tensors, in microseconds each."""
    ways: dict[str, Way] = {"h5py create_dataset": datasets, "align, tensors": captured}
    found = measure(ways, folder, rounds, tensor_of(SMALL), SMALL_COUNT)
    print(f"\n{SMALL_COUNT:,} tensors of {SMALL >> 10} KiB, medians of {rounds}")
    for name, (wall, cpu) in found.items():
        ratio = found["h5py create_dataset"][0] / wall
        each, busy = wall / SMALL_COUNT * 1e6, cpu / SMALL_COUNT * 1e6
        print(f"  {name:38} {each:6.1f} us each {busy:6.1f} us of the processor   {ratio:5.2f}x")


def print_sizes(folder: Path) -> None:
    """What one record of a real model takes in the file, when no values are kept."""
    print(f"\n{'GPT-2 of 6 layers, one step':40} {'records':>9} {'file':>10} {'a record':>14}")
    for detail in ("stats", "sketch"):
        path = folder / f"{detail}.h5"
        command = [sys.executable, "-m", "align", "capture", "--steps", "0:3", "--detail", detail, "-o", path, WORKLOAD]
        options = ["--steps", "3", "--device", "cpu", "--layers", "6", "--width", "128", "--length", "64"]
        subprocess.run([*map(str, command), *options], check=True, capture_output=True)
        with open_capture(path) as capture:
            records = sum(len(capture.records(step)) for step in capture.steps)
            records += len(capture.records(-1)) if capture.has_init else 0
        size = path.stat().st_size
        print(f"  {detail:38} {records:9,} {size / 1e6:7.2f} MB {size / records:8.0f} bytes")


def tensor_of(nbytes: int) -> Array:
    """Numbers that take so many bytes."""
    return np.random.default_rng(0).standard_normal(nbytes // 4, dtype=np.float32)


def measure(
    ways: dict[str, Way], folder: Path, rounds: int, array: Array, count: int
) -> dict[str, tuple[float, float]]:
    """The median seconds of each way, on the wall clock and of the processor."""
    records = [
        TensorRecord(
            TensorKey(0, Phase.FORWARD, f"layer{order // 8}", f"output.{order % 8}"),
            order, "float32", array.shape, TensorStats(array.size), has_values=True,
        )
        for order in range(count)
    ]  # fmt: skip
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        # Removing a file costs the next one something, so each way comes after each other one.
        for name in sorted(ways, key=list(ways).index, reverse=number % 2 == 1):
            way, path = ways[name], folder / "written"
            begin, busy = time.perf_counter(), time.process_time()
            way(path, array, records)
            if number:  # the first round only warms up
                seconds[name].append((time.perf_counter() - begin, time.process_time() - busy))
            path.unlink()
    return {
        name: (statistics.median(wall for wall, _ in all_of), statistics.median(cpu for _, cpu in all_of))
        for name, all_of in seconds.items()
    }


def plain(path: Path, array: Array, records: list[TensorRecord]) -> None:
    """Nothing but the bytes."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    for _ in records:
        os.write(descriptor, array.data.cast("B"))
    os.close(descriptor)


def datasets(path: Path, array: Array, records: list[TensorRecord]) -> None:
    """As everybody writes HDF5."""
    with h5py.File(path, "w") as file:
        for record in records:
            file.create_dataset(f"{record.key.name}/{record.key.slot}", data=array)


def captured(path: Path, array: Array, records: list[TensorRecord]) -> None:
    """As one step of a capture."""
    writer = CaptureWriter(path, RunInfo())
    values: dict[int, Any] = {record.order: writer.add_values(array, "float32") for record in records}
    writer.commit(0, records, values)
    values.clear()
    writer.close(RunInfo())


if __name__ == "__main__":
    main()
