"""AL602 in one run: the first number that outgrew its format and does harm."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis import telling
from align.diagnosis.registry import run_rule
from align.diagnosis.run import nonfinite_telling as tell
from align.flow import is_output
from align.inspection import Inspection, RunView
from align.inspection.nonfinite import Start
from align.inspection.nonfinite_kind import SHORT, is_overflow, working_precision
from align.records import Finding, Phase, Severity
from align.sentences import capital, joined, say
from align.tolerance import Precision

CODE = "AL602"
LABEL = "overflow"

GIVEN = frozenset({Phase.INIT, Phase.INPUT})
"""What no module of the run has computed."""

TRAIL = 3
"""So many outputs before it are told, to show where the numbers grow."""


@run_rule(CODE, LABEL, rank=41)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The first start that is an overflow; an error where it did harm or lets no step through, else a warning."""
    view = inspection.view
    start, is_error = tell.accused(inspection)
    if inspection.nonfinite.uncaptured is not None or start is None or not is_overflow(start, view.modules, view.run):
        return
    precision = working_precision(start, view.modules, view.run)
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if is_error else Severity.WARNING,
        say(
            "{}{}{}",
            _summary(view, start, precision),
            tell.seen_first(view, start),
            tell.fate(inspection, start, lasting=is_error),
        ),
        _advice(start, precision),
        tell.place(start),
        {**tell.evidence(start), "limit": precision.largest, "before": trail(view, start)},
        {**tell.arguments(start), "precision": precision.name},
    )


def _summary(view: RunView, start: Start, precision: Precision) -> str:
    key = start.key
    made = tell.made_by(start)
    limit = say("{}, the greatest {} number", wording.value(precision.largest), precision.name)
    first = say("{}: {} is the first tensor with {}", telling.opening(key), telling.tensor(key), tell.kind_of(start))
    amount = tell.amount(start)
    beyond = say(": {}, beyond {}", amount, limit) if amount else say(", beyond {}", limit)
    by = say(". {} made it", capital(made)) if made else ""
    if start.weights > precision.largest:
        of = say(" ({})", amount) if amount else ""
        return say("{}{}: its weights reach {}, beyond {}{}.", first, of, wording.value(start.weights), limit, by)
    return say("{}{}{}.{}", first, beyond, by, _grows(view, start))


def trail(view: RunView, start: Start) -> dict[str, float]:
    """The largest magnitudes of the outputs (or gradients) before it, by module, the last ones."""
    found: dict[str, float] = {}
    for record in view.step(max(start.key.step, 0)).by_phase[start.key.phase]:
        if record.order >= start.record.order:
            break
        wanted = is_output(record) if start.key.phase is Phase.FORWARD else start.key.phase is Phase.BACKWARD
        if wanted and record.stats is not None and record.same_as is None and record.key.micro == start.key.micro:
            found[record.key.name] = record.stats.absolute_maximum
    return dict(list(found.items())[-TRAIL:])


def _grows(view: RunView, start: Start) -> str:
    before = trail(view, start)
    listed = joined(", ", (say("{} {}", name, wording.value(size)) for name, size in before.items()))
    told = say(" The largest numbers before it: {}.", listed) if listed else ""
    return told + (say(" What entered reaches {}.", wording.value(start.reach)) if start.reach > 0.0 else "")


def _advice(start: Start, precision: Precision) -> str:
    if start.key.phase in GIVEN:
        return say(
            "Look at how it is made: make it in fp32 and scale it (subtract the mean, divide by the deviation) "
            "before it is cast to {}, or leave it in fp32.",
            precision.name,
        )
    name = tell.blamed(start) or "the training script"
    if start.key.phase is Phase.BACKWARD:
        return say("Lower the loss scale, or run the backward of {} in bf16 or fp32, whose range is wider.", name)
    if precision.largest < SHORT:
        return say(
            "Run {} in bf16 or fp32, whose range is wider (what was trained in bf16 may need it), or make what "
            "enters it smaller, with a normalization before it.",
            name,
        )
    return say(
        "Look at why the numbers grow before {}: the learning rate, the scale of the initial weights, a missing "
        "normalization. Capture the steps before, and inspect shows how they grow.",
        name,
    )
