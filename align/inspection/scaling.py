"""How one run scales its loss: the course of each scale, clipping under it, updates that it should have prevented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from align.applied_skips import AppliedSkip, applied_skip, overflow_found, scale_lowered
from align.clipping import CLIP, ScaledClip, scaled_clip
from align.inspection.loss_scale import Course, scale_courses
from align.inspection.nonfinite import first_nonfinite
from align.inspection.optimizer_check import records_of
from align.inspection.scale_problems import ScaleProblem, problems
from align.inspection.view import RunView
from align.optimizer_records import OptimizerRecords, by_owner
from align.records import Fact, Phase, TensorKey, TensorRecord


@dataclass(frozen=True, slots=True)
class Scaling:
    """What one run does with its loss scale.

    `problems` are those of its scales. `clipped` are the captured steps that clip at all, `clips` those that clip what
    still carries the scale. `overflowed` are the captured steps in which the scaler found an overflow, with the first
    tensor that was not finite, `applied` those of them whose update was made, `checked` those of which that is known.
    """

    courses: tuple[Course, ...]
    problems: tuple[ScaleProblem, ...]
    clipped: tuple[int, ...]
    clips: tuple[ScaledClip, ...]
    overflowed: Mapping[int, TensorKey | None]
    checked: tuple[int, ...]
    applied: tuple[AppliedSkip, ...]


def scaling(view: RunView) -> Scaling:
    """Read the timeline and the captured steps of a run."""
    facts: dict[int, Sequence[Fact]] = {step: view.step(step).facts for step in view.steps}
    courses = scale_courses(view.timeline, facts)
    rows = {row.step: row for row in view.timeline}
    clipped = tuple(step for step, found in facts.items() if any(_is_clip(fact) for fact in found))
    clips = (
        scaled_clip(step, facts[step], rows.get(step), (*_phase(view, step, Phase.GRADIENT), *_updates(view, step)))
        for step in clipped
    )
    skipped = {step for course in courses for step in course.skipped}
    overflowed = [
        step
        for step in view.steps
        if overflow_found(facts[step])
        or step in skipped
        or scale_lowered(facts[step], _phase(view, step, Phase.GRADIENT))
    ]
    known = {step: found for step in overflowed if (found := _around(view, step)) is not None}
    return Scaling(
        courses,
        tuple(problem for course in courses for problem in problems(course, facts)),
        clipped,
        tuple(clip for clip in clips if clip is not None),
        {step: _first_overflow(view, step) for step in overflowed},
        tuple(known),
        tuple(applied for step, found in known.items() if (applied := applied_skip(step, found)) is not None),
    )


def _around(view: RunView, step: int) -> OptimizerRecords | None:
    """The parameters and states around a step; None where they are not known as it begins, or as it ends."""
    found = records_of(view, view.step(step))
    if not found.parameters_before or not found.parameters_after:
        return None
    return found if found.gradients else found._replace(gradients=by_owner(_phase(view, step, Phase.GRADIENT)))


def _phase(view: RunView, step: int, phase: Phase) -> tuple[TensorRecord, ...]:
    return view.step(step).by_phase[phase]


def _updates(view: RunView, step: int) -> tuple[TensorRecord, ...]:
    return _phase(view, step, Phase.UPDATE)


def _is_clip(fact: Fact) -> bool:
    return fact.key.phase is Phase.OPTIMIZER and fact.key.name == CLIP


def _first_overflow(view: RunView, step: int) -> TensorKey | None:
    start = first_nonfinite(view.step(step), view.modules)
    return start.key if start is not None else None
