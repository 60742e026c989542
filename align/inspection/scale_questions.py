"""What one run answers on its loss scale: how it moves, whether gradients fit, clipping, skipped steps."""

from __future__ import annotations

from collections.abc import Sequence

from align import wording
from align.inspection.inspection import Inspection
from align.inspection.lacking import lacking, unusable
from align.inspection.loss_scale import Course
from align.inspection.underflow import StepUnderflow, Underflow, short_gradients
from align.records import Column, Curve, Phase, Reply, Severity, Shown, State, Table, TensorKey
from align.sentences import capital, joined, say

LOSS_SCALE, RANGE, CLIPPING, SKIPPED = "loss scale", "fp16 range", "clipping", "skipped steps"

FEWEST_SKIPS = 3
"""A run that ends with so many skips has not shown that its scale is found."""

NEGLIGIBLE = 1e-4
"""Every number is rounded by more in float16."""

LARGEST = 2.0**24
"""A greater loss scale is not named: torch's scaler begins at 2^16, and its growth hardly ever needs more."""

ROWS = 40
"""A table of more rows is no longer read."""


def loss_scale(inspection: Inspection) -> Reply:
    """How each loss scale moved, and what is wrong with it."""
    found = inspection.scaling
    if not found.courses:
        return Reply(LOSS_SCALE, State.ABSENT, "No loss scale is in use.")
    grave = [problem for problem in found.problems if problem.severity is Severity.ERROR]
    told = joined(" ", (_tell(course) for course in found.courses))
    if grave:
        return Reply(LOSS_SCALE, State.BAD, say("{} {}", told, grave[0].summary))
    runs = [run for course in found.courses for run in course.skip_runs]
    searching = any(run.ends_run and run.length >= FEWEST_SKIPS for run in runs)
    if searching and not found.problems:
        return Reply(
            LOSS_SCALE,
            State.UNKNOWN,
            say(
                "{} The last steps are skipped too: whether a scale was found in the end cannot be told before the "
                "run has made more steps.",
                told,
            ),
        )
    return Reply(LOSS_SCALE, State.ODD if found.problems else State.GOOD, say("{}{}", told, _odd(found.problems)))


def fp16_range(inspection: Inspection) -> Reply:
    """Whether the gradients fit into float16, at which loss scales they would."""
    found, phases = inspection.underflow, inspection.view.phases()
    worst = found.worst
    if worst is None:
        if Phase.BACKWARD not in phases and Phase.GRADIENT not in phases:
            why = lacking(inspection.view, (Phase.BACKWARD,))
            return Reply(RANGE, State.UNKNOWN, say("Whether gradients are too small for fp16 cannot be told: {}", why))
        if inspection.view.run.autocast == "float16":
            return Reply(
                RANGE,
                State.UNKNOWN,
                say("Whether gradients are too small for fp16 cannot be told: {}", _why_no_range(inspection)),
            )
        return Reply(RANGE, State.ABSENT, "No gradient is computed in fp16.")
    return Reply(RANGE, State.BAD if worst.harmful else State.GOOD, say("{}{}", tell_range(worst), _tell_flush(found)))


def _why_no_range(inspection: Inspection) -> str:
    """Why no fp16 gradient could be measured."""
    view = inspection.view
    found = [record for number in view.steps for record in short_gradients(view.step(number))]
    if not found:
        return "no captured gradient is in fp16; capture whole steps, with --phases all and without --modules."
    why = unusable(view)
    if why:
        return why
    if any(record.stats is not None and record.stats.nonfinite for record in found):
        return "no captured step has fp16 gradients that are all finite; capture a step that is not skipped."
    return "the fp16 gradients of the captured steps hold too few numbers that are not 0."


