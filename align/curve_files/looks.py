"""Tells a file that holds a loss curve from any other, for commands that read none."""

from __future__ import annotations

import math

from align.curve_files.opening import read_curves
from align.curve_records import CurveKind, Quantity
from align.errors import CaptureFileError, CurveError

_FEWEST = 2
"""Steps with a loss; one number behind the word loss stands in many texts that are no log."""


def holds_loss_curve(path: str) -> bool:
    """Whether this is a log, a table or a folder in which the loss of several steps is found without being asked."""
    try:
        curves = read_curves(path)
    except (CaptureFileError, CurveError):
        return False
    known = sum(not math.isnan(loss) for loss in curves.columns[Quantity.LOSS].tolist()) + int(curves.nonfinite.sum())
    return curves.kind is not CurveKind.CAPTURE and known >= _FEWEST
