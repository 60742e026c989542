"""The floor that was measured: how far other good runs of the reference lie from it, tensor by tensor.

Such a run starts from weights and batches that were moved by a rounding error (`align capture --perturb`), or is
another run that is known to be good. What it differs by at a point is what rounding does there, cancellation and
flipped decisions included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from align import metrics, nonfinite, wording
from align.capture_file import Capture
from align.floor_checks import (
    GIVEN,
    check_floor,
    check_not_equal,
    floor_steps,
    is_finer,
    is_same_run,
    names_of,
    precision_apart,
)
from align.loss_scales import loss_scale_of
from align.matching.calls import NO_SHIFTS
from align.pairing import NamePairs, Pair, PairedStep, is_walked, pair_names, pair_records
from align.records import INIT_STEP, Comparison, RunInfo, Status, TensorRecord, TimelineRow
from align.sentences import joined, say
from align.tolerance import is_float

REPEAT = "known-good repeat"
NONE = "two files"

COVERED = 0.9
"""Of so many tensors a floor is measured where nothing was left out: branches and experts that only one run calls are
fewer."""


@dataclass(frozen=True, slots=True)
class FloorFile:
    """One run beside the reference: its pairs with the reference by step and order, and its loss scales over it.

    `parted` is the first step that it cannot speak for, since one of both skipped the update before it.
    """

    path: str
    method: str
    pairs: Mapping[int, Mapping[int, Pair]]
    scales: Mapping[int, float]
    parted: int | None

    def pair(self, record: TensorRecord) -> Pair | None:
        """The pair of a record of the reference; None where this run has no answer that can be measured."""
        step = record.key.step
        if self.parted is not None and step >= self.parted:
            return None
        return self.pairs.get(step, {}).get(record.order)

    def scale(self, record: TensorRecord) -> float:
        """What this run's tensor is multiplied by to undo the loss scales of both."""
        return self.scales.get(record.key.step, 1.0) if record.key.phase in nonfinite.SCALED_PHASES else 1.0


class MeasuredFloor:
    """The differences between the reference and one or more good runs, the largest of all at each record.

    `method` says in words what they are; `notes` what none of them can speak for.
    """

    def __init__(self, files: Sequence[FloorFile], notes: Sequence[str] = ()) -> None:
        self.files = tuple(files)
        self.notes = tuple(notes)
        self._errors: dict[tuple[int, int, int], float | None] = {}

    @property
    def method(self) -> str:
        """`reference perturbed by +-2^-8 (seed 1)`, `known-good repeat`, `2 floor files (...)`."""
        methods = [file.method for file in self.files] or [NONE]
        return methods[0] if len(methods) == 1 else say("{} floor files ({})", len(methods), joined(", ", methods))

    @property
    def perturbed(self) -> int:
        """How many of them were perturbed: those show what rounding does, a repeat only what one device does.

        Runs that were moved by the same numbers show the same.
        """
        return len({file.method for file in self.files} - {REPEAT})

    def error(self, record: TensorRecord) -> float | None:
        """The largest relative L2 difference at a record of the reference, loss scales undone; None if not measured."""
        errors = [error for number in range(len(self.files)) if (error := self._error(number, record)) is not None]
        return max(errors, default=None)

    def uncovered(self, comparisons: Iterable[Comparison]) -> Iterator[str]:
        """A sentence where many tensors that were judged have no measured floor in a step that was measured."""
        steps = {step for file in self.files for step in file.pairs if file.parted is None or step < file.parted}
        judged = [
            bool(self.pairs(each.reference))
            for each in comparisons
            if each.key.step in steps and each.key.phase not in GIVEN and each.status is not Status.NOT_JUDGED
            if is_float(each.reference.dtype)
        ]
        if judged and sum(judged) < COVERED * len(judged):
            yield (
                say(
                    "Of {} only {} {} a measured floor; the others were held against an estimated one. Capture the "
                    "floor with the same --modules and --phases.",
                    wording.plural(len(judged), "tensor"),
                    wording.count(sum(judged)),
                    "has" if sum(judged) == 1 else "have",
                )
            )

    def pairs(self, record: TensorRecord) -> Sequence[Pair]:
        """The record of the reference with its answer in each floor that has one, in the order of the files."""
        return [pair for file in self.files if (pair := file.pair(record)) is not None]

    def scaled_pairs(self, record: TensorRecord) -> Sequence[tuple[Pair, float]]:
        """The same, each with what the floor's tensor is multiplied by to undo the loss scales."""
        return [(pair, file.scale(record)) for file in self.files if (pair := file.pair(record)) is not None]

    def _error(self, number: int, record: TensorRecord) -> float | None:
        """The error of one floor; of the very same tensors as another record's, what was measured there."""
        file = self.files[number]
        pair = file.pair(record)
        if pair is None:
            return None
        order = record.order
        if record.same_as is not None and pair.candidate.same_as is not None:
            source = file.pairs[record.key.step].get(record.same_as)
            if source is not None and source.candidate.order == pair.candidate.same_as:
                order = record.same_as
        place = (number, record.key.step, order)
        if place not in self._errors:
            self._errors[place] = _measured(pair, file.scale(record))
        return self._errors[place]


