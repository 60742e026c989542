"""Requests to a running capture: a small file beside it, which it takes away when it reads it."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from align.errors import CaptureFileError
from align.sentences import say

LOOKS_PER_SECOND = 4
"""How often a running capture looks for a request at most: a look is one failing system call, 2 us on a local disk,
but may take a millisecond on a network file system."""


MOST_STEPS = 100_000
"""How many steps one request may ask for: a run that is to be captured for so long is better captured again."""


def request_path(capture: Path) -> Path:
    """Where a request to this capture lies."""
    return capture.with_name(f"{capture.name}.request")


def leave_request(capture: Path, steps: int) -> None:
    """Ask the process that writes this capture to record its next steps, this many of them.

    Raises CaptureFileError where the folder cannot be written.
    """
    path = request_path(capture)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        draft.write_text(f"{steps}\n")
        draft.replace(path)  # at once: a reader never sees a half of it
    except OSError as error:
        raise CaptureFileError(say("Cannot leave a request beside '{}': {}.", capture, error.strerror)) from error


def take_request(capture: Path) -> int:
    """How many steps are asked for, 0 if none or if that cannot be read; the request is gone then."""
    path = request_path(capture)
    try:
        text = path.read_text()
    except OSError:
        return 0
    with suppress(OSError):
        path.unlink()
    asked = text.strip()
    if not asked.isdecimal() or len(asked) > len(str(MOST_STEPS)):
        return 0
    return min(int(asked), MOST_STEPS)


class Requests:
    """The requests to one running capture, looked for a few times a second at most."""

    def __init__(self, capture: Path) -> None:
        self._capture = capture
        self._next_look = 0.0

    def take(self) -> int:
        """How many steps are asked for, 0 if none or if the last look was a moment ago; the request is gone then."""
        now = time.monotonic()
        if now < self._next_look:
            return 0
        self._next_look = now + 1 / LOOKS_PER_SECOND
        return take_request(self._capture)


def drop_request(capture: Path) -> None:
    """Forget what nobody will read any more."""
    with suppress(OSError):
        request_path(capture).unlink()
