"""Compare two captures: pair their records, check what must be equal, then walk the steps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar

from align import aspects, watching, wording
from align.alike import completed
from align.applied_skips import AppliedSkip
from align.asked_steps import none_of_asked, within
from align.aspects import factor_share
from align.capture_file import Capture
from align.equality import Answer, Equality, judge_equality
from align.errors import ComparisonError
from align.flow import is_output
from align.gradient_gaps import GradientGap
from align.hyperparameters import SettingsCheck
from align.initial_relations import InitialRelations, relate_initial
from align.judging import Judging
from align.matching.captures import pair_captures
from align.matching.rules import MapRule
from align.matching.shards import set_shards_aside
from align.matching.summary import summarise
from align.optimizer_replay import FormulaCheck
from align.pairing import NamePairs, Pair, PairedStep, check_same_model, is_walked, pair_records
from align.progress import Progress
from align.recomputing import Recomputing, check_recomputing
from align.records import (
    INIT_STEP,
    Aspect,
    Comparison,
    Detail,
    Divergence,
    Fact,
    Kind,
    ModuleInfo,
    Origin,
    Pairing,
    Phase,
    Resolution,
    RunInfo,
    Status,
    TensorKey,
    TensorRecord,
    TimelineRow,
)
from align.sentences import say
from align.timelines import LostLoss, OtherRate, lost_loss, other_rate, parting
from align.tolerance import coarsest, is_float
from align.underflow_gaps import UnderflowGap
from align.units import Precisions, Side, learn_precisions
from align.updates import (
    UpdateCheck,
)
from align.value_reader import ValueReader
from align.walk import StepResult, Suspect
from align.wrong_part import WrongPart, find_wrong_part

DEFAULT_JUDGING = Judging()
Item = TypeVar("Item")

SMALLEST_JUDGED_SHARE = 0.1
"""Below it nothing is said of the runs, though nothing that was judged differs."""


@dataclass(frozen=True, eq=False)
class Walk:
    """All that comparing two captures found; the rules of diagnosis read it and nothing else.

    `comparisons` are in the reference's execution order. `initial` are the initial weights and buffers, judged;
    `results` hold each step. `first` is the first place where a difference starts. `dtype_differences` and
    `shape_differences` are the pairs whose dtype or shape differs, the first of each tensor. `notes` say what
    could not be judged and why. `update_checks` are the updates that were measured, of which the last may differ,
    `formula_checks` those that leave their own settings. `evidence` are the pairs of each step that explain and are not
    judged: optimizer states, scaler, generators, what was recomputed, batches as the loader gave them. The facts are
    those of the compared steps.
    `pairing` says what was paired by other than equal names and numbers; `unpaired_orders` when the tensors that only
    the reference, only the candidate has were seen. `settings_checks` compare the settings of the optimizers, one of
    each step where they are known; `gradient_gaps` hold the parameters that get a gradient in one run only. `judging`
    are the limits in force. `wrong_part` tells which elements of the first tensor that differs are wrong, where its
    values are known. `underflow_gaps` hold gradients that faded away in float16 in one run only, `applied_skips` the
    updates that one run made in a step which both should have skipped (True: the candidate). `recomputing` tells of
    both runs whether activation checkpoints repeat what they computed first. `weights` say what the initial tensors of
    the candidate are to those of the reference.
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
    update_checks: tuple[UpdateCheck, ...] = ()
    formula_checks: tuple[FormulaCheck, ...] = ()
    evidence: tuple[PairedStep, ...] = ()
    reference_facts: Mapping[int, Sequence[Fact]] = field(default_factory=dict)
    candidate_facts: Mapping[int, Sequence[Fact]] = field(default_factory=dict)
    pairing: Pairing = field(default_factory=Pairing)
    unpaired_orders: tuple[Mapping[TensorKey, int], Mapping[TensorKey, int]] = ({}, {})
    settings_checks: tuple[SettingsCheck, ...] = ()
    gradient_gaps: tuple[GradientGap, ...] = ()
    judging: Judging = DEFAULT_JUDGING
    weights: InitialRelations = field(default_factory=InitialRelations)
    wrong_part: WrongPart | None = None
    underflow_gaps: tuple[UnderflowGap, ...] = ()
    applied_skips: tuple[tuple[AppliedSkip, bool], ...] = ()
    recomputing: tuple[tuple[Recomputing, ...], tuple[Recomputing, ...]] = ((), ())

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
    def enough_judged(self) -> bool:
        """Whether so much was judged that something can be said of the runs."""
        return self.judged_share >= SMALLEST_JUDGED_SHARE

    @property
    def judged_steps(self) -> tuple[int, ...]:
        """The steps of which something that was computed could be judged."""
        given = {Phase.INIT, Phase.INPUT, Phase.PARAM}
        found = {
            each.key.step for each in self.judged if each.key.phase not in given and is_float(each.reference.dtype)
        }
        return tuple(sorted(found))

    @property
    def statistics_only(self) -> bool:
        """Whether one of the captures holds no sketches."""
        return Detail.STATS in {self.reference.detail, self.candidate.detail}

    @property
    def unequal_weights(self) -> tuple[Equality, ...]:
        """The initial weights and buffers that really differ."""
        return tuple(found for found in self.initial if found.answer is Answer.UNEQUAL)

    @property
    def independent(self) -> tuple[Suspect, ...]:
        """Where other differences start in the step of the first, beyond what they inherit, one for each code."""
        if self.first is None or self.first.kind is not Kind.VALUE or self.statistics_only:
            return ()
        found: list[Suspect] = []
        blamed = {self.first.owner, self.first.comparison.key.name}
        for suspect in next(result.suspects for result in self.results if self.first in result.suspects)[1:]:
            comparison = suspect.comparison
            if suspect.kind is Kind.VALUE and comparison.aspect is Aspect.SIZE:
                if not {suspect.owner, comparison.key.name} & blamed:
                    found.append(suspect)
                blamed |= {suspect.owner, comparison.key.name}
        return tuple(found)

    @cached_property
    def divergence(self) -> Divergence | None:
        """The first tensor that really differs, else what parts the timelines; None when the runs are aligned."""
        return parting(self.lost_loss, self.other_rate) if self.first is None else _divergence(self.first)

    @cached_property
    def lost_loss(self) -> LostLoss | None:
        """The step whose loss one run has lost, where no tensor that was captured differs."""
        return None if self.first is not None else lost_loss(self.reference_timeline, self.candidate_timeline)

    @cached_property
    def other_rate(self) -> OtherRate | None:
        """The step whose learning rate differs, where no tensor that was captured differs."""
        if self.first is not None:
            return None
        agree = {check.step for check in self.settings_checks if check.rates_known}
        return other_rate(self.reference_timeline, self.candidate_timeline, agree)


