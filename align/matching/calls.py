"""Which call of a module answers which where one run calls it more often, and which micro-step which.

Calls are numbered as they come, so one more call of a module moves all numbers behind it. Where both runs call a
module equally often their calls are pairs in order, whatever they compute: what differs between them is to be found,
not explained away. Only where the numbers of calls differ are they aligned: inside the calls of their parents, by
shapes, by what ran before, and by their inputs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from align.matching.alignment import MOST_CELLS, Matrix, align_sequences, closeness, equal
from align.records import Phase, TensorKey, TensorRecord
from align.value_types import is_floating

CallPlace: TypeAlias = tuple[str, int]
"""What is called, and which of its calls."""

SCRIPT: CallPlace = ("", 0)
NOT_PAIRED = "\x00"
"""Begins what stands for a name of the candidate that has no partner; no name begins with it."""
LOSS_SLOT = "\x01"
"""Begins what stands for a slot of the losses, which are numbered each by itself."""

# The gains of two calls, by judgement: every pair is worth more than a gap, so that as many calls as can be are pairs.
SAME_SHAPES = 1.0
OTHER_SHAPES = 0.25
SAME_BEFORE = 0.25
SAME_GRADIENT = 0.5
"""That a backward came through both calls or through neither: a pass without gradient may have the very same inputs."""
SAME_NUMBER = 1e-3
"""Of several alignments that fit as well, the one that leaves the numbers as they are."""

UNKNOWN_CONFIDENCE = 0.5
"""That of an alignment which no content speaks for or against."""


@dataclass(frozen=True, slots=True)
class CallMatch:
    """How the calls of one module in one micro-step were paired, or the micro-steps of a step (the name is empty).

    `pairs` are the numbers of the reference's and the candidate's calls, `totals` how many each run has. `confidence`
    is how alike the inputs of the pairs are, from 0 to 1.
    """

    name: str
    micro: int
    pairs: tuple[tuple[int, int], ...]
    totals: tuple[int, int]
    confidence: float


@dataclass(frozen=True, slots=True)
class Shifts:
    """Where the candidate's calls and micro-steps have other numbers than those of the reference that they answer.

    `micros` map the candidate's micro-steps. `calls` map (name of the reference, micro-step of the candidate) to the
    numbers of the candidate's calls; what is not in such a map answers none.
    """

    micros: Mapping[int, int] | None = None
    calls: Mapping[CallPlace, Mapping[int, int]] = field(default_factory=dict)
    matches: tuple[CallMatch, ...] = ()

    def __bool__(self) -> bool:
        return self.micros is not None or bool(self.calls)

    def place(self, key: TensorKey, name: str) -> tuple[int, int] | None:
        """Micro-step and call of the reference that a key of the candidate answers, None where it answers none.

        `name` is the reference's name of what numbers the calls: the module, of a batch the one that was given it.
        """
        if key.phase in _OF_THE_STEP:
            return key.micro, key.call
        micro = key.micro if self.micros is None else self.micros.get(key.micro)
        if micro is None or key.phase not in _OF_A_MICRO:
            return None if micro is None else (micro, key.call)
        numbers = self.calls.get((_unit(key, name), key.micro))
        if numbers is None:
            return micro, key.call
        call = numbers.get(key.call)
        return None if call is None else (micro, call)


_OF_THE_STEP = frozenset({Phase.UPDATE, Phase.PARAM, Phase.OPTIMIZER, Phase.SCALER, Phase.RNG, Phase.INIT})
_COUNTED = frozenset({Phase.FORWARD, Phase.BACKWARD, Phase.LOSS})
_OF_A_MICRO = frozenset({*_COUNTED, Phase.INPUT})

NO_SHIFTS = Shifts()


@dataclass(slots=True, eq=False)
class _Call:
    """One call: where it was made, what ran before it there, its tensors, and whether a backward came through it."""

    order: int
    parent: CallPlace = SCRIPT
    before: str = ""
    inputs: dict[object, TensorRecord] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    gradient: bool = False


_Calls: TypeAlias = dict[str, dict[int, _Call]]


def find_shifts(
    reference: Sequence[TensorRecord], candidate: Sequence[TensorRecord], back: Callable[[str], str | None]
) -> Shifts:
    """The shifts between the records of one step; `back` is the reference's name for a name of the candidate."""
    ours = _by_micro(reference, lambda name: name)
    theirs = _by_micro(candidate, lambda name: back(name) or f"{NOT_PAIRED}{name}")
    matches: list[CallMatch] = []
    micros = None
    if ours.keys() != theirs.keys():
        micros, match = _pair_micros(reference, candidate, back)
        matches.append(match)
    calls: dict[CallPlace, Mapping[int, int]] = {}
    for theirs_micro, ours_micro in {micro: micro for micro in ours}.items() if micros is None else micros.items():
        aligner = _CallAligner(ours.get(ours_micro, {}), theirs.get(theirs_micro, {}), ours_micro)
        for unit in aligner.differing():
            calls[unit, theirs_micro] = aligner.images(unit)
        matches += aligner.matches.values()
    return Shifts(micros, calls, tuple(matches))


