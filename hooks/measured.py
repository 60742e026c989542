"""What is measured of one tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from align.records import TensorStats


class Seal(NamedTuple):
    """By what a tensor on the host is known again: its sums as they were rounded, block by block.

    `bits` is the hash of the blocks whose sums are not finite.
    """

    total: float
    squares: float
    bits: int


@dataclass(slots=True)
class Measured:
    """The numbers of one tensor; `stats` is None until they have been fetched from the device.

    `sketch` is float32 with `resolution` its own error relative to the norm (see `align.sketch`). `exponents` is int64:
    the number of elements of each exponent code, where that was asked for. `seal` is there for tensors on the host.
    """

    stats: TensorStats | None = None
    sketch: np.ndarray[Any, np.dtype[np.float32]] | None = None
    resolution: float = 0.0
    exponents: np.ndarray[Any, np.dtype[np.int64]] | None = None
    seal: Seal | None = None
