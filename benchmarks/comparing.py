"""How fast two captures are compared: from 10,000 sketches a file, and value by value.

The captures are those of three steps of a GPT-2 of 29 layers; the candidates compute attention by another operator,
which rounds otherwise, or begin with other weights. The whole command is timed, its start included. Values are two
tensors of float32 in files that the system holds in memory, as after a capture; every way follows each other in every
round, and the medians are printed. `np.dot` reads two arrays and can hardly be beaten.

    OMP_NUM_THREADS=1 python benchmarks/comparing.py [--rounds 9] [--megabytes 128] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.capture_file import CaptureWriter, open_capture
from align.records import INIT_STEP, Phase, RunInfo, TensorKey, TensorRecord
from align.value_blocks import BlockReader, KeptPair
from align.value_distance import measure

WORKLOAD = Path(__file__).resolve().parent.parent / "fixtures" / "workloads" / "gpt2.py"
SIZE = ("--device", "cpu", "--steps", "3", "--layers", "29", "--width", "32", "--length", "32")
RUNS = {
    "reference": ("--attention", "eager"),
    "aligned": ("--attention", "sdpa"),
    "diverged": ("--attention", "eager", "--seed", "1"),
}
MOST_SECONDS, LEAST_RATIO, MOST_MEGABYTES = 2.0, 0.4, 64

MEMORY = """
import sys
from align.capture_file import open_capture
from align.value_blocks import BlockReader, KeptPair
from align.value_distance import measure

def peak():  # in MB; what getrusage says would be that of the parent process, if that is larger
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

before = peak()
with open_capture(sys.argv[1]) as ours, open_capture(sys.argv[2]) as theirs:
    measure(BlockReader(), KeptPair(*(file.value_source(file.records(0)[0]) for file in (ours, theirs))))
print(peak() - before)
"""


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--megabytes", type=int, default=128, help="of each of the two tensors")
    parser.add_argument("--folder", default=None, help="where to write; a folder for temporary files by default")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        print_sketches(Path(folder), args.rounds)
        print_values(Path(folder), args.rounds, args.megabytes << 18)


def print_sketches(folder: Path, rounds: int) -> None:
    """The seconds of `align diff` on files of 10,000 records."""
    files = {name: folder / f"{name}.h5" for name in RUNS}
    for name, options in RUNS.items():
        command = ["capture", "--steps", "0:3", "-o", files[name], WORKLOAD, *SIZE, *options]
        subprocess.run([sys.executable, "-m", "align", *map(str, command)], check=True, capture_output=True)
    with open_capture(files["reference"]) as capture:
        records = sum(len(capture.records(step)) for step in (INIT_STEP, *capture.steps))
    page = ("--html", str(folder / "report.html"))
    ways: dict[str, Callable[[], object]] = {
        "aligned": lambda: differ(files["reference"], files["aligned"]),
        "diverged": lambda: differ(files["reference"], files["diverged"]),
        "diverged, with a page": lambda: differ(files["reference"], files["diverged"], *page),
    }
    print(f"align diff of two files of {records:,} records, medians of {rounds}")
    for name, seconds in medians(ways, rounds).items():
        target = "" if "page" in name else f"target <= {MOST_SECONDS:.1f} s  {reached(seconds <= MOST_SECONDS)}"
        print(f"  {name:38} {seconds:6.2f} s        {target}".rstrip())


def differ(*arguments: object) -> None:
    """One comparison, which may end with a difference."""
    command = [sys.executable, "-m", "align", "diff", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)


def print_values(folder: Path, rounds: int, numel: int) -> None:
    """The rate at which values are compared, and the memory that it takes."""
    rng = np.random.default_rng(0)
    ours = rng.standard_normal(numel, dtype=np.float32)
    arrays = (ours, ours * np.float32(1 + 1e-6))
    files = [folder / "ours.h5", folder / "theirs.h5"]
    for path, array in zip(files, arrays, strict=True):
        keep(path, array)
    with ExitStack() as stack:
        captures = [stack.enter_context(open_capture(path)) for path in files]
        kept = [capture.value_source(capture.records(0)[0]) for capture in captures]
        pair = KeptPair(kept[0], kept[1])
        reader = BlockReader()
        seconds = medians(
            {
                "np.dot of both in memory": lambda: np.dot(*arrays),
                "np.dot of both from the files": lambda: streamed_dot(reader, pair),
                "distance": lambda: measure(reader, pair, largest=False),
                "distance, largest difference, place": lambda: measure(reader, pair),
            },
            rounds,
        )
    memory, files_dot = seconds["np.dot of both in memory"], seconds["np.dot of both from the files"]
    print(f"\nvalues of 2 x {numel >> 18} MB of float32, medians of {rounds}")
    for name, value in seconds.items():
        line = f"  {name:38} {8 * numel / value / 1e9:6.1f} GB/s"
        if name.startswith("distance"):
            line += f"     target >= {LEAST_RATIO}x"
            for ratio, what in ((files_dot / value, "from the files"), (memory / value, "in memory")):
                line += f"  {ratio:.2f}x of np.dot {what}: {reached(ratio >= LEAST_RATIO)}"
        print(line)
    done = subprocess.run([sys.executable, "-c", MEMORY, *map(str, files)], check=True, capture_output=True, text=True)
    taken = float(done.stdout)
    print(f"  {'peak memory above import':38} {taken:6.1f} MB       target <= {MOST_MEGABYTES} MB  ", end="")
    print(reached(taken <= MOST_MEGABYTES))


def keep(path: Path, array: NDArray[np.float32]) -> None:
    """A capture of one tensor with its values."""
    writer = CaptureWriter(path, RunInfo(detail="tensors"))
    key = TensorKey(0, Phase.FORWARD, "layer", "output.0")
    values: dict[int, Any] = {0: writer.add_values(array, "float32")}
    writer.commit(0, [TensorRecord(key, 0, "float32", array.shape, has_values=True)], values)
    values.clear()
    writer.close(RunInfo(detail="tensors"))


def streamed_dot(reader: BlockReader, pair: KeptPair) -> float:
    """The least that anyone can do with the values of two files."""
    return sum(float(np.dot(ours, theirs)) for _, ours, theirs in reader.blocks(pair))


def medians(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median seconds of each way on the wall clock, after one round that warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            if number:
                seconds[name].append(time.perf_counter() - begin)
    return {name: statistics.median(values) for name, values in seconds.items()}


def reached(yes: bool) -> str:  # noqa: FBT001 - the answer to the question in its name
    """How the target was met."""
    return "reached" if yes else "missed"


if __name__ == "__main__":
    main()
