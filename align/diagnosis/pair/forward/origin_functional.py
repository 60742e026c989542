"""AL402: the difference starts in code between modules: a parent's forward, the loss, clipping, the script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.backward import backward_cause, loss_cause, unreduced
from align.diagnosis.pair.data import dropout_mask
from align.diagnosis.pair.forward import added_tensor, forward_cause
from align.diagnosis.registry import rule
from align.records import Comparison, Finding, Kind, Origin, Phase, Severity
from align.sentences import joined, say
from align.units import SCRIPT
from align.walk import Suspect

CODE = "AL402"
LABEL = "origin-functional"

ORIGINS = frozenset({Origin.FUNCTIONAL, Origin.LOSS, Origin.OPTIMIZER, Origin.UNKNOWN})


@rule(CODE, LABEL, rank=51)
def find(walk: Walk) -> Iterator[Finding]:
    """The first difference, where it is a value or a shape that code between modules makes."""
    first = walk.first
    if first is None or first.origin not in ORIGINS or first.kind not in {Kind.VALUE, Kind.SHAPE}:
        return
    if any(first is gap.suspect for gap in walk.underflow_gaps) or forward_cause.is_isolated(walk):
        return
    if backward_cause.is_known(walk) or loss_cause.is_known(walk) or unreduced.is_known(walk):
        return
    key = first.comparison.key
    owner = first.owner if first.origin is Origin.FUNCTIONAL else key.name
    evidence = telling.evidence_of(first.comparison) | added_tensor.evidence(walk)
    evidence["carried_on"] = telling.carried_on(walk.comparisons, first.comparison)
    users = telling.users_of(walk, first)
    if len(users) > 1:
        evidence["made_by_one_of"] = [telling.code_name(user) for user in users]
    handed = _is_handed_by_script(first)
    other = _made_in_another_step(walk, first.comparison) if handed else None
    if first.statistics_only:
        summary, advice = telling.statistics_summary(first), telling.STATISTICS_ADVICE
    elif handed:
        summary, advice = _tell_handed(first, other), _advise_handed(first, other)
    else:
        summary, advice = (
            say("{}{}{}", _summary(first, users), _argument(walk, first), _drawn(walk, first)),
            _advice(first, users),
        )
        summary, advice = say("{}{}", summary, added_tensor.told(walk)), added_tensor.advice(walk) or advice
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        summary,
        advice,
        telling.place_of(key, key.name if first.statistics_only else owner),
        evidence,
        {**telling.arguments_of(first), "parent": first.owner, "child": key.name, **_arguments_of_other(other)},
    )


def _drawn(walk: Walk, first: Suspect) -> str:
    """A sentence, begun with a blank, where random numbers of two kinds of device may be all that differs."""
    if walk.reference.device_type == walk.candidate.device_type or not dropout_mask.draws_between(walk):
        return ""
    name = telling.code_name(first.owner)
    return say(" The code of {} may draw random numbers, and two kinds of device never draw the same.", name)


def _is_handed_by_script(first: Suspect) -> bool:
    """Whether the script hands something to an outermost module: what it is made from was not seen."""
    key = first.comparison.key
    inward = key.phase is Phase.FORWARD and key.slot.startswith("input")
    return inward and (first.origin, first.owner) == (Origin.FUNCTIONAL, SCRIPT) and not first.argument


def _made_in_another_step(walk: Walk, handed: Comparison) -> Comparison | None:
    """The output of an outermost module that is this tensor: its forward stands in the step of its backward.

    A generator's output that the discriminator learns from belongs to the generator's step.
    """
    for each in walk.comparisons:
        key = each.key
        if key.phase is not Phase.FORWARD or key.step == handed.key.step or not key.slot.startswith("output"):
            continue
        if each.reference.within == SCRIPT and all(
            made.shape == given.shape and made.stats is not None and made.stats == given.stats
            for made, given in ((each.reference, handed.reference), (each.candidate, handed.candidate))
        ):
            return each
    return None


def _arguments_of_other(other: Comparison | None) -> dict[str, object]:
    return {} if other is None else {"maker": other.key.name, "maker_step": other.key.step}


def _tell_handed(first: Suspect, other: Comparison | None) -> str:
    key = first.comparison.key
    much = telling.amount(first.comparison) if first.kind is Kind.VALUE else "another shape"
    much = joined("", (much, telling.comma_relation(first.comparison, first.scale)))
    told = say("{}: {} is the first tensor that differs: {}.", telling.opening(key), telling.tensor(key), much)
    if other is None:
        return say(
            "{} All that modules were given and made before it agrees: the training script made it, of that or of "
            "something else (a batch, random numbers).",
            told,
        )
    return say(
        "{} It is {}, whose forward is recorded in {}, with its backward.",
        told,
        telling.tensor(other.key),
        wording.step(other.key.step),
    )


def _advise_handed(first: Suspect, other: Comparison | None) -> str:
    key = first.comparison.key
    if other is not None:
        return say(
            "Compare what {} was given in both runs (noise, batches) with `align show RUN.h5 '{}'`, and its settings.",
            other.key.name,
            other.key.name,
        )
    return say(
        "Compare what the training script hands to {} there in both runs: batches, noise, random numbers, outputs "
        "of other models, and the operators in between. {}",
        key.name,
        telling.capture_advice(key.name),
    )


def _summary(first: Suspect, users: Sequence[str]) -> str:
    comparison = first.comparison
    much = telling.amount(comparison) if first.kind is Kind.VALUE else "another shape"
    much = joined("", (much, telling.comma_relation(comparison, first.scale)))
    if first.origin is Origin.FUNCTIONAL and comparison.key.phase is Phase.BACKWARD:
        key = comparison.key
        return say(
            "Forward agrees; {}: {} of {} is the first gradient that differs: {}. It is made by {}.",
            telling.point(key),
            key.slot,
            key.name,
            much,
            telling.maker(first, users),
        )
    tell = _TELLERS.get(first.origin, _tell_between)
    return say("{}: {}", telling.opening(comparison.key), tell(first, much))


def _argument(walk: Walk, first: Suspect) -> str:
    """What differs in an integer argument, in a sentence begun with a blank: how many are true, or between what."""
    key = first.comparison.key
    place = (key.step, key.phase, key.name, first.argument, key.micro, key.call)
    pair = next(
        (
            each
            for each in walk.comparisons
            if (each.key.step, each.key.phase, each.key.name, each.key.slot, each.key.micro, each.key.call) == place
        ),
        None,
    )
    if not first.argument or pair is None or pair.reference.stats is None or pair.candidate.stats is None:
        return ""
    ours, theirs = pair.reference.stats, pair.candidate.stats
    if pair.reference.dtype == pair.candidate.dtype == "bool":
        true = [wording.count(stats.count - stats.zeros) for stats in (ours, theirs)]
        return say(
            " Of its {} elements {} are true in the reference and {} in the candidate.",
            wording.count(ours.count),
            true[0],
            true[1],
        )
    sides = [say("{} to {}", f"{stats.minimum:g}", f"{stats.maximum:g}") for stats in (ours, theirs)]
    return (
        say(" It holds {} in the reference and {} in the candidate.", sides[0], sides[1])
        if sides[0] != sides[1]
        else ""
    )


def _tell_loss(first: Suspect, much: str) -> str:  # noqa: ARG001 - one signature for all origins
    return say("the loss is the first value that differs: {}. The outputs it is made from agree.", much)


def _tell_update(first: Suspect, much: str) -> str:
    key = first.comparison.key
    return say(
        "{} of {} is the first gradient that differs as the optimizer takes it: {}. The gradient after backward "
        "agrees.",
        key.slot,
        key.name,
        much,
    )


def _tell_unknown(first: Suspect, much: str) -> str:
    key = first.comparison.key
    return say("{} of {} already differs ({}): code that was not captured made it.", key.slot, key.name, much)


def _tell_between(first: Suspect, much: str) -> str:
    """Of the code of a parent: what it hands to a child, or what it makes of its children's outputs."""
    key, code = first.comparison.key, telling.code_of(first)
    differs = say("{} is the first tensor that differs: {}.", telling.tensor(key), much)
    if first.argument:
        return say("{} Its argument {} differs already: {} made it.", differs, first.argument, code)
    if key.slot.startswith("output"):
        return say("{} Its inputs and children agree: {} is the cause.", differs, code)
    agrees = say(" while {} agrees", first.sibling) if first.sibling else ""
    return say("{} of {} already differs ({}){}: {} is the cause.", key.slot, key.name, much, agrees, code)


_TELLERS = {Origin.LOSS: _tell_loss, Origin.OPTIMIZER: _tell_update, Origin.UNKNOWN: _tell_unknown}


def _advice(first: Suspect, users: Sequence[str]) -> str:
    key = first.comparison.key
    if first.origin is Origin.LOSS:
        return (
            "Compare how both scripts make the loss from the outputs: reduction, ignored targets, label shift, "
            "division by accumulation steps or world size."
        )
    if first.origin is Origin.OPTIMIZER:
        return (
            "Compare what happens between backward and optimizer.step in both scripts: unscaling, clipping, reduction."
        )
    if first.origin is Origin.UNKNOWN:
        return "Capture all modules on both sides (without --modules) and compare again."
    code = telling.code_name(first.owner)
    if first.argument:
        return say("Compare the indices or masks that {} hands to {}: positions, offsets, padding.", code, key.name)
    if key.phase is Phase.BACKWARD:
        code = joined(" and of ", (telling.code_name(user) for user in users))
        return say("Compare the operators of {} that follow {}, and their backward, in both runs.", code, key.name)
    return say(
        "Compare the operators of {} there in both runs: residual additions, attention, masks, rotary embedding. {}",
        code,
        telling.capture_advice(key.name),
    )
