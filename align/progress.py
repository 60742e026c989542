"""The comparison of steps one after another: what the parameters differ by, and whether the runs have parted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from align import wording
from align.applied_skips import AppliedSkip, applied_skip, stood_still
from align.capture_file import Capture
from align.drift import ParameterErrors, root_of
from align.equality import Answer, Equality, judge_equality
from align.floors import Surroundings
from align.flow import Flow
from align.gradient_gaps import GradientGap, find_gap, laid_on_gap
from align.hyperparameters import SettingsCheck, compare_settings
from align.judging import Judging
from align.loss_scales import loss_scale_of
from align.optimizer_explanation import explained
from align.optimizer_records import OptimizerRecords, by_owner, states_after, states_before
from align.optimizer_replay import FormulaCheck, compare_replays, groups_of, replay
from align.pairing import Pair, PairedStep
from align.records import Comparison, Fact, Kind, ModuleInfo, Origin, Owner, Phase, Status, TensorRecord, TimelineRow
from align.sentences import say
from align.state_differences import state_differences
from align.tolerance import is_float
from align.underflow_gaps import UnderflowGap, find_underflow, laid_on_underflow
from align.units import Precisions
from align.updates import (
    Parameters,
    UpdateCheck,
    check_update,
    differing_learning_rates,
    differing_optimizers,
    laid_on_the_optimizer,
    other_formula,
    parameters_of,
)
from align.value_reader import ValueReader
from align.walk import StepFacts, StepResult, StepWalk, Suspect, equality_comparison, learn_parameters

CLOSURE_OPTIMIZER = "LBFGS"
"""Evaluates its closure several times in one step and moves the parameters between."""

FactsOfBoth: TypeAlias = tuple[Sequence[Fact], Sequence[Fact]]


class Progress:
    """Carries from step to step what the parameters differ by and whether the runs have parted."""

    def __init__(
        self,
        captures: tuple[Capture, Capture],
        modules: Mapping[str, ModuleInfo],
        precisions: Precisions,
        initial: Sequence[Equality],
        judging: Judging,
    ) -> None:
        self.judging = judging
        values = ValueReader(*captures, modules)
        self.values = values if values.possible else None
        self.modules = modules
        self.precisions = precisions
        self.timelines = tuple({row.step: row for row in run.timeline} for run in captures)
        self.one_rank = all(capture.run.world_size == 1 for capture in captures)
        self.parameters = ParameterErrors()
        self.unjudged_steps: list[int] = []
        self.stand_in_steps: list[int] = []
        self.update_checks: list[UpdateCheck] = []
        self.formula_checks: list[FormulaCheck] = []
        self.settings_checks: list[SettingsCheck] = []
        self.gradient_gaps: list[GradientGap] = []
        self.underflow_gaps: list[UnderflowGap] = []
        self.applied_skips: list[tuple[AppliedSkip, bool]] = []
        # The candidate's parameter or buffer for each of the reference.
        self._parameter_partners = {found.pair.reference.key.owner: found.pair.candidate.key.owner for found in initial}
        self.last_aside = PairedStep(-1, ())
        self._partner: dict[Owner, Owner] = {}
        self.unknown_weights: dict[str, int] = {}
        self.last: StepResult | None = None
        self.first = _first_unequal(initial)
        self.initial_comparisons = _initial_comparisons(initial)
        learn_parameters(self.parameters, self.initial_comparisons)
        self.has_initial = bool(initial)

    def walk(self, paired: PairedStep, aside: PairedStep, facts_of: FactsOfBoth) -> StepResult:
        """Judge one step, the steps before it having been judged.

        `aside` are the pairs that are not judged, among them the states of the optimizers, `facts_of` both runs' facts.
        """
        self._learn_entering_parameters(paired)
        carried = self.last.script_outputs if self.last is not None else 0.0
        facts = self._facts(paired.step)
        around = Surroundings(Flow(carried), self.parameters, self.modules, facts.moving, facts.kept_of_gradients)
        self._note_unknown_weights(paired, around)
        walk = StepWalk(facts, self.precisions, around, self.judging, self.values, diverged=self.first is not None)
        result = self._with_underflow(paired, self._with_gap(paired, walk.walk(paired)))
        settings = self._compare_settings(result, facts_of)
        if self.first is None and not result.suspects:
            if settings is not None and settings.first is not None:
                result = laid_on_the_optimizer(result, settings.first, even_equal=True)
            elif (owner := self._begins_otherwise(result, aside, facts_of)) is not None:
                result = laid_on_the_optimizer(result, owner)
            elif self._leaves_its_settings(result, aside, facts_of, moving=facts.moving):
                result = laid_on_the_optimizer(result, self._first_owner())
            elif self._update_differs(result, settings, moving=facts.moving):
                result = laid_on_the_optimizer(result, self.update_checks[-1].owner if self.update_checks else None)
            elif (owner := self._applied_skip(result, aside, facts_of)) is not None:
                result = laid_on_the_optimizer(result, owner)
        self.last_aside = aside
        if self.first is None and result.suspects:
            self.first = result.suspects[0]
        self.last = result
        return result

    def _with_gap(self, paired: PairedStep, result: StepResult) -> StepResult:
        """The step with gradients of parameters that only one run made, where they part the runs."""
        self._parameter_partners.update(
            (pair.reference.key.owner, pair.candidate.key.owner)
            for pair in paired.pairs
            if pair.key.phase is Phase.PARAM
        )
        rows = [rows[paired.step] for rows in self.timelines if paired.step in rows]
        if self.first is not None or any(row.skipped or row.nonfinite for row in rows):
            return result
        gap = find_gap(paired, result, self._parameter_partners, self.modules, one_rank=self.one_rank)
        if gap is None:
            return result
        self.gradient_gaps.append(gap)
        return laid_on_gap(result, gap)

    def _with_underflow(self, paired: PairedStep, result: StepResult) -> StepResult:
        """The step with gradients that faded away in float16 in one run, where they part the runs."""
        ours, theirs = (rows.get(paired.step) for rows in self.timelines)
        if self.first is not None or any(row is not None and (row.skipped or row.nonfinite) for row in (ours, theirs)):
            return result
        gap = find_underflow(paired, result, (loss_scale_of(ours), loss_scale_of(theirs)))
        if gap is None:
            return result
        self.underflow_gaps.append(gap)
        return laid_on_underflow(result, gap)

    def _applied_skip(self, result: StepResult, aside: PairedStep, facts_of: FactsOfBoth) -> Owner | None:
        """The first parameter, by the reference's name, that one run moved in a step that both should have skipped."""
        ours, theirs = self._around(result, aside, facts_of)
        for records, other, by_candidate in ((theirs, ours, True), (ours, theirs, False)):
            found = applied_skip(result.step, records) if stood_still(other) else None
            if found is not None:
                self.applied_skips.append((found, by_candidate))
                names = {other: owner for owner, other in _partners(result).items()} if by_candidate else {}
                return names.get(found.moved[0], found.moved[0])
        return None

    def _begins_otherwise(self, result: StepResult, aside: PairedStep, facts_of: FactsOfBoth) -> Owner | None:
        """The first parameter whose optimizer begins the run with another state than in the other run."""
        if self.last is not None or result.step != 0:
            return None
        ours, theirs = (rows.get(result.step) for rows in self.timelines)
        found = state_differences(aside, facts_of, first_of_run=True)
        if found is None or differing_optimizers(ours, theirs) is not None:
            return None
        name, slot = found.owners[0]
        return name, slot.rpartition(".")[0]

    def _compare_settings(self, result: StepResult, facts_of: FactsOfBoth) -> SettingsCheck | None:
        """How both optimizers were set in this step, None where one is another or nothing is known of them."""
        ours, theirs = (rows.get(result.step) for rows in self.timelines)
        if other_formula(differing_optimizers(ours, theirs)):
            return None
        partner = _partners(result) or self._parameter_partners
        updated = {each.reference.key.owner for each in result.comparisons if each.key.phase is Phase.UPDATE}
        found = compare_settings(result.step, groups_of(facts_of[0]), groups_of(facts_of[1]), partner, updated or None)
        if not found.compared:
            return None
        self.settings_checks.append(found)
        return found

    def _leaves_its_settings(
        self, result: StepResult, aside: PairedStep, facts_of: FactsOfBoth, *, moving: bool
    ) -> bool:
        """Whether one run updates other than its own settings say, and the other does not."""
        if moving or any(rows[result.step].skipped for rows in self.timelines if result.step in rows):
            return False
        sides, partner = self._around(result, aside, facts_of), _partners(result)
        found = compare_replays(result.step, replay(sides[0]), replay(sides[1]), partner)
        if found is not None:
            found = replace(found, explanation=explained(sides[found.candidate], found.errors))
            self.formula_checks.append(found)
            self._partner = {theirs: ours for ours, theirs in partner.items()} if found.candidate else {}
        return found is not None

    def _around(
        self, result: StepResult, aside: PairedStep, facts_of: FactsOfBoth
    ) -> tuple[OptimizerRecords, OptimizerRecords]:
        """What is known of both optimizers around a step."""
        before = self._parameters_before(result.step).values()
        in_a_row = self.last is not None and self.last.step == result.step - 1
        ours, theirs = (
            OptimizerRecords(
                by_owner(_of_side(before, side)),
                by_owner(_of_side(_of_phase(result, Phase.PARAM), side)),
                by_owner(_of_side(_of_phase(result, Phase.UPDATE), side)),
                states_after(_of_side(self.last_aside.pairs, side))
                if in_a_row
                else states_before(_of_side(aside.pairs, side)),
                states_after(_of_side(aside.pairs, side)),
                facts_of[side],
            )
            for side in (0, 1)
        )
        return ours, theirs

    def _first_owner(self) -> Owner:
        """The first parameter that left its settings, by the reference's name."""
        owner = self.formula_checks[-1].errors[0].owner
        return self._partner.get(owner, owner)

    def _update_differs(self, result: StepResult, settings: SettingsCheck | None, *, moving: bool) -> bool:
        """Whether the optimizers, their rates, or what they did to the parameters differ in this step."""
        ours, theirs = (rows.get(result.step) for rows in self.timelines)
        if other_formula(differing_optimizers(ours, theirs)):
            return True
        if not (settings is not None and settings.rates_known) and differing_learning_rates(ours, theirs):
            return True
        if moving or ours is None or theirs is None or ours.skipped or theirs.skipped:
            return False
        if not (math.isfinite(ours.learning_rate) and math.isfinite(theirs.learning_rate)):
            return False
        found = check_update(self._parameters_before(result.step), result, ours.learning_rate)
        if found is None:
            return False
        self.update_checks.append(found)
        return found.differs

    def _parameters_before(self, step: int) -> Parameters:
        """The parameters at the begin of a step, where they were captured."""
        if step == 0:
            return parameters_of(self.initial_comparisons)
        if self.last is None or self.last.step != step - 1:
            return {}
        return parameters_of(_of_phase(self.last, Phase.PARAM))

    def _learn_entering_parameters(self, paired: PairedStep) -> None:
        """Take the parameters at the begin of a step from the step before, else from the step itself."""
        if self.last is None and paired.step == 0:
            if self.has_initial:
                # What is called now and has no initial weights has none.
                self.parameters.learn_roots(pair.key.name for pair in paired.pairs if pair.key.phase is Phase.FORWARD)
            return
        before = [] if self.last is None else _of_phase(self.last, Phase.PARAM)
        if before and self.last is not None and self.last.step == paired.step - 1:
            self.parameters.known = True
            learn_parameters(self.parameters, before)
            self.parameters.drift_untrained()
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
        self.parameters.drift_untrained()
        (self.stand_in_steps if after else self.unjudged_steps).append(paired.step)

    def _note_unknown_weights(self, paired: PairedStep, around: Surroundings) -> None:
        """Which outermost modules are called first in this step, so late that their initial weights are not known."""
        if not self.has_initial:
            return
        for pair in paired.pairs:
            name = pair.key.name
            if pair.key.phase is Phase.FORWARD and self.parameters.is_unknown(name) and around.uses_weights(name):
                self.unknown_weights.setdefault(root_of(name), paired.step)

    def notes(self) -> Iterator[str]:
        """What could not be judged, or only with less than the usual knowledge."""
        if not self.has_initial:
            yield (
                "Capture the phase init too: the initial weights were not captured on both sides and were taken to be "
                "equal."
            )
        for root, step in self.unknown_weights.items():
            yield say(
                "Whether the weights of {} are equal is not known: it was first called in {}, after the initial "
                "weights had been captured.",
                root,
                wording.step(step),
            )
        if self.stand_in_steps:
            yield say(
                "Capture both runs with the same --steps, from step 0 on: the parameters at the begin of {} were not "
                "captured, and those after the step stood in for them.",
                wording.steps(self.stand_in_steps),
            )
        if self.unjudged_steps:
            yield say(
                "Capture the phase param too, and steps in a row from step 0: the parameters at the begin of {} were "
                "not captured, so the values were not judged there.",
                wording.steps(self.unjudged_steps),
            )
        if self.last is not None and not any(
            comparison.key.phase is Phase.FORWARD for comparison in self.last.comparisons
        ):
            yield "Capture the phase forward too: it was not captured on both sides, so gradients were not judged."

    def _all_skipped(self, steps: range) -> bool:
        return all(step in rows and rows[step].skipped for rows in self.timelines for step in steps)

    def _facts(self, step: int) -> StepFacts:
        ours, theirs = (rows.get(step) for rows in self.timelines)
        scales = [loss_scale_of(row) for row in (ours, theirs)]
        return StepFacts(
            scale=scales[0] / scales[1],
            scaled=any(row is not None and not math.isnan(row.loss_scale) for row in (ours, theirs)),
            both_skipped=all(row is not None and row.skipped for row in (ours, theirs)),
            moving=any(row is not None and CLOSURE_OPTIMIZER in row.optimizer for row in (ours, theirs)),
            kept_of_gradients=_clipping(ours) / scales[0],
        )


def _clipping(row: TimelineRow | None) -> float:
    """The factor that clipping by a global norm left of the gradients."""
    if row is None or not (math.isfinite(row.clip_norm) and math.isfinite(row.clip_limit) and row.clip_norm > 0.0):
        return 1.0
    return min(1.0, row.clip_limit / row.clip_norm)


def _of_side(pairs: Iterable[Pair | Comparison], side: int) -> Iterator[TensorRecord]:
    return ((pair.reference, pair.candidate)[side] for pair in pairs)


def _partners(result: StepResult) -> dict[Owner, Owner]:
    """The candidate's parameter for each of the reference that a step has."""
    return {each.reference.key.owner: each.candidate.key.owner for each in _of_phase(result, Phase.PARAM)}


def _of_phase(result: StepResult, phase: Phase) -> list[Comparison]:
    return [comparison for comparison in result.comparisons if comparison.key.phase is phase]


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
