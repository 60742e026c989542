"""Compare two runs by their replays: every error is local, so where it is more than rounding, there is a fault.

A replay (`align/hooks/replay.py`) is a run of the reference's code on the inputs of a capture. What the capture has
beyond it, the captured device made of the same inputs. The walk of two files gives the pairs, the precision of every
module and what must be equal; the containment rule says whose code made a record; the errors come from the values.
"""

from __future__ import annotations

import math
from dataclasses import replace

from align import floors, flow, nonfinite
from align.ahead import look_ahead
from align.aspects import CUT_OFF
from align.capture_file import Capture
from align.comparison import Walk
from align.drift import ParameterErrors
from align.expectation import Expectation, Surroundings
from align.flow import Flow, is_output
from align.optimizer_records import by_owner
from align.pairing import Pair
from align.records import INIT_STEP, Aspect, Comparison, Kind, Origin, Owner, Phase, Status, TensorKey, TensorRecord
from align.replay_errors import LocalError, change_error, is_mask, local_error
from align.replay_rule import Format, Ruling, rule, work_of
from align.replay_summary import Replayed, check_replay, counts, notes, replayed_in, resolution
from align.tolerance import FLOAT32, LARGEST_FLOOR, PRECISIONS, is_float
from align.value_blocks import BlockReader, KeptPair
from align.walk import StepResult, Suspect, equality_comparison

__all__ = ["Replayed", "check_replay", "judge_replays"]

OF_THE_UPDATE = frozenset({Phase.UPDATE, Phase.PARAM})
"""Phases in which nothing is computed in the working precision of a module, but in that of the tensors."""

DROPPING = ("Drop", "StochasticDepth")
"""What the classes of modules that drop at random have in their names."""

DECISIONS = 0.05
"""A share of integers that may differ: what a decision (top-k) made of floats that rounding changed."""


def judge_replays(walk: Walk, reference: Replayed, candidate: Replayed, times: float = 1.0) -> Walk:
    """The same comparison, judged by the local errors; `walk` compares the two captures themselves.

    `times` multiplies all limits. Raises CaptureFileError where a file cannot be read.
    """
    judge = _Judge(walk, reference, candidate, times)
    steps = [result for result in walk.results if result.step in candidate.replay.steps]
    results = tuple(judge.step(result) for result in steps)
    must_be_equal = walk.first if walk.first is not None and walk.first.kind is Kind.EQUALITY else None
    given = must_be_equal is not None and must_be_equal.comparison.key.phase in {Phase.INIT, Phase.INPUT}
    suspects = [suspect for result in results for suspect in result.suspects]
    first = must_be_equal if given else suspects[0] if suspects else None
    initial = tuple(equality_comparison(found) for found in walk.initial)
    comparisons = (*initial, *(each for result in results for each in result.comparisons))
    return replace(
        walk,
        comparisons=comparisons,
        results=results,
        first=first,
        resolution=resolution(results[:1], walk, candidate),
        counts={**walk.counts, **counts(comparisons)},
        notes=notes(reference, candidate, judge.drawn),
        update_checks=(),
    )