def _unit(key: TensorKey, name: str) -> str:
    """What numbers the calls that a record belongs to."""
    return f"{LOSS_SLOT}{key.slot}" if key.phase is Phase.LOSS else name


def _by_micro(records: Iterable[TensorRecord], name_of: Callable[[str], str]) -> dict[int, _Calls]:
    """The calls of each micro-step by what is called and their numbers."""
    found: dict[int, _Calls] = defaultdict(lambda: defaultdict(dict))
    names: dict[str, str] = {}
    for record in sorted(records, key=lambda each: each.order):
        key = record.key
        if key.phase not in _COUNTED or record.recomputed:
            if key.phase is Phase.INPUT:
                found[key.micro]
            continue
        if key.name not in names:
            names[key.name] = name_of(key.name)
        calls = found[key.micro][_unit(key, names[key.name])]
        call = calls.get(key.call)
        if call is None:
            call = calls[key.call] = _Call(record.order)
        if key.phase is Phase.BACKWARD:
            call.gradient = True
            call.inputs.setdefault(key.slot, record)
            continue
        if record.within:
            parent = names.setdefault(record.within, name_of(record.within))
            call.parent = (parent, record.within_call)
        call.shapes.setdefault(key.slot, record.shape)
        if not key.slot.startswith("output"):
            call.inputs.setdefault(key.slot, record)
    for calls_of_micro in found.values():
        _note_what_ran_before(calls_of_micro)
        _note_gradients_inside(calls_of_micro)
    return found


def _note_what_ran_before(calls: _Calls) -> None:
    last: dict[CallPlace, str] = {}
    made = [(call.order, unit, call) for unit, numbered in calls.items() for call in numbered.values()]
    for _, unit, call in sorted(made, key=lambda each: each[0]):
        call.before = last.get(call.parent, "")
        last[call.parent] = unit


def _note_gradients_inside(calls: _Calls) -> None:
    """A backward that came through a call came through those around it."""
    for call in [call for numbered in calls.values() for call in numbered.values() if call.gradient]:
        unit, number = call.parent
        while around := calls.get(unit, {}).get(number):
            if around.gradient:
                break
            around.gradient = True
            unit, number = around.parent


