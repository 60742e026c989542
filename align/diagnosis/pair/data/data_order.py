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
            f"{sentence}; {given.unjudged(found)}.{given.tell_settings(settings)}",
            f"Feed both runs the same batches: {given.taking(walk)}{settled}"
            "before the DataLoader is read (torch.manual_seed, `generator=` of the DataLoader, or "
            f"`align capture --seed 1` where the script sets no seed).{'' if settings else listed}",
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
    since = f"from {wording.step(found.key.step)} on"
    if found.kind is SampleKind.ORDER_IN_BATCH:
        return (
            f"The batches hold the same samples in another order: {wording.count(samples.moved)} of "
            f"{wording.count(samples.total)} stand elsewhere in their batch in {wording.steps(found.steps)}"
        )
    if found.kind is SampleKind.ORDER and samples.whole:
        return (
            f"The runs read the same {wording.plural(samples.total, 'sample')} in {wording.steps(found.steps)}, in "
            f"another order {since}"
        )
    if found.kind is SampleKind.ORDER:
        return (
            f"The runs read the data in another order {since}: {wording.count(samples.common)} of the candidate's "
            f"{wording.plural(samples.total, 'sample')} in {wording.steps(found.steps)} are among the reference's, at "
            "other places"
        )
    if known and found.samples.kind is SampleKind.OTHER and not found.only_labels and not found.agreeing:
        return (
            f"The runs read other samples of one dataset {since}: none of the candidate's "
            f"{wording.count(samples.total)} in {wording.steps(found.steps)} is among the reference's"
        )
    return ""
