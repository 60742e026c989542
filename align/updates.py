"""What the optimizers did: whether both runs use the same one, at one rate, and whether their updates fit.

Parameters are never compared across runs as other tensors are: the first step of Adam is the sign of the gradient,
which rounding flips where a gradient is almost 0. Over the whole model the updates can be compared all the same. Over
the 81 steps of the 27 healthy pairs of the tests the norm of the update is the same within 0.22 %, and the updates
differ by relative L2 0.071 at most (bf16, first step). A sketch is linear, so the sketch of an update is the difference
of two sketches of the parameter.

Weight decay adds a multiple of the parameter to its update. The multiple in the difference of both updates is found by
projection, and known as well as the rest of the difference lets it: over the same 81 steps it was at most 2.7 standard
deviations, under a weight decay of 0.5 against 0.01 it was 22.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from align import sketch
from align.pairing import Pair
from align.records import Comparison, Kind, Origin, Owner, Phase, Status, TensorRecord, TimelineRow
from align.walk import StepResult, Suspect

SAME_RATE = 1e-6
"""Schedules computed in another order of operations differ in the last digits."""

SAME_NORM = 0.1
"""Updates of one formula have norms within this share of each other, and what the gradients add."""

LARGEST_DIFFERENCE = 1.0
"""Above it two updates have less in common than two of healthy runs ever had."""

SURE_DECAY = 8.0
"""Another weight decay is told from this many standard deviations on,"""
SMALLEST_DECAY = 1e-3
"""from this decay on,"""
LEAST_SHARE = 0.1
"""and where it changes what the update does along the parameters by this share: another scale changes it too."""

FEWEST_ELEMENTS = 1000
LARGEST_GRADIENT_ERROR = 0.1
"""Where the gradient itself is that uncertain, so is the update."""

ABOVE_ROUNDING = 20.0
"""An update counts where it is so many times the rounding of its parameter."""

OWN_SIZE = 7.0
"""The norms of one parameter's updates are as equal as its gradients, and as a sketch of their difference tells; in 40
healthy pairs in float32 they parted by up to 2.4 times that."""

SMALLEST_OWN = 1e-3

FINE_DTYPES = {"float32": 2.0**-24, "float64": 2.0**-53}

TORCH_OPTIMIZERS = frozenset(
    ("Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "LBFGS", "Muon", "NAdam", "RAdam",
     "RMSprop", "Rprop", "SGD", "SparseAdam")
)  # fmt: skip
"""Classes of torch whose formulas are known to differ. Fused and other classes may compute the formula of these."""

Parameters: TypeAlias = Mapping[Owner, Pair]


@dataclass(frozen=True, slots=True)
class UpdateCheck:
    """The updates of one step over the whole model.

    `ratio` is the norm of the candidate's update over that of the reference's, `gradient_error` the relative L2
    difference of the gradients that the updates are made from. `owner` is a parameter whose own update has another
    size, by `own_ratio`. `decay` is how much more the candidate draws its parameters to 0, in units of the learning
    rate, known to be so by so many standard deviations.
    """

    step: int
    ratio: float
    relative_l2: float
    elements: int
    gradient_error: float
    decay: float = 0.0
    decay_deviations: float = 0.0
    owner: Owner | None = None
    own_ratio: float = 1.0

    @property
    def decays(self) -> bool:
        """Whether one run draws its parameters to 0 more than the other."""
        return self.decay != 0.0 and self.decay_deviations > SURE_DECAY and self.elements >= FEWEST_ELEMENTS

    @property
    def other_size(self) -> bool:
        """Whether the updates are too far apart for one formula."""
        if self.elements < FEWEST_ELEMENTS:
            return False
        return abs(self.ratio - 1.0) > self.allowed or self.relative_l2 > LARGEST_DIFFERENCE + 2.0 * self.gradient_error

    @property
    def allowed(self) -> float:
        """How far from 1 the ratio may be."""
        return SAME_NORM + 2.0 * self.gradient_error

    @property
    def differs(self) -> bool:
        """Whether the updates cannot be those of one formula."""
        return self.other_size or self.decays or self.owner is not None


class _Update(NamedTuple):
    """The sketches of one parameter and its updates, with the relative difference and the norm of its gradients."""

    owner: Owner
    parameter: NDArray[np.float64]
    ours: NDArray[np.float64]
    theirs: NDArray[np.float64]
    numel: int
    gradient_error: float
    gradient_norm: float
    rounding: float


def differing_learning_rates(ours: TimelineRow | None, theirs: TimelineRow | None) -> tuple[float, float] | None:
    """The learning rates of one step where both are known and differ."""
    if ours is None or theirs is None:
        return None
    rates = (ours.learning_rate, theirs.learning_rate)
    if not all(math.isfinite(rate) for rate in rates) or math.isclose(*rates, rel_tol=SAME_RATE):
        return None
    return rates


def differing_optimizers(ours: TimelineRow | None, theirs: TimelineRow | None) -> tuple[str, str] | None:
    """The classes of the optimizers of one step where both are known and differ."""
    if ours is None or theirs is None or not (ours.optimizer and theirs.optimizer):
        return None
    return None if ours.optimizer == theirs.optimizer else (ours.optimizer, theirs.optimizer)


def other_formula(optimizers: tuple[str, str] | None) -> bool:
    """Whether the classes are known to compute different updates."""
    return optimizers is not None and all(name in TORCH_OPTIMIZERS for side in optimizers for name in side.split(", "))


def parameters_of(comparisons: Iterable[Comparison]) -> Parameters:
    """The last pair of each parameter, by module and name."""
    return {each.key.owner: Pair(each.reference, each.candidate) for each in comparisons}


def check_update(before: Parameters, result: StepResult, learning_rate: float) -> UpdateCheck | None:
    """Compare the updates of a step over all parameters whose gradients agree; None where there are none."""
    found = list(_updates(before, result))
    ours = sum(float(update.ours @ update.ours) for update in found)
    theirs = sum(float(update.theirs @ update.theirs) for update in found)
    if not (ours > 0.0 or theirs > 0.0):
        return None
    away = sum(float(np.square(update.theirs - update.ours).sum()) for update in found)
    gradients = sum(update.gradient_norm**2 for update in found)
    errors = sum((update.gradient_error * update.gradient_norm) ** 2 for update in found)
    return UpdateCheck(
        result.step,
        math.sqrt(theirs / ours) if ours else math.inf,
        math.sqrt(away / ours) if ours else math.inf,
        sum(update.numel for update in found),
        math.sqrt(errors / gradients) if gradients else 0.0,
        *_decay(found, learning_rate),
        *next(_of_other_size(found), (None, 1.0)),
    )


def _of_other_size(updates: Sequence[_Update]) -> Iterator[tuple[Owner, float]]:
    """The parameters whose updates differ in size by more than their gradients and the sketches can make them."""
    for update in updates:
        ours, theirs = float(np.linalg.norm(update.ours)), float(np.linalg.norm(update.theirs))
        if update.numel < FEWEST_ELEMENTS or not ours > 0.0:
            continue
        chance = float(np.linalg.norm(update.theirs - update.ours)) / ours / math.sqrt(len(update.ours))
        allowed = max(SMALLEST_OWN, OWN_SIZE * max(update.gradient_error, chance, update.rounding / ours))
        if abs(theirs / ours - 1.0) > allowed:
            yield update.owner, theirs / ours


def _decay(updates: Sequence[_Update], learning_rate: float) -> tuple[float, float]:
    """How much more the candidate draws its parameters to 0, and in how many standard deviations; 0 for none."""
    along = before = square = variance = rounding = 0.0
    for update in updates:
        away = update.theirs - update.ours
        size = float(update.parameter @ update.parameter)
        along += float(away @ update.parameter)
        before += float(update.ours @ update.parameter)
        square += size
        variance += float(away @ away) * size / len(away)
        rounding += update.rounding * math.sqrt(size)
    if not (variance > 0.0 and square > 0.0 and learning_rate > 0.0):
        return 0.0, 0.0
    decay = -along / square / learning_rate
    small = abs(decay) < SMALLEST_DECAY or abs(along) <= max(LEAST_SHARE * abs(before), SURE_DECAY * rounding)
    return (0.0, 0.0) if small else (decay, abs(along) / math.sqrt(variance))


def laid_on_the_optimizer(result: StepResult, owner: Owner | None = None, *, even_equal: bool = False) -> StepResult:
    """Where all agrees but the optimizer, the runs part in the parameters after the step, first in the owner's.

    Settings that differ may leave the parameters of a step as they are (momentum in the first): `even_equal`.
    """
    for place, comparison in enumerate(result.comparisons):
        if owner is not None and comparison.key.owner != owner:
            continue
        if comparison.key.phase is Phase.PARAM and (even_equal or comparison.status is not Status.EQUAL):
            parted = replace(comparison, status=Status.ORIGIN)
            comparisons = (*result.comparisons[:place], parted, *result.comparisons[place + 1 :])
            suspect = Suspect(parted, Kind.EQUALITY, Origin.OPTIMIZER, parted.key.name)
            return replace(result, comparisons=comparisons, suspects=(suspect,))
    return result


def _updates(before: Parameters, result: StepResult) -> Iterator[_Update]:
    gradients = _gradients(result.comparisons)
    after = parameters_of(each for each in result.comparisons if each.key.phase is Phase.PARAM)
    for name, pair in after.items():
        gradient, old = gradients.get(name), before.get(name)
        if gradient is None or old is None:
            continue
        ours, theirs = _change(old.reference, pair.reference), _change(old.candidate, pair.candidate)
        if ours is None or theirs is None or len(ours) != len(theirs):
            continue
        noise = max(_rounding(pair.reference), _rounding(pair.candidate))
        if max(float(ours @ ours), float(theirs @ theirs)) <= (ABOVE_ROUNDING * noise) ** 2:
            continue
        stats = gradient.reference.stats
        norm = stats.norm if stats is not None else 0.0
        parameter = old.reference.sketch
        if parameter is not None:
            yield _Update(
                name,
                parameter.astype(np.float64),
                ours,
                theirs,
                pair.reference.numel,
                gradient.relative_l2 or 0.0,
                norm,
                noise,
            )


def _gradients(comparisons: Iterable[Comparison]) -> dict[Owner, Comparison]:
    """The gradients that the optimizer took, else those after backward, where they agree on both sides."""
    found: dict[Owner, Comparison] = {}
    for each in comparisons:
        name = each.key.owner
        if each.key.phase is Phase.UPDATE or (each.key.phase is Phase.GRADIENT and not _is_update(found.get(name))):
            found[name] = each
    return {name: each for name, each in found.items() if _agrees(each)}


def _is_update(known: Comparison | None) -> bool:
    return known is not None and known.key.phase is Phase.UPDATE


def _agrees(gradient: Comparison) -> bool:
    error = gradient.relative_l2
    return gradient.status in {Status.EQUAL, Status.WITHIN} and error is not None and error <= LARGEST_GRADIENT_ERROR


def _change(before: TensorRecord, after: TensorRecord) -> NDArray[np.float64] | None:
    """The sketch of the update, None where one of the two has none, or is of a coarse format."""
    old, new = sketch.sketch_of(before), sketch.sketch_of(after)
    if old is None or new is None or before.shape != after.shape or len(old.values) != len(new.values):
        return None
    if before.dtype not in FINE_DTYPES or after.dtype not in FINE_DTYPES:
        return None
    change = new.values.astype(np.float64) - old.values.astype(np.float64)
    return change if bool(np.isfinite(change).all()) else None


def _rounding(record: TensorRecord) -> float:
    """What the rounding of the parameter and of its sketch may add to the update."""
    norm = record.stats.norm if record.stats is not None else 0.0
    return norm * (FINE_DTYPES.get(record.dtype, 0.0) + record.resolution)
