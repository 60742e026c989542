"""The table of headroom."""

from __future__ import annotations

from collections.abc import Iterable

from align.inspection.inspection import Inspection
from align.inspection.nonfinite_kind import SHORT
from align.inspection.nonfinite_question import HEADROOM
from align.records import Column, Shown, Table

WORTH_A_ROW = 1e-3
ROWS = 20


def tables(inspection: Inspection) -> Iterable[Table]:
    """The outputs of short formats, and others that come near their limit, the one with the least headroom first."""
    rows = [
        (
            one.name,
            one.slot,
            one.precision.name,
            one.largest,
            one.precision.largest,
            one.share,
            one.growth,
            one.steps_left,
        )
        for one in inspection.headrooms
        if one.is_little or (one.precision.largest < SHORT and one.share >= WORTH_A_ROW)
    ]
    yield Table(
        "headroom",
        "Headroom",
        "How near the outputs of modules come to the greatest number of their format, over the captured steps; the "
        "factor per step and the steps that are left are told where an output grew in every step.",
        (
            Column("module", Shown.NAME),
            Column("tensor"),
            Column("format"),
            Column("largest", Shown.NUMBER),
            Column("limit", Shown.NUMBER),
            Column("share", Shown.SHARE),
            Column("per step", Shown.NUMBER),
            Column("steps left", Shown.COUNT),
        ),
        tuple(rows[:ROWS]),
        HEADROOM,
    )
