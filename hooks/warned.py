"""What the NPU itself writes to stderr of operators that it leaves to the CPU.

The text passes by Python's warnings, and what stands between training and its stderr could lose lines, change their
order, or stop training when it dies. So only a stderr that is a file is looked at: it is read, never touched. A
terminal and a pipe are left alone.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

OWN_STDERR = Path("/proc/self/fd/2")
MAXIMUM_READ = 16 << 20
"""Bytes: a script that writes more before its first captured step is over is read no further."""
LONGEST_LINE = 1 << 16

FALLBACK = re.compile(
    rb"operator '?(\w+::\w+)(?:\.\w+)?'?"
    rb"(?: is (?:not currently|currently not) supported on the NPU backend|, the operator will fall back to CPU)"
)
"""The three wordings of torch_npu 2.13: of the boxed fallback, of kernels with a fallback of their own, of sparse."""


class WarnedOperators:
    """The operators named in what is written to the file behind file descriptor 2 from `open` on."""

    def __init__(self) -> None:
        self._file: tuple[int, int] | None = None
        self._start = 0

    def open(self) -> None:
        """Note where stderr stands now, if it is a file."""
        try:
            from fcntl import F_GETFL, fcntl  # Windows has none, and no /proc either

            facts = os.fstat(2)
            # The next line is written at the offset that all share, or at the end of a file opened for appending,
            # whose offset is 0 until something was written.
            appends = fcntl(2, F_GETFL) & os.O_APPEND
            if stat.S_ISREG(facts.st_mode):
                self._start = facts.st_size if appends else os.lseek(2, 0, os.SEEK_CUR)
        except (ImportError, OSError):
            return
        if stat.S_ISREG(facts.st_mode):
            self._file = (facts.st_dev, facts.st_ino)

    def read(self) -> set[str]:
        """The operators named since then, without their overload; none where stderr is another file by now."""
        if self._file is None:
            return set()
        try:
            facts = os.fstat(2)
            if (facts.st_dev, facts.st_ino) != self._file:
                return set()
            with OWN_STDERR.open("rb") as file:
                file.seek(self._start)
                found: set[str] = set()
                while file.tell() - self._start < MAXIMUM_READ and (line := file.readline(LONGEST_LINE)):
                    found |= {name.decode() for name in FALLBACK.findall(line)}
                return found
        except OSError:
            return set()
