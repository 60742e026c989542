"""The questions that are put to all ranks of a job together."""

from __future__ import annotations

from align import wording
from align.inspection.inspection import Job
from align.records import INIT_STEP, Phase, Reply, State

RANKS, WEIGHTS, GRADIENTS, MASKS, SAMPLES, NORM = (
    "ranks", "weights of ranks", "reduction", "masks of ranks", "samples of ranks", "norm of ranks"
)  # fmt: skip


def ranks(job: Job) -> Reply:
    """Whether all ranks of the job are here."""
    world = job.ranks[0].view.run.world_size
    numbers = [inspection.view.run.rank for inspection in job.ranks]
    missing = [rank for rank in range(world) if rank not in numbers]
    if missing:
        many = len(missing) > 1
        return Reply(
            RANKS, State.UNKNOWN,
            f"{wording.count(len(numbers))} of {wording.count(world)} ranks were read: the file{'s' if many else ''} "
            f"of rank{'s' if many else ''} {wording.ranges(missing)} {'are' if many else 'is'} not there. What only "
            f"{'they do' if many else 'it does'} cannot be told; copy {'them' if many else 'it'} beside the others.",
        )  # fmt: skip
    return Reply(RANKS, State.ABSENT, f"All {wording.count(world)} ranks were read.")


def weights(job: Job) -> Reply:
    """Whether replicas hold the same weights."""
    found, holdings = job.unlike, job.holdings
    if found is not None and found.trained:
        when = "before step 0" if found.step == INIT_STEP else f"after step {found.step}"
        return Reply(WEIGHTS, State.BAD, f"{wording.plural(len(found.owners), 'parameter')} differ {when}.")
    if not holdings.held:
        return Reply(
            WEIGHTS, State.UNKNOWN,
            "Whether ranks begin alike cannot be told: no initial weights were captured; capture with --phases all.",
        )  # fmt: skip
    whole = len([held for held in holdings.held.values() if held.owner in holdings.trained])
    if holdings.replicas:
        number = len(job.ranks)
        who = "Both" if number == 2 else f"All {wording.count(number)}"  # noqa: PLR2004
        return Reply(
            WEIGHTS, State.GOOD,
            f"{who} ranks begin with the same values of "
            f"{wording.plural(whole, 'parameter')}.",
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
            GRADIENTS, State.UNKNOWN,
            "Whether gradients are reduced cannot be told: no step was captured in which ranks with the same weights "
            f"take gradients of other batches{_lacking(job)}.",
        )  # fmt: skip
    total = len(found.same) + len(found.apart)
    if found.apart:
        return Reply(
            GRADIENTS, State.BAD if found.missing else State.UNKNOWN,
            f"The optimizers of the ranks take other gradients of {wording.count(len(found.apart))} of "
            f"{wording.plural(total, 'parameter')} in step {found.step}.",
        )  # fmt: skip
    return Reply(
        GRADIENTS, State.GOOD,
        f"The optimizers of {wording.count(len(found.ranks))} ranks take the same gradients of "
        f"{wording.plural(total, 'parameter')}, of other batches.",
    )  # fmt: skip


def _lacking(job: Job) -> str:
    phases = frozenset[Phase]().union(*(inspection.view.phases() for inspection in job.ranks))
    lacking = [str(phase) for phase in (Phase.INPUT, Phase.UPDATE) if phase not in phases]
    return f" (the captures have no phase {wording.listing(lacking)}; capture with --phases all)" if lacking else ""


def masks(job: Job) -> Reply:
    """Whether ranks draw the masks that they should."""
    duplicated, parted = job.duplicated_draws, job.parted_draws
    if duplicated is not None:
        return Reply(MASKS, State.BAD, f"{duplicated.key.name} drops the same elements of different samples.")
    if parted is not None:
        return Reply(MASKS, State.BAD, f"{parted.key.name} drops other elements of one tensor that ranks share.")
    return Reply(MASKS, State.ABSENT, "No dropout was seen that drops what it should not.")


def samples(job: Job) -> Reply:
    """Whether the ranks share the data."""
    same, parts = job.same_samples, job.sampler_parts
    if same is not None:
        return Reply(SAMPLES, State.BAD, f"Replicas train on the same samples in {wording.steps(same.steps)}.")
    if parts is not None and parts.missing:
        return Reply(
            SAMPLES, State.BAD, f"No rank reads part {wording.ranges(parts.missing)} of {parts.of} of the data."
        )
    if parts is not None and parts.of > 1:
        return Reply(SAMPLES, State.GOOD, f"The ranks read all {wording.count(parts.of)} parts of the data.")
    return Reply(SAMPLES, State.ABSENT, "No DistributedSampler divides the data, and no replicas share their samples.")


def norm(job: Job) -> Reply:
    """Whether gradients are clipped by the norm that they have over all ranks."""
    found = job.clip_norm
    if found is None:
        return Reply(NORM, State.ABSENT, "No clipping was seen whose norm can be checked over all ranks.")
    reported = wording.value(found.reported[0])
    if found.miscount is not None:
        return Reply(NORM, State.BAD, f"The norm of clipping is {reported}, that of the gradients "
                                      f"{wording.value(found.norm)}.")  # fmt: skip
    if not found.right:
        return Reply(
            NORM, State.UNKNOWN,
            f"The norm of clipping is {reported}, that of the gradients that were seen {wording.value(found.norm)}; of "
            "which of them it is the norm is not known.",
        )  # fmt: skip
    return Reply(NORM, State.GOOD, f"Gradients are clipped by the norm that they have over all ranks ({reported}).")
