"""The curves of a capture, from its timeline."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from align.capture_file import open_capture
from align.curve_files.names import asked_for
from align.curve_files.shown import listed, shown
from align.curve_records import CurveKind, Curves, Quantity
from align.errors import CurveError
from align.sentences import say

_FIELDS = {
    Quantity.LOSS: "loss",
    Quantity.GRADIENT_NORM: "gradient_norm",
    Quantity.LEARNING_RATE: "learning_rate",
    Quantity.LOSS_SCALE: "loss_scale",
    Quantity.SECONDS: "seconds",
}
_NUMBERS = ("loss", "learning_rate", "loss_scale", "gradient_norm", "seconds", "loss_scale_after", "clip_norm",
            "clip_limit")  # fmt: skip


def read_capture(file: Path, path: str, asked: dict[Quantity, str], sha256: str) -> Curves:
    """The timeline of a capture; raises CurveError where no loss was seen, CaptureFileError for a damaged file.

    The norm of the gradients is the one that clipping found, where the run clips: it is what logs of training hold, and
    behind it every norm is the limit.
    """
    with open_capture(file) as capture:
        run, rows, unfinished = capture.run, capture.timeline, capture.unfinished
    clipped = any(not math.isnan(row.clip_norm) for row in rows)
    norm = {Quantity.GRADIENT_NORM: "clip_norm"} if clipped else {}
    taken = {**_FIELDS, **norm, **{quantity: _field(name, path) for quantity, name in asked.items()}}
    columns = {quantity: np.array([getattr(row, name) for row in rows], dtype=np.float64)
               for quantity, name in taken.items()}  # fmt: skip
    nonfinite = np.array([row.nonfinite or math.isinf(row.loss) for row in rows], dtype=bool)
    columns = {quantity: values for quantity, values in columns.items() if not np.isnan(values).all()
               or (quantity is Quantity.LOSS and nonfinite.any())}  # fmt: skip
    if Quantity.LOSS not in columns:
        raise CurveError(
            say(
                "Cannot find a loss in '{}': its timeline has {} steps, and no loss was seen in any. Train with "
                "a backward that starts at a loss, and capture again.",
                path,
                f"{len(rows):,}",
            )
        )
    notes = [say("The run had not finished when its capture was read.")] if unfinished else []
    if str(file) != path:
        notes.append(say("Of the ranks of the run, the file '{}' was read.", file.name))
    return Curves(
        path=path,
        kind=CurveKind.CAPTURE,
        steps=np.array([row.step for row in rows], dtype=np.int64),
        columns=columns,
        nonfinite=nonfinite,
        skipped=np.array([row.skipped for row in rows], dtype=bool),
        taken={quantity: name for quantity, name in taken.items() if quantity in columns},
        sha256=sha256,
        run=run,
        notes=tuple(notes),
    )


def _field(name: str, path: str) -> str:
    """The field of the timeline that the user names."""
    for field in _NUMBERS:
        if asked_for(field, name):
            return field
    raise CurveError(
        say(
            "Cannot find the column '{}' in '{}'. The columns of a capture are {}.", shown(name), path, listed(_NUMBERS)
        )
    )
