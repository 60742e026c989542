"""Ask a running capture for its next steps."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from align.capture_file import find_ranks, open_capture
from align.capture_request import MOST_STEPS, leave_request
from align.errors import UsageError
from align.records import RunInfo
from align.sentences import say


def request_steps(path: str, steps: int) -> str:
    """Leave a request for this many steps beside the file, or that of every rank; returns what will happen.

    Raises UsageError for more steps than a request may ask for and where nobody writes the file any more,
    CaptureFileError where it cannot be read or the request cannot be left.
    """
    if steps > MOST_STEPS:
        raise UsageError(
            say(
                "Cannot capture the next {} steps of '{}': one request asks for {} at most. Ask for fewer, or "
                "capture the run again with --steps 0: for all of them.",
                steps,
                path,
                f"{MOST_STEPS:,}",
            )
        )
    files = [Path(path)] if Path(path).exists() else find_ranks(path) or [Path(path)]
    for file in files:
        with open_capture(file) as capture:
            check_running(file, capture.run)
    for file in files:
        leave_request(file, steps)
    what = "step is" if steps == 1 else f"{steps:,} steps are"
    where = str(files[0]) if len(files) == 1 else f"the files of all {len(files)} ranks, {files[0]} ..."
    return f"The next {what} captured into {where} once the step of now is over; the run goes on as it is."


def check_running(file: Path, run: RunInfo) -> None:
    """Raise UsageError where the run has ended, or its process is certainly gone."""
    if run.outcome != "unfinished":
        raise UsageError(
            say(
                "Cannot capture a step of '{}' now: its run has ended ({}). Capture it again with --steps.",
                file,
                run.outcome,
            )
        )
    if is_alive(run) is False:
        raise UsageError(
            say(
                "Cannot capture a step of '{}' now: its process {} is gone, the run was killed. Capture it again "
                "with --steps.",
                file,
                run.process_id,
            )
        )


def is_alive(run: RunInfo) -> bool | None:
    """Whether the process of a run is there; None where that cannot be known from here."""
    return _alive(run.process_id) if run.process_id and run.host == socket.gethostname() else None


def _alive(process: int) -> bool:
    """Whether a process of this number is there, whoever owns it."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(process)


def _is_zombie(process: int) -> bool:
    """Whether it has ended and only waits for its parent to notice; False where that cannot be told."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[:1] == ["Z"]
