"""Walk one step in execution order and judge every pair against what it may have inherited."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from align import aspects, floors, flow, metrics, nonfinite, tolerance
from align.ahead import look_ahead
from align.aspects import Structure
from align.drift import ParameterErrors
from align.equality import Answer, Equality, judge_equality
from align.floors import Expectation, Surroundings
from align.inheritance import Inheritance
from align.judging import BEYOND_INHERITED, Judging
from align.nonfinite import NonfiniteSide
from align.pairing import Pair, PairedStep
from align.records import Aspect, Comparison, Kind, Origin, Phase, Status
from align.tolerance import PRECISIONS, Precision, coarsest
from align.units import Precisions
from align.value_reader import ValueReader
from align.watching import counted

SCALED_PHASES = nonfinite.SCALED_PHASES

SURELY_BELOW = 0.3
"""Below this share of the limit it is not looked for decisions that flipped."""

ENLARGED = 2.0
"""From this multiple of what is inherited on, an estimated floor is enlarged by what cancels."""


@dataclass(frozen=True, slots=True, eq=False)
class Suspect:
    """A record at which a difference may start.

    `owner` is the code it is laid on (the module, or the parent whose code ran; empty is the script), `sibling`
    the child before it, `argument` the integer argument that differs already. `nonfinite` names the side; `scale`
    is what the candidate was multiplied by to undo the loss scales.
    """

    comparison: Comparison
    kind: Kind
    origin: Origin
    owner: str
    sibling: str = ""
    argument: str = ""
    nonfinite: NonfiniteSide | None = None
    statistics_only: bool = False
    scale: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class StepResult:
    """All pairs of one step, judged, with the places where differences start in execution order.

    `explained` are overflows that a loss scaler explains; `unequal` are batches and targets that differ, `close`
    those that differ by rounding only. `nearest` is the aspect of a difference that came nearest to its limit, of those
    that are nearer to it than the size of the same difference.
    """

    step: int
    comparisons: tuple[Comparison, ...]
    suspects: tuple[Suspect, ...]
    explained: tuple[Suspect, ...] = ()
    unequal: tuple[Equality, ...] = ()
    close: tuple[Equality, ...] = ()
    script_outputs: float = 0.0
    nearest: Comparison | None = None


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What the timelines say of one step.

    The factor between the loss scales, whether there is one, whether both runs skipped the step, whether the
    optimizer moves the parameters inside it, and what undoing the loss scale and clipping leave of the reference's
    gradients.
    """

    scale: float = 1.0
    scaled: bool = False
    both_skipped: bool = False
    moving: bool = False
    kept_of_gradients: float = 1.0


