"""How fast two checkpoints are compared, against reading both files, and the memory that it takes.

Two safetensors files of the shapes of a language model in bfloat16 are written; the candidates are the same, the same
under other names, another step of training, and the same numbers in float32. "Reading" reads both files in blocks of
1 MB, in turns. Every way follows each other in every round, and the medians are printed, once from the page cache and
once from the disk, as far as the system drops the pages that it is asked to drop. Memory is the peak of a process of
its own that runs the whole command, with what Python and the libraries take.

    python benchmarks/checkpoint_reading.py [--gigabytes 2] [--rounds 5] [--folder FOLDER] [--library]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from align.checkpoint_files import open_checkpoint
from align.checkpoints.comparing import compare_checkpoints

WIDTH, HIDDEN, WORDS = 1024, 4096, 32_000
BLOCK = 1 << 20
LEAST_RATIO, MOST_MEGABYTES = 0.5, 200

COMMAND = """
import sys
from align.cli import main
try:
    main(sys.argv[1:], prog_name="align")
except SystemExit:
    pass
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(peak / 1024, file=sys.stderr)
"""
PEAK = """
import sys
from safetensors import safe_open
from align.checkpoint_files import open_checkpoint

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

before = peak()
"""
LIBRARY = f"""{PEAK}
with safe_open(sys.argv[1], framework="np") as file:
    for name in file.keys():
        part = file.get_slice(name)
        rows = part.get_shape()[0]
        for start in range(0, rows, 64):
            part[start : start + 64].sum()
print(peak() - before)
"""
OWN = f"""{PEAK}
with open_checkpoint(sys.argv[1]) as file:
    for entry in file.entries.values():
        count = 64 * entry.shape[1]
        for start in range(0, entry.numel, count):
            entry.read(start, min(start + count, entry.numel)).sum()
