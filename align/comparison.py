"""Compare two captures: pair their records, check what must be equal, then walk the steps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from align import wording
from align.capture_file import Capture
from align.drift import ParameterErrors
from align.equality import Answer, Equality, judge_equality
from align.errors import ComparisonError
from align.floors import Surroundings
from align.flow import Flow, is_output
from align.pairing import NamePairs, Pair, PairedStep, check_same_model, pair_names, pair_records
from align.records import (
    INIT_STEP,
    Comparison,
    Divergence,
    Kind,
    ModuleInfo,
    Origin,
    Phase,
    Resolution,
    RunInfo,
    Status,
    TensorKey,
    TimelineRow,
)
from align.tolerance import is_float
from align.units import Precisions, Side, learn_precisions
from align.walk import StepFacts, StepResult, StepWalk, Suspect, equality_comparison, learn_parameters

SAME_RATE = 1e-6
"""Schedules computed in another order of operations differ in the last digits."""

CLOSURE_OPTIMIZER = "LBFGS"
"""Evaluates its closure several times in one step and moves the parameters between."""


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """All that comparing two captures found; the rules of diagnosis read it and nothing else.

    `comparisons` are in the reference's execution order. `initial` are the initial weights and buffers, judged;
    `results` hold each step. `first` is the first place where a difference starts. `dtype_differences` and
    `shape_differences` are the pairs whose dtype or shape differs, the first of each tensor. `notes` say what
    could not be judged and why.
    """

    reference_path: str
    candidate_path: str
    reference: RunInfo
    candidate: RunInfo
    modules: Mapping[str, ModuleInfo]
    candidate_modules: Mapping[str, ModuleInfo]
    names: NamePairs
    precisions: Precisions
    comparisons: tuple[Comparison, ...]
    initial: tuple[Equality, ...]
    results: tuple[StepResult, ...]
    first: Suspect | None
    resolution: Resolution
    only_reference: tuple[TensorKey, ...] = ()
    only_candidate: tuple[TensorKey, ...] = ()
    dtype_differences: tuple[Pair, ...] = ()
    shape_differences: tuple[Pair, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    reference_timeline: tuple[TimelineRow, ...] = ()
    candidate_timeline: tuple[TimelineRow, ...] = ()

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps that were compared."""
        return tuple(result.step for result in self.results)

    @property
    def judged(self) -> tuple[Comparison, ...]:
        """The comparisons that were judged and agree, within the floor or exactly."""
        return tuple(each for each in self.comparisons if each.status in {Status.EQUAL, Status.WITHIN})

    @property
    def judged_share(self) -> float:
        """The share of the computed floats of the compared steps that could be judged; parameters never are."""
        computed = [
            comparison.status is not Status.NOT_JUDGED
            for result in self.results
            for comparison in result.comparisons
            if is_float(comparison.reference.dtype) and comparison.key.phase not in {Phase.INPUT, Phase.PARAM}
        ]
        return sum(computed) / len(computed) if computed else 0.0

    @property
    def unequal_weights(self) -> tuple[Equality, ...]:
        """The initial weights and buffers that really differ."""
        return tuple(found for found in self.initial if found.answer is Answer.UNEQUAL)

    @property
    def divergence(self) -> Divergence | None:
        """The first tensor that really differs, None when the runs are aligned."""
        return None if self.first is None else _divergence(self.first)