class StepWalk:
    """The state of one walk; `walk` is called once. `diverged` says that the runs have parted before."""

    def __init__(
        self,
        facts: StepFacts,
        precisions: Precisions,
        around: Surroundings,
        judging: Judging,
        values: ValueReader | None = None,
        *,
        diverged: bool = False,
    ) -> None:
        self.facts = facts
        self.judging = judging
        self.values = values
        self.diverged = diverged
        self.precisions = precisions
        self.around = around
        self.flow = around.flow
        self.suspects: list[Suspect] = []
        self.explained: list[Suspect] = []
        self.equalities: list[Equality] = []
        self.inheritance = Inheritance(around, with_multiples=judging.floor is not None)
        self._shape_matters = False
        self._nearest: Comparison | None = None

    def walk(self, paired: PairedStep) -> StepResult:
        """Judge all pairs of the step."""
        if self.values is not None:
            self.values.enter_step(paired.pairs)
        self.inheritance.look_ahead(look_ahead(paired.pairs))
        self._shape_matters = any(
            not pair.same_shape and pair.key.phase is Phase.FORWARD and flow.is_output(pair.reference)
            for pair in paired.pairs
        )
        comparisons = tuple(self._judge(pair) for pair in counted(paired.pairs))
        return StepResult(
            paired.step,
            comparisons,
            tuple(self.suspects),
            tuple(self.explained),
            tuple(found for found in self.equalities if found.answer is Answer.UNEQUAL),
            tuple(found for found in self.equalities if found.answer is Answer.CLOSE),
            self.flow.script_outputs,
            self._nearest,
        )

    def _judge(self, pair: Pair) -> Comparison:
        if not pair.same_shape:
            return self._judge_shape(pair)
        if pair.key.phase is Phase.INPUT:
            return self._judge_must_be_equal(pair, Kind.EQUALITY)
        if not metrics.is_float_pair(pair):
            return self._judge_integers(pair)
        expected = floors.expect(pair.reference, self.around)
        precision = self.precisions.of_record(expected.precise_in, pair)
        if nonfinite.kinds(pair.reference.stats) != nonfinite.kinds(pair.candidate.stats) or (
            pair.reference.stats is not None and pair.reference.stats.nonfinite
        ):
            judged = self._judge_nonfinite(pair, expected, precision)
            if judged is not None:
                return judged
        return self._judge_value(pair, expected, precision)

    # The parts of the order shape, equality, non-finite, value.

    def _judge_shape(self, pair: Pair) -> Comparison:
        """A shape that differs stops the walk where outputs differ in shape too; else it explains."""
        key = pair.key
        comparison = Comparison(pair.reference, pair.candidate, Status.NOT_JUDGED)
        if key.phase is Phase.LOSS:
            return self._suspect(comparison, Kind.SHAPE, Expectation(0.0, Origin.INPUT, key.name, key.name), None)
        if key.phase not in {Phase.INPUT, Phase.FORWARD}:
            return comparison
        is_argument = key.phase is Phase.FORWARD and not flow.is_output(pair.reference)
        if is_argument:
            call = self.flow.call(pair.reference)
            call.has_inputs, call.shape_argument = True, call.shape_argument or key.slot
        if not self._shape_matters:
            return comparison
        expected = floors.expect(pair.reference, self.around)
        flow.learn(self.flow, pair, math.inf)
        if math.isinf(expected.error) or (is_argument and pair.reference.same_as is not None):
            return replace(comparison, status=Status.PROPAGATED)
        return self._suspect(comparison, Kind.SHAPE, expected, None)

    def _judge_must_be_equal(self, pair: Pair, kind: Kind) -> Comparison:
        found = judge_equality(pair, self.values)
        self.equalities.append(found)
        error = found.relative_l2
        self.inheritance.learn(
            pair, error if error is not None else (math.inf if found.answer is Answer.UNEQUAL else 0.0)
        )
        comparison = equality_comparison(found)
        if found.answer is not Answer.UNEQUAL:
            return comparison
        expected = Expectation(0.0, Origin.INPUT, pair.key.name, pair.key.name)
        return self._suspect(comparison, kind, expected, None)

    def _judge_integers(self, pair: Pair) -> Comparison:
        """Integer targets must be equal; integer arguments that differ explain what their module makes of them."""
        key = pair.key
        if key.phase is Phase.LOSS:
            return self._judge_must_be_equal(pair, Kind.EQUALITY)
        found = judge_equality(pair)
        if key.phase is Phase.FORWARD and not flow.is_output(pair.reference):
            call = self.flow.call(pair.reference)
            if found.answer is Answer.UNEQUAL:
                call.integer_argument = call.integer_argument or key.slot
        if key.phase is Phase.FORWARD:
            self.inheritance.learn(pair, 0.0)
        if found.answer is Answer.EQUAL:
            return equality_comparison(found)
        inherited = Status.PROPAGATED if self.diverged else Status.NOT_JUDGED
        return Comparison(pair.reference, pair.candidate, inherited)

    def _judge_nonfinite(self, pair: Pair, expected: Expectation, precision: Precision) -> Comparison | None:
        """Judge NaN and Inf; None where they are meant (masks) and the finite elements can be compared."""
        if nonfinite.is_masked(pair):
            self._notice_mask(pair)
            return None
        side = nonfinite.one_sided(pair)
        self.inheritance.learn(pair, math.inf)
        comparison = Comparison(pair.reference, pair.candidate, Status.NOT_JUDGED, unit=precision.unit)
        if side is None:
            return comparison
        comparison = replace(comparison, status=Status.NONFINITE)
        if math.isinf(expected.error):
            return comparison
        suspect = Suspect(
            comparison, Kind.NONFINITE, expected.origin, expected.owner, expected.sibling, expected.argument, side
        )
        by_scaler = nonfinite.expected_by_scaler(
            pair, side, precision, scaled=self.facts.scaled, both_skipped=self.facts.both_skipped
        )
        if by_scaler:
            self.explained.append(suspect)
        else:
            self.suspects.append(suspect)
            self.diverged = True
        return comparison

    def _notice_mask(self, pair: Pair) -> None:
        """A mask that hides other elements explains what its module makes, as an integer argument does."""
        key = pair.key
        is_argument = key.phase is Phase.FORWARD and not flow.is_output(pair.reference)
        if is_argument and nonfinite.masks_differ(pair):
            call = self.flow.call(pair.reference)
            call.integer_argument = call.integer_argument or key.slot

    def _judge_value(self, pair: Pair, expected: Expectation, precision: Precision) -> Comparison:
        scale = self._scale(pair)
        error = self.inheritance.error(pair, scale)
        inherited = self.inheritance.of_size(pair, expected)
        if pair.key.phase is Phase.LOSS and pair.key.slot == "value":
            inherited = self.inheritance.of_loss(pair, expected, precision)
            precision = coarsest(PRECISIONS[side.dtype] for side in (pair.reference, pair.candidate)) or precision
        if error is None or nonfinite.is_mask(pair.reference.stats) or nonfinite.is_mask(pair.candidate.stats):
            self.inheritance.learn(pair, inherited)
            return Comparison(pair.reference, pair.candidate, Status.NOT_JUDGED, unit=precision.unit)
        measured = self.judging.measured(pair.reference, precision)
        estimated = floor_of(pair, inherited, expected, precision, scale)
        floor = max(estimated, measured or 0.0)
        limit = self.judging.limit_of(pair.reference.numel)
        if not metrics.has_sketches(pair):
            limit *= tolerance.STATISTICS_FACTOR
        error = metrics.settled(pair, error, limit * floor, scale, self.values)
        found = self.inheritance.structure(pair, error, scale)
        comparison = Comparison(
            pair.reference, pair.candidate, Status.NOT_JUDGED, error, precision.unit, floor, limit=limit
        )
        comparison = self._hold(pair, comparison, expected, found, precision)
        by_itself = self._may_accuse(pair, estimated, max(inherited, precision.unit))
        if measured is not None and comparison.status is Status.WITHIN and by_itself:
            limit *= self.judging.measured_limit(precision, pair.reference.numel) / self.judging.limit_of(
                pair.reference.numel
            )
            comparison = self._against_measured(comparison, pair, expected, measured, limit)
        self.inheritance.learn(pair, error, found, error / measured if measured is not None else None)
        if comparison.status is Status.WITHIN and (comparison.times_floor or 0.0) > comparison.limit:
            return self._suspect(comparison, Kind.VALUE, expected, None)
        return self._inherits(comparison) if comparison.status is Status.WITHIN else comparison

    def _may_accuse(self, pair: Pair, estimated: float, inherited: float) -> bool:
        """Whether a measured floor may accuse by itself.

        In few numbers it is nearly 0 by chance, runs of one device do not show how another loses what cancels, and
        after an update each run has weights of its own: the first step of Adam is a sign.
        """
        few = pair.reference.numel <= tolerance.TINY
        return not few and not self.around.parameters.differ and estimated <= ENLARGED * inherited

    def _scale(self, pair: Pair) -> float:
        """What the candidate is multiplied by to undo the loss scales."""
        return self.facts.scale if pair.key.phase in SCALED_PHASES else 1.0

    def _hold(
        self, pair: Pair, comparison: Comparison, expected: Expectation, found: Structure | None, precision: Precision
    ) -> Comparison:
        """Hold the difference of a pair against its floor, in all its aspects."""
        error, floor, limit = comparison.relative_l2 or 0.0, comparison.floor, comparison.limit
        scale = self._scale(pair)
        if error == 0.0 and scale == 1.0 and metrics.identical(pair):
            return replace(comparison, status=Status.EQUAL, times_floor=0.0)
        if not expected.judged:
            return replace(comparison, floor=0.0)
        flipped = tolerance.flip_floor(pair.reference.numel, expected.flips) if expected.flips is not None else 0.0
        if not max(floor, flipped) < tolerance.LARGEST_FLOOR:
            return self._inherits_all(replace(comparison, floor=0.0))
        with_flips = max(floor, flipped)
        judged = self._without_flips(pair, expected, error, scale, SURELY_BELOW * limit * with_flips)
        comparison = replace(comparison, status=Status.WITHIN, floor=with_flips, times_floor=judged / with_flips)
        if found is None or error > limit * floor:
            return comparison
        # Decisions that flip have no part in a difference that is that small.
        return self._structured(comparison, pair, expected, found, (floor, precision))

    def _against_measured(
        self, comparison: Comparison, pair: Pair, expected: Expectation, measured: float, limit: float
    ) -> Comparison:
        """The same comparison, or that with the measured floor where the difference is nearer to its limit there."""
        floor = measured * max(1.0, BEYOND_INHERITED * self.inheritance.of_multiple(pair) / limit)
        error = comparison.relative_l2 or 0.0
        times = self._without_flips(pair, expected, error, self._scale(pair), limit * floor) / floor
        if times / limit <= (comparison.times_floor or 0.0) / comparison.limit:
            return comparison
        return replace(comparison, aspect=Aspect.SIZE, part=None, floor=floor, times_floor=times, limit=limit)

    def _structured(
        self,
        comparison: Comparison,
        pair: Pair,
        expected: Expectation,
        found: Structure,
        against: tuple[float, Precision],
    ) -> Comparison:
        """The same comparison, or that of an aspect of the difference that stands out where its size does not.

        `against` is the floor of the size, without flips, and the precision.
        """
        (size_floor, precision), limit, size = against, comparison.limit, comparison.times_floor or 0.0
        for aspect in aspects.TESTED.get(pair.key.phase, ()):
            part, floor = found.of(aspect), found.floor(aspect, size_floor, precision, pair.key.phase)
            by_flips = aspect is Aspect.PEAK and expected.flips is not None
            by_norm = aspect is not Aspect.PEAK and pair.key.phase is Phase.BACKWARD and self._is_norm(pair, expected)
            # What is no nearer to its limit than others need not be looked at closely.
            known = min(limit, max(size, share_of_limit(self._nearest) * limit))
            if part <= known * floor or by_flips or by_norm or not found.stands_out(aspect):
                continue
            floor = max(floor, self.inheritance.of_aspect(pair, aspect) * expected.factor)
            times = part / floor
            held = replace(comparison, aspect=aspect, part=found.part(aspect), floor=floor, times_floor=times)
            if times > max(limit, comparison.times_floor or 0.0):
                comparison = held
            elif known < times <= limit:
                self._nearest = held
        return comparison

    def _is_norm(self, pair: Pair, expected: Expectation) -> bool:
        """Whether a gradient was divided by deviations, whose rounding is a factor of each row or channel."""
        return self.around.is_norm(pair.key.name) or self.around.normalises(expected.owner)

    def _inherits(self, comparison: Comparison) -> Comparison:
        """After the first difference, what lies above the rounding of its own format carries that on."""
        error = comparison.relative_l2 or 0.0
        if self.diverged and error > comparison.limit * comparison.unit:
            return replace(comparison, status=Status.PROPAGATED)
        return comparison

    def _inherits_all(self, comparison: Comparison) -> Comparison:
        """What came before differs completely or cannot be measured: any difference here may be inherited."""
        if not self.diverged:
            return comparison
        error = comparison.relative_l2 or 0.0
        floor = max(error, comparison.unit)
        return self._inherits(
            replace(comparison, status=Status.WITHIN, floor=floor, times_floor=error / floor if floor else 0.0)
        )

    def _without_flips(self, pair: Pair, expected: Expectation, error: float, scale: float, allowed: float) -> float:
        """The difference to hold against the floor: decisions that rounding flipped do not count."""
        if expected.flips is None or error <= allowed:
            return error
        robust = metrics.without_flips(pair, expected.flips, scale, self.values)
        return error if robust is None else min(error, robust)

    def _suspect(
        self, comparison: Comparison, kind: Kind, expected: Expectation, side: NonfiniteSide | None
    ) -> Comparison:
        """Note a place where a difference starts; only the first is called so."""
        status = Status.PROPAGATED if self.diverged else Status.ORIGIN
        self.diverged = True
        comparison = replace(comparison, status=status)
        pair = Pair(comparison.reference, comparison.candidate)
        self.suspects.append(
            Suspect(
                comparison,
                kind,
                expected.origin,
                expected.owner,
                expected.sibling,
                expected.argument,
                side,
                statistics_only=kind is Kind.VALUE and not metrics.has_sketches(pair),
                scale=self._scale(pair),
            )
        )
        return comparison


