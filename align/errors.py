"""What can go wrong, each with one sentence that holds the value and says what to do next."""

from __future__ import annotations


class AlignError(Exception):
    """Anything that align reports to its user in words; the command line exits with 2."""


class UsageError(AlignError):
    """The options contradict each other or cannot be read."""


class CaptureError(AlignError):
    """A capture cannot start: the device, the output path or the script is not usable."""


class CaptureFileError(AlignError):
    """A capture file cannot be read or written."""


class NotACaptureFile(CaptureFileError):
    """The file is missing, is not HDF5, or was not written by align."""


class TruncatedCaptureFile(CaptureFileError):
    """The file ends before its own directory says that it does."""


class NewerCaptureFile(CaptureFileError):
    """The file was written by a newer align, in a format that this one does not know."""


class ReplayError(AlignError):
    """A script cannot be run by a capture: it fails, or trains another model."""


class ComparisonError(AlignError):
    """Two captures cannot be compared: other models, or no step in common."""


class CheckpointError(AlignError):
    """A checkpoint cannot be read, or two of them cannot be compared."""


class PolicyError(AlignError):
    """A policy of `align accept` cannot be read: a key, a value or a source in it is wrong or missing."""


class CurveError(AlignError):
    """A file holds no curve that can be read, or leaves open which of its columns is meant."""


class ReportError(AlignError):
    """A saved result cannot be read: it is missing, no result of align, broken, or of another version."""