def _measured(pair: Pair, scale: float) -> float | None:
    """The relative L2 difference of a pair; None where it is no rounding: other shapes, integers, NaN on one side."""
    if not metrics.is_float_pair(pair) or nonfinite.kinds(pair.reference.stats) != nonfinite.kinds(
        pair.candidate.stats
    ):
        return None
    error = metrics.relative_l2(pair, scale)
    return error if error is not None and math.isfinite(error) else None


def measured_floor(
    reference: Capture, candidate: Capture, floors: Sequence[Capture], renames: Sequence[tuple[str, str]] = ()
) -> MeasuredFloor:
    """The floor that these captures show; raises ComparisonError for one that shows no rounding of the reference.

    `renames` pair names of the reference with other names of a floor that does not have the reference's own.
    """
    compared = sorted(set(reference.steps) & set(candidate.steps))
    if not compared:
        return MeasuredFloor([])  # there is no comparison either, which says why
    given, floors = floors, _distinct(floors)
    files = [_floor_file(reference, candidate, floor, renames) for floor in floors]
    apart = precision_apart(reference, candidate)
    finer = {str(floor.path) for floor in floors if apart and is_finer(floor, candidate)}
    usable = [file for file in files if file.path not in finer]
    again = [
        say("'{}' was given as a floor before: it counts once.", floor.path) for floor in given if floor not in floors
    ]
    notes = [*again, *_notes(usable, compared), *(_finer(path, apart) for path in sorted(finer))]
    return MeasuredFloor(usable, notes)


def _distinct(floors: Sequence[Capture]) -> list[Capture]:
    """The floors without those that are the same run as an earlier one."""
    found: list[Capture] = []
    for floor in floors:
        if not any(is_same_run(floor, other) for other in found):
            found.append(floor)
    return found


def _floor_file(
    reference: Capture, candidate: Capture, floor: Capture, renames: Sequence[tuple[str, str]]
) -> FloorFile:
    steps = floor_steps(reference, candidate, floor)
    names = _pair_names(reference, floor, renames)
    initial = _paired(INIT_STEP, reference, floor, names) if reference.has_init and floor.has_init else None
    paired = {step: _paired(step, reference, floor, names) for step in steps}
    check_floor(reference, candidate, floor, names, [*([initial] if initial else []), *paired.values()])
    check_not_equal(floor, list(paired.values()))
    everything = {**paired, **({INIT_STEP: initial} if initial else {})}
    ours, others = ({row.step: row for row in run.timeline} for run in (reference, floor))
    return FloorFile(
        str(floor.path),
        floor_method(floor.run),
        {step: {pair.reference.order: pair for pair in each.pairs} for step, each in everything.items()},
        {step: loss_scale_of(ours.get(step)) / loss_scale_of(others.get(step)) for step in steps},
        _first_after_a_skip(ours, others),
    )


def _pair_names(reference: Capture, floor: Capture, renames: Sequence[tuple[str, str]]) -> NamePairs:
    """Equal names, as a run of the reference's script has; renamed ones where that leaves fewer without a partner."""
    ours, theirs = names_of(reference), names_of(floor)
    names = pair_names(ours, theirs)
    if not (renames and names.only_reference):
        return names
    return min(names, pair_names(ours, theirs, renames), key=lambda found: len(found.only_reference))


def _paired(step: int, reference: Capture, floor: Capture, names: NamePairs) -> PairedStep:
    ours, theirs = ([each for each in capture.records(step) if is_walked(each)] for capture in (reference, floor))
    return pair_records(step, ours, theirs, names, NO_SHIFTS)  # the same script: what it calls has the same number


def floor_method(run: RunInfo) -> str:
    """What one floor is, in words."""
    perturbed = run.perturbed
    if not perturbed:
        return REPEAT
    unit = perturbed.get("unit")
    by = say(" by +-2^{}", round(math.log2(unit))) if isinstance(unit, float) and unit > 0.0 else ""
    return say("reference perturbed{} (seed {})", by, perturbed.get("seed"))


def _first_after_a_skip(ours: Mapping[int, TimelineRow], theirs: Mapping[int, TimelineRow]) -> int | None:
    """The step after the first that only one of both runs skipped: from there on they are one update apart."""
    apart = [step for step, row in ours.items() if step in theirs and row.skipped != theirs[step].skipped]
    return min(apart) + 1 if apart else None


def _finer(path: str, apart: str) -> str:
    return say(
        "The candidate works in a coarser precision than the reference ({}): '{}' does not show what that does and "
        "was left out. Give both runs one precision, or use a known-good repeat in the candidate's.",
        apart,
        path,
    )


def _notes(files: Sequence[FloorFile], compared: Sequence[int]) -> Iterator[str]:
    for file in files:
        usable = [step for step in file.pairs if step in compared and not (file.parted and step >= file.parted)]
        missing = [step for step in compared if step not in usable]
        if missing and file.parted is not None:
            yield (
                say(
                    "The floor of {} was not measured by '{}': it or the reference skipped step {}, and the other "
                    "did not.",
                    wording.steps(missing),
                    file.path,
                    file.parted - 1,
                )
            )
        elif missing:
            yield (
                say(
                    "The floor of {} was not measured: '{}' holds only {}. Capture it with the same --steps.",
                    wording.steps(missing),
                    file.path,
                    wording.steps(usable),
                )
            )
