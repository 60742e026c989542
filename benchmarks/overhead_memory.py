"""What capturing costs in memory: the peaks of whole training processes, plain and captured at detail sketch.

The peak of the host is the operating system's account of resident memory. That of a device, where there is one, is
what its allocator handed out at most. The C library's allocator does not give back alike in every run, so each
process is repeated and the medians count. A plain and a captured process run side by side.

    python benchmarks/overhead_memory.py [--repeats 3]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from benchmarks.training import Size

ROOT = Path(__file__).resolve().parent.parent
WORKLOAD = ROOT / "fixtures" / "workloads" / "gpt2.py"
PEAK_SCRIPT = Path(__file__).resolve().parent / "device_peak.py"
STEPS = 3
ALLOWED_RATIO, ALLOWED_MEGABYTES = 1.05, 64
MEGABYTE = 2**20

# A process that is started holds, for a moment, what the starting one held; so a small one starts what is measured.
WRAPPER = (
    "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode; "
    "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
)


class Peak(NamedTuple):
    """Peak memory of one process in MB; `device` is None on the CPU."""

    host: float
    device: float | None


def print_memory(size: Size, device: str, repeats: int) -> None:
    """Measure and print the table; captured is allowed 1.05 times plain and 64 MB."""
    print(f"{'peak memory, detail sketch':34} {'plain':>9} {'captured':>9} {'allowed':>9}  reached   ({repeats} each)")
    for name, extra in (("without checkpointing", ()), ("with checkpointing", ("--checkpointing",))):
        plain, captured = median_peaks(size, device, extra, repeats)
        print_row(f"host, {name}", plain.host, captured.host)
        if plain.device == 0:
            print(f"{device}, {name}: its allocator counts nothing")
        elif plain.device is not None and captured.device is not None:
            print_row(f"{device}, {name}", plain.device, captured.device)


def print_row(name: str, plain: float, captured: float) -> None:
    """One line of the table."""
    allowed = plain * ALLOWED_RATIO + ALLOWED_MEGABYTES
    reached = "yes" if captured <= allowed else "no"
    print(f"{name:34} {plain:6.0f} MB {captured:6.0f} MB {allowed:6.0f} MB  {reached}")


def median_peaks(size: Size, device: str, extra: tuple[str, ...], repeats: int) -> tuple[Peak, Peak]:
    """The medians of plain and of captured processes, started in pairs."""
    options = [
        "--width", str(size.width), "--layers", str(size.layers), "--heads", str(size.heads), "--batch",
        str(size.batch), "--length", str(size.length), "--steps", str(STEPS), "--device", device, *extra,
    ]  # fmt: skip
    peaks: dict[str, list[Peak]] = {"plain": [], "captured": []}
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as pool:
        for number in range(repeats):
            folder = Path(name) / str(number)
            folder.mkdir()
            capture = ["-m", "align", "capture", "-o", str(folder / "run.h5")]
            starts: dict[str, list[str]] = {"plain": [], "captured": capture}
            waiting = {way: pool.submit(peak_of, start, options, device, folder / way) for way, start in starts.items()}
            for way, result in waiting.items():
                peaks[way].append(result.result())
    return middle(peaks["plain"]), middle(peaks["captured"])


def middle(peaks: list[Peak]) -> Peak:
    """The medians of both memories."""
    on_device = [peak.device for peak in peaks if peak.device is not None]
    return Peak(statistics.median(peak.host for peak in peaks), statistics.median(on_device) if on_device else None)


def peak_of(start: list[str], options: list[str], device: str, report: Path) -> Peak:
    """The peak of one training process; a script around the training reads the device's where there is one."""
    has_device = device != "cpu"
    training = [str(PEAK_SCRIPT), str(report), str(WORKLOAD)] if has_device else [str(WORKLOAD)]
    command = [sys.executable, *start, *training, *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    environment |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WRAPPER, *command], capture_output=True, text=True, check=True, env=environment
    )
    code, kilobytes = done.stdout.split()
    if code != "0":
        raise SystemExit(f"The command ended with {code}: {' '.join(command)}\n{done.stderr}")
    return Peak(int(kilobytes) * 1024 / MEGABYTE, int(report.read_text()) / MEGABYTE if has_device else None)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cpu", help="cpu, cuda or npu")
    args = parser.parse_args()
    print_memory(Size(), args.device, args.repeats)


if __name__ == "__main__":
    main()