def compare(reference: Capture, candidate: Capture, renames: Sequence[tuple[str, str]] = ()) -> Walk:
    """Compare two captures; `renames` pair names of the reference with other names of the candidate."""
    steps = _common_steps(reference, candidate)
    names = pair_names(_names(reference, steps), _names(candidate, steps), renames)
    check_same_model(names, str(reference.path), str(candidate.path))
    pairings = [pair_records(step, reference.records(step), candidate.records(step), names) for step in steps]
    _check_overlap(reference, candidate, pairings)
    sides = (Side(reference.run, reference.modules), Side(candidate.run, candidate.modules))
    precisions = learn_precisions(pairings[0].pairs, names, *sides)
    initial_pairs = _pair_initial(reference, candidate, names)
    initial = tuple(judge_equality(pair) for pair in initial_pairs.pairs)
    walker = _Walker(reference, candidate, precisions, initial)
    results = tuple(walker.walk(paired) for paired in pairings)
    comparisons = (*walker.initial_comparisons, *(each for result in results for each in result.comparisons))
    everything = (initial_pairs, *pairings)
    return Walk(
        str(reference.path),
        str(candidate.path),
        reference.run,
        candidate.run,
        reference.modules,
        candidate.modules,
        names,
        precisions,
        comparisons,
        initial,
        results,
        first=walker.first,
        resolution=_resolution(results[0], precisions),
        only_reference=tuple(key for paired in everything for key in paired.only_reference),
        only_candidate=tuple(key for paired in everything for key in paired.only_candidate),
        dtype_differences=_first_of_each(everything, lambda pair: not pair.same_dtype),
        shape_differences=_first_of_each(everything, lambda pair: not pair.same_shape),
        counts=_counts(comparisons, everything),
        notes=tuple(walker.notes()),
        reference_timeline=tuple(reference.timeline),
        candidate_timeline=tuple(candidate.timeline),
    )


class _Walker:
    """Carries from step to step what the parameters differ by and whether the runs have parted."""

    def __init__(
        self, reference: Capture, candidate: Capture, precisions: Precisions, initial: Sequence[Equality]
    ) -> None:
        self.modules = reference.modules
        self.precisions = precisions
        self.timelines = tuple({row.step: row for row in run.timeline} for run in (reference, candidate))
        self.parameters = ParameterErrors()
        self.unjudged_steps: list[int] = []
        self.stand_in_steps: list[int] = []
        self.last: StepResult | None = None
        self.first = _first_unequal(initial)
        self.initial_comparisons = _initial_comparisons(initial)
        learn_parameters(self.parameters, self.initial_comparisons)
        self.has_initial = bool(initial)

    def walk(self, paired: PairedStep) -> StepResult:
        """Judge one step, the steps before it having been judged."""
        self._learn_entering_parameters(paired)
        carried = self.last.script_outputs if self.last is not None else 0.0
        facts = self._facts(paired.step)
        around = Surroundings(Flow(carried), self.parameters, self.modules, facts.moving)
        walk = StepWalk(facts, self.precisions, around, diverged=self.first is not None)
        result = walk.walk(paired)
        if self.first is None and not result.suspects and self._learning_rates(paired.step) is not None:
            result = _laid_on_the_learning_rate(result)
        if self.first is None and result.suspects:
            self.first = result.suspects[0]
        self.last = result
        return result

    def _learning_rates(self, step: int) -> tuple[float, float] | None:
        """The learning rates of both runs where they differ."""
        return differing_learning_rates(*(rows.get(step) for rows in self.timelines))

    def _learn_entering_parameters(self, paired: PairedStep) -> None:
        """Take the parameters at the begin of a step from the step before, else from the step itself."""
        if self.last is None and paired.step == 0:
            return
        before = [] if self.last is None else _parameter_comparisons(self.last)
        if before and self.last is not None and self.last.step == paired.step - 1:
            self.parameters.known = True
            learn_parameters(self.parameters, before)
            return
        if self.last is not None and self._all_skipped(range(self.last.step, paired.step)):
            return
        after = [
            Comparison(pair.reference, pair.candidate, Status.NOT_JUDGED, judge_equality(pair).relative_l2)
            for pair in paired.pairs
            if pair.key.phase is Phase.PARAM and is_float(pair.reference.dtype)
        ]
        self.parameters.known = bool(after)
        learn_parameters(self.parameters, after)
        (self.stand_in_steps if after else self.unjudged_steps).append(paired.step)

    def notes(self) -> Iterator[str]:
        """What could not be judged, or only with less than the usual knowledge."""
        if not self.has_initial:
            yield "The initial weights were not captured on both sides; they are taken to be equal."
        if self.stand_in_steps:
            yield (
                f"The parameters at the begin of {wording.steps(self.stand_in_steps)} were not captured; those after "
                "the step stand in for them."
            )
        if self.unjudged_steps:
            yield (
                f"The parameters at the begin of {wording.steps(self.unjudged_steps)} were not captured, so the values "
                "were not judged there. Capture the phase param too, and steps in a row from step 0."
            )
        if self.last is not None and not any(
            comparison.key.phase is Phase.FORWARD for comparison in self.last.comparisons
        ):
            yield "The forward pass was not captured on both sides, so gradients were not judged."

    def _all_skipped(self, steps: range) -> bool:
        return all(step in rows and rows[step].skipped for rows in self.timelines for step in steps)

    def _facts(self, step: int) -> StepFacts:
        ours, theirs = (rows.get(step) for rows in self.timelines)
        scales = [_loss_scale(row) for row in (ours, theirs)]
        return StepFacts(
            scale=scales[0] / scales[1],
            scaled=any(row is not None and not math.isnan(row.loss_scale) for row in (ours, theirs)),
            both_skipped=all(row is not None and row.skipped for row in (ours, theirs)),
            moving=any(row is not None and CLOSURE_OPTIMIZER in row.optimizer for row in (ours, theirs)),
        )