def clipping(inspection: Inspection) -> Reply:
    """Whether gradients are clipped after the loss scale was taken out of them."""
    found = inspection.scaling
    if not found.courses:
        return Reply(CLIPPING, State.ABSENT, "There is no loss scale that clipping could meet.")
    if not found.clipped:
        if Phase.OPTIMIZER not in inspection.view.phases():
            why = lacking(inspection.view, (Phase.OPTIMIZER,))
            return Reply(
                CLIPPING,
                State.UNKNOWN,
                say("Whether gradients are clipped before they are unscaled cannot be told: {}", why),
            )
        return Reply(CLIPPING, State.ABSENT, "Gradients are not clipped with torch's functions.")
    wrong = [clip for clip in found.clips if not clip.meant]
    if wrong:
        return Reply(
            CLIPPING,
            State.BAD,
            say(
                "In {} gradients are clipped while they carry the loss scale.",
                wording.steps(clip.step for clip in wrong),
            ),
        )
    return Reply(CLIPPING, State.GOOD, say("Clipping in {} leaves the loss scale out.", wording.steps(found.clipped)))


def skipped_steps(inspection: Inspection) -> Reply:
    """What overflowed in each skipped step, and whether the parameters stayed as they were."""
    found = inspection.scaling
    if not found.courses:
        return Reply(SKIPPED, State.ABSENT, "No loss scale is in use, so no step is skipped for one.")
    if found.applied:
        steps = wording.steps(one.step for one in found.applied)
        return Reply(
            SKIPPED, State.BAD, say("The parameters move in {}, which overflowed and had to be skipped.", steps)
        )
    skipped = sorted({step for course in found.courses for step in course.skipped})
    if not skipped and not found.overflowed:
        return Reply(SKIPPED, State.GOOD, "No step was skipped.")
    if not found.overflowed:
        return Reply(
            SKIPPED,
            State.UNKNOWN,
            say(
                "{} {} skipped and not captured: what overflowed cannot be told. {}",
                capital(wording.steps(skipped)),
                "was" if len(skipped) == 1 else "were",
                capture_skips(skipped),
            ),
        )
    by_key: dict[tuple[Phase, str, str] | None, list[int]] = {}
    for step, key in sorted(found.overflowed.items()):
        by_key.setdefault(None if key is None else (key.phase, key.name, key.slot), []).append(step)
    told = joined("; ", (_tell_overflow(steps, key) for key, steps in list(by_key.items())[:3]))
    kept = ""
    if found.checked:
        kept = say(" The parameters stay as they were in {}.", wording.steps(found.checked))
    return Reply(SKIPPED, State.GOOD, say("{} skipped: {}.{}", wording.plural(len(skipped), "step"), told, kept))


def capture_skips(skipped: Sequence[int]) -> str:
    """How to see what overflows in skipped steps that were not captured."""
    asked = joined(",", (str(step) for step in skipped[:3]))
    return say(
        "Capture them: `align capture --steps {} ...` in a run of the same seed, or `align capture-now RUN.h5` "
        "while it is happening.",
        asked,
    )


def tell_range(worst: StepUnderflow) -> str:
    """The gradient that fp16 holds worst, and the loss scales that would fit."""
    layer = worst.worst
    if layer.zeros == 1.0:
        return say(
            "Step {}, {}: from {} {} on all gradients are 0.",
            worst.step,
            _at(worst.scale),
            layer.key.name,
            layer.key.slot,
        )
    told = say(
        "Step {}, {}: what fp16 holds worst is {} {}, rounded by {} ({} zeros, {} of the rest below 6.1e-5).",
        worst.step,
        _at(worst.scale),
        layer.key.name,
        layer.key.slot,
        _share(layer.error),
        wording.percent(layer.zeros),
        wording.percent(layer.subnormals),
    )
    return say("{}{}", told, tell_scales(worst))


def tell_scales(step: StepUnderflow) -> str:
    """A sentence on the loss scales that would fit, after a blank."""
    lowest = max(step.lowest, 1.0)
    if step.lost or not lowest <= step.highest:
        return (
            say(" Scales up to {} leave room above.", _scale(min(step.highest, LARGEST))) if step.highest > 0.0 else ""
        )
    highest = max(lowest, min(step.highest, LARGEST))
    if lowest == highest:
        return say(" A loss scale of {} would hold these gradients.", _scale(lowest))
    return say(" Loss scales from {} to {} would hold these gradients.", _scale(lowest), _scale(highest))


