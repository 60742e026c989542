"""What h5py says of a damaged capture file, as a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from align.errors import CaptureFileError, TruncatedCaptureFile
from align.sentences import say, told

ELSEWHERE = say("Copy it again from where it was written, or capture again.")
_DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, IndexError, OverflowError, MemoryError)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what h5py says of a damaged file into a sentence."""
    try:
        yield
    except CaptureFileError:
        raise
    except _DAMAGE as error:
        raise damaged(path, told(error)) from error


def damaged(path: Path, reason: str) -> TruncatedCaptureFile:
    """The error that says so."""
    return TruncatedCaptureFile(say("Cannot read '{}': it is damaged ({}). {}", path, reason, ELSEWHERE))