def share_of_limit(comparison: Comparison | None) -> float:
    """How near a difference comes to the limit above which it is real, 1 at the limit; 0 of none."""
    return (comparison.times_floor or 0.0) / comparison.limit if comparison is not None and comparison.limit else 0.0


def floor_of(pair: Pair, inherited: float, expected: Expectation, precision: Precision, scale: float = 1.0) -> float:
    """The relative difference that rounding may cause: inherited, of the format, of sums, of its smallest numbers.

    A candidate whose loss scale is smaller by `scale` is nearer to the smallest numbers than the reference.
    """
    floor = max(inherited, precision.unit, tolerance.summation_error(expected.terms, precision.unit))
    if expected.unseen:
        floor = max(floor, tolerance.unseen_error(expected.unseen, precision.unit))
    stats = pair.reference.stats
    if stats is not None and stats.norm > 0.0:
        spacing = precision.spacing * max(1.0, scale)
        floor = max(floor, spacing * math.sqrt(pair.reference.numel) / (2.0 * stats.norm))
    return max(floor * expected.factor, min(precision.unit, tolerance.FLOAT32.unit) * expected.roundings)


def equality_comparison(found: Equality) -> Comparison:
    """The comparison of a pair that should be equal."""
    status = {
        Answer.EQUAL: Status.EQUAL,
        Answer.CLOSE: Status.WITHIN,
        Answer.UNEQUAL: Status.PROPAGATED,
        Answer.UNKNOWN: Status.NOT_JUDGED,
    }[found.answer]
    pair, error = found.pair, found.relative_l2
    if found.answer is Answer.EQUAL or error is None or found.unit == 0.0:
        return Comparison(pair.reference, pair.candidate, status, error, found.unit)
    times = error / found.unit
    return Comparison(pair.reference, pair.candidate, status, error, found.unit, found.unit, times, found.ulps)


def learn_parameters(parameters: ParameterErrors, comparisons: Iterable[Comparison]) -> None:
    """Take what is known of the parameters from comparisons of the phases init or param."""
    for comparison in comparisons:
        if not tolerance.is_float(comparison.reference.dtype):
            continue
        error = comparison.relative_l2
        parameters.learn(comparison.reference, math.inf if error is None else error)
