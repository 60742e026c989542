"""The capture file: one HDF5 file a rank, described in `capture_format`, written and read through these names."""

from __future__ import annotations

from align.capture_format import FORMAT_VERSION
from align.capture_reader import Capture, find_ranks, open_capture
from align.capture_writer import CaptureWriter, Handle

__all__ = ["FORMAT_VERSION", "Capture", "CaptureWriter", "Handle", "find_ranks", "open_capture"]
