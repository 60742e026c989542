"""Numbers that stand exactly at the limit of their format, as a device without Inf leaves an overflow."""

from __future__ import annotations

from dataclasses import dataclass

from align.flow import is_output
from align.inspection.nonfinite import is_skipped
from align.inspection.nonfinite_kind import SHORT
from align.inspection.nonfinite_start import place_of
from align.inspection.view import RunView
from align.records import Phase, TensorRecord
from align.tolerance import PRECISIONS

MADE = frozenset({Phase.FORWARD, Phase.BACKWARD, Phase.GRADIENT})


@dataclass(frozen=True, slots=True, eq=False)
class Saturation:
    """The first tensor of a step that holds the greatest number of its format.

    `told_by_device` says that the device has no Inf, or that its overflow flag was set in the step; `skipped` that a
    loss scaler skipped the step because of it. `steps` are all captured steps in which that tensor holds it.
    """

    record: TensorRecord
    told_by_device: bool
    skipped: bool
    steps: tuple[int, ...]


def find_saturation(view: RunView) -> Saturation | None:
    """The first step that was not skipped comes first, then the first of all; None where no number is at a limit."""
    found: dict[int, TensorRecord] = {}
    for number in view.steps:
        records = (record for record in view.step(number).records if _counts(view, number, record))
        record = next(filter(is_at_limit, records), None)
        if record is not None:
            found[number] = record
    if not found:
        return None
    taken = [number for number in found if not is_skipped(view, number)]
    step = taken[0] if taken else next(iter(found))
    record = found[step]
    same = tuple(number for number, other in found.items() if place_of(other) == place_of(record))
    return Saturation(record, saturates(view, step), not taken, same)


def saturates(view: RunView, step: int) -> bool:
    """Whether the device has no Inf by its own word, or its overflow flag was set in a step."""
    if view.run.flags.get("inf_nan_mode") is False:
        return True
    return any(row.overflow for row in view.timeline if row.step == step)


def flagged_step(view: RunView) -> int | None:
    """The first step in which the device's overflow flag was set and that no loss scaler skipped."""
    return next((row.step for row in view.timeline if row.overflow and not row.skipped), None)


def is_at_limit(record: TensorRecord) -> bool:
    """Whether a tensor holds the greatest number of its format; the least one alone is what masks are made of."""
    precision = PRECISIONS.get(record.dtype)
    return precision is not None and record.stats is not None and record.stats.maximum == precision.largest


def _counts(view: RunView, step: int, record: TensorRecord) -> bool:
    """Whether a record at its limit speaks of an overflow.

    Where the device does not say so, only outputs of modules in a short format: code between modules pads with the
    greatest number on purpose, to take a minimum.
    """
    if record.recomputed or record.key.phase not in MADE:
        return False
    if saturates(view, step):
        return True
    precision = PRECISIONS.get(record.dtype)
    short = precision is not None and precision.largest < SHORT
    return short and record.key.phase is Phase.FORWARD and is_output(record)
