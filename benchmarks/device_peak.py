"""Run a training script, and at the end write how many bytes of its device it had allocated at most.

The end is the end of the process, so that what a capture does when it closes is counted.

    python benchmarks/device_peak.py FILE SCRIPT [ARGUMENTS...]
"""

from __future__ import annotations

import atexit
import runpy
import sys
from pathlib import Path

import torch


def write_peak(report: Path) -> None:
    """Write the peak of the accelerator that is there."""
    device = torch.cuda if torch.cuda.is_available() else getattr(torch, "npu")  # noqa: B009  no stub knows torch.npu
    report.write_text(str(device.max_memory_allocated()))


def main() -> None:
    """Run the script in this process, as if it stood on the command line alone."""
    report, script = Path(sys.argv[1]), sys.argv[2]
    atexit.register(write_peak, report)
    sys.argv[:] = sys.argv[2:]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
