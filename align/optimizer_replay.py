"""Replay an optimizer's formula inside one run: whether its state and its update follow from its own settings.

Nothing is compared across runs, so rounding of the gradients does not matter, nor how coarse they are. The first moment
of Adam and the momentum of SGD are linear in the gradient: a sketch is enough. The rest is checked where all elements
are known, in tensors of at most as many elements as a sketch has buckets (biases, gains). Over three models and both
devices the errors of healthy runs stayed below 0.04 of what is allowed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from align import optimizer_formulas, sketch
from align.fp16_range import FLOAT16, QUANTUM
from align.optimizer_formulas import Settings
from align.optimizer_records import OptimizerRecords
from align.records import Fact, FactValue, Owner, Phase, TensorRecord
from align.tolerance import PRECISIONS

ALLOWED = 1e-4
"""The relative L2 error of a replayed tensor; the optimizer computes in float32."""

SMALLEST_STEPS = 2.0
"""Roundings to the smallest number of float16 that an element of a state may hold: squares come near it."""

ROUNDED = 8.0
"""A state that is kept in 16 bits is rounded, and so is what its formula is made of."""

FARTHER = 3.0
"""One run leaves its settings where it is so many times farther from them than the other."""

ROUNDINGS = 16.0
"""Roundings of the parameter that an update, the difference of two, may hold: four steps, four times over."""

LARGEST_ROUNDING = 0.1
"""Where the rounding of the parameter is this share of its update, the update tells nothing."""

STATES = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "square_avg", "grad_avg", "sum")
ADAM = ("AdamW", "Adam")
SGD = "SGD"
RMSPROP = "RMSprop"
ADAGRAD = "Adagrad"
KNOWN_KINDS = (*ADAM, SGD, RMSPROP, ADAGRAD)
"""The classes whose formula is replayed."""

CORRECTS_BIAS = "correct_bias"
"""False in the AdamW that older versions of transformers have, where their users want BERT's."""

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FormulaError:
    """How far a tensor is from what the settings give, by relative L2; it is `factor` times what it should be.

    `what` is `update`, or the name of a state such as `exp_avg`; `allowed` is what rounding may do.
    """

    owner: Owner
    what: str
    error: float
    factor: float
    allowed: float