print(peak() - before)
"""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0, help="of each file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", default=None, help="where to write; a folder for temporary files by default")
    parser.add_argument("--library", action="store_true", help="measure the memory of the safetensors library, too")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        layers = max(round(args.gigabytes * 1e9 / 2 - WORDS * WIDTH) // (4 * WIDTH * WIDTH + 3 * WIDTH * HIDDEN), 1)
        write(folder / "reference.safetensors", layers)
        write(folder / "same.safetensors", layers)
        write(folder / "renamed.safetensors", layers, prefix="module.")
        print_ratios(folder, args.rounds)
        write(folder / "moved.safetensors", layers, moved=True)
        write(folder / "wide.safetensors", layers, dtype="F32")
        print_others(folder)
        if args.library:
            for way, program in (("safetensors library", LIBRARY), ("align", OWN)):
                taken = float(python(program, folder / "wide.safetensors").stdout)
                print(f"64 rows at a time of one file by {way}: {taken:,.0f} MB above its start")


def shapes(layers: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """The names and shapes of a language model."""
    yield "model.embed_tokens.weight", (WORDS, WIDTH)
    for number in range(layers):
        for part in ("q_proj", "k_proj", "v_proj", "o_proj"):
            yield f"model.layers.{number}.self_attn.{part}.weight", (WIDTH, WIDTH)
        for part in ("gate_proj", "up_proj"):
            yield f"model.layers.{number}.mlp.{part}.weight", (HIDDEN, WIDTH)
        yield f"model.layers.{number}.mlp.down_proj.weight", (WIDTH, HIDDEN)


def write(path: Path, layers: int, *, prefix: str = "", dtype: str = "BF16", moved: bool = False) -> None:
    """One file, a tensor at a time; `moved` values are those of another step of training."""
    size = {"BF16": 2, "F32": 4}[dtype]
    header: dict[str, object] = {}
    end = 0
    for name, shape in shapes(layers):
        begin, end = end, end + shape[0] * shape[1] * size
        header[prefix + name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    rng = np.random.default_rng(0)
    pool = rng.standard_normal(WORDS * WIDTH, dtype=np.float32) * np.float32(0.02)
    with path.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for number, (_, shape) in enumerate(shapes(layers)):
            values = np.roll(pool, number)[: shape[0] * shape[1]]
            short = values.view(np.uint32) & np.uint32(0xFFFF0000)
            if moved:
                step = np.roll(pool, -1 - number)[: short.size] * np.float32(0.01)
                short = (short.view(np.float32) + step).view(np.uint32)
            stream.write((short if dtype == "F32" else (short >> np.uint32(16)).astype("<u2")).tobytes())


def print_ratios(folder: Path, rounds: int) -> None:
    """Reading both files against comparing them, in the page cache and from the disk; the memory of the command."""
    reference, same, renamed = (folder / f"{name}.safetensors" for name in ("reference", "same", "renamed"))
    size = 2 * reference.stat().st_size
    ways: dict[str, Callable[[], object]] = {
        "reading": lambda: read_both(reference, same),
        "equal": lambda: compare(reference, same),
        "renamed": lambda: compare(reference, renamed),
    }
    for place, drop in (("page cache", False), ("disk", True)):
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(rounds + 1):
            for name, way in ways.items():
                if drop:
                    for path in (reference, same, renamed):
                        forget(path)
                begin = time.perf_counter()
                way()
                if number:
                    seconds[name].append(time.perf_counter() - begin)
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        print(f"2 x {size / 2e9:.2f} GB from the {place}, medians of {rounds}")
        for name, value in medians.items():
            line = f"  {name:12} {size / value / 1e9:6.2f} GB/s"
            if name != "reading":
                # Round by round: a shared disk or processor is slow for a while, and for all ways alike.
                pairs = zip(seconds["reading"], seconds[name], strict=True)
                ratio = statistics.median(plain / ours for plain, ours in pairs)
                line += f"   {ratio:.2f}x of reading   target >= {LEAST_RATIO}x  {reached(ratio >= LEAST_RATIO)}"
            print(line)
    print_memory("equal", reference, same)


def print_others(folder: Path) -> None:
    """Once each: pairs that differ everywhere, which are read more than once."""
    reference = folder / "reference.safetensors"
    for name in ("moved", "wide"):
        candidate = folder / f"{name}.safetensors"
        size = reference.stat().st_size + candidate.stat().st_size
        begin = time.perf_counter()
        compare(reference, candidate)
        passed = time.perf_counter() - begin
        print(f"  {name:12} {size / passed / 1e9:6.2f} GB/s   ({passed:.1f} s)")
        print_memory(name, reference, candidate)


def print_memory(name: str, reference: Path, candidate: Path) -> None:
    """The peak of the whole command in a process of its own."""
    done = python(COMMAND, "checkpoint", reference, candidate)
    taken = float(done.stderr.splitlines()[-1])
    print(f"  {name:12} {taken:6.0f} MB peak   target <= {MOST_MEGABYTES} MB  {reached(taken <= MOST_MEGABYTES)}")


def python(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True)


def read_both(ours: Path, theirs: Path) -> None:
    """Read two files in turns."""
    room = bytearray(BLOCK)
    descriptors = [os.open(path, os.O_RDONLY) for path in (ours, theirs)]
    for start in range(0, max(os.fstat(descriptor).st_size for descriptor in descriptors), BLOCK):
        for descriptor in descriptors:
            os.preadv(descriptor, [room], start)
    for descriptor in descriptors:
        os.close(descriptor)


def compare(ours: Path, theirs: Path) -> None:
    """What the command does."""
    with open_checkpoint(ours) as reference, open_checkpoint(theirs) as candidate:
        compare_checkpoints(reference, candidate)


def forget(path: Path) -> None:
    """Ask the system to drop the pages of a file."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def reached(yes: bool) -> str:  # noqa: FBT001 - the answer to the question in its name
    """How the target was met."""
    return "reached" if yes else "missed"


if __name__ == "__main__":
    main()
