"""The questions that are put to all ranks of a job together."""

from __future__ import annotations

from align import wording
from align.inspection.inspection import Job
from align.records import INIT_STEP, Phase, Reply, State
from align.sentences import say

RANKS, WEIGHTS, GRADIENTS, MASKS, SAMPLES, NORM = (
    "ranks", "weights of ranks", "reduction", "masks of ranks", "samples of ranks", "norm of ranks"
)  # fmt: skip


def ranks(job: Job) -> Reply:
    """Whether all ranks of the job are here."""
    world = job.ranks[0].view.run.world_size
    numbers = [inspection.view.run.rank for inspection in job.ranks]
    missing = [rank for rank in range(world) if rank not in numbers]
    if missing:
        template = (
            "{} of {} ranks were read: the files of ranks {} are not there. What only they do cannot be told; copy "
            "them beside the others."
            if len(missing) > 1
            else "{} of {} ranks were read: the file of rank {} is not there. What only it does cannot be told; copy "
            "it beside the others."
        )
        told = say(template, wording.count(len(numbers)), wording.count(world), wording.ranges(missing))
        return Reply(RANKS, State.UNKNOWN, told)
    return Reply(RANKS, State.ABSENT, say("All {} ranks were read.", wording.count(world)))


def weights(job: Job) -> Reply:
    """Whether replicas hold the same weights."""
    found, holdings = job.unlike, job.holdings
    if found is not None and found.trained:
        when = "before step 0" if found.step == INIT_STEP else say("after step {}", found.step)
        return Reply(WEIGHTS, State.BAD, say("{} differ {}.", wording.plural(len(found.owners), "parameter"), when))
    if not holdings.held:
        return Reply(
            WEIGHTS, State.UNKNOWN,
            "Whether ranks begin alike cannot be told: no initial weights were captured; capture with --phases all.",
        )  # fmt: skip
    whole = len([held for held in holdings.held.values() if held.owner in holdings.trained])
    if holdings.replicas:
        number = len(job.ranks)
        who = "Both" if number == 2 else say("All {}", wording.count(number))  # noqa: PLR2004
        return Reply(
            WEIGHTS, State.GOOD,
            say("{} ranks begin with the same values of {}.", who, wording.plural(whole, "parameter")),
        )  # fmt: skip
    return Reply(
        WEIGHTS, State.ABSENT,
        "The ranks are no replicas of one model: each holds weights of its own, as parts of it do.",
    )  # fmt: skip


def gradients(job: Job) -> Reply:
    """Whether the gradients of replicas are reduced."""
    found = job.reduction
    if found is None:
        if not job.holdings.shared:
            return Reply(GRADIENTS, State.ABSENT, "No parameter begins alike on several ranks.")
        return Reply(
            GRADIENTS,
            State.UNKNOWN,
            say(
                "Whether gradients are reduced cannot be told: no step was captured in which ranks with the same "
                "weights take gradients of other batches{}.",
                _lacking(job),
            ),
        )
    total = len(found.same) + len(found.apart)
    if found.apart:
        return Reply(
            GRADIENTS,
            State.BAD if found.missing else State.UNKNOWN,
            say(
                "The optimizers of the ranks take other gradients of {} of {} in step {}.",
                wording.count(len(found.apart)),
                wording.plural(total, "parameter"),
                found.step,
            ),
        )
    return Reply(
        GRADIENTS,
        State.GOOD,
        say(
            "The optimizers of {} ranks take the same gradients of {}, of other batches.",
            wording.count(len(found.ranks)),
            wording.plural(total, "parameter"),
        ),
    )


def _lacking(job: Job) -> str:
    phases = frozenset[Phase]().union(*(inspection.view.phases() for inspection in job.ranks))
    lacking = [str(phase) for phase in (Phase.INPUT, Phase.UPDATE) if phase not in phases]
    return (
        say(" (the captures have no phase {}; capture with --phases all)", wording.listing(lacking)) if lacking else ""
    )


def masks(job: Job) -> Reply:
    """Whether ranks draw the masks that they should."""
    duplicated, parted = job.duplicated_draws, job.parted_draws
    if duplicated is not None:
        return Reply(MASKS, State.BAD, say("{} drops the same elements of different samples.", duplicated.key.name))
    if parted is not None:
        return Reply(MASKS, State.BAD, say("{} drops other elements of one tensor that ranks share.", parted.key.name))
    return Reply(MASKS, State.ABSENT, "No dropout was seen that drops what it should not.")


def samples(job: Job) -> Reply:
    """Whether the ranks share the data."""
    same, parts = job.same_samples, job.sampler_parts
    if same is not None:
        return Reply(SAMPLES, State.BAD, say("Replicas train on the same samples in {}.", wording.steps(same.steps)))
    if parts is not None and parts.missing:
        return Reply(
            SAMPLES, State.BAD, say("No rank reads part {} of {} of the data.", wording.ranges(parts.missing), parts.of)
        )
    if parts is not None and parts.of > 1:
        return Reply(SAMPLES, State.GOOD, say("The ranks read all {} parts of the data.", wording.count(parts.of)))
    return Reply(SAMPLES, State.ABSENT, "No DistributedSampler divides the data, and no replicas share their samples.")


def norm(job: Job) -> Reply:
    """Whether gradients are clipped by the norm that they have over all ranks."""
    found = job.clip_norm
    if found is None:
        return Reply(NORM, State.ABSENT, "No clipping was seen whose norm can be checked over all ranks.")
    reported = wording.value(found.reported[0])
    if found.miscount is not None:
        return Reply(
            NORM,
            State.BAD,
            say("The norm of clipping is {}, that of the gradients {}.", reported, wording.value(found.norm)),
        )
    if not found.right:
        return Reply(
            NORM,
            State.UNKNOWN,
            say(
                "The norm of clipping is {}, that of the gradients that were seen {}; of which of them it is the "
                "norm is not known.",
                reported,
                wording.value(found.norm),
            ),
        )
    return Reply(
        NORM, State.GOOD, say("Gradients are clipped by the norm that they have over all ranks ({}).", reported)
    )
