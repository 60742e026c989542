"""AL507: the norm that the gradients are clipped by is not that of the gradients of all ranks."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.job import ranks_telling
from align.diagnosis.registry import job_rule
from align.inspection import Job
from align.inspection.ranks_norm import Miscount, NormCheck
from align.records import Finding, Phase, Place, Severity
from align.sentences import say

CODE = "AL507"
LABEL = "gradient-norm-differs"


@job_rule(CODE, LABEL, rank=48)
def find(job: Job) -> Iterator[Finding]:
    """A norm of clipping that counts what all ranks hold once a rank, or that knows one rank's part only."""
    found = job.clip_norm
    if found is None or found.miscount is None:
        return
    summary, advice = (_replicas if found.miscount is Miscount.REPLICAS else _local)(job, found)
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        summary,
        advice,
        Place(found.step, str(Phase.OPTIMIZER), "clip", "norm"),
        {
            "reported_norm": list(found.reported),
            "norm": found.norm,
            "clip_limit": found.limit,
            "shared_parameters": len(found.shared),
            "split_parameters": len(found.parts),
        },
        {"step": found.step, "kind": str(found.miscount), "reported": list(found.reported), "norm": found.norm},
    )


def _replicas(job: Job, found: NormCheck) -> tuple[str, str]:
    world = len(job.ranks)
    return (
        say(
            "Step {}, optimizer: the gradients are clipped by a norm of {}, but theirs is {}. The difference is "
            "what all ranks hold: {} ({}) count {} times, once for each rank. {}",
            found.step,
            wording.value(found.reported[0]),
            wording.value(found.norm),
            wording.plural(len(found.shared), "parameter"),
            ranks_telling.owners(found.shared),
            wording.count(world),
            _effect(found),
        )
    ), (
        "Where the squares of all ranks are added up, count parameters that every rank holds (biases, norms) on one "
        "rank only, and parts of a split weight on each."
    )


def _local(_: Job, found: NormCheck) -> tuple[str, str]:
    norms = wording.listing([wording.value(norm) for norm in found.reported])
    return (
        say(
            "Step {}, optimizer: each rank clips by the norm of what it holds ({}), but the norm of all gradients "
            "is {}: of {} ({}) each rank has a part only. Ranks that clip by other norms part in the parameters "
            "that all of them hold.",
            found.step,
            norms,
            wording.value(found.norm),
            wording.plural(len(found.parts), "parameter"),
            ranks_telling.owners(found.parts),
        )
    ), (
        "Add the squares of the parts over all ranks (`torch.distributed.all_reduce`) before the root is taken, and "
        "count parameters that every rank holds once."
    )


def _effect(found: NormCheck) -> str:
    if found.reported[0] <= found.limit:
        return say("The limit of {} is not reached all the same.", wording.value(found.limit))
    used, right = found.limit / found.reported[0], min(1.0, found.limit / found.norm)
    return say("The gradients are multiplied by {} instead of {}.", wording.factor(used), wording.factor(right))
