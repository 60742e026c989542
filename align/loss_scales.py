"""What a run multiplied its loss by, to keep small gradients in a narrow format."""

from __future__ import annotations

import math

from align.records import TimelineRow


def loss_scale_of(row: TimelineRow | None) -> float:
    """The loss scale of a step, 1 where nothing scaled the loss or it is not known."""
    return row.loss_scale if row is not None and math.isfinite(row.loss_scale) and row.loss_scale > 0.0 else 1.0