class _CallAligner:
    """The calls of one micro-step of both runs while they are being paired."""

    def __init__(self, ours: _Calls, theirs: _Calls, micro: int) -> None:
        self.ours, self.theirs, self.micro = ours, theirs, micro
        self.matches: dict[str, CallMatch] = {}
        self._images: dict[str, dict[int, int]] = {}
        self._open: set[str] = set()

    def differing(self) -> list[str]:
        """What both runs call, with other numbers of calls."""
        both = ((unit, calls, self.theirs[unit]) for unit, calls in self.ours.items() if unit in self.theirs)
        return [unit for unit, ours, theirs in both if ours.keys() != theirs.keys()]

    def images(self, unit: str) -> dict[int, int]:
        """The call of the reference that each call of the candidate answers."""
        if unit not in self._images:
            ours, theirs = sorted(self.ours[unit]), sorted(self.theirs[unit])
            if len(ours) == len(theirs):
                self._images[unit] = dict(zip(theirs, ours, strict=True))
            else:
                self._open.add(unit)
                self._images[unit] = self._aligned(unit)
                self._open.discard(unit)
        return self._images[unit]

    def _aligned(self, unit: str) -> dict[int, int]:
        groups: dict[CallPlace, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for number, call in sorted(self.ours[unit].items()):
            groups[self._parent(self.ours, call)][0].append(number)
        for number, call in sorted(self.theirs[unit].items()):
            parent = self._parent(self.theirs, call)
            image = parent[1] if parent == SCRIPT else self.images(parent[0]).get(parent[1])
            if image is not None:
                groups[parent[0], image][1].append(number)
        found: dict[int, int] = {}
        sure: list[float] = []
        for ours, theirs in groups.values():
            if len(ours) == len(theirs):
                found.update(zip(theirs, ours, strict=True))
                sure += [1.0] * len(ours)
            else:
                calls = [[side[unit][number] for number in numbers] for side, numbers in
                         ((self.ours, ours), (self.theirs, theirs))]  # fmt: skip
                for row, column, confidence in _align_calls(calls[0], calls[1], ours, theirs):
                    found[theirs[column]] = ours[row]
                    sure.append(confidence)
        pairs = tuple(sorted((number, other) for other, number in found.items()))
        totals = (len(self.ours[unit]), len(self.theirs[unit]))
        if not unit.startswith(LOSS_SLOT):
            self.matches[unit] = CallMatch(unit, self.micro, pairs, totals, min(sure, default=UNKNOWN_CONFIDENCE))
        return found

    def _parent(self, side: _Calls, call: _Call) -> CallPlace:
        """The nearest call around one whose module both runs have."""
        parent = call.parent
        for _ in range(len(side)):
            unit, number = parent
            if not unit or unit in self._open:
                break
            if unit in self.ours and unit in self.theirs:
                return parent
            around = side.get(unit, {}).get(number)
            parent = around.parent if around is not None else SCRIPT
        return SCRIPT


def _align_calls(
    left: Sequence[_Call], right: Sequence[_Call], ours: Sequence[int], theirs: Sequence[int]
) -> list[tuple[int, int, float]]:
    """The pairs of the calls of one module inside one call of its parent, with how alike their inputs are."""
    if len(left) * len(right) > MOST_CELLS:
        return [(place, place, UNKNOWN_CONFIDENCE) for place in range(min(len(left), len(right)))]
    likeness = _likeness([call.inputs for call in left], [call.inputs for call in right])
    shapes = equal([tuple(call.shapes.items()) for call in left], [tuple(call.shapes.items()) for call in right])
    gains = np.where(shapes == 1.0, SAME_SHAPES, OTHER_SHAPES) + np.nan_to_num(likeness)
    gains += SAME_BEFORE * equal([call.before for call in left], [call.before for call in right])
    gains += SAME_GRADIENT * equal([call.gradient for call in left], [call.gradient for call in right])
    gains += SAME_NUMBER * equal(ours, theirs)
    found = [(match.row, match.column) for match in align_sequences(gains)]
    known = np.where(np.isnan(likeness), UNKNOWN_CONFIDENCE, likeness)
    return [(row, column, float(known[row, column])) for row, column in found]


def _pair_micros(
    reference: Sequence[TensorRecord], candidate: Sequence[TensorRecord], back: Callable[[str], str | None]
) -> tuple[dict[int, int], CallMatch]:
    """Pair the micro-steps of a step by what the model was given in each."""
    left, right = _given(reference, lambda name: name), _given(candidate, lambda name: back(name) or name)
    ours, theirs = sorted(left), sorted(right)
    if len(ours) == len(theirs):
        found = dict(zip(theirs, ours, strict=True))
        return found, CallMatch("", 0, tuple(zip(ours, theirs, strict=True)), (len(ours), len(theirs)), 1.0)
    likeness = _likeness([left[micro] for micro in ours], [right[micro] for micro in theirs])
    gains = SAME_SHAPES + np.nan_to_num(likeness) + SAME_NUMBER * equal(ours, theirs)
    pairs = [(match.row, match.column) for match in align_sequences(gains)]
    known = np.where(np.isnan(likeness), UNKNOWN_CONFIDENCE, likeness)
    sure = min((float(known[pair]) for pair in pairs), default=UNKNOWN_CONFIDENCE)
    found = {theirs[column]: ours[row] for row, column in pairs}
    numbers = tuple((ours[row], theirs[column]) for row, column in pairs)
    return found, CallMatch("", 0, numbers, (len(ours), len(theirs)), sure)


def _given(records: Iterable[TensorRecord], name_of: Callable[[str], str]) -> dict[int, dict[object, TensorRecord]]:
    """What came into each micro-step: batches, targets, and the inputs of the outermost modules."""
    found: dict[int, dict[object, TensorRecord]] = defaultdict(dict)
    for record in records:
        key = record.key
        if key.phase not in _OF_A_MICRO:
            continue
        given = found[key.micro]
        outermost = key.phase is Phase.FORWARD and not record.within and key.slot.startswith("input")
        if key.phase is Phase.INPUT or outermost or (key.phase is Phase.LOSS and key.slot == "target"):
            name = name_of(key.name) if key.phase is Phase.FORWARD else key.name
            given[key.phase, name, key.slot, key.call] = record
    return found


def _likeness(left: Sequence[Mapping[Any, TensorRecord]], right: Sequence[Mapping[Any, TensorRecord]]) -> Matrix:
    """How alike the tensors of the same slots are, from 0 to 1; NaN where no slot can be compared."""
    slots = dict.fromkeys(slot for side in (left, right) for each in side for slot in each)
    total = np.zeros((len(left), len(right)))
    known = np.zeros_like(total)
    for slot in slots:
        ours, theirs = ([each.get(slot) for each in side] for side in (left, right))
        found = tensor_likeness(ours, theirs)
        total += np.nan_to_num(found)
        known += ~np.isnan(found)
    return np.divide(total, known, out=np.full_like(total, np.nan), where=known > 0.0)


def tensor_likeness(ours: Sequence[TensorRecord | None], theirs: Sequence[TensorRecord | None]) -> Matrix:
    """1 for equal tensors, less for floats that differ, 0 for integers that do and for other shapes."""
    sides = (ours, theirs)
    hashes = equal(*([None if each is None else each.hash for each in side] for side in sides))
    shapes = equal(*([None if each is None else each.shape for each in side] for side in sides))
    close = closeness(*([_vector(each) for each in side] for side in sides))
    found = np.where(np.isnan(close), hashes, np.where(hashes == 1.0, 1.0, close))
    found[shapes == 0.0] = 0.0
    return found


def _vector(record: TensorRecord | None) -> NDArray[Any] | None:
    """What stands for the values of a float tensor: its sketch, else its statistics."""
    if record is None or not is_floating(record.dtype):
        return None
    if record.sketch is not None:
        return record.sketch
    stats = record.stats
    if stats is None:
        return None
    return np.array([stats.norm, stats.mean * stats.count**0.5, stats.minimum, stats.maximum])
