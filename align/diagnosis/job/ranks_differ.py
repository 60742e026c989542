"""AL311: replicas hold other weights, from the begin or after a step."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis.job import ranks_telling
from align.diagnosis.registry import job_rule
from align.inspection import Job
from align.inspection.ranks_weights import Unlike
from align.records import INIT_STEP, Finding, Phase, Place, Severity
from align.sentences import joined, say

CODE = "AL311"
LABEL = "ranks-differ"


@job_rule(CODE, LABEL, rank=16)
def find(job: Job) -> Iterator[Finding]:
    """Weights that differ though the ranks take one gradient of them; parts of a larger tensor are not told."""
    found = job.unlike
    if found is None:
        return
    summary, advice = _begin(job, found) if found.step == INIT_STEP else _after(job, found)
    (name, slot), phase = found.owners[0], Phase.INIT if found.step == INIT_STEP else Phase.PARAM
    numbers = [ranks_telling.number(job, place) for place in found.ranks]
    rank = numbers[0] if len(numbers) == 1 else None
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if found.trained else Severity.WARNING,
        summary,
        advice,
        Place(found.step, str(phase), name, slot, rank=rank),
        {
            "differing": len(found.owners),
            "tensors": found.of,
            "relative_l2": found.distance,
            "ranks": numbers,
            "settings": {name: list(values) for name, values in found.settings.items()},
        },
        {"step": found.step, "ranks": numbers, "differing": len(found.owners), "of": found.of},
    )


def _begin(job: Job, found: Unlike) -> tuple[str, str]:
    who, what = ranks_telling.ranks(job, found.ranks), ranks_telling.owners(found.owners)
    many = len(found.ranks) > 1
    kind = say("parameters" if found.trained else "buffers and frozen weights")
    told = say(
        "Before step 0 {} hold{} other weights than rank {}: {} of {} {} differ ({}; largest relative L2 {})",
        who,
        "" if many else say("s"),
        ranks_telling.number(job, _first_other(job, found)),
        wording.count(len(found.owners)),
        wording.count(found.of),
        kind,
        what,
        wording.relative(found.distance),
    )
    if found.trained:
        return say("{}, while the ranks take the very same gradients of them: the mean over different models.", told), (
            "Give all ranks the weights of rank 0 before the first step: wrap the model in DistributedDataParallel, "
            "which sends them, call `torch.distributed.broadcast(parameter.data, 0)` for each parameter, or seed all "
            "ranks alike while the model is made. Load a checkpoint on every rank."
        )
    return say("{}. All that they train is equal.", told), (
        "Broadcast buffers and frozen weights from rank 0 too, unless each rank is meant to have its own."
    )


def _first_other(job: Job, found: Unlike) -> int:
    """The place of the first rank that is not among those that differ."""
    return next((place for place in range(len(job.ranks)) if place not in found.ranks), 0)


def _after(job: Job, found: Unlike) -> tuple[str, str]:
    who = ranks_telling.ranks(job, found.ranks)
    told = say(
        "After step {} {} hold{} other parameters than rank {}, although parameters and gradients were equal "
        "before: {} of {} differ ({}; largest relative L2 {}).",
        found.step,
        who,
        "" if len(found.ranks) > 1 else say("s"),
        ranks_telling.number(job, _first_other(job, found)),
        wording.count(len(found.owners)),
        wording.count(found.of),
        ranks_telling.owners(found.owners),
        wording.relative(found.distance),
    )
    if not found.settings:
        return told, (
            "Compare the states of the optimizers: load them on every rank, and change parameters on all ranks or on "
            "none. `align show RUN.rank0000.h5` tells the settings and the states of each."
        )
    settings = [
        say("{} is {}", name, wording.listing([str(value) for value in values]))
        for name, values in found.settings.items()
    ]
    return say(
        "{} The optimizers are set differently: {} on the ranks in their order.", told, joined("; ", settings)
    ), (
        "Give the optimizer of every rank the same settings: learning rate, weight decay and schedule must not depend "
        "on the rank or on what it reads."
    )
