"""What the rules on loss scales say alike, of one run and of two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from align import wording
from align.clipping import ScaledClip
from align.comparison import Walk
from align.diagnosis import telling
from align.inspection import Inspection
from align.inspection.loss_scale import scale_courses
from align.inspection.scale_problems import ScaleProblem, problems
from align.inspection.scale_questions import capture_skips
from align.records import Fact, Finding, Phase, Place, Severity, TimelineRow
from align.sentences import say, small

SIDES = ("reference", "candidate")

SCALER = "GradScaler"

DIVIDE_FIRST = "Divide the gradients by the scale that their loss was multiplied by, and move the scale afterwards."


def of_run(inspection: Inspection, code: str, label: str) -> Iterator[Finding]:
    """The problems of one label in one run, with what overflowed first."""
    found = inspection.scaling
    for problem in found.problems:
        if problem.label != label:
            continue
        finding = told(problem, code)
        if not problem.overflows:
            yield finding
            continue
        captured = ((step, key) for step, key in sorted(found.overflowed.items()) if step >= problem.step)
        step, key = next(((step, key) for step, key in captured if key is not None), (problem.step, None))
        if key is not None:
            more = say(" The first that is not finite in step {} is {} {} ({}).", step, key.name, key.slot, key.phase)
            evidence = {**finding.evidence, "overflows_first": key.name, "overflows_in": str(key.phase)}
            yield replace(finding, summary=say("{}{}", finding.summary, more), evidence=evidence)
        else:
            skipped = [step for course in found.courses for step in course.skipped if step >= problem.step]
            yield replace(finding, advice=say("{} {}", finding.advice, capture_skips(skipped or [problem.step])))


def of_pair(walk: Walk, code: str, label: str) -> Iterator[Finding]:
    """The problems of one label that one of two runs has alone: an error where the runs part there or later."""
    sides = (
        _problems(walk.reference_timeline, walk.reference_facts),
        _problems(walk.candidate_timeline, walk.candidate_facts),
    )
    for side in (1, 0):
        for problem in sides[side]:
            if problem.label != label or any(other.label == label for other in sides[1 - side]):
                continue
            finding = told(problem, code)
            parts = walk.first is not None and problem.step <= walk.first.comparison.key.step
            severity = finding.severity if parts else Severity.WARNING
            yield replace(
                finding,
                severity=severity,
                summary=say("In the {} alone {}", say(SIDES[side]), small(finding.summary)),
                evidence={**finding.evidence, "side": SIDES[side]},
                arguments={**finding.arguments, "side": SIDES[side]},
            )


def told(problem: ScaleProblem, code: str) -> Finding:
    """A problem as a finding."""
    return Finding(
        code,
        problem.label,
        problem.severity,
        problem.summary,
        problem.advice,
        Place(problem.step, str(Phase.SCALER), SCALER, "scale"),
        dict(problem.evidence),
        {"step": problem.step, **problem.evidence},
    )


def tell_clip(clip: ScaledClip) -> str:
    """What clipping did to gradients that carry the loss scale."""
    scale = wording.loss_scale(clip.scale)
    if clip.by_value:
        return say(
            "Step {}: gradients are cut at {} while they carry the loss scale of {} (the largest is {} then). For "
            "the true gradients that is a limit of {}.",
            clip.step,
            wording.value(clip.limit),
            scale,
            wording.value(clip.norm),
            wording.relative(clip.left),
        )
    return say(
        "Step {}: gradients are clipped to a norm of {} while they carry the loss scale of {}: their norm is {} "
        "then, without the scale {}. Gradients of norm {} reach the optimizer.",
        clip.step,
        wording.value(clip.limit),
        scale,
        wording.value(clip.norm),
        wording.value(clip.norm / clip.scale),
        wording.relative(clip.left),
    )


def advise_clip(clip: ScaledClip) -> str:
    """How to clip after unscaling."""
    if clip.by_hand:
        return say("Divide the gradients by {} first, clip them then.", wording.loss_scale(clip.scale))
    function = "clip_grad_value_" if clip.by_value else "clip_grad_norm_"
    return say(
        "Call scaler.unscale_(optimizer) before {}; with accelerate or Lightning clip by their own functions "
        "(accelerator.clip_grad_norm_, Trainer(gradient_clip_val=...)).",
        function,
    )


def clip_evidence(clip: ScaledClip) -> dict[str, float | bool]:
    """The numbers of a clipping."""
    return {"norm": clip.norm, "limit": clip.limit, "loss_scale": clip.scale, "limit_of_true_gradients": clip.left,
            "by_value": clip.by_value}  # fmt: skip


def parts_in(walk: Walk, step: int, *phases: Phase) -> bool:
    """Whether the runs part in one of these phases of a step."""
    if walk.first is None:
        return False
    key = walk.first.comparison.key
    return key.step == step and key.phase in phases


def first_place(walk: Walk, step: int, phase: Phase) -> Place:
    """The place of the first difference where it is in this phase of the step, else the phase itself."""
    if parts_in(walk, step, phase) and walk.first is not None:
        return telling.place_of(walk.first.comparison.key)
    return Place(step, str(phase))


def _problems(timeline: Sequence[TimelineRow], facts: Mapping[int, Sequence[Fact]]) -> tuple[ScaleProblem, ...]:
    return tuple(problem for course in scale_courses(timeline, facts) for problem in problems(course, facts))
