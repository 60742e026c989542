"""What all gradients of a step are to the reference's: one number times them, and what that number may be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from align.records import Comparison, Phase, TensorRecord, TensorStats, TimelineRow
from align.relations import Circumstances, Factor, Relation, relate_records
from align.relations.common_factor import common_factor
from align.relations.factors import snapped
from align.tolerance import FLOAT32

SAME = 1e-3
"""Two factors are one where they are so near: clipping is known to six digits, scales are powers of two."""

ROUNDINGS = 8.0
"""A gradient is known to as many unit roundoffs; one of which rounding leaves less counts against a common factor."""


@dataclass(frozen=True, slots=True)
class GradientFactor:
    """The gradients of `names` are `factor` times the reference's; `total` were related, `spread` is the furthest."""

    factor: Factor
    names: tuple[str, ...]
    total: int
    spread: float


def factor_of(
    comparisons: Iterable[Comparison], phase: Phase, step: int, scale: float, numbers: Mapping[str, float]
) -> GradientFactor | None:
    """The factor that the gradients of a phase and step have in common, None where there is none.

    `scale` undoes the loss scales, `numbers` are what a factor may be, by meaning.
    """
    last = {
        f"{each.key.name} {each.key.slot}": each
        for each in comparisons
        if (each.key.phase, each.key.step) == (phase, step)
    }
    relations = {name: _related(each, scale, numbers) for name, each in last.items()}
    found = common_factor(relations)
    if found is None:
        return None
    raw = found.factor.raw
    factor = found.factor if found.factor.snapped is not None else snapped(raw, numbers, found.spread)
    return GradientFactor(factor, found.names, len(relations), found.spread)


def _related(each: Comparison, scale: float, numbers: Mapping[str, float]) -> Relation:
    # The floor of what carries a difference on holds that difference, too.
    noise = max(min(each.floor, ROUNDINGS * each.unit), each.unit, FLOAT32.unit)
    return relate_records(each.reference, scaled(each.candidate, scale), Circumstances(noise, factors=numbers))


def scaled(record: TensorRecord, scale: float) -> TensorRecord:
    """The record of a tensor times a positive number."""
    if scale == 1.0 or record.stats is None:
        return record
    stats = record.stats
    times = TensorStats(
        stats.count, stats.minimum * scale, stats.maximum * scale, stats.total * scale, stats.total_squares * scale**2,
        stats.zeros, stats.nans, stats.positive_infs, stats.negative_infs, stats.subnormals,
    )  # fmt: skip
    sketch = None if record.sketch is None else (record.sketch * scale).astype(record.sketch.dtype)
    return replace(record, stats=times, sketch=sketch, hash=None)


def next_scale(step: int, timeline: Iterable[TimelineRow]) -> tuple[float, float] | None:
    """The loss scale of a step and that of the step after, where both are known and differ."""
    rows = {row.step: row for row in timeline}
    here, after = rows.get(step), rows.get(step + 1)
    if here is None or not 0.0 < here.loss_scale < math.inf:
        return None
    following = here.loss_scale_after if not math.isnan(here.loss_scale_after) else math.nan
    if after is not None and 0.0 < after.loss_scale < math.inf:
        following = after.loss_scale
    return (here.loss_scale, following) if math.isfinite(following) and following != here.loss_scale else None


def clipping(row: TimelineRow | None) -> float:
    """What clipping left of the gradients in a step, 1 where it is not known that there was any."""
    if row is None or not (row.clip_norm > 0.0 and row.clip_limit > 0.0 and math.isfinite(row.clip_norm)):
        return 1.0
    return min(1.0, row.clip_limit / row.clip_norm)


def is_clipping(factor: float, ours: TimelineRow | None, theirs: TimelineRow | None) -> bool:
    """Whether a factor between gradients is that of how both runs clipped them."""
    left = clipping(theirs) / clipping(ours)
    return left != 1.0 and math.isclose(factor, left, rel_tol=SAME)
