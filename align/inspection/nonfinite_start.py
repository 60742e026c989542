"""The record of where something non-finite starts, and what non-finite numbers may be meant."""

from __future__ import annotations

from dataclasses import dataclass

from align import nonfinite
from align.records import Origin, Phase, TensorKey, TensorRecord
from align.tolerance import PRECISIONS

MODERATE = 1 / 16
"""Beside finite numbers below this share of the greatest one, -Inf alone is a mask or the logarithm of zero: sums that
overflow in float16 stand beside others above 4,094."""

MASKING = 0.9
"""From this share of the greatest number on, negative numbers are of a mask made with `torch.finfo(dtype).min`."""


PlaceOfTensor = tuple[Phase, str, str]
"""Phase, name and slot: the same tensor in every step."""


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """A record in which something non-finite starts.

    It is laid on the code of `owner` (an empty name: the script), after `sibling` where it lies between two children;
    `users` are all modules whose code can have made it. `mask` is the record with -Inf that NaN rows were made of,
    where at least as many are masked completely. `reach` is the largest magnitude among the finite tensors that
    entered that code, `has_zeros` whether one of them holds exact zeros, `weights` the largest magnitude among the
    parameters of `owner`. `harm` are the steps and phases in which it ends in a loss, a gradient, a parameter or the
    state of an optimizer.
    """

    record: TensorRecord
    origin: Origin
    owner: str
    sibling: str = ""
    users: tuple[str, ...] = ()
    mask: TensorRecord | None = None
    reach: float = 0.0
    has_zeros: bool = False
    weights: float = 0.0
    harm: frozenset[tuple[int, Phase]] = frozenset()

    @property
    def key(self) -> TensorKey:
        """The key of its record."""
        return self.record.key

    @property
    def nan(self) -> bool:
        """Whether there are NaN."""
        return nonfinite.kinds(self.record.stats)[0]

    @property
    def inf(self) -> bool:
        """Whether there are infinite values."""
        return nonfinite.kinds(self.record.stats)[1]


def place_of(record: TensorRecord) -> PlaceOfTensor:
    """Phase, name and slot: the same tensor in every step."""
    return (record.key.phase, record.key.name, record.key.slot)


def is_nonfinite(record: TensorRecord) -> bool:
    """Whether a tensor has NaN or infinite values."""
    return record.stats is not None and record.stats.nonfinite > 0


def reach_of(record: TensorRecord) -> float:
    """The largest magnitude of a floating tensor; the least number of a format, which masks are made of, counts not."""
    precision = PRECISIONS.get(record.dtype)
    if record.stats is None or precision is None:
        return 0.0
    below = -record.stats.minimum
    return max(record.stats.maximum, below if below < MASKING * precision.largest else 0.0)


def is_weak(record: TensorRecord) -> bool:
    """Whether it has -Inf alone beside moderate numbers, as masks and masked scores have: NaN need not come of it."""
    stats = record.stats
    if stats is None or stats.nans or stats.positive_infs or not stats.negative_infs:
        return False
    precision = PRECISIONS.get(record.dtype)
    return precision is not None and stats.absolute_maximum < MODERATE * precision.largest


def masks_rows(mask: TensorRecord, record: TensorRecord) -> bool:
    """Whether NaN fill whole rows of a record, and -Inf at least as large a share of the scores or the mask."""
    ours, theirs = record.stats, mask.stats
    width = record.shape[-1] if record.shape else 1
    if ours is None or theirs is None or not ours.nans or width < 2 or ours.nans % width:  # noqa: PLR2004 - a row
        return False
    return ours.nans * theirs.count <= theirs.negative_infs * ours.count