def differing_learning_rates(ours: TimelineRow | None, theirs: TimelineRow | None) -> tuple[float, float] | None:
    """The learning rates of one step where both are known and differ."""
    if ours is None or theirs is None:
        return None
    rates = (ours.learning_rate, theirs.learning_rate)
    if not all(math.isfinite(rate) for rate in rates) or math.isclose(*rates, rel_tol=SAME_RATE):
        return None
    return rates


def _laid_on_the_learning_rate(result: StepResult) -> StepResult:
    """Where all agrees but the learning rate, the runs part in the parameters after the step."""
    for place, comparison in enumerate(result.comparisons):
        if comparison.key.phase is Phase.PARAM and comparison.status is not Status.EQUAL:
            parted = replace(comparison, status=Status.ORIGIN)
            comparisons = (*result.comparisons[:place], parted, *result.comparisons[place + 1 :])
            suspect = Suspect(parted, Kind.EQUALITY, Origin.OPTIMIZER, parted.key.name)
            return replace(result, comparisons=comparisons, suspects=(suspect,))
    return result


def _loss_scale(row: TimelineRow | None) -> float:
    if row is None or not math.isfinite(row.loss_scale) or row.loss_scale <= 0.0:
        return 1.0
    return row.loss_scale


def _parameter_comparisons(result: StepResult) -> list[Comparison]:
    return [comparison for comparison in result.comparisons if comparison.key.phase is Phase.PARAM]


def _common_steps(reference: Capture, candidate: Capture) -> list[int]:
    for side, capture in (("reference", reference), ("candidate", candidate)):
        if not capture.steps:
            raise ComparisonError(
                f"Cannot compare: the {side} '{capture.path}' holds no finished step. "
                "Capture it again and let at least one training step end."
            )
    common = sorted(set(reference.steps) & set(candidate.steps))
    if not common:
        raise ComparisonError(
            f"Cannot compare '{reference.path}' with '{candidate.path}': they have no step in common. The reference "
            f"has {wording.steps(reference.steps)}, the candidate {wording.steps(candidate.steps)}. "
            "Capture both with the same --steps."
        )
    return common


def _names(capture: Capture, steps: Sequence[int]) -> Iterator[str]:
    """The names of modules and owners of parameters; arguments and the loss are no names of the model."""
    yield from capture.modules
    sources = [capture.records(steps[0])]
    if capture.has_init:
        sources.append(capture.records(INIT_STEP))
    for records in sources:
        for record in records:
            if record.key.phase not in {Phase.INPUT, Phase.LOSS}:
                yield record.key.name


