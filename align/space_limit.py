"""When to stop keeping values: the file has its size, or the disk is nearly full."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

LEAST_FREE = 0.1
"""The part of the disk that stays free for others. Our own choice, known to nobody else: a full disk stops the
training's checkpoints too, and statistics and sketches need little room."""

_KILO = 1000
_SECONDS = 1.0
_BYTES = 256 << 20


class SpaceLimit:
    """Tells whether the file may grow; `reason` says why not, and once it does it stays."""

    def __init__(self, path: Path, max_bytes: int | None = None, least_free: float = LEAST_FREE) -> None:
        self.reason = ""
        self._path = path
        self._max_bytes = max_bytes
        self._least_free = least_free
        self._looked = float("-inf")
        self._unseen = 0

    def allows(self, nbytes: int, file_size: Callable[[], int]) -> bool:
        """Whether so many bytes may be added to a file of this size."""
        if not self.reason:
            if self._max_bytes is not None and file_size() + nbytes > self._max_bytes:
                self.reason = f"{self._path.name} has reached --max-size {readable_size(self._max_bytes)}"
            elif self._disk_is_full(nbytes):
                self.reason = f"less than {self._least_free:.0%} of the disk of {self._path.name} is free"
        return not self.reason

    def _disk_is_full(self, nbytes: int) -> bool:
        """Asked at most once a second, or after so many bytes that a second may be too long."""
        self._unseen += nbytes
        now = time.monotonic()
        if now - self._looked < _SECONDS and self._unseen < _BYTES:
            return False
        self._looked, self._unseen = now, 0
        usage = shutil.disk_usage(self._path.parent)
        return usage.free < self._least_free * usage.total


def readable_size(size: int) -> str:
    """`3.4 MB`."""
    if size < _KILO:
        return f"{size} bytes"
    amount = float(size)
    for unit in ("kB", "MB", "GB"):
        amount /= _KILO
        if amount < _KILO:
            return f"{amount:.1f} {unit}"
    return f"{amount / _KILO:.1f} TB"
