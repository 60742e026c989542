"""The birth of NaN or Inf as tables: the steps around it, what its producer had and made, the first later tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from align.flow import is_grad_output, is_output
from align.inspection.inspection import Inspection
from align.inspection.learning import parameters_before
from align.inspection.nonfinite import Start
from align.inspection.nonfinite_question import FINITE
from align.inspection.nonfinite_start import is_nonfinite, is_weak
from align.inspection.view import RunView, StepView
from align.optimizer_records import by_owner
from align.records import Column, FactValue, Phase, Shown, Table, TensorRecord
from align.sentences import say

PHASES = (Phase.FORWARD, Phase.LOSS, Phase.BACKWARD, Phase.GRADIENT, Phase.UPDATE, Phase.PARAM)
STEPS_AROUND = 2
"""Captured steps that are told after the one in which it starts; before it one is."""
MOST_OF_PRODUCER, MOST_LATER = 16, 40


def tables(inspection: Inspection) -> Iterable[Table]:
    """What is known of the first start that did harm or was caught; nothing of a run without one."""
    found = inspection.nonfinite
    starts = found.fatal or found.caught
    if not starts or starts[0].key.step not in inspection.view.steps:
        return
    start, view = starts[0], inspection.view
    yield _steps(view, start)
    yield _producer(view, start)
    yield _later(view, start)


def _steps(view: RunView, start: Start) -> Table:
    """One row a step: what was finite in each phase."""
    place = view.steps.index(start.key.step)
    rows = {row.step: row for row in view.timeline}
    told: list[tuple[FactValue, ...]] = []
    for number in view.steps[max(0, place - 1) : place + 1 + STEPS_AROUND]:
        step, row = view.step(number), rows.get(number)
        scale = None if row is None or not row.loss_scale > 0.0 else row.loss_scale
        skipped = None if row is None else row.skipped
        told.append((number, *(_state(step.by_phase[phase]) for phase in PHASES), scale, skipped))
    return Table(
        "nonfinite_steps",
        "The steps around it",
        say(
            "It starts in step {}, in the phase {}. Each cell says how many tensors are not finite; masks of -Inf are "
            "meant and do not count.",
            start.key.step,
            start.key.phase,
        ),
        (
            Column("step", Shown.COUNT),
            *(Column(str(phase)) for phase in PHASES),
            Column("loss scale", Shown.SCALE),
            Column("skipped"),
        ),
        tuple(told),
        FINITE,
    )


def _state(records: Sequence[TensorRecord]) -> str | None:
    """`finite`, or how many of how many tensors are not; None where none was captured."""
    known = [record for record in records if record.stats is not None]
    if not known:
        return None
    bad = sum(is_nonfinite(record) and not is_weak(record) for record in known)
    return say("{} of {} not finite", bad, len(known)) if bad else "finite"


def _producer(view: RunView, start: Start) -> Table:
    """What entered the code that made it, in execution order, and what came out; the start itself last."""
    step = view.step(start.key.step) if start.key.step in view.steps else None
    records = list(_of_producer(view, step, start)) if step is not None else []
    entered = any(record is not start.record for record in records)
    lead = (
        "What its producer had and what it made, in execution order: the tensor marked as the start is the first that "
        "is not finite."
        if entered
        else "The inputs of this module were not captured, so it may itself be a victim; capture whole steps, with "
        "--phases all and without --modules."
    )
    return Table(
        "nonfinite_producer",
        "The producer and what entered it",
        lead,
        (
            Column("tensor", Shown.NAME),
            Column("part"),
            Column("phase"),
            Column("format"),
            Column("NaN", Shown.COUNT),
            Column("Inf", Shown.COUNT),
            Column("elements", Shown.COUNT),
            Column("largest finite", Shown.NUMBER),
            Column("zeros", Shown.SHARE),
        ),
        tuple(_producer_row(record, start) for record in records),
        FINITE,
    )


def _of_producer(view: RunView, step: StepView, start: Start) -> Iterator[TensorRecord]:
    """The weights of the owner, the tensors of owner, sibling and users up to the start, the start."""
    key, names = start.key, {start.owner, start.sibling, *start.users} - {""}
    names |= {key.name} if start.owner == key.name or not names else set()
    weights = by_owner(view.initial) if key.step == 0 else parameters_before(view, key.step)
    beside = [record for (name, _), record in weights.items() if name == start.owner]
    seen = [
        record
        for phase in (Phase.INPUT, Phase.FORWARD, Phase.LOSS, Phase.BACKWARD)
        for record in step.by_phase[phase]
        if record.order < start.record.order and record.stats is not None
        if record.key.micro == key.micro and record.key.name in names
    ]
    if key.phase is not Phase.BACKWARD:
        seen = [record for record in seen if record.key.phase is not Phase.BACKWARD]
    yield from beside[:4]
    yield from seen[-(MOST_OF_PRODUCER - 5) :]
    yield start.record


def _producer_row(record: TensorRecord, start: Start) -> tuple[FactValue, ...]:
    stats, key = record.stats, record.key
    if record is start.record:
        part = "starts here"
    elif key.phase in {Phase.INIT, Phase.PARAM}:
        part = "parameter"
    elif key.phase is Phase.BACKWARD:
        part = "enters" if is_grad_output(record) else "leaves"
    else:
        part = "leaves" if is_output(record) else "enters"
    numbers: tuple[FactValue, ...] = (None, None, record.numel, None, None)
    if stats is not None:
        infs = stats.positive_infs + stats.negative_infs
        share = stats.zeros / stats.count if stats.count else None
        numbers = (stats.nans, infs, stats.count, stats.absolute_maximum, share)
    return (say("{} {}", key.name, key.slot), part, str(key.phase), record.dtype, *numbers)


def _later(view: RunView, start: Start) -> Table:
    """The first tensors behind it that are not finite, and how many there are in all captured steps."""
    found = [
        record
        for number in view.steps
        if number >= start.key.step
        for record in view.step(number).records
        if record is not start.record and is_nonfinite(record) and not is_weak(record)
        if number > start.key.step or record.order > start.record.order
    ]
    rows = tuple(
        (
            record.key.step,
            str(record.key.phase),
            say("{} {}", record.key.name, record.key.slot),
            record.stats.nans,
            record.stats.positive_infs + record.stats.negative_infs,
            record.stats.count,
        )
        for record in found[:MOST_LATER]
        if record.stats is not None
    )
    return Table(
        "nonfinite_later",
        "Where it goes",
        say(
            "The first tensors after it that are not finite: they only carry it on. There are {} in the captured "
            "steps.",
            len(found),
        ),
        (
            Column("step", Shown.COUNT),
            Column("phase"),
            Column("tensor", Shown.NAME),
            Column("NaN", Shown.COUNT),
            Column("Inf", Shown.COUNT),
            Column("elements", Shown.COUNT),
        ),
        rows,
        FINITE,
    )