def compare(
    reference: Capture,
    candidate: Capture,
    renames: Sequence[tuple[str, str]] = (),
    judging: Judging = DEFAULT_JUDGING,
    rules: Sequence[MapRule] = (),
) -> Walk:
    """Compare two captures; `renames` and `rules` pair names of the reference with other names of the candidate."""
    steps = _common_steps(reference, candidate)
    _read((reference, candidate), steps)
    names = pair_captures(reference, candidate, steps, renames, rules)
    check_same_model(names, str(reference.path), str(candidate.path))
    ours, theirs = ({step: _parted(capture, step) for step in steps} for capture in (reference, candidate))
    worlds = (reference.run.world_size, candidate.run.world_size)
    pairings = [
        set_shards_aside(pair_records(step, ours[step].walked, theirs[step].walked, names), worlds) for step in steps
    ]
    _check_overlap(reference, candidate, pairings)
    modules, candidate_modules = completed(reference.modules), completed(candidate.modules)
    sides = (Side(reference.run, modules), Side(candidate.run, candidate_modules))
    precisions = learn_precisions(pairings[0].pairs, names, *sides)
    initial_pairs = set_shards_aside(_pair_initial(reference, candidate, names), worlds)
    values = ValueReader(reference, candidate)
    watching.begin(watching.Stage.INITIAL, len(initial_pairs.pairs))
    judged = watching.counted(initial_pairs.pairs)
    initial = tuple(judge_equality(pair, values if values.possible else None) for pair in judged)
    walker = Progress((reference, candidate), modules, precisions, initial, judging)
    asides = [
        pair_records(paired.step, ours[paired.step].aside, theirs[paired.step].aside, names, paired.shifts)
        for paired in pairings
    ]
    facts = [(reference.facts(step), candidate.facts(step)) for step in steps]
    results = tuple(walker.walk(*given) for given in _steps_told(pairings, zip(pairings, asides, facts, strict=True)))
    watching.begin(watching.Stage.EXPLAINING)
    comparisons = (*walker.initial_comparisons, *(each for result in results for each in result.comparisons))
    everything = (initial_pairs, *pairings)
    return Walk(
        str(reference.path),
        str(candidate.path),
        reference.run,
        candidate.run,
        modules,
        candidate_modules,
        names,
        precisions,
        comparisons,
        initial,
        results,
        first=walker.first,
        resolution=_resolution(results[0], precisions, judging, reference.run, candidate.run),
        only_reference=tuple(key for paired in everything for key in paired.only_reference),
        only_candidate=tuple(key for paired in everything for key in paired.only_candidate),
        dtype_differences=_first_of_each(everything, lambda pair: not pair.same_dtype),
        shape_differences=_first_of_each(everything, lambda pair: not pair.same_shape),
        counts=_counts(comparisons, everything),
        notes=tuple(walker.notes()),
        reference_timeline=tuple(reference.timeline),
        candidate_timeline=tuple(candidate.timeline),
        update_checks=tuple(walker.update_checks),
        formula_checks=tuple(walker.formula_checks),
        evidence=tuple(asides),
        reference_facts={step: given[0] for step, given in zip(steps, facts, strict=True)},
        candidate_facts={step: given[1] for step, given in zip(steps, facts, strict=True)},
        pairing=summarise(names, everything, (reference.steps, candidate.steps)),
        unpaired_orders=(_orders(pairings, 0), _orders(pairings, 1)),
        settings_checks=tuple(walker.settings_checks),
        gradient_gaps=tuple(walker.gradient_gaps),
        judging=judging,
        weights=relate_initial(initial, initial_pairs.unpaired, comparisons, (reference, candidate)),
        wrong_part=_wrong_part(walker.first, values),
        underflow_gaps=tuple(walker.underflow_gaps),
        applied_skips=tuple(walker.applied_skips),
        recomputing=(_repeated(ours, modules), _repeated(theirs, candidate_modules)),
    )