class _Judge:
    """Judges step after step; holds what the errors are measured with."""

    def __init__(self, walk: Walk, reference: Replayed, candidate: Replayed, times: float) -> None:
        self._walk = walk
        self._sides = (reference, candidate)
        self._times = times
        self._reader = BlockReader()
        self._replayed_in = replayed_in(candidate)
        self._scales = tuple(_loss_scales(side) for side in self._sides)
        self._differs = False
        self._other_targets = False
        self.drawn: set[str] = set()
        self._known: tuple[dict[int, LocalError | None], dict[int, LocalError | None]] = ({}, {})
        self._replays: list[dict[TensorKey, TensorRecord]] = []
        self._before: list[dict[Owner, TensorRecord]] = []

    def step(self, result: StepResult) -> StepResult:
        """Judge all pairs of a step, each by itself."""
        step = result.step
        self._replays = [{record.key: record for record in side.replay.records(step)} for side in self._sides]
        self._before = [_parameters_before(side.capture, step) for side in self._sides]
        pairs = [Pair(each.reference, each.candidate) for each in result.comparisons]
        around = Surroundings(Flow(), ParameterErrors(), self._walk.modules)
        around.flow.ahead = look_ahead(pairs)
        self._known = ({}, {})
        self._other_targets = False
        comparisons, suspects = [], []
        for given, pair in zip(result.comparisons, pairs, strict=True):
            expected = floors.expect(pair.reference, around)
            flow.learn(around.flow, pair, 0.0)
            found = given if pair.key.phase is Phase.INPUT else self._judge(pair, expected)
            if isinstance(found, Suspect):
                suspects.append(found)
                comparisons.append(found.comparison)
            else:
                comparisons.append(found)
        return replace(result, comparisons=tuple(comparisons), suspects=tuple(suspects), explained=())

    def _judge(self, pair: Pair, expected: Expectation) -> Comparison | Suspect:
        theirs = self._replays[1].get(pair.candidate.key)
        if theirs is None or not pair.same_shape or theirs.shape != pair.candidate.shape:
            return Comparison(pair.reference, pair.candidate, Status.NOT_JUDGED)
        local = Pair(replace(theirs, key=pair.reference.key), pair.candidate)
        if not is_float(pair.candidate.dtype) or not is_float(theirs.dtype):
            return self._judge_integers(local, expected)
        if nonfinite.kinds(theirs.stats) != nonfinite.kinds(pair.candidate.stats) and not nonfinite.is_masked(local):
            return self._judge_nonfinite(local, pair, expected)
        return self._judge_mask(local, expected) if is_mask(local) else self._judge_value(local, pair, expected)

    def _judge_value(self, local: Pair, pair: Pair, expected: Expectation) -> Comparison | Suspect:
        errors = self._error(1, local)
        if errors is None:
            return Comparison(local.reference, local.candidate, Status.NOT_JUDGED)
        repeated = _is_repeated(local)
        made_in = self._format(pair, expected, errors)
        work = work_of(pair.reference, self._walk.modules.get(pair.key.name))
        ruling = rule(work, errors, self._own_error(pair), made_in, pair.candidate.numel, times=self._times)
        comparison = _comparison(local, errors, ruling, made_in.unit)
        if ruling.differs and self._draws(pair):
            return replace(comparison, status=Status.NOT_JUDGED)
        if comparison.status is Status.WITHIN and ruling.differs and not repeated and self._is_judged(pair, expected):
            return self._suspect(comparison, Kind.VALUE, expected)
        return comparison

    def _is_judged(self, pair: Pair, expected: Expectation) -> bool:
        """Whether a record speaks for the code that it is laid on.

        Not a gradient of which other records hold the part that is this module's; not a loss of other targets, which
        the script drew anew.
        """
        if pair.key.phase is Phase.LOSS:
            return not self._other_targets
        return expected.judged or pair.key.phase in OF_THE_UPDATE or not pair.reference.total

    def _draws(self, pair: Pair) -> bool:
        """Whether a module drops at random: generators of two devices draw other masks."""
        module = self._walk.modules.get(pair.key.name)
        drops = module is not None and module.leaf and any(word in module.class_name for word in DROPPING)
        self.drawn |= {pair.key.name} if drops else set()
        return drops

    # ---- measures

    def _error(self, side: int, pair: Pair) -> LocalError | None:
        """The local error of one side; None where the values were not kept. The very same tensor is measured once."""
        known, root = self._known[side], pair.candidate.same_as
        if root is None or root not in known or not _is_repeated(pair):
            known[pair.candidate.order] = self._measured(side, pair)
        else:
            known[pair.candidate.order] = known[root]
        return known[pair.candidate.order]

    def _measured(self, side: int, pair: Pair) -> LocalError | None:
        files, record = self._sides[side], pair.candidate
        if not (record.has_values and pair.reference.has_values):
            return None
        captured, replayed = files.capture.value_source(record), files.replay.value_source(pair.reference)
        scale = self._scales[side].get(record.key.step, 1.0) if record.key.phase in nonfinite.SCALED_PHASES else 1.0
        kept = KeptPair(replayed, captured, scale)
        start = self._before[side].get(record.key.owner) if record.key.phase is Phase.PARAM else None
        if start is not None and start.has_values and start.shape == record.shape:
            change = KeptPair(files.capture.value_source(start), replayed)
            return change_error(self._reader, kept, change)
        return local_error(self._reader, kept)

    def _own_error(self, pair: Pair) -> LocalError | None:
        """The reference's local error at the same point."""
        ours = self._replays[0].get(pair.reference.key)
        if ours is None or ours.shape != pair.reference.shape or not is_float(ours.dtype):
            return None
        return self._error(0, Pair(ours, pair.reference))

    def _format(self, pair: Pair, expected: Expectation, errors: LocalError) -> Format:
        """The unit roundoff of the code that made a record; of a parameter, relative to its change."""
        precisions, phase = self._walk.precisions, pair.key.phase
        if phase is Phase.GRADIENT:
            # Tied weights gather what modules of other precisions send; what cancels in the sum leaves its rounding.
            unit = precisions.whole.unit * expected.factor
            return Format(unit, precisions.whole in CUT_OFF, self._replayed_in)
        if phase not in OF_THE_UPDATE:
            precision = precisions.of_record(expected.precise_in, pair)
            return Format(precision.unit, precision in CUT_OFF, self._replayed_in)
        unit = max(PRECISIONS.get(record.dtype, FLOAT32).unit for record in (pair.reference, pair.candidate))
        stats = pair.candidate.stats
        if phase is Phase.PARAM and stats is not None and errors.norm > 0.0:
            unit *= max(1.0, stats.norm / errors.norm)
        return Format(unit)

    # ---- what is no difference in size

    def _judge_integers(self, local: Pair, expected: Expectation) -> Comparison | Suspect:
        """Integers that code hands to a module must be the same, but for decisions on floats."""
        ours, theirs = local.reference, local.candidate
        if ours.hash is None or theirs.hash is None:
            return Comparison(ours, theirs, Status.NOT_JUDGED)
        self._other_targets = self._other_targets or (local.key.phase is Phase.LOSS and ours.hash != theirs.hash)
        if ours.hash == theirs.hash:
            return Comparison(ours, theirs, Status.EQUAL, 0.0)
        comparison = Comparison(ours, theirs, Status.NOT_JUDGED)
        judged = local.key.phase is Phase.FORWARD and not is_output(ours) and _kept(local) and theirs.same_as is None
        if not judged or self._share_of_unequal(local) <= DECISIONS:
            return comparison
        comparison = _unequal(comparison, self._integer_distance(local))
        return self._suspect(comparison, Kind.VALUE, expected, argument=theirs.key.slot)

    def _share_of_unequal(self, local: Pair) -> float:
        ours, theirs = self._sides[1].replay.values(local.reference), self._sides[1].capture.values(local.candidate)
        return float((ours != theirs).mean()) if ours.size else 0.0

    def _integer_distance(self, local: Pair) -> float:
        kept = KeptPair(
            self._sides[1].replay.value_source(local.reference), self._sides[1].capture.value_source(local.candidate)
        )
        return local_error(self._reader, kept).size

    def _judge_mask(self, local: Pair, expected: Expectation) -> Comparison | Suspect:
        """Masks made of the greatest number of a format: which elements are masked must be the same."""
        ours, theirs = local.reference.stats, local.candidate.stats
        same = ours is None or theirs is None or ours.zeros == theirs.zeros
        comparison = Comparison(local.reference, local.candidate, Status.NOT_JUDGED)
        if same or local.candidate.same_as is not None or ours is None or theirs is None:
            return comparison
        share = math.sqrt(abs(ours.zeros - theirs.zeros) / max(ours.count, 1))
        return self._suspect(_unequal(comparison, share), Kind.VALUE, expected)

    def _judge_nonfinite(self, local: Pair, pair: Pair, expected: Expectation) -> Comparison | Suspect:
        """NaN or Inf that the replay does not make of the same inputs, unless the format of the run has no room for it.

        The replay computes in a format of greater reach: what the reference overflowed at, too, and what is beyond the
        greatest number of the format, is no fault of the candidate's device.
        """
        comparison = Comparison(local.reference, local.candidate, Status.NONFINITE)
        side = nonfinite.one_sided(local)
        precision = self._walk.precisions.of_record(expected.precise_in, pair)
        alike = nonfinite.kinds(pair.reference.stats) == nonfinite.kinds(pair.candidate.stats)
        finite = local.reference if side is None or side.candidate else local.candidate
        explained = alike or nonfinite.near_limit(finite, precision)
        if side is None or explained or local.candidate.same_as is not None:
            return comparison
        return replace(self._suspect(comparison, Kind.NONFINITE, expected), nonfinite=side)

    def _suspect(self, comparison: Comparison, kind: Kind, expected: Expectation, argument: str = "") -> Suspect:
        """A place where a difference starts; the first of all is called the origin."""
        if kind is Kind.VALUE:
            comparison = replace(comparison, status=Status.PROPAGATED if self._differs else Status.ORIGIN)
        self._differs = True
        origin = Origin.OPTIMIZER if comparison.key.phase in OF_THE_UPDATE else expected.origin
        return Suspect(comparison, kind, origin, expected.owner, expected.sibling, argument or expected.argument)


