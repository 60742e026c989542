"""How long the commands take that people wait for: `align --help`, and `align diff` of two 3-step captures.

The captures are those of the benchmark's GPT-2 (6 layers, width 512, batch 4 x 256) at detail sketch. Runs of
both commands and of a bare Python follow each other; the medians are printed.

    python benchmarks/start_up.py [--runs 9]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKLOAD = Path(__file__).resolve().parent.parent / "fixtures" / "workloads" / "gpt2.py"
SIZE = ("--width", "512", "--layers", "6", "--heads", "8", "--batch", "4", "--length", "256", "--steps", "3")


def main() -> None:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("a.h5", "b.h5")]
        for seed, file in enumerate(files):
            capture = ["capture", "--device", "cpu", "-o", file, str(WORKLOAD), *SIZE, "--lr", f"{1e-3 + seed * 1e-9}"]
            subprocess.run([sys.executable, "-m", "align", *capture], check=True, capture_output=True)
        commands = {
            "python -c pass": ["-c", "pass"],
            "align --help": ["-m", "align", "--help"],
            "align diff, text": ["-m", "align", "diff", *files],
            "align diff, text and page": ["-m", "align", "diff", *files, "--html", str(Path(folder) / "r.html")],
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(runs):
            for name, arguments in commands.items():
                seconds[name].append(timed([sys.executable, *arguments]))
    for name, values in seconds.items():
        print(f"{name:28} {statistics.median(values):6.3f} s   (least {min(values):.3f} s of {runs})")


def timed(command: list[str]) -> float:
    """Wall seconds of one command; exit code 1 means that the captures differ, which is no failure."""
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begin
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return seconds


if __name__ == "__main__":
    main()