def _read(captures: Sequence[Capture], steps: Sequence[int]) -> None:
    """Have both captures read the index of each step, which they keep: of large ones that takes a while."""
    watching.begin(watching.Stage.READING, len(captures) * len(steps))
    for capture in captures:
        for step in watching.counted(steps):
            capture.records(step)


def _steps_told(pairings: Sequence[PairedStep], steps: Iterable[Item]) -> Iterator[Item]:
    """The steps, each told of when it begins; its pairs are told of where they are judged."""
    watching.begin(watching.Stage.COMPARING, sum(len(paired.pairs) for paired in pairings), len(pairings))
    for place, step in enumerate(steps, 1):
        watching.enter(place)
        yield step


def _wrong_part(first: Suspect | None, values: ValueReader) -> WrongPart | None:
    if first is None or first.kind is not Kind.VALUE or first.statistics_only:
        return None
    return find_wrong_part(values, first.comparison, first.scale)


class _Parted(NamedTuple):
    """The records of a step that are judged, and those that are evidence."""

    walked: list[TensorRecord]
    aside: list[TensorRecord]


def _parted(capture: Capture, step: int) -> _Parted:
    parts = _Parted([], [])
    for record in capture.records(step):
        parts[not is_walked(record)].append(record)
    return parts


def _repeated(parted: Mapping[int, _Parted], modules: Mapping[str, ModuleInfo]) -> tuple[Recomputing, ...]:
    """What one run computed again, in each step in which it did."""
    found = (check_recomputing(step, (*parts.walked, *parts.aside), modules) for step, parts in parted.items())
    return tuple(one for one in found if one is not None)


