"""AL203: both runs read the same data, in another order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from align import wording
from align.comparison import Walk
from align.diagnosis.pair.data import given
from align.diagnosis.pair.data.batch_relation import batch_relation
from align.diagnosis.pair.data.given import Given
from align.diagnosis.registry import rule
from align.diagnosis.telling import Words
from align.records import Finding
from align.samples import SampleKind
from align.sentences import say

CODE = "AL203"
LABEL = "data-order"


@rule(CODE, LABEL, rank=14)
def find(walk: Walk) -> Iterator[Finding]:
    """Samples of the reference that the candidate reads at other places, or loaders of one dataset set otherwise."""
    found = given.first_difference(walk)
    if found is None:
        return
    settings = given.loader_settings(walk)
    sentence = _sentence(found, known=_may_choose(walk, found, settings))
    if not sentence:
        return
    settled = "set the same shuffling, sampler seed, number of workers and number of ranks in both scripts, and seed "
    listed = " Where all of that agrees, sort what the dataset lists: os.listdir and glob promise no order."
    yield given.finding(
        walk,
        found,
        (CODE, LABEL),
        Words(
            say("{}; {}.{}", sentence, given.unjudged(found), given.tell_settings(settings)),
            say(
                "Feed both runs the same batches: {}{}before the DataLoader is read (torch.manual_seed, "
                "`generator=` of the DataLoader, or `align capture --seed 1` where the script sets no seed).{}",
                given.taking_or(walk),
                settled,
                "" if settings else listed,
            ),
        ),
        {"loader_settings": {name: list(pair) for name, pair in settings.items()}},
    )


def _may_choose(walk: Walk, found: Given, settings: Mapping[str, object]) -> bool:
    """Whether the loaders read one dataset and choose its samples otherwise; batches that look alike are not others."""
    chosen = not given.CHOOSING_SETTINGS.isdisjoint(settings) and given.same_data(walk)
    return chosen and batch_relation(found.unequal[0].pair) is None


def _sentence(found: Given, *, known: bool) -> str:
    """What is known of the order, empty where nothing says that only the order differs."""
    samples = found.samples
    since = say("from {} on", wording.step(found.key.step))
    if found.kind is SampleKind.ORDER_IN_BATCH:
        return say(
            "The batches hold the same samples in another order: {} of {} stand elsewhere in their batch in {}",
            wording.count(samples.moved),
            wording.count(samples.total),
            wording.steps(found.steps),
        )
    if found.kind is SampleKind.ORDER and samples.whole:
        return say(
            "The runs read the same {} in {}, in another order {}",
            wording.plural(samples.total, "sample"),
            wording.steps(found.steps),
            since,
        )
    if found.kind is SampleKind.ORDER:
        return say(
            "The runs read the data in another order {}: {} of the candidate's {} in {} are among the reference's, "
            "at other places",
            since,
            wording.count(samples.common),
            wording.plural(samples.total, "sample"),
            wording.steps(found.steps),
        )
    if known and found.samples.kind is SampleKind.OTHER and not found.only_labels and not found.agreeing:
        return say(
            "The runs read other samples of one dataset {}: none of the candidate's {} in {} is among the reference's",
            since,
            wording.count(samples.total),
            wording.steps(found.steps),
        )
    return ""
