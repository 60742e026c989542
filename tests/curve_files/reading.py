"""Files of curves for tests, and what was read of them in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from align.curve_files import read_curves
from align.curve_records import Curves, Quantity

REPEATED = (
    "Steps that are in the file more than once, as of a resumed run or of several processes: {}, from step {} to step "
    "{}. The later value was taken."
)
ZERO_FOR_NAN = (
    "Steps whose loss is written as 0 beside a gradient norm of nan: {}. Their losses were NaN, which the Trainer of "
    "transformers leaves out of its sum."
)
SAMPLES = Path(__file__).resolve().parents[2] / "fixtures" / "curves"


def read(
    folder: Path, content: str | bytes, name: str = "run.log", columns: Mapping[Quantity, str] | None = None
) -> Curves:
    """The curves of a file with this content."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_curves(str(path), columns)


def values(curves: Curves, quantity: Quantity = Quantity.LOSS) -> list[float | None]:
    """The values of a quantity, None where nothing is recorded or a loss was NaN."""
    return [None if np.isnan(value) else round(float(value), 9) for value in curves.columns[quantity]]


def steps(curves: Curves) -> list[int]:
    """The steps."""
    return [int(step) for step in curves.steps]


def where(curves: Curves, mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[int]:
    """The steps at which a mask is set."""
    return [int(step) for step in curves.steps[mask]]