@dataclass(frozen=True, slots=True)
class Replayed:
    """What was replayed of one run in one step, in the order of its parameters."""

    tensors: tuple[FormulaError, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the optimizer really does: a setting with the value that it has and the one that explains the step.

    `setting` is `lr`, `eps`, `eps_inside`, `weight_decay`, `class`, or a beta; for `lr` the `factor` is told.
    """

    setting: str
    told: FactValue
    really: FactValue
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class FormulaCheck:
    """Where one run of a pair leaves its own settings in a step, and the other keeps to them.

    `candidate` says which run it is; `errors` are its own, of `checked` parameters that could be replayed, and
    `explanation` another setting with which all of them are none.
    """

    step: int
    candidate: bool
    checked: int
    errors: tuple[FormulaError, ...]
    explanation: Explanation | None = None


def compare_replays(step: int, ours: Replayed, theirs: Replayed, partner: Mapping[Owner, Owner]) -> FormulaCheck | None:
    """The run that leaves its settings where the other does not; `partner` gives the candidate's owners.

    Where both leave them alike, the formula is another one than the class's name says, or something changes the
    parameters besides: that tells nothing of a difference.
    """
    answers = {(tensor.owner, tensor.what): tensor for tensor in theirs.tensors}
    found: tuple[list[FormulaError], list[FormulaError]] = ([], [])
    checked = set()
    for tensor in ours.tensors:
        answer = answers.get((partner.get(tensor.owner, tensor.owner), tensor.what))
        if answer is None:
            continue
        checked.add(tensor.owner)
        allowed = max(tensor.allowed, answer.allowed)
        for side, (one, other) in enumerate(((tensor, answer), (answer, tensor))):
            if one.error > max(allowed, FARTHER * other.error):
                found[side].append(one)
    for candidate in (True, False):
        if found[candidate]:
            return FormulaCheck(step, candidate, len(checked), tuple(found[candidate]))
    return None


Group: TypeAlias = Mapping[str, Any]


def as_it_is(group: Group) -> Group:
    """The settings of a group as they were recorded."""
    return group


def replay(records: OptimizerRecords, settings_of: Callable[[Group], Group] = as_it_is) -> Replayed:
    """Replay one step of one run; tensors of which too little is known, and other optimizers, are left out.

    `settings_of` gives the settings to replay a group with: others than its own ask what would explain the step.
    """
    groups = groups_of(records.facts)
    tensors = []
    for owner in records.parameters_after:
        settings = _settings_of(owner, groups, settings_of)
        if settings is None:
            continue
        rounding = _rounding(owner, records)
        for what, found, expected, allowed in _tensors(owner, settings, records):
            size = float(np.linalg.norm(expected))
            error = float(np.linalg.norm(found - expected)) / size if size else 0.0
            factor = float(found @ expected) / size**2 if size else 1.0
            fades = SMALLEST_STEPS * _quantum(owner, records) * math.sqrt(len(expected)) / size if size else 0.0
            tensors.append(FormulaError(owner, what, error, factor, allowed * max(1.0, rounding / ALLOWED) + fades))
    return Replayed(tuple(tensors))


def _rounding(owner: Owner, records: OptimizerRecords) -> float:
    """What the rounding of a 16-bit gradient, state or parameter may do to what is made of it."""
    units = (PRECISIONS[dtype].unit for dtype in _dtypes(owner, records) if dtype in PRECISIONS)
    return ROUNDED * max(units, default=0.0)


def _quantum(owner: Owner, records: OptimizerRecords) -> float:
    """The smallest number of a format that squares of gradients fall below, 0 for formats that reach far enough."""
    return QUANTUM if FLOAT16 in _dtypes(owner, records) else 0.0


def _dtypes(owner: Owner, records: OptimizerRecords) -> set[str]:
    """The dtypes of what a step makes of one parameter."""
    name, slot = owner
    states = (records.states_after.get((name, f"{slot}.{state}")) for state in STATES)
    known = (records.gradients.get(owner), records.parameters_after.get(owner), *states)
    return {record.dtype for record in known if record is not None}


def groups_of(facts: Iterable[Fact]) -> dict[str, dict[str, Any]]:
    """The facts of the optimizers by the name they are kept under: a group, or the module that owns a parameter."""
    groups: dict[str, dict[str, Any]] = {}
    for fact in facts:
        if fact.key.phase is Phase.OPTIMIZER:
            groups.setdefault(fact.key.name, {})[fact.key.slot] = fact.value
    return groups


def _settings_of(
    owner: Owner, groups: Mapping[str, Mapping[str, Any]], settings_of: Callable[[Group], Group]
) -> Settings | None:
    own = groups.get(owner[0], {})
    group = settings_of(groups.get(str(own.get(f"{owner[1]}.group")), {}))
    kind = str(group.get("class", ""))
    count = own.get(f"{owner[1]}.step", 0.0)
    counted = float(count) if isinstance(count, (int, float)) else 0.0
    if kind in {*ADAM, RMSPROP, ADAGRAD} and counted >= 1.0:
        return Settings(kind, group, counted)
    return Settings(kind, group, 0.0) if kind == SGD else None


def _tensors(
    owner: Owner, settings: Settings, records: OptimizerRecords
) -> Iterator[tuple[str, Values, Values, float]]:
    """Each tensor as it is and as it should be, with the error that it may have."""
    gradient = _sketch(records.gradients.get(owner))
    if gradient is None:
        return
    gradient = -gradient if settings.values.get("maximize") else gradient
    if not math.isfinite(settings.number("weight_decay")):
        return
    if settings.kind != "AdamW" and settings.number("weight_decay"):
        parameter = _sketch(records.parameters_before.get(owner))
        if parameter is None or len(parameter) != len(gradient):
            return
        gradient = gradient + settings.number("weight_decay") * parameter
    formula = {SGD: _sgd, RMSPROP: _of_elements, ADAGRAD: _of_elements}.get(settings.kind, _adam)
    yield from formula(owner, settings, gradient, records)


def _adam(
    owner: Owner, settings: Settings, gradient: Values, records: OptimizerRecords
) -> Iterator[tuple[str, Values, Values, float]]:
    first, second = settings.number("betas.0"), settings.number("betas.1")
    name, slot = owner
    moments = [_sketch(records.states_after.get((name, f"{slot}.{state}"))) for state in ("exp_avg", "exp_avg_sq")]
    olds = [_state_before(owner, state, settings, gradient, records) for state in ("exp_avg", "exp_avg_sq")]
    if moments[0] is not None and olds[0] is not None:
        yield "exp_avg", moments[0], *_sum(first * olds[0], (1.0 - first) * gradient)
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
    greatest = _sketch(records.states_after.get((name, f"{slot}.max_exp_avg_sq")))
    square = greatest if settings.values.get("amsgrad") and greatest is not None else moments[1]
    corrections = [1.0, 1.0]
    if settings.values.get(CORRECTS_BIAS) is not False:
        corrections = [1.0 - beta**settings.updates for beta in (first, second)]
    root = optimizer_formulas.root(square * signs / corrections[1], settings.values)
    step = optimizer_formulas.divided(moments[0] * signs / corrections[0], root)
    decay = settings.number("weight_decay") * exact[1] if settings.kind == "AdamW" else 0.0
    expected = -settings.number("lr") * (step + decay)
    yield from _checked_update(found * signs, expected, rounding)


def _sgd(
    owner: Owner, settings: Settings, gradient: Values, records: OptimizerRecords
) -> Iterator[tuple[str, Values, Values, float]]:
    name, slot = owner
    momentum, direction = settings.number("momentum"), gradient
    if momentum:
        buffer = _sketch(records.states_after.get((name, f"{slot}.momentum_buffer")))
        if buffer is None:
            return
        old = _sketch(records.states_before.get((name, f"{slot}.momentum_buffer")))
        if old is not None and len(old) == len(gradient):
            yield "momentum_buffer", buffer, *_sum(momentum * old, (1.0 - settings.number("dampening")) * gradient)
        direction = gradient + momentum * buffer if settings.values.get("nesterov") else buffer
    update = _update(owner, records)
    if update is not None and len(update[0]) == len(direction):
        yield from _checked_update(update[0], -settings.number("lr") * direction, update[1])


def _of_elements(
    owner: Owner, settings: Settings, gradient: Values, records: OptimizerRecords
) -> Iterator[tuple[str, Values, Values, float]]:
    """The formulas in which no tensor is linear in the gradient: only where all elements are known."""
    name, slot = owner
    if _exact(records.gradients.get(owner)) is None:
        return
    signs = sketch.signs()[: len(gradient)]
    after, before = (
        {state: _sketch(states.get((name, f"{slot}.{state}"))) for state in STATES}
        for states in (records.states_after, records.states_before)
    )
    known, old = ({name: one * signs for name, one in side.items() if one is not None} for side in (after, before))
    for what, expected in optimizer_formulas.states(settings, gradient * signs, known, old):
        yield what, known[what], expected, ALLOWED
    direction = optimizer_formulas.direction(settings, gradient * signs, known)
    update = _update(owner, records)
    if update is not None and direction is not None and len(update[0]) == len(direction):
        yield from _checked_update(update[0] * signs, -settings.number("lr") * direction, update[1])


def _sum(one: Values, other: Values) -> tuple[Values, float]:
    """A sum and the relative error that it may have: more where its terms cancel."""
    total = one + other
    size = float(np.linalg.norm(total))
    largest = max(float(np.linalg.norm(one)), float(np.linalg.norm(other)))
    return total, ALLOWED * max(1.0, largest / size) if size else math.inf


def _checked_update(found: Values, expected: Values, rounding: float) -> Iterator[tuple[str, Values, Values, float]]:
    size = float(np.linalg.norm(expected))
    if size > 0.0 and rounding < LARGEST_ROUNDING * size:
        yield "update", found, expected, max(ALLOWED, ROUNDINGS * rounding / size)


def _state_before(
    owner: Owner, state: str, settings: Settings, gradient: Values, records: OptimizerRecords
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
