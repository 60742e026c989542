"""What is wrong with the course of a loss scale, in sentences: it collapses, is stuck, or jumps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from align import wording
from align.inspection import loss_scale
from align.inspection.loss_scale import CALIBRATION_STEPS, HALVINGS, Course, Move, SkipRun
from align.records import Fact, Phase, Severity
from align.sentences import capital, say

COLLAPSE, STUCK, UNSTABLE = "loss-scale-collapse", "loss-scale-stuck", "loss-scale-unstable"

BF16 = (
    "train in bf16, whose range is that of fp32 (torch.autocast(..., dtype=torch.bfloat16), no GradScaler), or run the "
    "module that overflows in fp32"
)


@dataclass(frozen=True, slots=True)
class ScaleProblem:
    """One thing that is wrong with a scale; `step` is where it begins, `label` that of its finding.

    `overflows` says that what overflowed in the first of its steps is the cause to look for.
    """

    label: str
    severity: Severity
    step: int
    summary: str
    advice: str
    overflows: bool = False
    evidence: Mapping[str, Any] = field(default_factory=dict)


def problems(course: Course, facts: Mapping[int, Sequence[Fact]]) -> tuple[ScaleProblem, ...]:
    """All problems of one course, at most one of each label, the gravest of it."""
    found = (*_collapse(course), *_stuck(course, facts), *_unstable(course, facts))
    return tuple({problem.label: problem for problem in reversed(found)}.values())


def _collapse(course: Course) -> Iterator[ScaleProblem]:
    """The scale falls and falls: first what no scale can help, then what reached 1, then what went on too long."""
    held = loss_scale.held_through_skips(course)
    run = loss_scale.hopeless(course)
    if run is not None and held is None:
        yield ScaleProblem(
            COLLAPSE,
            Severity.ERROR,
            run.first,
            say(
                "{} and the loss itself is not finite in each of them, before any scale: no loss scale helps where "
                "the forward overflows. {}",
                _opening(run),
                _fell(run),
            ),
            say("Find the first module that overflows; {}.", BF16),
            overflows=True,
            evidence={**_evidence(run), "losses_not_finite": run.nonfinite},
        )
    fall = loss_scale.fallen(course)
    if fall is not None and not loss_scale.jumps(course):
        yield ScaleProblem(
            COLLAPSE,
            Severity.WARNING if fall.recovered else Severity.ERROR,
            fall.first,
            say(
                "The loss scale falls from {} to {} over {}, by {} without a growth: gradients overflow however "
                "small the scale is.{}",
                _scale(fall.before),
                _scale(fall.after),
                _steps(fall.first, fall.last),
                wording.plural(fall.halvings, "halving"),
                " It has grown again since." if fall.recovered else "",
            ),
            say("Find the first module whose gradient overflows; {}.", BF16),
            overflows=True,
            evidence={"last": fall.last, "halvings": fall.halvings, "before": fall.before, "after": fall.after},
        )
    long = loss_scale.long_skipping(course)
    if long is not None and held is None:
        grave = long.first >= CALIBRATION_STEPS and long.length >= HALVINGS and long.ends_run
        yield ScaleProblem(
            COLLAPSE,
            Severity.ERROR if grave else Severity.WARNING,
            long.first,
            say("{}{}. {}", _opening(long), _when(long), _fell(long)),
            "See what overflows in the first of them; a single bad batch and a learning rate that is too high both "
            "look like this.",
            overflows=True,
            evidence=_evidence(long),
        )


def _stuck(course: Course, facts: Mapping[int, Sequence[Fact]]) -> Iterator[ScaleProblem]:
    held = loss_scale.held_through_skips(course)
    if held is not None:
        yield ScaleProblem(
            STUCK,
            Severity.ERROR,
            held.first,
            say(
                "{} all at the same loss scale of {}: it does not come down, so that nothing is updated.",
                _opening(held),
                _scale(held.before),
            ),
            _advise_held(course, held),
            overflows=True,
            evidence=_evidence(held),
        )
    starts = loss_scale.restarts(course, facts)
    if starts:
        yield ScaleProblem(
            STUCK,
            Severity.WARNING,
            starts[0],
            say(
                "The growth count of the scaler is 0 as each of {} begins, though the step before raised it: a new "
                "scaler is made in every step, and the loss scale of {} never grows.",
                wording.steps(starts),
                _scale(course.first_scale),
            ),
            "Make the GradScaler once, before the loop; after a restart, load its state (scaler.load_state_dict).",
            evidence={"steps": list(starts)},
        )
    steady = loss_scale.overdue(course)
    interval = course.settings.growth_interval
    if steady is not None and interval:
        scale = next(row.loss_scale for row in course.rows if row.step == steady[0])
        yield ScaleProblem(
            STUCK,
            Severity.WARNING,
            steady[0],
            say(
                "The loss scale stays at {} over {}, though none of them was skipped and it grows every {} steps by "
                "its settings.",
                _scale(scale),
                _steps(*steady),
                wording.count(round(interval)),
            ),
            "See that one scaler is kept for the whole run, that its state is loaded after a restart, and that "
            "scaler.update() is called once a step.",
            evidence={"last": steady[1], "scale": scale, "growth_interval": interval},
        )


def _unstable(course: Course, facts: Mapping[int, Sequence[Fact]]) -> Iterator[ScaleProblem]:
    jumps = sorted(loss_scale.jumps(course), key=lambda move: not loss_scale.harmful(move.after))
    if jumps:
        move = jumps[0]
        harm = loss_scale.harmful(move.after)
        yield ScaleProblem(
            UNSTABLE,
            Severity.ERROR if harm else Severity.WARNING,
            move.step,
            _tell_jump(move, jumps, facts),
            "Something other than an overflow moved the scale: look for scaler.update(...) with a value, for "
            "load_state_dict, and for code that reduces or broadcasts scales between ranks.",
            evidence={
                "before": move.before,
                "after": move.after,
                "jumps": len(jumps),
                "updates_in_step": _updates(facts, move.step),
            },
        )
    share = loss_scale.skipped_share(course)
    if share is not None:
        skips, steps = share
        yield ScaleProblem(
            UNSTABLE,
            Severity.WARNING,
            next(step for step in course.skipped if step >= CALIBRATION_STEPS),
            say(
                "{} of {} steps after step {} are skipped ({}): the loss scale goes up and down between {} and {}. "
                "More than one skip in a growth interval is not the search for a scale.",
                wording.count(skips),
                wording.count(steps),
                CALIBRATION_STEPS,
                wording.percent(skips / steps),
                _scale(min(row.loss_scale for row in course.rows)),
                _scale(max(row.loss_scale for row in course.rows)),
            ),
            "See what overflows in a skipped step; raise growth_interval (2000 is usual) if the scale grows too often.",
            overflows=True,
            evidence={"skipped": skips, "steps": steps},
        )


def _opening(run: SkipRun) -> str:
    if run.length == 1:
        return say("Step {} is skipped,", run.first)
    return say("{} are all skipped ({} in a row),", capital(_steps(run.first, run.last)), run.length)


def _when(run: SkipRun) -> str:
    if run.first >= CALIBRATION_STEPS:
        return " long after a scaler has found its scale"
    return " more than it takes to find a scale"


def _fell(run: SkipRun) -> str:
    return say("The loss scale falls from {} to {}.", _scale(run.before), _scale(run.after))


def _advise_held(course: Course, run: SkipRun) -> str:
    if not course.settings.dynamic:
        return say("A static loss scale cannot come down: take less than {}, or a dynamic scaler.", _scale(run.before))
    if run.before <= 1.0:
        return say("The scale is as low as it may be, and still the gradients overflow: {}.", BF16)
    return (
        "Make the scaler once, before the loop, call scaler.update() after every step, and leave its backoff_factor "
        "below 1 (0.5)."
    )


def _tell_jump(move: Move, jumps: Sequence[Move], facts: Mapping[int, Sequence[Fact]]) -> str:
    where = say("in step {}", move.step) if move.inside else say("between step {} and the one before", move.step)
    reason = "which was skipped" if move.skipped else "which was not skipped" if move.inside else "without a skip"
    size = ""
    if math.isfinite(move.halvings):
        count = abs(move.halvings)
        size = say(
            ": that is {} {}, and a scaler makes one", f"{count:.0f}", "halvings" if move.halvings > 0 else "doublings"
        )
    updates = _updates(facts, move.step)
    called = say(" (scaler.update was called {} times)", updates) if updates > 1 else ""
    more = say(" {} like it.", wording.plural(len(jumps) - 1, "other jump")) if len(jumps) > 1 else ""
    harm = ""
    if loss_scale.harmful(move.after):
        harm = " Nothing of a gradient in fp16 is left at such a scale." if move.after < 1.0 else " That is no scale."
    return say(
        "The loss scale goes from {} to {} {}, {}{}{}.{}{}",
        _scale(move.before),
        _scale(move.after),
        where,
        reason,
        called,
        size,
        harm,
        more,
    )


def _updates(facts: Mapping[int, Sequence[Fact]], step: int) -> int:
    return sum(fact.key.phase is Phase.SCALER and fact.key.slot == "scale_after" for fact in facts.get(step, ()))


def _scale(scale: float) -> str:
    return wording.loss_scale(scale)


def _steps(first: int, last: int) -> str:
    return wording.steps(range(first, last + 1))


def _evidence(run: SkipRun) -> dict[str, Any]:
    return {"last": run.last, "skipped_in_a_row": run.length, "before": run.before, "after": run.after}
