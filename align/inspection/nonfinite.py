"""What is not finite in one run: where it starts, what of it a loss scaler expects, what of it is meant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from align import nonfinite
from align.inspection.nonfinite_kind import working_precision
from align.inspection.nonfinite_start import PlaceOfTensor, Start, is_nonfinite, place_of
from align.inspection.nonfinite_trace import Tracer
from align.inspection.view import RunView, StepView
from align.records import ModuleInfo, Owner, Phase, TimelineRow

__all__ = ["NonfiniteInRun", "Start", "find_nonfinite", "first_nonfinite"]

FOR_THE_OPTIMIZER = frozenset({Phase.UPDATE, Phase.PARAM, Phase.OPTIMIZER})
LASTING = frozenset({Phase.PARAM, Phase.OPTIMIZER})
"""What a skipped step leaves as it is."""

HEADROOM_OF_SCALE = 2.0**10
"""Where scaled gradients are smaller than the greatest number by more than this, what is not finite after the next
module comes of no overflow: within one module a gradient grows by less."""

FEWEST_SKIPPED = 3
"""A forward pass that overflows in so many steps one after the other, to the end of the run, does so for good."""


@dataclass(frozen=True, slots=True)
class NonfiniteInRun:
    """Where NaN and Inf start in one run.

    `fatal` are the starts that end in a loss, a gradient that an optimizer takes, or a parameter, in execution order.
    `caught` started in the forward pass or are no matter of the loss scale, but the scaler skipped the step, or the
    script threw the gradients away; `lasting` says that no later step got through. `expected` are scaled gradients that
    overflow in skipped steps. `meant` is the number of tensors with NaN or Inf of which nothing comes. `uncaptured` is
    the first row of the timeline whose loss is not finite in a step that was not captured, where none before was.
    """

    fatal: tuple[Start, ...] = ()
    caught: tuple[Start, ...] = ()
    expected: tuple[Start, ...] = ()
    lasting: bool = False
    meant: int = 0
    uncaptured: TimelineRow | None = None
    by_step: Mapping[int, Start] = field(default_factory=dict)


def first_nonfinite(step: StepView, modules: Mapping[str, ModuleInfo] | None = None) -> Start | None:
    """The start of what is not finite in the loss, the gradients or the parameters of one step; None of a finite step.

    Whether a loss scaler caught it is not asked here. Of a whole run `NonfiniteInRun.by_step` knows more: what the
    steps before left in the weights, and what is meant.
    """
    tracer = Tracer(modules or {})
    tracer.follow(step)
    return next((start for start in tracer.starts() if start.harm), None)


def find_nonfinite(view: RunView) -> NonfiniteInRun:
    """Follow a run through all of its captured steps."""
    first = _trace(view, frozenset())
    habitual = _habitual(view, first)
    starts = _trace(view, habitual) if habitual else first
    harmful = [start for start in starts if start.harm]
    skipped = {number for number in view.steps if is_skipped(view, number)}
    sorted_out = [(start, _fate(view, start, skipped)) for start in harmful]
    fatal, caught, expected = (
        tuple(start for start, fate in sorted_out if fate == wanted) for wanted in ("fatal", "caught", "expected")
    )
    by_step: dict[int, Start] = {}
    for start in harmful:
        for step, _ in start.harm:
            by_step.setdefault(step, start)
    return NonfiniteInRun(
        fatal,
        caught,
        expected,
        lasting=_lasts(view, caught, skipped),
        meant=len({place_of(start.record) for start in starts if not start.harm}),
        uncaptured=_uncaptured(view, fatal),
        by_step=by_step,
    )


def _trace(view: RunView, habitual: frozenset[PlaceOfTensor]) -> tuple[Start, ...]:
    tracer = Tracer(view.modules, habitual)
    tracer.begin(view.initial, _parameters(view))
    rows = {row.step: row for row in view.timeline}
    for number in view.steps:
        row = rows.get(number)
        tracer.follow(view.step(number), loss_is_bad=row is not None and row.nonfinite)
    return tracer.starts()


def _parameters(view: RunView) -> frozenset[Owner]:
    """The parameters among the tensors before step 0: those of which a gradient or a new value was ever seen."""
    phases = (Phase.PARAM, Phase.GRADIENT, Phase.UPDATE)
    return frozenset(
        record.key.owner for number in view.steps for phase in phases for record in view.step(number).by_phase[phase]
    )


def _habitual(view: RunView, starts: Iterable[Start]) -> frozenset[PlaceOfTensor]:
    """The places that are not finite in a step to which that does no harm."""
    harmed = {step for start in starts for step, _ in start.harm}
    return frozenset(
        place_of(record)
        for number in view.steps
        if number not in harmed
        for record in view.step(number).records
        if is_nonfinite(record)
    )


def is_skipped(view: RunView, step: int) -> bool:
    """Whether a loss scaler skipped a step; a file that broke off may tell it among the facts only."""
    if any(row.skipped for row in view.timeline if row.step == step):
        return True
    return any(
        fact.key.phase is Phase.SCALER and fact.key.slot == "skipped" and fact.value is True
        for fact in view.step(step).facts
    )


def _fate(view: RunView, start: Start, skipped: set[int]) -> str:
    """Whether what starts here is `fatal`, `caught` by a scaler or by the script, or `expected` of scaled gradients."""
    if any(phase in LASTING for _, phase in start.harm):
        return "fatal"
    if any(step not in skipped and not _is_thrown_away(view, start, step) for step, _ in start.harm):
        return "fatal"
    return "expected" if _is_of_scale(view, start) and start.key.step in skipped else "caught"


def _is_thrown_away(view: RunView, start: Start, step: int) -> bool:
    """Whether gradients of a step were not finite, and those that the optimizer took were."""
    phases = {phase for harmed, phase in start.harm if harmed == step}
    return (
        Phase.GRADIENT in phases
        and not phases & FOR_THE_OPTIMIZER
        and bool(view.step(step).by_phase[Phase.UPDATE])
        and bool(view.step(step).by_phase[Phase.PARAM])
    )


def _is_of_scale(view: RunView, start: Start) -> bool:
    """Whether scaled gradients have overflowed in a short format: a smaller loss scale would prevent it.

    Nothing entered the first gradient of all but the scale.
    """
    if start.key.phase not in nonfinite.SCALED_PHASES:
        return False
    precision = working_precision(start, view.modules, view.run)
    if precision.largest > HEADROOM_OF_SCALE**2:
        return False
    return start.reach == 0.0 or start.reach * HEADROOM_OF_SCALE >= precision.largest


def _lasts(view: RunView, caught: Sequence[Start], skipped: set[int]) -> bool:
    """Whether no step gets through from the first of these on."""
    if not caught:
        return False
    first = caught[0].key.step
    captured = [number for number in view.steps if number >= first]
    rows = [row for row in view.timeline if row.step >= first]
    again = {start.key.step for start in caught} >= set(captured) and len(captured) > 1
    to_the_end = len(rows) >= FEWEST_SKIPPED and all(row.skipped for row in rows)
    return (again or to_the_end) and set(captured) <= skipped and all(row.skipped for row in rows)


def is_bad_row(row: TimelineRow) -> bool:
    """Whether the loss or the gradients of a step were not finite; NaN alone says that they were not seen."""
    return row.nonfinite or math.isinf(row.gradient_norm)


def _uncaptured(view: RunView, fatal: Sequence[Start]) -> TimelineRow | None:
    """The first step whose loss is not finite, where it was not captured and comes before all that was."""
    first = min((start.key.step for start in fatal), default=math.inf)
    captured = set(view.steps)
    bad = next((row for row in view.timeline if is_bad_row(row) and not row.skipped), None)
    return bad if bad is not None and bad.step not in captured and bad.step < first else None
