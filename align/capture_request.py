"""Requests to a running capture: a small file beside it, which it takes away when it reads it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def request_path(capture: Path) -> Path:
    """Where a request to this capture lies."""
    return capture.with_name(f"{capture.name}.request")


def leave_request(capture: Path, steps: int) -> None:
    """Ask the process that writes this capture to record its next steps, this many of them."""
    path = request_path(capture)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(f"{steps}\n")
    draft.replace(path)  # at once: a reader never sees a half of it


def take_request(capture: Path) -> int:
    """How many steps are asked for, 0 if none; the request is gone then."""
    path = request_path(capture)
    try:
        text = path.read_text()
    except OSError:
        return 0
    with suppress(OSError):
        path.unlink()
    return int(text) if text.strip().isdecimal() else 0


def drop_request(capture: Path) -> None:
    """Forget what nobody will read any more."""
    with suppress(OSError):
        request_path(capture).unlink()
