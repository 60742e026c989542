"""The norm of the gradients that was found when they were clipped, against that of the gradients of all ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from align.inspection.ranks import Holdings, Likeness, likeness, records_of
from align.inspection.view import RunView
from align.records import Fact, Owner, Phase, TensorRecord, Word

CLIP, EUCLIDEAN = "clip", 2.0
EPSILON = 1e-6
"""What torch adds to the norm before it divides by it."""

SAME_NORM = 1e-3
"""Norms from records agree so well with those that torch found: bfloat16 gradients are rounded by 2e-3 each, which
leaves less than that of the norm of many; the healthy jobs of the tests stay below."""

APART = 0.01


class Miscount(Word):
    """How a norm was counted wrongly."""

    REPLICAS = "replicas"
    LOCAL = "local"
    TWICE = "twice"


@dataclass(frozen=True, slots=True)
class NormCheck:
    """The first clipping that was checked: the norm that each rank found, and that of the gradients.

    `shared` are parameters that all ranks hold, which count once, and `parts` those of which each rank has its own.
    `miscount` is None where the norm is right, or where why it is not cannot be told (`right` is False then).
    """

    step: int
    reported: tuple[float, ...]
    norm: float
    limit: float
    shared: tuple[Owner, ...]
    parts: tuple[Owner, ...]
    right: bool
    miscount: Miscount | None = None
    owners: tuple[Owner, ...] = ()


@dataclass(frozen=True, slots=True)
class Clip:
    """One clipping: the norm that was found and the limit."""

    norm: float
    limit: float

    @property
    def factor(self) -> float:
        """What the gradients were multiplied by."""
        return min(1.0, self.limit / (self.norm + EPSILON))


def check_ranks(holdings: Holdings) -> NormCheck | None:
    """Check the norm of clipping over all ranks of a job; None where it cannot be told.

    A parameter is shared where all ranks take the same gradient of it (before clipping), and held in parts where each
    takes another and began with other values. Any other is not understood, and nothing is said.
    """
    world = holdings.views[0].run.world_size
    if holdings.sharded or len(holdings.views) < max(world, 2):
        return None
    for step in holdings.steps:
        clips = [clip_of(view, step) for view in holdings.views]
        known = [clip for clip in clips if clip is not None]
        if len(known) == len(holdings.views):
            found = _checked(holdings, step, known)
            if found is not None:
                return found
    return None


def clip_of(view: RunView, step: int) -> Clip | None:
    """The one clipping of a step by the L2 norm of gradients that carry no loss scale."""
    row = next((row for row in view.timeline if row.step == step), None)
    if row is None or not (math.isnan(row.loss_scale) or row.loss_scale == 1.0) or row.skipped or row.nonfinite:
        return None
    calls = _calls(view.step(step).facts)
    if len(calls) != 1:
        return None
    norm, limit, kind = (calls[0].get(slot) for slot in ("norm", "limit", "norm_type"))
    if not isinstance(norm, (int, float)) or not isinstance(limit, (int, float)) or kind not in {EUCLIDEAN, None}:
        return None
    return Clip(float(norm), float(limit)) if 0.0 < norm < math.inf and limit > 0.0 else None


def _calls(facts: Iterable[Fact]) -> list[dict[str, object]]:
    found: dict[int, dict[str, object]] = {}
    for fact in facts:
        if fact.key.phase is Phase.OPTIMIZER and fact.key.name == CLIP:
            found.setdefault(fact.key.call, {})[fact.key.slot] = fact.value
    return [found[call] for call in sorted(found)]


def _checked(holdings: Holdings, step: int, clips: Sequence[Clip]) -> NormCheck | None:
    sides = [records_of(view, step, Phase.UPDATE) for view in holdings.views]
    owners = dict.fromkeys(owner for side in sides for owner in side)
    shared, parts = [], []
    for owner in owners:
        records = [side.get(owner) for side in sides]
        held = holdings.held.get(owner)
        if any(record is None for record in records):
            return None  # A stage of a pipeline, or an optimizer that has only a part of the parameters.
        known = [record for record in records if record is not None]
        if held is None or held.split or any(record.stats is None or record.stats.nonfinite for record in known):
            return None
        if all(likeness(known[0], other)[0] is Likeness.SAME for other in known[1:]):
            shared.append(owner)
        elif len(held.groups) == len(holdings.views) or held.constant:
            parts.append(owner)
        elif max(_square(record) for record in known) > 0.0:
            return None
    if not shared:
        return None
    factors = [clip.factor for clip in clips]
    once = sum(_square(sides[0][owner]) for owner in shared) / factors[0] ** 2
    split = sum(
        _square(side[owner]) / factor**2 for side, factor in zip(sides, factors, strict=True) for owner in parts
    )
    local = [
        math.sqrt(sum(_square(side[owner]) for owner in (*shared, *parts))) / factor
        for side, factor in zip(sides, factors, strict=True)
    ]
    return _judged(step, clips, (once, split, local), (tuple(shared), tuple(parts)))


def _judged(
    step: int, clips: Sequence[Clip], squares: tuple[float, float, Sequence[float]],
    owners: tuple[tuple[Owner, ...], tuple[Owner, ...]],
) -> NormCheck:  # fmt: skip
    once, split, local = squares
    norm = math.sqrt(once + split)
    reported = tuple(clip.norm for clip in clips)
    check = NormCheck(step, reported, norm, clips[0].limit, *owners, right=_all_near(reported, [norm] * len(clips)))
    if check.right or all(math.isclose(one, norm, rel_tol=APART) for one in reported):
        return check
    counted = math.sqrt(once * len(clips) + split)
    if _all_near(reported, [counted] * len(clips)):
        return NormCheck(
            step, reported, norm, check.limit, *owners, right=False, miscount=Miscount.REPLICAS, owners=owners[0]
        )
    if owners[1] and _all_near(reported, local):
        return NormCheck(
            step, reported, norm, check.limit, *owners, right=False, miscount=Miscount.LOCAL, owners=owners[1]
        )
    return check


def check_run(view: RunView) -> NormCheck | None:
    """Check the norm of clipping of a run of one process; None where it cannot be told.

    The gradients after backward and those that the optimizer takes, before clipping, have one norm: then nothing was
    done to them in between. A norm below it may be that of some parameters. One above it is told where it is explained
    by parameters that count twice.
    """
    if view.run.world_size > 1 or view.run.modules_requested:
        return None
    for step in view.steps:
        clip = clip_of(view, step)
        if clip is None:
            continue
        gradients, updates = (records_of(view, step, phase) for phase in (Phase.GRADIENT, Phase.UPDATE))
        if not updates or gradients.keys() != updates.keys():
            continue
        before, after = (_norm(records.values()) for records in (gradients, updates))
        if not math.isclose(before, after / clip.factor, rel_tol=SAME_NORM):
            continue
        right = math.isclose(clip.norm, before, rel_tol=SAME_NORM)
        twice = () if right or clip.norm < before * (1.0 + APART) else _twice(gradients, clip.norm**2 - before**2)
        miscount = Miscount.TWICE if twice else None
        return NormCheck(step, (clip.norm,), before, clip.limit, tuple(updates), (), right, miscount, twice)
    return None


def _twice(gradients: Mapping[Owner, TensorRecord], excess: float) -> tuple[Owner, ...]:
    """The one parameter, or all of them, whose squares are what a norm has too much."""
    whole = sum(_square(record) for record in gradients.values())
    close = SAME_NORM * (whole + excess)
    if abs(excess - whole) <= close:
        return tuple(gradients)
    found = [owner for owner, record in gradients.items() if abs(_square(record) - excess) <= close]
    return tuple(found) if len(found) == 1 else ()


def _norm(records: Iterable[TensorRecord]) -> float:
    return math.sqrt(sum(_square(record) for record in records))


def _square(record: TensorRecord) -> float:
    return record.stats.total_squares if record.stats is not None else 0.0


def _all_near(found: Sequence[float], expected: Sequence[float]) -> bool:
    return all(math.isclose(one, other, rel_tol=SAME_NORM) for one, other in zip(found, expected, strict=True))
