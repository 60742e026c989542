"""AL205: the batches differ, and no order, shift or label explains it."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.data import data_order, given
from align.diagnosis.pair.data.batch_relation import batch_relation
from align.diagnosis.pair.data.given import Given
from align.diagnosis.registry import rule
from align.diagnosis.telling import Words
from align.records import Finding, Phase
from align.samples import SampleKind

CODE = "AL205"
LABEL = "data-differs"


@rule(CODE, LABEL, rank=20)
def find(walk: Walk) -> Iterator[Finding]:
    """Batches and targets that are not equal; an error where the runs part there, else a warning."""
    found = given.first_difference(walk)
    if found is None or found.only_labels or _told_elsewhere(walk, found):
        return
    if found.key.phase is Phase.LOSS:
        summary = (
            f"{telling.opening(found.key)}: the logits agree, the targets handed to the loss differ. No module is to "
            "blame."
        )
        advice = "Compare how both scripts make the targets: label shift, padding, ignored index, collation."
    else:
        names = list(dict.fromkeys(given.name_of(each.pair.key) for each in found.unequal))
        related = batch_relation(found.unequal[0].pair)
        said = f": the candidate's {names[0]} is {related.words}" if related is not None else ""
        summary = (
            f"The batches of {wording.step(found.key.step)} differ ({wording.listing(names[:3], len(names))})"
            f"{_how(found)}{said}; {given.unjudged(found)}."
        )
        advice = related.advice if related is not None else _advice(walk, found)
    yield given.finding(walk, found, (CODE, LABEL), Words(summary, advice))


def _told_elsewhere(walk: Walk, found: Given) -> bool:
    """Whether a rule of its own tells what the samples are."""
    if found.kind is SampleKind.GAPS:
        samples = found.samples
        return bool(samples.repeated or samples.repeated_reference or bool(samples.missing) != bool(samples.extra))
    return found.kind is SampleKind.SHIFTED or any(True for _ in data_order.find(walk))


def _how(found: Given) -> str:
    samples = found.samples
    if found.agreeing:
        return f", while {wording.listing(found.agreeing[:3], len(found.agreeing))} agree"
    if found.loaders_agree:
        return ", while the DataLoaders hand out equal ones"
    if found.kind is SampleKind.GAPS:
        changed = max(samples.missing, samples.extra)
        return f" in {wording.count(changed)} of {wording.plural(samples.total, 'sample')}, the others stand in order"
    return ""


def _advice(walk: Walk, found: Given) -> str:
    if found.agreeing:
        names = wording.listing(list(dict.fromkeys(given.name_of(each.pair.key) for each in found.unequal))[:3])
        return (
            f"The samples are the same, {names} was made otherwise from them: compare how both scripts collate, pad, "
            "pack and mask (attention mask, position ids, segment ids)."
        )
    if found.loaders_agree:
        return (
            "Compare what the scripts do to a batch between the DataLoader and the model: normalisation, augmentation "
            "on the device, noise, masks."
        )
    return (
        f"Feed both runs the same batches: {given.taking(walk)}set the same sampler seed, number of workers, shuffling "
        "and preprocessing. Look at the first differing batch with `align show`."
    )
