"""The ranks of a job beside one another."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median

from align.inspection.inspection import Inspection, Job
from align.inspection.ranks_questions import RANKS
from align.records import Column, FactValue, Shown, Table


def tables(job: Job) -> Iterable[Table]:
    """One row a rank; nothing for a run of one process."""
    if len(job.ranks) < 2:  # noqa: PLR2004 - one is not beside another
        return
    yield Table(
        "ranks",
        "Ranks beside one another",
        "What the timeline of each rank says; losses are those of its own batches.",
        (
            Column("rank", Shown.COUNT),
            Column("steps", Shown.COUNT),
            Column("captured", Shown.COUNT),
            Column("first loss", Shown.LOSS),
            Column("last loss", Shown.LOSS),
            Column("skipped", Shown.COUNT),
            Column("not finite", Shown.COUNT),
            Column("time per step", Shown.SECONDS),
        ),
        tuple(_row(inspection) for inspection in job.ranks),
        RANKS,
    )


def _row(inspection: Inspection) -> tuple[FactValue, ...]:
    view = inspection.view
    rows = view.timeline
    losses = [row.loss for row in rows if math.isfinite(row.loss)]
    seconds = [row.seconds for row in rows if math.isfinite(row.seconds)]
    return (
        view.run.rank,
        len(rows),
        len(view.steps),
        losses[0] if losses else None,
        losses[-1] if losses else None,
        sum(row.skipped for row in rows),
        sum(row.nonfinite for row in rows),
        median(seconds) if seconds else None,
    )