def _check_overlap(reference: Capture, candidate: Capture, pairings: Sequence[PairedStep]) -> None:
    if any(paired.pairs for paired in pairings):
        return
    phases = [_phases(capture, [paired.step for paired in pairings]) for capture in (reference, candidate)]
    raise ComparisonError(
        f"Cannot compare '{reference.path}' with '{candidate.path}': no record of one has an answer in the other. "
        f"The reference has the phases {phases[0]}, the candidate {phases[1]}. Capture both with the same --phases."
    )


def _phases(capture: Capture, steps: Sequence[int]) -> str:
    seen = {record.key.phase for step in steps for record in capture.records(step)}
    return wording.listing([str(phase) for phase in Phase if phase in seen]) or "none"


def _pair_initial(reference: Capture, candidate: Capture, names: NamePairs) -> PairedStep:
    if not (reference.has_init and candidate.has_init):
        return PairedStep(INIT_STEP, ())
    return pair_records(INIT_STEP, reference.records(INIT_STEP), candidate.records(INIT_STEP), names)


def _first_unequal(initial: Sequence[Equality]) -> Suspect | None:
    for found in initial:
        if found.answer is Answer.UNEQUAL:
            kind = Kind.EQUALITY if found.pair.same_shape else Kind.SHAPE
            comparison = replace(equality_comparison(found), status=Status.ORIGIN)
            return Suspect(comparison, kind, Origin.WEIGHTS, found.pair.key.name)
    return None


def _initial_comparisons(initial: Sequence[Equality]) -> list[Comparison]:
    comparisons = [equality_comparison(found) for found in initial]
    for place, found in enumerate(initial):
        if found.answer is Answer.UNEQUAL:
            comparisons[place] = replace(comparisons[place], status=Status.ORIGIN)
            break
    return comparisons


def _divergence(suspect: Suspect) -> Divergence:
    comparison = suspect.comparison
    key = comparison.key
    measured = suspect.kind is Kind.VALUE
    return Divergence(
        step=key.step,
        micro=key.micro,
        phase=key.phase,
        name=key.name,
        slot=key.slot,
        call=key.call,
        kind=suspect.kind,
        origin=suspect.origin,
        relative_l2=comparison.relative_l2,
        floor=comparison.floor if measured else None,
        times_floor=comparison.times_floor if measured else None,
    )


def _resolution(result: StepResult, precisions: Precisions) -> Resolution:
    """The smallest effect that would have been called a difference, typical of the module outputs."""
    effects = sorted(
        comparison.limit * comparison.floor
        for comparison in result.comparisons
        if comparison.key.phase is Phase.FORWARD
        and is_output(comparison.reference)
        and comparison.status in {Status.EQUAL, Status.WITHIN}
        and comparison.limit > 0.0
        and math.isfinite(comparison.floor)
    )
    return Resolution(effects[len(effects) // 2] if effects else None, precisions.whole.name)


def _first_of_each(pairings: Sequence[PairedStep], differs: Callable[[Pair], bool]) -> tuple[Pair, ...]:
    found: dict[tuple[object, ...], Pair] = {}
    for paired in pairings:
        for pair in paired.pairs:
            if differs(pair):
                found.setdefault((pair.key.phase, pair.key.name, pair.key.slot), pair)
    return tuple(found.values())


def _counts(comparisons: Sequence[Comparison], pairings: Sequence[PairedStep]) -> dict[str, int]:
    statuses = Counter(comparison.status for comparison in comparisons)
    return {
        "paired": len(comparisons),
        **{str(status): statuses[status] for status in Status},
        "only_reference": sum(len(paired.only_reference) for paired in pairings),
        "only_candidate": sum(len(paired.only_candidate) for paired in pairings),
    }
