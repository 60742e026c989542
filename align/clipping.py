"""Gradients that were clipped while they still carried the loss scale: the limit is so many times smaller then."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from align.records import Fact, FactValue, Phase, TensorRecord, TimelineRow

CLIP = "clip"

LEAST_SCALE = 8.0
"""A smaller factor is no loss scale (capture takes factors by hand from here on for one)."""

TELLING = 0.01
"""A limit that is less than this share of the scale was not multiplied by it: limits in use go from 0.1 to 100."""

EUCLIDEAN = 2.0
SAME_NORM = 0.01
"""A norm that was recomputed from records is the same within this share; a scale makes a factor of 8 at least."""


@dataclass(frozen=True, slots=True)
class ScaledClip:
    """Gradients of one step that were clipped with their scale in them.

    `norm` is what was found (the greatest element where they are clipped by value), `limit` what was allowed; both are
    of scaled gradients. `by_hand` says that the script multiplies the loss itself.
    """

    step: int
    norm: float
    limit: float
    scale: float
    by_value: bool = False
    by_hand: bool = False

    @property
    def meant(self) -> bool:
        """Whether the limit may have been multiplied by the scale."""
        return self.limit >= TELLING * self.scale

    @property
    def left(self) -> float:
        """The limit that was in force for the true gradients."""
        return self.limit / self.scale


def scaled_clip(
    step: int, facts: Sequence[Fact], row: TimelineRow | None, records: Iterable[TensorRecord]
) -> ScaledClip | None:
    """The clipping of one step that came before the unscaling and cut something; None where not, or not known.

    `records` are those of the phases gradient and update.
    """
    scale = _scale(facts, row)
    if scale is None or scale < LEAST_SCALE:
        return None
    known = list(records)
    for call in _calls(facts):
        found = _of_call(step, call, scale, known)
        if found is not None:
            return found
    return None


def _of_call(
    step: int, call: Mapping[str, FactValue], scale: float, records: Sequence[TensorRecord]
) -> ScaledClip | None:
    scaled = call.get("scaled")
    norm, limit, by_value = (_number(call.get(slot)) for slot in ("norm", "limit", "value_limit"))
    if scaled is True and by_value is not None:
        greatest = max((one.stats.absolute_maximum for one in _of(records, Phase.GRADIENT) if one.stats), default=0.0)
        return ScaledClip(step, greatest, by_value, scale, by_value=True) if greatest > by_value else None
    if norm is None or limit is None or not math.isfinite(norm) or norm <= limit:
        return None
    if scaled is True:
        return ScaledClip(step, norm, limit, scale)
    if scaled is None and call.get("norm_type") == EUCLIDEAN and _is_of_scaled(norm, limit, scale, records):
        return ScaledClip(step, norm, limit, scale, by_hand=True)
    return None


def _is_of_scaled(norm: float, limit: float, scale: float, records: Sequence[TensorRecord]) -> bool:
    """Whether a norm is that of the gradients as backward left them, which were divided by the scale afterwards."""
    gradients, updates = (joint_norm(_of(records, phase)) for phase in (Phase.GRADIENT, Phase.UPDATE))
    whole = math.isclose(norm, gradients, rel_tol=SAME_NORM)
    return whole and math.isclose(updates, limit / scale, rel_tol=SAME_NORM)


def _of(records: Iterable[TensorRecord], phase: Phase) -> list[TensorRecord]:
    return [record for record in records if record.key.phase is phase and record.stats is not None]


def joint_norm(records: Iterable[TensorRecord]) -> float:
    """The L2 norm of all elements of several records together."""
    return math.sqrt(sum(record.stats.total_squares for record in records if record.stats is not None))


def _calls(facts: Iterable[Fact]) -> list[Mapping[str, FactValue]]:
    """The facts of each clipping of the step, in order."""
    found: dict[int, dict[str, FactValue]] = defaultdict(dict)
    for fact in facts:
        if fact.key.phase is Phase.OPTIMIZER and fact.key.name == CLIP:
            found[fact.key.call][fact.key.slot] = fact.value
    return [found[call] for call in sorted(found)]


def _scale(facts: Iterable[Fact], row: TimelineRow | None) -> float | None:
    """The loss scale of a step, from the scaler's facts or the timeline."""
    known = [fact.value for fact in facts if fact.key.phase is Phase.SCALER and fact.key.slot == "scale"]
    scale = _number(known[0]) if known else row.loss_scale if row is not None else None
    return scale if scale is not None and math.isfinite(scale) else None


def _number(value: FactValue) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
