"""AL505: ranks that begin with one model take gradients of their own: nothing reduces them."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.job import ranks_telling
from align.diagnosis.registry import job_rule
from align.inspection import Job
from align.inspection.ranks_gradients import Reduction
from align.records import Finding, Phase, Place, Severity
from align.sentences import joined, say

CODE = "AL505"
LABEL = "gradients-not-reduced"


@job_rule(CODE, LABEL, rank=17)
def find(job: Job) -> Iterator[Finding]:
    """Equal weights and other gradients of other batches; an error where not one gradient is equal on all ranks."""
    found = job.reduction
    if found is None or not found.apart:
        return
    name, slot = found.apart[0]
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if found.missing else Severity.WARNING,
        _summary(job, found),
        _advice(job, found),
        Place(found.step, str(Phase.UPDATE), name, slot),
        {
            "differing": len(found.apart),
            "parameters": len(found.apart) + len(found.same),
            "smallest_difference": found.least,
            "largest_difference": found.most,
        },
        {"step": found.step, "differing": len(found.apart), "equal": len(found.same)},
    )


def _summary(job: Job, found: Reduction) -> str:
    who, many = ranks_telling.ranks(job, found.ranks), len(found.apart) + len(found.same)
    far = say("relative L2 {} to {}", wording.relative(found.least), wording.relative(found.most))
    if found.missing:
        return say(
            "Step {}, update: {} begin with the same weights, but the optimizer of each takes gradients of its own: "
            "not one of {} has the same gradient on them ({}; first {}). Nothing reduces the gradients, so each "
            "rank trains a model of its own.",
            found.step,
            who,
            wording.plural(many, "parameter"),
            far,
            joined(" ", found.apart[0]),
        )
    return say(
        "Step {}, update: {} of {} that begin alike on {} get other gradients on each ({}; {}), the others the "
        "same: these are not reduced, unless each rank is meant to have its own of them (experts).",
        found.step,
        wording.count(len(found.apart)),
        wording.plural(many, "parameter"),
        who,
        ranks_telling.owners(found.apart),
        far,
    )


def _advice(job: Job, found: Reduction) -> str:
    first = job.ranks[0].view.path
    alone = say(" Ranks that are meant to train apart are inspected one by one: `align inspect {}`.", first)
    if found.missing:
        return say(
            "Look for the reduction between backward and optimizer.step: call the DistributedDataParallel wrapper "
            "and not `model.module`, end no_sync() before the last backward of a step, and check which process "
            "group an all_reduce is given: one of a single rank reduces nothing.{}",
            alone,
        )
    return (
        "Look for parameters that are not in the wrapped model, were made after it was wrapped, or are left out of the "
        "reduction (a group of one rank, a list of parameters)."
    )
