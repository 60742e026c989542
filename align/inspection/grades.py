"""How grave an answer is: bad where an error is found for it, odd where a warning or a note tells it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from align.inspection import learning_questions, nonfinite_question, scale_questions, start_questions
from align.records import Finding, Reply, Severity, State

TOLD_BY: Mapping[str, frozenset[str]] = {
    start_questions.CHECKPOINT: frozenset({"checkpoint-keys"}),
    start_questions.DATA: frozenset({"data-order-repeated", "duplicate-samples"}),
    nonfinite_question.FINITE: frozenset({"nan-origin", "overflow", "overflow-saturated"}),
    nonfinite_question.HEADROOM: frozenset({"little-headroom"}),
    learning_questions.RECOMPUTING: frozenset({"recompute-differs"}),
    scale_questions.RANGE: frozenset({"gradient-underflow"}),
    scale_questions.LOSS_SCALE: frozenset({"loss-scale-collapse", "loss-scale-stuck", "loss-scale-unstable"}),
    scale_questions.CLIPPING: frozenset({"clip-before-unscale"}),
    scale_questions.SKIPPED: frozenset({"skipped-step-applied"}),
    learning_questions.OPTIMIZER: frozenset({"optimizer-formula-differs"}),
    learning_questions.PARAMETERS: frozenset({"parameters-not-updated", "update-lost"}),
    learning_questions.LOSS: frozenset({"loss-stall", "loss-spike"}),
    learning_questions.TIME: frozenset({"step-time-cliff"}),
}
"""The labels of the findings that tell what is wrong with an answer; of other questions any finding may."""


def graded(replies: Iterable[Reply], findings: Sequence[Finding]) -> tuple[Reply, ...]:
    """The answers, bad ones as odd where no error tells of them, so that no answer is graver than the verdict."""
    errors = {finding.label for finding in findings if finding.severity is Severity.ERROR}
    return tuple(
        replace(reply, state=State.ODD)
        if reply.state is State.BAD and not errors & TOLD_BY.get(reply.question, errors)
        else reply
        for reply in replies
    )