def _parameters_before(capture: Capture, step: int) -> dict[Owner, TensorRecord]:
    """The parameters at the begin of a step, as a capture has them; empty where it does not."""
    earlier = step - 1
    known = capture.has_init if earlier == INIT_STEP else earlier in capture.steps
    records = capture.records(earlier) if known else []
    phases = {Phase.INIT, Phase.PARAM}
    return by_owner(record for record in records if record.key.phase in phases)


def _comparison(local: Pair, errors: LocalError, ruling: Ruling, unit: float) -> Comparison:
    """What a ruling says of a pair of replay and capture."""
    status = Status.EQUAL if errors.size == 0.0 else Status.WITHIN
    if ruling.aspect is Aspect.SIZE and not ruling.floor < LARGEST_FLOOR:
        return Comparison(local.reference, local.candidate, Status.NOT_JUDGED, errors.size, unit)
    return Comparison(
        local.reference,
        local.candidate,
        status,
        errors.size,
        unit,
        ruling.floor,
        ruling.times_floor,
        ruling.limit,
        ruling.aspect,
        ruling.part,
    )


def _unequal(comparison: Comparison, distance: float) -> Comparison:
    """Of tensors that rounding does not touch; the floor is that of their first bit."""
    floor = FLOAT32.unit
    return replace(comparison, relative_l2=distance, unit=floor, floor=floor, times_floor=distance / floor, limit=1.0)


def _is_repeated(pair: Pair) -> bool:
    """Whether both tensors were seen before in the step."""
    return pair.candidate.same_as is not None and pair.reference.same_as is not None


def _kept(pair: Pair) -> bool:
    return pair.reference.has_values and pair.candidate.has_values


def _loss_scales(side: Replayed) -> dict[int, float]:
    """What the captured gradients of each step are multiplied by to have the loss scale of the replay."""
    scales = [{row.step: row.loss_scale for row in run.timeline} for run in (side.capture, side.replay)]
    found = {}
    for step, captured in scales[0].items():
        replayed = scales[1].get(step, math.nan)
        if math.isfinite(captured) and math.isfinite(replayed) and captured > 0.0:
            found[step] = replayed / captured
    return found
