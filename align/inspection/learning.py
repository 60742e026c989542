"""What reaches the parameters: which get gradients, which of them the optimizer has, which move and by how much.

Between two captured steps in a row, or from the initial weights to step 0, each parameter is known before and after.
Equal sketches made the same way say that not one element moved; a sketch is linear, so that of the update is the
difference of two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from align import sketch
from align.hyperparameters import RATE, Groups, group_of
from align.inspection.view import RunView, StepView
from align.optimizer_records import by_owner
from align.optimizer_replay import groups_of
from align.records import FactValue, Owner, Phase, TensorRecord
from align.tolerance import PRECISIONS

STRANGERS = "<parameters>"
"""The owner of parameters of an optimizer that belong to no module: copies in float32, flat buffers."""

ARRIVED = 0.1
"""An update of which less than this arrives is lost. At least 0.71 of what the state asks for arrived in 140 healthy
runs (AdamW, Adam, SGD and RMSprop; fp32, bf16 and fp16; the CPU and the simulated NPU with its noise), but for the key
biases of attention, whose gradients are nothing but rounding."""

FEW = 0.05
"""The share of elements with a gradient that change where the update is lost."""

ROUNDINGS = 4.0
"""An update of so many half units in the last place of the greatest element moves every element that has it."""


@dataclass(frozen=True, slots=True)
class Move:
    """One parameter in one step: the norm of the gradient that its optimizer took, its rate, and how it moved.

    `unchanged` says that it is the same to the last bit. `arrived` is the norm of its update, `asked` about the norm
    that its optimizer's state and rate ask for (None for formulas that are not known), `changed` the share of its
    elements that moved where that is known. `half_unit` is half the spacing of its dtype at its root mean square, and
    `largest` at its greatest element.
    """

    step: int
    owner: Owner
    dtype: str
    numel: int
    gradient: float
    filled: float
    rate: float
    unchanged: bool
    arrived: float | None
    asked: float | None
    changed: float | None
    half_unit: float
    largest: float

    @property
    def due(self) -> bool:
        """Whether it has a gradient and a rate, so that it should move."""
        return self.gradient > 0.0 and self.rate > 0.0

    @property
    def lost(self) -> bool:
        """Whether the update is too small for the numbers of its dtype, so that (almost) nothing of it arrives."""
        if not self.due or self.asked is None or self.asked <= 0.0:
            return False
        typical = self.asked / math.sqrt(self.numel * self.filled)
        if typical >= ROUNDINGS * self.largest:
            return False
        if self.unchanged or (self.changed is not None and self.changed < FEW * self.filled):
            return True
        return self.arrived is not None and self.arrived < ARRIVED * self.asked

    @property
    def stuck(self) -> bool:
        """Whether it does not move although its update is large enough to be seen in every element."""
        return self.due and self.unchanged and not self.lost and self.asked is not None and self.asked > 0.0


@dataclass(frozen=True, slots=True)
class Learning:
    """What is known of the parameters of a run.

    `moves` are those of steps that were not skipped, whose parameters before and after are known; `gradients` how
    many gradients were seen, and `zero_steps` the steps in which every one of them was 0. `loose` are parameters that
    get a gradient and that no optimizer of the captured steps has; `idle` those that an optimizer has and that never
    get one other than 0, `zeroed` those of them that get one. `strangers` says that the optimizer trains what belongs
    to no module, so that it cannot be told what moves. `untaken` are the steps at whose end the optimizer took no
    gradient at all, though that would have been seen, and all of its parameters stayed as they were; `cleared` says
    that backward made gradients for them.
    """

    moves: tuple[Move, ...] = ()
    steps: tuple[int, ...] = ()
    gradients: int = 0
    zero_steps: tuple[int, ...] = ()
    loose: tuple[Owner, ...] = ()
    idle: tuple[Owner, ...] = ()
    zeroed: tuple[Owner, ...] = ()
    grouped: int = 0
    trained: int = 0
    strangers: bool = False
    turns: bool = False
    untaken: tuple[int, ...] = ()
    cleared: bool = False

    @property
    def due(self) -> tuple[Move, ...]:
        """The moves of parameters that have a gradient and a rate."""
        return tuple(move for move in self.moves if move.due)


def learning_of(view: RunView) -> Learning:
    """Read the captured steps of a run."""
    skipped = {row.step for row in view.timeline if row.skipped or row.nonfinite}
    numbers = tuple(step for step in view.steps if step not in skipped)
    moves: list[Move] = []
    taken: dict[Owner, None] = {}
    seen: dict[Owner, None] = {}
    grouped: dict[Owner, None] = {}
    zero_steps, gradients = [], 0
    for number in numbers:
        step = view.step(number)
        groups = groups_of(step.facts)
        found = _gradients(step)
        norms = [record.stats.norm for record in found.values() if record.stats is not None]
        gradients += len(norms)
        if norms and not any(norms):
            zero_steps.append(number)
        taken.update(dict.fromkeys(owner for owner, record in found.items() if _norm(record) > 0.0))
        seen.update(dict.fromkeys(owner for owner, record in found.items() if record.stats is not None))
        grouped.update(dict.fromkeys(_members(groups)))
        before = parameters_before(view, number)
        moves += _moves(step, before, found, groups)
    strangers = any(name == STRANGERS for name, _ in grouped) and not _strangers_rest(view, numbers, taken)
    untaken = tuple(number for number in numbers if _took_nothing(view, number))
    return Learning(
        moves=tuple(moves),
        steps=numbers,
        gradients=gradients,
        zero_steps=tuple(zero_steps),
        loose=tuple(owner for owner in taken if owner not in grouped) if grouped and not strangers else (),
        idle=tuple(owner for owner in grouped if owner not in taken) if gradients else (),
        zeroed=tuple(owner for owner in grouped if owner in seen and owner not in taken),
        grouped=len(grouped),
        trained=sum(owner in grouped for owner in taken),
        strangers=strangers,
        turns=takes_turns(view),
        untaken=untaken,
        cleared=any(owner in grouped for owner in taken),
    )


def _strangers_rest(view: RunView, numbers: Iterable[int], taken: Iterable[Owner]) -> bool:
    """Whether what belongs to no module is known to have got no gradient and to have stayed as it was."""
    if any(name == STRANGERS for name, _ in taken):
        return False
    moved = []
    for number in numbers:
        before, after = parameters_before(view, number), by_owner(view.step(number).by_phase[Phase.PARAM])
        both = [owner for owner in after if owner[0] == STRANGERS and owner in before]
        moved += [_change(before[owner], after[owner]) for owner in both]
    return bool(moved) and all(change is not None and change.unchanged for change in moved)


def _took_nothing(view: RunView, number: int) -> bool:
    """Whether an optimizer was called without a single gradient and moved nothing, where both would have been seen."""
    step = view.step(number)
    if str(Phase.UPDATE) not in view.run.phases or step.by_phase[Phase.UPDATE] or not step.by_phase[Phase.LOSS]:
        return False
    before, members = parameters_before(view, number), set(_members(groups_of(step.facts)))
    after = by_owner(step.by_phase[Phase.PARAM])
    changes = [_change(before[owner], after[owner]) for owner in members if owner in before and owner in after]
    return bool(changes) and all(change is not None and change.unchanged for change in changes)


def takes_turns(view: RunView) -> bool:
    """Whether there are several optimizers: then one step is not to be measured by another."""
    facts = [fact for step in view.steps for fact in view.step(step).facts if fact.key.phase is Phase.OPTIMIZER]
    several = {fact.key.name.rpartition("group")[0] for fact in facts if fact.key.slot == "class"}
    made = [fact.value for fact in facts if fact.key.owner == ("optimizers", "count")]
    more = any(isinstance(count, (int, float)) and count > 1 for count in made)
    return more or any(several) or len({row.optimizer for row in view.timeline if row.optimizer}) > 1


def parameters_before(view: RunView, number: int) -> Mapping[Owner, TensorRecord]:
    """The parameters at the begin of a step, by owner; empty where they were not captured."""
    if number == 0:
        return by_owner(view.initial)
    if number - 1 not in view.steps:
        return {}
    return by_owner(view.step(number - 1).by_phase[Phase.PARAM])


def _gradients(step: StepView) -> dict[Owner, TensorRecord]:
    """The gradients that the optimizer took, else those after backward."""
    return {**by_owner(step.by_phase[Phase.GRADIENT]), **by_owner(step.by_phase[Phase.UPDATE])}


def _members(groups: Groups) -> Iterable[Owner]:
    """The parameters that the optimizers of a step have."""
    return (
        (name, slot.removesuffix(".group"))
        for name, facts in groups.items()
        for slot, value in facts.items()
        if slot.endswith(".group") and isinstance(value, str)
    )


def _norm(record: TensorRecord | None) -> float:
    return record.stats.norm if record is not None and record.stats is not None else 0.0


def _moves(
    step: StepView, before: Mapping[Owner, TensorRecord], gradients: Mapping[Owner, TensorRecord], groups: Groups
) -> Iterable[Move]:
    states = by_owner(step.by_phase[Phase.OPTIMIZER])
    for owner, new in by_owner(step.by_phase[Phase.PARAM]).items():
        old, gradient, group = before.get(owner), gradients.get(owner), group_of(owner, groups)
        if old is None or gradient is None or group is None or gradient.stats is None or not new.numel:
            continue
        change = _change(old, new)
        rate = group.get(RATE)
        if change is None or new.stats is None or not isinstance(rate, (int, float)):
            continue
        unit = PRECISIONS[new.dtype].unit
        yield Move(
            step=step.step,
            owner=owner,
            dtype=new.dtype,
            numel=new.numel,
            gradient=gradient.stats.norm,
            filled=1.0 - gradient.stats.zeros / max(gradient.stats.count, 1),
            rate=float(rate),
            unchanged=change.unchanged,
            arrived=change.norm,
            asked=_asked(owner, group, groups[owner[0]].get(f"{owner[1]}.step"), gradient, states),
            changed=change.share,
            half_unit=unit * old.stats.rms if old.stats is not None else 0.0,
            largest=unit * old.stats.absolute_maximum if old.stats is not None else 0.0,
        )


class _Change(NamedTuple):
    unchanged: bool
    norm: float | None
    share: float | None


def _change(old: TensorRecord, new: TensorRecord) -> _Change | None:
    """How a parameter moved, None where too little is known or what it was before is no such tensor."""
    ours, theirs = sketch.sketch_of(old), sketch.sketch_of(new)
    if ours is None or theirs is None or old.shape != new.shape or old.dtype != new.dtype:
        return None
    if new.dtype not in PRECISIONS or len(ours.values) != len(theirs.values):
        return None
    apart = theirs.values.astype(np.float64) - ours.values.astype(np.float64)
    if not np.isfinite(apart).all():
        return None
    still = float(np.count_nonzero(apart == 0.0)) / len(apart)
    unchanged = still == 1.0 and old.stats == new.stats
    # A bucket stands still where none of its elements moved: of q elements a share of (1 - q)^(n / K).
    share = 1.0 - still ** (len(apart) / new.numel) if still > 0.0 else None
    return _Change(unchanged, float(np.linalg.norm(apart)), share)


def _asked(
    owner: Owner,
    group: Mapping[str, FactValue],
    count: FactValue,
    gradient: TensorRecord,
    states: Mapping[Owner, TensorRecord],
) -> float | None:
    """About the norm of the update that rate, state and gradient ask for, None for formulas that are not known."""
    name, slot = owner
    rate = group.get(RATE)
    if not isinstance(rate, (int, float)) or gradient.stats is None:
        return None
    kind = group.get("class")
    if kind == "SGD":
        buffer = states.get((name, f"{slot}.momentum_buffer"))
        return float(rate) * max(_norm(buffer), gradient.stats.norm if buffer is None else 0.0)
    second = states.get((name, f"{slot}.exp_avg_sq")) or states.get((name, f"{slot}.square_avg"))
    first = states.get((name, f"{slot}.exp_avg"))
    if kind not in {"Adam", "AdamW", "RMSprop"} or second is None or second.stats is None:
        return None
    filled = second.stats.count - second.stats.zeros
    root = math.sqrt(max(second.stats.total, 0.0) / filled) if filled else 0.0
    size = gradient.stats.norm if first is None else _norm(first)
    if first is not None and isinstance(count, (int, float)) and count >= 1.0:
        size /= 1.0 - _number(group, "betas.0") ** count
        root /= math.sqrt(1.0 - _number(group, "betas.1") ** count)
    root += _number(group, "eps")
    return float(rate) * size / root if root else None


def _number(group: Mapping[str, FactValue], name: str) -> float:
    value = group.get(name)
    return float(value) if isinstance(value, (int, float)) else 0.0
