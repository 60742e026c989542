"""The loss scales at which the gradients of a run fit into their format, as a zone of the picture of loss scales."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

from align import wording
from align.records import InspectResult
from align.reports.figures.canvas import EXPLAINED, LIMIT
from align.reports.figures.picture import Mark, mark_field

if TYPE_CHECKING:
    from align.records import DiffResult, FactValue
    from align.reports.language import Language

Zone: TypeAlias = tuple[float, float]
"""The lowest and the highest scale."""

TABLE = "fp16_scales"
LOWEST, HIGHEST = 2, 3
"""The columns of that table."""
FAINT = 0.16


def fitting_scales(result: DiffResult | InspectResult) -> Zone | None:
    """The scales that fit in every captured step, None where none does or nothing was measured."""
    if not isinstance(result, InspectResult):
        return None
    rows = [row for table in result.tables if table.name == TABLE for row in table.rows]
    ends = [(_scale(row[LOWEST]), _scale(row[HIGHEST])) for row in rows if len(row) > HIGHEST]
    known = [(low, high) for low, high in ends if low is not None and high is not None]
    if not known:
        return None
    low, high = max(low for low, _ in known), min(high for _, high in known)
    return (low, high) if low <= high else None


def _scale(cell: FactValue) -> float | None:
    return float(cell) if isinstance(cell, (int, float)) and 0.0 < cell < math.inf else None


def draw_zone(axes: Any, zone: Zone | None) -> None:
    """The zone with its two edges, behind the lines and before the field of the captured steps."""
    if zone is None:
        return
    axes.axhspan(*zone, color=EXPLAINED, alpha=FAINT, linewidth=0, zorder=1.1)
    for edge in zone:
        axes.axhline(edge, color=LIMIT, linewidth=1.0, linestyle=":", zorder=1.2)


def zone_mark(zone: Zone | None, phrases: Language) -> tuple[Mark, ...]:
    """The entry of the legend."""
    if zone is None:
        return ()
    low, high = (phrases.said(wording.loss_scale(edge)) for edge in zone)
    return (mark_field("--explained", phrases["mark_fitting"].format(low=low, high=high)),)
