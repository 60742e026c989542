"""The table of the loss scales that the fp16 gradients of each step would fit into."""

from __future__ import annotations

from collections.abc import Iterable

from align.inspection.inspection import Inspection
from align.inspection.scale_questions import LARGEST, LOSS_SCALE, ROWS
from align.records import Column, Shown, Table


def tables(inspection: Inspection) -> Iterable[Table]:
    """One row for each captured step that was not skipped and whose gradients any scale can hold."""
    steps = [step for step in inspection.underflow.steps if max(step.lowest, 1.0) <= min(step.highest, LARGEST)]
    yield Table(
        "fp16_scales",
        "Loss scales that fit",
        "Of each captured step that was not skipped: the loss scales between which all of its fp16 gradients fit.",
        (
            Column("step", Shown.COUNT),
            Column("scale", Shown.SCALE),
            Column("lowest that fits", Shown.SCALE),
            Column("highest that fits", Shown.SCALE),
        ),
        tuple((step.step, step.scale, max(step.lowest, 1.0), min(step.highest, LARGEST)) for step in steps[:ROWS]),
        question=LOSS_SCALE,
    )
