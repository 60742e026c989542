"""AL504: the loss is averaged otherwise: another divisor, other weights of micro-batches, other targets counted."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.backward.loss_cause import LossCause, LossKind, cause_of
from align.diagnosis.pair.backward.unreduced import reweighted, told_weights
from align.diagnosis.registry import rule
from align.records import Comparison, FactValue, Finding, Severity
from align.sentences import joined, say
from align.walk import Suspect

CODE = "AL504"
LABEL = "loss-normalization"

TOLD = 8
"""How many micro-batches one sentence names."""


@rule(CODE, LABEL, rank=47)
def find(walk: Walk) -> Iterator[Finding]:
    """The first difference, where it is the loss of outputs and targets that agree, and its gradients follow it."""
    yield from _ranks_averaged(walk)
    first, cause = walk.first, cause_of(walk)
    if first is None or cause is None:
        return
    summary, advice = _TELLERS[cause.kind](first, cause)
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        summary,
        advice,
        telling.place_of(first.comparison.key),
        {
            **telling.evidence_of(first.comparison),
            "kind": str(cause.kind),
            "losses": [_loss(first.comparison, side) for side in (0, 1)],
            "factors": {str(each.micro): each.factor for each in cause.losses},
            "targets_that_count": {str(each.micro): each.counting for each in cause.losses if each.counting >= 0},
            "constants": list(cause.constants) if cause.constants is not None else None,
        },
        {
            **telling.arguments_of(first),
            "kind": str(cause.kind),
            "factor": cause.factor.value if cause.factor is not None else None,
            "meanings": list(cause.factor.meanings) if cause.factor is not None else [],
        },
    )


def _ranks_averaged(walk: Walk) -> Iterator[Finding]:
    """Ranks whose gradients are averaged with other weights, where those of this rank agree."""
    first, found = walk.first, reweighted(walk)
    if first is None or found is None:
        return
    key, weights = first.comparison.key, told_weights(found)
    told = say(
        "{}: losses and gradients of this rank agree in both runs, but what the optimizer takes in the reference is "
        "{} of this rank's gradients and {} of what the candidate takes, in all {}: the gradients of the ranks are "
        "averaged with other weights.",
        telling.opening(key),
        wording.factor(found.own),
        wording.factor(found.reduced),
        wording.plural(found.parameters, "parameter"),
    )
    if weights is not None:
        ours, theirs = (wording.factor(weight) for weight in weights)
        told += say(
            " If the candidate takes their plain mean, the reference weighs this rank {} and the other {}.",
            ours,
            theirs,
        )
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        told,
        "Where ranks have other numbers of targets, the mean of their means is not the mean over all targets: divide "
        "the "
        "sum of the losses of each rank by the targets of all ranks (`torch.distributed.all_reduce` of their number), "
        "times the world size where gradients are averaged (DistributedDataParallel, FSDP).",
        telling.place_of(key),
        {
            **telling.evidence_of(first.comparison),
            "kind": "ranks",
            "own_part": found.own,
            "reduced_part": found.reduced,
            "unexplained_share": found.residual,
        },
        {**telling.arguments_of(first), "kind": "ranks", "own": found.own, "reduced": found.reduced},
    )


def _loss(comparison: Comparison, side: int) -> float | None:
    stats = (comparison.reference, comparison.candidate)[side].stats
    return stats.total if stats is not None else None


def _both(first: Suspect) -> str:
    ours, theirs = (_loss(first.comparison, side) for side in (0, 1))
    if ours is None or theirs is None:
        return telling.amount(first.comparison)
    return say("{} in the reference and {} in the candidate", wording.loss(ours), wording.loss(theirs))


def _begin(first: Suspect) -> str:
    key = first.comparison.key
    return say("{}: the loss is the first value that differs: {}", telling.opening(key), _both(first))


def _tell_factor(first: Suspect, cause: LossCause) -> tuple[str, str]:
    factor = cause.factor
    number = wording.factor(factor.value) if factor is not None else ""
    meaning = say(" ({})", joined(" or ", map(say, factor.meanings))) if factor is not None and factor.meanings else ""
    told = say(
        "{}. It is {} times the reference's{}, and so are the gradients of the outputs, which agree: the same loss, "
        "averaged otherwise.",
        _begin(first),
        number,
        meaning,
    )
    if cause.constants is not None:
        ours, theirs = (_multiplied(number) for number in cause.constants)
        told += say(" The reference {} at the end, the candidate {}.", ours, theirs)
    return told, (
        "Divide the loss by the same number in both runs: compare the reduction (sum or mean), the division by the "
        "accumulated micro-batches and by the world size, and what a trainer divides by itself."
    )


def _multiplied(number: float) -> str:
    return "does not multiply it" if number == 1.0 else say("multiplies it by {}", wording.factor(number))


def _tell_weights(first: Suspect, cause: LossCause) -> tuple[str, str]:
    shown = cause.losses[:TOLD]
    factors = [wording.factor(float(f"{each.factor:.4g}")) for each in shown]
    rest = say(" and in {} more", len(cause.losses) - TOLD) if len(cause.losses) > TOLD else ""
    told = say(
        "{}. The micro-batches have other weights: their losses are {} times the reference's (micro {}{}), and so "
        "are the gradients of the outputs, which agree.",
        _begin(first),
        wording.listing(factors),
        wording.listing([str(each.micro) for each in shown]),
        rest,
    )
    if cause.by_counts:
        counts = wording.listing([wording.count(each.counting) for each in shown])
        by, alike = ("reference", "candidate") if cause.by_counts > 0 else ("candidate", "reference")
        told += say(
            " {} of their targets count: the {} weights each micro-batch by the targets that count in it, the {} "
            "does not.",
            counts,
            by,
            alike,
        )
    return told, (
        "Weight micro-batches alike in both runs. For a mean over tokens divide the sum of the losses of all tokens by "
        "the number of tokens that count in all micro-batches (and ranks), not each by its own."
    )


def _tell_counted(first: Suspect, cause: LossCause) -> tuple[str, str]:
    ours, theirs = cause.counting
    told = say(
        "{}. Outputs and targets agree, but {} targets count in the reference and {} in the candidate",
        _begin(first),
        _number(ours),
        _number(theirs),
    )
    if cause.ignored[0] != cause.ignored[1]:
        told += say(", whose losses leave out the targets that are {} and {}", cause.ignored[0], cause.ignored[1])
    return say("{}.", told), (
        "Give the loss of both runs one ignore_index, the one that padding has in the targets, and the same mask."
    )


def _number(value: FactValue) -> str:
    return wording.count(value) if isinstance(value, int) else str(value)


_TELLERS = {LossKind.FACTOR: _tell_factor, LossKind.WEIGHTS: _tell_weights, LossKind.COUNTED: _tell_counted}
