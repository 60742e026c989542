"""The history of a run's loss scales: one course for each scaler, what was skipped, where a scale moved oddly.

Read from the timeline, which has a row for every step; the settings of a scaler are known where a step was captured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from align.records import Fact, FactValue, Phase, TimelineRow

CALIBRATION_STEPS = 50
"""In its first steps a scaler looks for its scale (numerics: at most 10 skips in the first 50 are normal)."""

CALIBRATION_SKIPS = 10
USUAL_START = 2.0**16
"""What a scaler of torch starts from; one that starts higher needs that many halvings more to find its scale."""

HOPELESS_LOSSES = 3
"""So many skips in a row with a loss that was not finite before its scale are no search for a scale."""

HALVINGS = 5
"""So many halvings without a growth between them are no single outlier (published rule)."""

SKIPS_IN_A_ROW = 3
"""After calibration, so many are worth a warning (published rule)."""

HARMFUL = 2.0**-14
"""At this scale 16 % to 85 % of the gradients of two models were lost in fp16 (measured); 2^0 was harmless in both."""

USUAL_MOVE = 2.0**4
"""Scalers halve and double; some settings move by 4, and two updates in one step by their product."""

SKIPPED_SHARE = 0.01
FEWEST_ROWS = 500
"""More than 1 % of at least 500 steps skipped after calibration is more than outliers (published rule)."""

SURELY_DUE = 4
"""Growth is missing after so many growth intervals: two scalers of one scale look like one in the timeline."""

FEWEST_STARTS = 4
"""So many captured steps in a row that begin with a count of 0 are no chance, nor several scalers that take turns."""

LARGEST_SCALE = 2.0**126
"""Above it a scale cannot be doubled in float32."""


@dataclass(frozen=True, slots=True)
class ScalerSettings:
    """How a scaler moves its scale, None where no captured step tells it."""

    growth_factor: float | None = None
    backoff_factor: float | None = None
    growth_interval: float | None = None
    dynamic: bool = True


@dataclass(frozen=True, slots=True)
class SkipRun:
    """Skipped steps in a row: the scale before the first and after the last, how many losses were not finite.

    `lowest` is the least scale that any of them used, `ends_run` whether no step came after them.
    """

    first: int
    last: int
    length: int
    before: float
    after: float
    lowest: float
    nonfinite: int
    ends_run: bool


@dataclass(frozen=True, slots=True)
class Move:
    """A scale that changed, inside a step (its own update) or between two; `skipped` tells what that step did."""

    step: int
    before: float
    after: float
    inside: bool
    skipped: bool

    @property
    def halvings(self) -> float:
        """By how many halvings it fell, negative where it grew; infinite where no halving leads there."""
        if not (0.0 < self.after < math.inf and 0.0 < self.before < math.inf):
            return math.inf
        return math.log2(self.before / self.after)


@dataclass(frozen=True, slots=True)
class Course:
    """One scale over the steps that used it."""

    rows: tuple[TimelineRow, ...]
    settings: ScalerSettings
    by_hand: bool

    @property
    def first_scale(self) -> float:
        """The scale of the first step."""
        return self.rows[0].loss_scale

    @property
    def last_scale(self) -> float:
        """The scale that the last step left."""
        return after_of(self.rows[-1])

    @property
    def skipped(self) -> tuple[int, ...]:
        """The steps that were skipped."""
        return tuple(row.step for row in self.rows if row.skipped)

    @property
    def moves(self) -> tuple[Move, ...]:
        """Every change of the scale, in order."""
        return tuple(_moves(self.rows))

    @property
    def skip_runs(self) -> tuple[SkipRun, ...]:
        """The skipped steps, those in a row together."""
        found = []
        for skipped, part in groupby(self.rows, key=lambda row: row.skipped):
            rows = list(part)
            if skipped:
                found.append(
                    SkipRun(
                        rows[0].step,
                        rows[-1].step,
                        len(rows),
                        rows[0].loss_scale,
                        after_of(rows[-1]),
                        min(row.loss_scale for row in rows),
                        sum(row.nonfinite for row in rows),
                        rows[-1] is self.rows[-1],
                    )
                )
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Descent:
    """Halvings without a growth between them; `recovered` where the scale doubled twice afterwards."""

    first: int
    last: int
    halvings: int
    before: float
    after: float
    recovered: bool


def scale_courses(timeline: Iterable[TimelineRow], facts: Mapping[int, Sequence[Fact]]) -> tuple[Course, ...]:
    """One course for each scale of the run, in the order of their first steps; none where no loss was scaled.

    A row goes on with the scale that an earlier row left. Where no earlier one did, and the scale before is never
    seen again, it was moved between the steps; else it is that of another scaler.
    """
    chains: list[list[TimelineRow]] = []
    for row in timeline:
        if math.isnan(row.loss_scale):
            continue
        going_on = [chain for chain in chains if after_of(chain[-1]) == row.loss_scale]
        if going_on:
            max(going_on, key=lambda chain: chain[-1].step).append(row)
        else:
            chains.append([row])
    joined: list[list[TimelineRow]] = []
    for chain in chains:
        ended = [other for other in joined if other[-1].step < chain[0].step]
        if ended:
            max(ended, key=lambda other: other[-1].step).extend(chain)
        else:
            joined.append(chain)
    settings = scaler_settings(facts)
    return tuple(
        Course(tuple(rows), settings, by_hand=all(math.isnan(row.loss_scale_after) for row in rows)) for rows in joined
    )


def scaler_settings(facts: Mapping[int, Sequence[Fact]]) -> ScalerSettings:
    """The settings that the first captured step with a scaler tells."""
    for step in sorted(facts):
        found = {fact.key.slot: fact.value for fact in facts[step] if fact.key.phase is Phase.SCALER}
        if found:
            return ScalerSettings(
                _number(found.get("growth_factor")),
                _number(found.get("backoff_factor")),
                _number(found.get("growth_interval")),
                dynamic=found.get("dynamic") is not False,
            )
    return ScalerSettings()


def after_of(row: TimelineRow) -> float:
    """The scale that a step left, its own where nothing is known of it."""
    return row.loss_scale if math.isnan(row.loss_scale_after) else row.loss_scale_after


def hopeless(course: Course) -> SkipRun | None:
    """The first skips in a row in which the loss itself is not finite: no scale can help there."""
    return next((run for run in course.skip_runs if run.nonfinite == run.length >= HOPELESS_LOSSES), None)


def fallen(course: Course) -> Descent | None:
    """The first descent of at least five halvings to a scale of 1 or less."""
    return next(
        (each for each in descents(course) if each.halvings >= HALVINGS and each.after <= 1 < each.before), None
    )


def long_skipping(course: Course) -> SkipRun | None:
    """Skips in a row that are no search for the first scale: at least three later on, or more than any search needs."""
    needed = CALIBRATION_SKIPS + max(0.0, math.log2(max(course.first_scale, 1.0) / USUAL_START))
    for run in course.skip_runs:
        begins = run.first < CALIBRATION_STEPS
        if run.length > needed if begins else run.length >= SKIPS_IN_A_ROW:
            return run
    return None


def descents(course: Course) -> Iterator[Descent]:
    """What the scale fell between growths."""
    moves = [move for move in course.moves if move.halvings != 0.0]
    for falling, part in groupby(moves, key=lambda move: move.halvings > 0.0):
        if not falling:
            continue
        fall = list(part)
        halvings = sum(move.halvings for move in fall)
        grown = sum(-move.halvings for move in moves if move.step > fall[-1].step and move.halvings < 0.0)
        count = round(halvings) if math.isfinite(halvings) else 0
        yield Descent(fall[0].step, fall[-1].step, count, fall[0].before, fall[-1].after, grown >= 2.0)  # noqa: PLR2004


def held_through_skips(course: Course) -> SkipRun | None:
    """The first five skips in a row at a scale that did not come down."""
    return next((run for run in course.skip_runs if run.length >= HALVINGS and run.lowest >= run.before), None)


def overdue(course: Course) -> tuple[int, int] | None:
    """The first and last step of more steps without skip and growth than growth intervals allow, None where it is due.

    Only of a scaler whose settings are known and let it grow.
    """
    settings = course.settings
    interval = settings.growth_interval
    if course.by_hand or not settings.dynamic or not interval or not (settings.growth_factor or 0.0) > 1.0:
        return None
    for steady, part in groupby(course.rows, key=lambda row: not row.skipped and after_of(row) == row.loss_scale):
        rows = [row for row in part if not math.isnan(row.loss_scale_after)]
        if steady and len(rows) > SURELY_DUE * interval and rows[0].loss_scale < LARGEST_SCALE:
            return rows[0].step, rows[-1].step
    return None


def restarts(course: Course, facts: Mapping[int, Sequence[Fact]]) -> tuple[int, ...]:
    """Captured steps in a row that all begin with a growth count of 0, though the step before had raised it."""
    in_a_row: list[int] = []
    for row in course.rows:
        before, after = (tracker(facts.get(row.step, ()), slot) for slot in ("growth_tracker", "growth_tracker_after"))
        if row.skipped or before != 0.0 or not after:
            in_a_row = []
            continue
        if in_a_row and row.step != in_a_row[-1] + 1:
            in_a_row = []
        in_a_row.append(row.step)
        if len(in_a_row) >= FEWEST_STARTS:
            return tuple(in_a_row)
    return ()


def tracker(facts: Iterable[Fact], slot: str) -> float | None:
    """A count or a scale among the facts of a step, of several the last."""
    found = [_number(fact.value) for fact in facts if fact.key.phase is Phase.SCALER and fact.key.slot == slot]
    return found[-1] if found else None


def jumps(course: Course) -> tuple[Move, ...]:
    """The moves that no halving or doubling makes; a script that counts by itself may halve once in each pass."""
    settings = course.settings
    usual = [factor for factor in (settings.growth_factor, settings.backoff_factor) if factor]
    micros = {row.step: row.micros for row in course.rows}
    found = []
    for move in course.moves:
        allowed = math.log2(USUAL_MOVE) + (micros.get(move.step, 0) if course.by_hand else 0)
        set_so = any(math.isclose(move.after, move.before * factor, rel_tol=1e-6) for factor in usual)
        if abs(move.halvings) > allowed and not set_so:
            found.append(move)
    return tuple(found)


def skipped_share(course: Course) -> tuple[int, int] | None:
    """How many of how many steps after calibration were skipped, where growth and outliers do not explain it."""
    later = [row for row in course.rows if row.step >= CALIBRATION_STEPS]
    skips = sum(row.skipped for row in later)
    if len(later) < FEWEST_ROWS:
        return None
    interval = course.settings.growth_interval or _seen_interval(course)
    allowed = max(SKIPPED_SHARE, 2.0 / interval if interval else 0.0)
    return (skips, len(later)) if skips > allowed * len(later) else None


def _seen_interval(course: Course) -> float | None:
    """The least number of steps between a change and the growth after it."""
    moves = course.moves
    gaps = [later.step - move.step for move, later in pairwise(moves) if later.halvings < 0.0]
    return float(min(gaps)) if gaps else None


def _moves(rows: Sequence[TimelineRow]) -> Iterator[Move]:
    last: TimelineRow | None = None
    for row in rows:
        if last is not None and after_of(last) != row.loss_scale:
            yield Move(row.step, after_of(last), row.loss_scale, inside=False, skipped=last.skipped)
        if after_of(row) != row.loss_scale:
            yield Move(row.step, row.loss_scale, after_of(row), inside=True, skipped=row.skipped)
        last = row


def _number(value: FactValue) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)


def harmful(scale: float) -> bool:
    """Whether a scale leaves nothing of the gradients in fp16, or is none at all."""
    return not HARMFUL < scale < math.inf
