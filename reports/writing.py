"""Writing a report: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from align.errors import UsageError
from align.sentences import say

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def check_writable(path: str) -> None:
    """Raise a sentence when a report cannot be written there, before the work for it is done."""
    target = Path(path)
    if path == "":
        message = say("Cannot write a report: the name of the file is empty. Name a file.")
        raise UsageError(message)
    if target.is_dir():
        message = say("Cannot write '{}': it is a folder. Name a file in it.", path)
        raise UsageError(message)
    if is_capture(target):
        message = say(
            "Cannot write '{}': it is an HDF5 file, such as a capture. Name another file for the report.", path
        )
        raise UsageError(message)
    folder = target.resolve().parent
    if not folder.is_dir():
        message = say(
            "Cannot write '{}': the folder '{}' does not exist. Make it first, or name another file.", path, folder
        )
        raise UsageError(message)
    if not os.access(target if target.exists() and not target.is_file() else folder, os.W_OK):
        message = say("Cannot write '{}': the folder '{}' is not writable. Name a file elsewhere.", path, folder)
        raise UsageError(message)


def is_capture(path: Path) -> bool:
    """Whether a file begins as HDF5 files do: no report ever replaces one."""
    if not path.is_file():
        # To read from a pipe would wait for whoever writes into it.
        return False
    try:
        with path.open("rb") as stream:
            return stream.read(len(HDF5_SIGNATURE)) == HDF5_SIGNATURE
    except OSError:
        return False


def write_text(path: str, text: str) -> None:
    """Write a file in one move: readers see the old file or the whole new one."""
    check_writable(path)
    # Through a link, so that the link stays one.
    target = Path(path).resolve()
    temporary = ""
    try:
        if target.exists() and not target.is_file():
            # A device or a pipe is written to, never replaced.
            target.write_text(text, encoding="utf-8")
            return
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".tmp", dir=target.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        reason = error.strerror or str(error)
        message = say("Cannot write '{}': {}. Name a file elsewhere, or free the space.", path, reason)
        raise UsageError(message) from error
    except BaseException:
        # Interrupted: nothing half-written stays.
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    # The only portable way to read the mask is to set it for a moment.
    mask = os.umask(0)
    os.umask(mask)
    return mask