def _common_steps(reference: Capture, candidate: Capture) -> list[int]:
    for side, capture in (("reference", reference), ("candidate", candidate)):
        if not capture.steps:
            why = none_of_asked(capture.run)
            if why:
                raise ComparisonError(
                    say(
                        "Cannot compare: the {} '{}' holds {}. Capture it again with {}.",
                        side,
                        capture.path,
                        why,
                        within(capture.run),
                    )
                )
            raise ComparisonError(
                say(
                    "Cannot compare: the {} '{}' holds no finished step. Capture it again and let at least one "
                    "training step end.",
                    side,
                    capture.path,
                )
            )
    common = sorted(set(reference.steps) & set(candidate.steps))
    if not common:
        raise ComparisonError(
            say(
                "Cannot compare '{}' with '{}': they have no step in common. The reference has {}, the candidate "
                "{}. Capture both with the same --steps.",
                reference.path,
                candidate.path,
                wording.steps(reference.steps),
                wording.steps(candidate.steps),
            )
        )
    return common


def _check_overlap(reference: Capture, candidate: Capture, pairings: Sequence[PairedStep]) -> None:
    if any(paired.pairs for paired in pairings):
        return
    phases = [_phases(capture, [paired.step for paired in pairings]) for capture in (reference, candidate)]
    raise ComparisonError(
        say(
            "Cannot compare '{}' with '{}': no record of one has an answer in the other. The reference has "
            "the phases {}, the candidate {}. Capture both with the same --phases.",
            reference.path,
            candidate.path,
            phases[0],
            phases[1],
        )
    )


def _phases(capture: Capture, steps: Sequence[int]) -> str:
    seen = {record.key.phase for step in steps for record in _parted(capture, step).walked}
    return wording.listing([str(phase) for phase in Phase if phase in seen]) or say("none")


def _pair_initial(reference: Capture, candidate: Capture, names: NamePairs) -> PairedStep:
    if not (reference.has_init and candidate.has_init):
        return PairedStep(INIT_STEP, ())
    return pair_records(INIT_STEP, reference.records(INIT_STEP), candidate.records(INIT_STEP), names)


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
        origin=Origin.UNKNOWN if suspect.statistics_only else suspect.origin,
        relative_l2=comparison.relative_l2,
        floor=comparison.floor if measured else None,
        times_floor=comparison.times_floor if measured else None,
        aspect=comparison.aspect,
    )


def _resolution(result: StepResult, precisions: Precisions, judging: Judging, *runs: RunInfo) -> Resolution:
    """The smallest effect that would have been called a difference, typical of the module outputs.

    Statistics have none: a change of signs leaves them as they are.
    """
    if any(run.detail == Detail.STATS for run in runs):
        return Resolution(None, precisions.whole.name, "two files, statistics only")
    seen = sorted(
        (
            comparison
            for comparison in result.comparisons
            if comparison.key.phase is Phase.FORWARD
            and is_output(comparison.reference)
            and comparison.status in {Status.EQUAL, Status.WITHIN}
            and comparison.limit > 0.0
            and math.isfinite(comparison.floor)
        ),
        key=_effect,
    )
    if not seen:
        return Resolution(None, precisions.whole.name)
    typical = seen[len(seen) // 2]
    # The coarsest format that can have made the typical floor; a coarser one is that of a few modules.
    makers = [precision for precision in precisions.by_name.values() if precision.unit <= typical.floor]
    maker = coarsest(makers) or precisions.whole
    factor = max(judging.limit * factor_share(maker) * typical.floor, aspects.COHERENT * maker.unit)
    effect = _effect(typical)
    return Resolution(effect, maker.name, smallest_visible_factor=min(factor, effect))


def _effect(comparison: Comparison) -> float:
    """The smallest effect that would have been called a difference."""
    return comparison.limit * comparison.floor


def _orders(pairings: Sequence[PairedStep], side: int) -> dict[TensorKey, int]:
    return {key: order for paired in pairings for key, order in paired.orders[side].items()}


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
