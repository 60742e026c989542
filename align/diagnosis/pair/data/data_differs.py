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
from align.sentences import say

CODE = "AL205"
LABEL = "data-differs"


@rule(CODE, LABEL, rank=20)
def find(walk: Walk) -> Iterator[Finding]:
    """Batches and targets that are not equal; an error where the runs part there, else a warning."""
    found = given.first_difference(walk)
    if found is None or found.only_labels or _told_elsewhere(walk, found):
        return
    if found.key.phase is Phase.LOSS:
        summary = say(
            "{}: the logits agree, the targets handed to the loss differ. No module is to blame.",
            telling.opening(found.key),
        )
        advice = given.TARGETS_ADVICE
    else:
        names = list(dict.fromkeys(given.name_of(each.pair.key) for each in found.unequal))
        related = batch_relation(found.unequal[0].pair)
        said = say(": the candidate's {} is {}", names[0], related.words) if related is not None else ""
        summary = say(
            "The batches of {} differ ({}){}{}; {}.",
            wording.step(found.key.step),
            wording.listing(names[:3], len(names)),
            _how(found),
            said,
            given.unjudged(found),
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
        return say(", while {} agree", wording.listing(found.agreeing[:3], len(found.agreeing)))
    if found.loaders_agree:
        return ", while the DataLoaders hand out equal ones"
    if found.kind is SampleKind.GAPS:
        changed = max(samples.missing, samples.extra)
        return say(
            " in {} of {}, the others stand in order", wording.count(changed), wording.plural(samples.total, "sample")
        )
    return ""


def _advice(walk: Walk, found: Given) -> str:
    if found.agreeing:
        names = wording.listing(list(dict.fromkeys(given.name_of(each.pair.key) for each in found.unequal))[:3])
        return say(
            "The samples are the same, {} was made otherwise from them: compare how both scripts collate, pad, pack "
            "and mask (attention mask, position ids, segment ids).",
            names,
        )
    if found.loaders_agree:
        return (
            "Compare what the scripts do to a batch between the DataLoader and the model: normalisation, augmentation "
            "on the device, noise, masks."
        )
    return say(
        "Feed both runs the same batches: {}set the same sampler seed, number of workers, shuffling and "
        "preprocessing. Look at the first differing batch with `align show`.",
        given.taking_or(walk),
    )
