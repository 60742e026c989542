"""What the smallest float16 numbers leave of a tensor.

The smallest float16 number is 2^-24. What rounding to multiples of it does to a tensor follows from the root mean
square of its elements that are not 0, whatever else in it is exactly 0 (rows without tokens, ReLU, dropout): those are
not counted. On a device that flushes subnormals the smallest number is 2^-14.
"""

from __future__ import annotations

import math

from align.records import TensorRecord

FLOAT16 = "float16"
QUANTUM = 2.0**-24
SMALLEST_NORMAL = 2.0**-14

UNIFORM = 1.0 / math.sqrt(12.0)
"""The root mean square of the rounding error, in units of what is rounded to."""

STARVED = 0.1
"""From this relative rounding error on a gradient is starved. At loss scales that cost all gradients of a llama 6 %
its loss curve was harmed (measured); the greatest error in the healthy runs of docs/findings.md is far below."""

FADING = 0.02
"""A gradient of zeros has faded away where what it is made of had this error; above it, zeros have another cause."""

FEWEST_ELEMENTS = 64
"""Of fewer elements that are not 0 the root mean square says little."""


def size_of(record: TensorRecord) -> float | None:
    """The root mean square of the elements that are finite and not 0; None where there are few."""
    stats = record.stats
    if stats is None:
        return None
    elements = stats.count - stats.nonfinite - stats.zeros
    return stats.norm / math.sqrt(elements) if elements >= FEWEST_ELEMENTS and stats.norm > 0.0 else None


def error_of(record: TensorRecord, quantum: float = QUANTUM) -> float | None:
    """The relative error that rounding to multiples of a quantum makes in the elements that are not 0; None of few."""
    size = size_of(record)
    return None if size is None else UNIFORM * quantum / size


def is_zero(record: TensorRecord) -> bool:
    """Whether a tensor has elements and all of them are 0."""
    stats = record.stats
    return stats is not None and stats.count > 0 and stats.zeros == stats.count
