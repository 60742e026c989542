"""Replay an optimizer's formula inside one run: whether its state and its update follow from its own settings.

Nothing is compared across runs, so rounding of the gradients does not matter, nor how coarse they are. The first moment
of Adam and the momentum of SGD are linear in the gradient: a sketch is enough. The rest is checked where all elements
are known, in tensors of at most as many elements as a sketch has buckets (biases, gains). Over three models and both
devices the errors of healthy runs stayed below 0.04 of what is allowed here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from align import sketch
from align.records import Fact, Phase, TensorRecord
from align.tolerance import PRECISIONS

ALLOWED = 1e-4
"""The relative L2 error of a replayed tensor; the optimizer computes in float32."""

ROUNDINGS = 16.0
"""Roundings of the parameter that an update, the difference of two, may hold: four steps, four times over."""

LARGEST_ROUNDING = 0.1
"""Where the rounding of the parameter is this share of its update, the update tells nothing."""

ADAM = ("AdamW", "Adam")
SGD = "SGD"

Owner = tuple[str, str]
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FormulaError:
    """A tensor that does not follow from the settings, by relative L2; it is `factor` times what it should be.

    `what` is `update`, or the name of a state such as `exp_avg`.
    """

    owner: Owner
    what: str
    error: float
    factor: float


@dataclass(frozen=True, slots=True)
class Replayed:
    """What was replayed of one run in one step, in the order of its parameters."""

    checked: frozenset[Owner] = frozenset()
    errors: tuple[FormulaError, ...] = ()


class OptimizerRecords(NamedTuple):
    """The records of one run around one step, by owner, and what its optimizers were set to."""

    parameters_before: Mapping[Owner, TensorRecord]
    parameters_after: Mapping[Owner, TensorRecord]
    gradients: Mapping[Owner, TensorRecord]
    states_before: Mapping[Owner, TensorRecord]
    states_after: Mapping[Owner, TensorRecord]
    facts: Sequence[Fact]


class _Settings(NamedTuple):
    """The settings of the group that a parameter is in, and how often it has been updated."""

    kind: str
    values: Mapping[str, Any]
    updates: float

    def number(self, name: str) -> float:
        """A setting that is a number; 0 where it is not set."""
        value = self.values.get(name, 0.0)
        return float(value) if isinstance(value, (int, float)) else 0.0


@dataclass(frozen=True, slots=True)
class FormulaCheck:
    """Where one run of a pair leaves its own settings in a step, and the other keeps to them.

    `candidate` says which run it is; `errors` are its own, of `checked` parameters that could be replayed.
    """

    step: int
    candidate: bool
    checked: int
    errors: tuple[FormulaError, ...]


def compare_replays(step: int, ours: Replayed, theirs: Replayed, partner: Mapping[Owner, Owner]) -> FormulaCheck | None:
    """The run that leaves its settings where the other does not; `partner` gives the candidate's owners."""
    wrong = {error.owner for error in ours.errors}
    wrong_there = {error.owner for error in theirs.errors}
    checked = [owner for owner, other in partner.items() if owner in ours.checked and other in theirs.checked]
    for candidate, replayed in ((True, theirs), (False, ours)):
        found = {
            partner[owner] if candidate else owner
            for owner in checked
            if (owner in wrong) != (partner[owner] in wrong_there) and (owner in wrong) != candidate
        }
        if found:
            errors = tuple(error for error in replayed.errors if error.owner in found)
            return FormulaCheck(step, candidate, len(checked), errors)
    return None


def replay(records: OptimizerRecords) -> Replayed:
    """Replay one step of one run; tensors of which too little is known, and other optimizers, are left out."""
    groups = _groups(records.facts)
    checked, errors = set(), []
    for owner in records.parameters_after:
        settings = _settings_of(owner, groups)
        if settings is None:
            continue
        for what, found, expected, allowed in _tensors(owner, settings, records):
            checked.add(owner)
            size = float(np.linalg.norm(expected))
            error = float(np.linalg.norm(found - expected)) / size if size else 0.0
            if error > allowed:
                errors.append(FormulaError(owner, what, error, float(found @ expected) / size**2))
    return Replayed(frozenset(checked), tuple(errors))


