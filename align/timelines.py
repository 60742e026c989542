"""Where the timelines of two runs part: they hold the loss and the learning rate of every step, captured or not."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from align.hyperparameters import RATE
from align.records import Divergence, Kind, Origin, Phase, TensorKey, TimelineRow
from align.updates import differing_learning_rates

LOSS, OPTIMIZER = "loss", "optimizer"
"""The names of what parts the runs, where no tensor does."""


@dataclass(frozen=True, slots=True)
class LostLoss:
    """A step whose loss is finite in one run only, and that loss; `by_candidate`: the other's is not finite."""

    step: int
    loss: float
    by_candidate: bool


@dataclass(frozen=True, slots=True)
class OtherRate:
    """A step whose learning rate is known in both runs and differs."""

    step: int
    rates: tuple[float, float]


def lost_loss(reference: Sequence[TimelineRow], candidate: Sequence[TimelineRow]) -> LostLoss | None:
    """The first step whose loss one run has lost; None where there is none.

    Steps that a loss scaler skipped do not count, and a loss that was not recorded is none that was lost.
    """
    ours, theirs = _losses(reference), _losses(candidate)
    found = [LostLoss(step, ours[step], by_candidate=True) for step in _lost(candidate) if step in ours]
    found += [LostLoss(step, theirs[step], by_candidate=False) for step in _lost(reference) if step in theirs]
    return min(found, key=lambda each: each.step, default=None)


def other_rate(
    reference: Sequence[TimelineRow], candidate: Sequence[TimelineRow], agree: Collection[int] = ()
) -> OtherRate | None:
    """The first step whose learning rate differs; None where there is none.

    In the steps `agree` no parameter's rate differs. A timeline holds the rate of the first group: where that differs
    in such a step, it says nothing of any.
    """
    theirs = {row.step: row for row in candidate}
    pairs = ((row.step, differing_learning_rates(row, theirs.get(row.step))) for row in reference)
    found = [OtherRate(step, rates) for step, rates in pairs if rates is not None]
    return found[0] if found and not any(each.step in agree for each in found) else None


def parting(lost: LostLoss | None, other: OtherRate | None) -> Divergence | None:
    """The first step at which timelines part for certain: by a lost loss, or by the rate of the update after it.

    Losses that drift apart are no proof: those of healthy runs do.
    """
    if lost is not None and (other is None or lost.step <= other.step):
        first = TensorKey(lost.step, Phase.LOSS, LOSS, "value")
        return _divergence(first, Kind.NONFINITE, Origin.UNKNOWN)
    if other is not None:
        first = TensorKey(other.step, Phase.OPTIMIZER, OPTIMIZER, RATE)
        return _divergence(first, Kind.EQUALITY, Origin.OPTIMIZER)
    return None


def _divergence(key: TensorKey, kind: Kind, origin: Origin) -> Divergence:
    return Divergence(key.step, key.micro, key.phase, key.name, key.slot, key.call, kind, origin, None, None, None)


def _losses(rows: Sequence[TimelineRow]) -> dict[int, float]:
    return {row.step: row.loss for row in rows if math.isfinite(row.loss)}


def _lost(rows: Sequence[TimelineRow]) -> list[int]:
    return [row.step for row in rows if row.nonfinite and not row.skipped and not math.isfinite(row.loss)]