def tables(inspection: Inspection) -> tuple[Table, ...]:
    """The fp16 gradients of the worst step, layer by layer, and the changes of the loss scale."""
    return (*_range_table(inspection), *_scale_table(inspection))


def _range_table(inspection: Inspection) -> tuple[Table, ...]:
    worst = inspection.underflow.worst
    if worst is None:
        return ()
    layers = sorted(worst.layers, key=lambda layer: -layer.error)[:ROWS]
    return (
        Table(
            "fp16_range",
            "Gradients in fp16",
            say(
                "Step {}: how far rounding to the smallest fp16 numbers changes each gradient, the worst first.",
                worst.step,
            ),
            (
                Column("gradient", Shown.NAME),
                Column("zeros", Shown.SHARE),
                Column("below 6.1e-5", Shown.SHARE),
                Column("rounded by", Shown.RELATIVE),
                Column("largest", Shown.NUMBER),
                Column("scale needed", Shown.SCALE),
            ),
            tuple(
                (
                    say("{} {}", layer.key.name, layer.key.slot),
                    layer.zeros,
                    layer.subnormals,
                    layer.error,
                    layer.largest,
                    layer.needs,
                )
                for layer in layers
            ),
            question=RANGE,
        ),
    )


def _scale_table(inspection: Inspection) -> tuple[Table, ...]:
    moves = [move for course in inspection.scaling.courses for move in course.moves]
    if not moves:
        return ()
    overflowed = inspection.scaling.overflowed
    rows = tuple(
        (move.step, move.before, move.after, move.skipped, _named(overflowed.get(move.step))) for move in moves[:ROWS]
    )
    return (
        Table(
            "loss_scale_moves",
            "Changes of the loss scale",
            "Every change, with what overflowed first where the step was captured.",
            (
                Column("step", Shown.COUNT),
                Column("before", Shown.SCALE),
                Column("after", Shown.SCALE),
                Column("skipped", Shown.TEXT),
                Column("overflows first", Shown.NAME),
            ),
            rows,
            question=LOSS_SCALE,
            curve=Curve.LOSS_SCALE,
        ),
    )


def _named(key: TensorKey | None) -> str | None:
    return None if key is None else say("{}: {} {}", key.phase, key.name, key.slot)


def _tell(course: Course) -> str:
    """`65,536 (2^16) at step 0, 32,768 (2^15) after step 19; 1 of 20 steps skipped (step 0), 0 growths`."""
    rows, skipped = course.rows, course.skipped
    grown = sum(move.halvings < 0.0 for move in course.moves)
    named = say(" ({})", wording.steps(skipped)) if 0 < len(skipped) <= 5 else ""  # noqa: PLR2004 - a list that is read
    by_hand = " (made by the script)" if course.by_hand else ""
    return say(
        "{} at step {}, {} after step {}{}; {} of {} skipped{}, {}.",
        _scale(course.first_scale),
        rows[0].step,
        _scale(course.last_scale),
        rows[-1].step,
        by_hand,
        wording.count(len(skipped)),
        wording.plural(len(rows), "step"),
        named,
        wording.plural(grown, "growth"),
    )


def _odd(problems: Sequence[object]) -> str:
    return say(" {} below.", wording.plural(len(problems), "warning")) if problems else ""


def _tell_flush(found: Underflow) -> str:
    if not found.flushes:
        return ""
    return " This device makes 0 of numbers below 6.1e-5 (it has no subnormals)."


def _tell_overflow(steps: Sequence[int], key: tuple[Phase, str, str] | None) -> str:
    if key is None:
        return say("what overflowed in {} was not captured", wording.steps(steps))
    phase, name, slot = key
    return say("in {} {} {} ({}) is the first that is not finite", wording.steps(steps), name, slot, phase)


def _share(error: float) -> str:
    """An error as percent; what is below the rounding of float16 itself is not told in full."""
    return wording.percent(error) if error >= NEGLIGIBLE else "less than 0.01 %"


def _at(scale: float) -> str:
    return "no loss scale" if scale == 1.0 else say("loss scale {}", _scale(scale))


def _scale(scale: float) -> str:
    return wording.loss_scale(scale)