def _groups(facts: Iterable[Fact]) -> dict[str, dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {}
    for fact in facts:
        if fact.key.phase is Phase.OPTIMIZER:
            groups.setdefault(fact.key.name, {})[fact.key.slot] = fact.value
    return groups


def _settings_of(owner: Owner, groups: Mapping[str, Mapping[str, Any]]) -> _Settings | None:
    own = groups.get(owner[0], {})
    group = groups.get(str(own.get(f"{owner[1]}.group")), {})
    kind = str(group.get("class", ""))
    if group.get("amsgrad") or group.get("maximize") or group.get("nesterov"):
        return None
    count = own.get(f"{owner[1]}.step", 0.0)
    if kind in ADAM and isinstance(count, (int, float)) and count >= 1.0:
        return _Settings(kind, group, float(count))
    return _Settings(kind, group, 0.0) if kind == SGD else None


def _tensors(
    owner: Owner, settings: _Settings, records: OptimizerRecords
) -> Iterator[tuple[str, Values, Values, float]]:
    """Each tensor as it is and as it should be, with the error that it may have."""
    gradient = _sketch(records.gradients.get(owner))
    if gradient is None:
        return
    before = records.parameters_before.get(owner)
    if settings.kind != "AdamW" and settings.number("weight_decay"):
        parameter = _sketch(before)
        if parameter is None or len(parameter) != len(gradient):
            return
        gradient = gradient + settings.number("weight_decay") * parameter
    if settings.kind == SGD:
        yield from _sgd(owner, settings, gradient, records)
    else:
        yield from _adam(owner, settings, gradient, records)


def _adam(
    owner: Owner, settings: _Settings, gradient: Values, records: OptimizerRecords
) -> Iterator[tuple[str, Values, Values, float]]:
    first, second = settings.number("betas.0"), settings.number("betas.1")
    name, slot = owner
    moments = [_sketch(records.states_after.get((name, f"{slot}.{state}"))) for state in ("exp_avg", "exp_avg_sq")]
    olds = [_state_before(owner, state, settings, gradient, records) for state in ("exp_avg", "exp_avg_sq")]
    if moments[0] is not None and olds[0] is not None:
        yield "exp_avg", moments[0], first * olds[0] + (1.0 - first) * gradient, ALLOWED
    exact = [_exact(record) for record in (records.gradients.get(owner), records.parameters_before.get(owner))]
    if moments[0] is None or moments[1] is None or exact[0] is None or exact[1] is None:
        return
    signs = sketch.signs()[: len(gradient)]
    if olds[1] is not None:
        elements = gradient * signs
        yield "exp_avg_sq", moments[1], second * olds[1] + (1.0 - second) * elements**2 * signs, ALLOWED
    update = _update(owner, records)
    if update is None:
        return
    found, rounding = update
    root = np.sqrt(np.maximum(moments[1] * signs, 0.0) / (1.0 - second**settings.updates)) + settings.number("eps")
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(root > 0.0, moments[0] * signs / (1.0 - first**settings.updates) / root, 0.0)
    decay = settings.number("weight_decay") * exact[1] if settings.kind == "AdamW" else 0.0
    expected = -settings.number("lr") * (step + decay)
    yield from _checked_update(found * signs, expected, rounding)


def _sgd(
    owner: Owner, settings: _Settings, gradient: Values, records: OptimizerRecords
) -> Iterator[tuple[str, Values, Values, float]]:
    name, slot = owner
    momentum, direction = settings.number("momentum"), gradient
    if momentum:
        buffer = _sketch(records.states_after.get((name, f"{slot}.momentum_buffer")))
        if buffer is None:
            return
        old = _sketch(records.states_before.get((name, f"{slot}.momentum_buffer")))
        if old is not None and len(old) == len(gradient):
            expected = momentum * old + (1.0 - settings.number("dampening")) * gradient
            yield "momentum_buffer", buffer, expected, ALLOWED
        direction = buffer
    update = _update(owner, records)
    if update is not None and len(update[0]) == len(direction):
        yield from _checked_update(update[0], -settings.number("lr") * direction, update[1])


def _checked_update(found: Values, expected: Values, rounding: float) -> Iterator[tuple[str, Values, Values, float]]:
    size = float(np.linalg.norm(expected))
    if size > 0.0 and rounding < LARGEST_ROUNDING * size:
        yield "update", found, expected, max(ALLOWED, ROUNDINGS * rounding / size)


def _state_before(
    owner: Owner, state: str, settings: _Settings, gradient: Values, records: OptimizerRecords
) -> Values | None:
    """A state as the step began with it; before the first update it is zero."""
    name, slot = owner
    known = _sketch(records.states_before.get((name, f"{slot}.{state}")))
    if known is not None:
        return known if len(known) == len(gradient) else None
    return np.zeros_like(gradient) if settings.updates == 1.0 else None


def _update(owner: Owner, records: OptimizerRecords) -> tuple[Values, float] | None:
    """The sketch of what was added to a parameter, and what rounding the parameter may add to it."""
    old, new = records.parameters_before.get(owner), records.parameters_after.get(owner)
    before, after = _sketch(old), _sketch(new)
    if old is None or new is None or new.stats is None or before is None or after is None or len(before) != len(after):
        return None
    rounding = new.stats.absolute_maximum * PRECISIONS[new.dtype].unit * math.sqrt(new.numel)
    return after - before, max(rounding, new.stats.norm * new.resolution)


def _sketch(record: TensorRecord | None) -> Values | None:
    if record is None or record.sketch is None or record.dtype not in PRECISIONS:
        return None
    values = record.sketch.astype(np.float64)
    return values if bool(np.isfinite(values).all()) else None


def _exact(record: TensorRecord | None) -> Values | None:
    """All elements, where the sketch holds each by itself."""
    if record is None or record.sketch is None:
        return None
    values = sketch.recovered(record.sketch, record.numel)
    return None if values is None else values.astype(np.float64)
