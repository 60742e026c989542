"""AL208: one run trains on samples more than once that the other reads once."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis.pair.data import given
from align.diagnosis.registry import rule
from align.diagnosis.telling import Words
from align.records import Finding
from align.samples import SampleKind
from align.sentences import say

CODE = "AL208"
LABEL = "duplicate-samples"


@rule(CODE, LABEL, rank=11)
def find(walk: Walk) -> Iterator[Finding]:
    """Samples that one run gives again between those that stand in one order in both."""
    found = given.first_difference(walk)
    if found is None or found.kind is not SampleKind.GAPS:
        return
    samples = found.samples
    if not (samples.repeated or samples.repeated_reference):
        return
    candidate = samples.repeated >= samples.repeated_reference
    side, other = ("candidate", "reference") if candidate else ("reference", "candidate")
    number = samples.repeated if candidate else samples.repeated_reference
    settings = given.loader_settings(walk)
    yield given.finding(
        walk,
        found,
        (CODE, LABEL),
        Words(
            say(
                "The {} trains on {} again that the {} reads once, of {} in {}; {}.{}",
                side,
                wording.plural(number, "sample"),
                other,
                wording.count(samples.total),
                wording.steps(found.steps),
                given.unjudged(found),
                given.tell_settings(settings),
            ),
            say(
                "{} To compare the models as they are, {}.",
                _cause(walk, 0 if side == "reference" else 1),
                given.taking(walk) or "read each sample once in both runs",
            ),
        ),
        {"side": side, "repeated": number, "loader_settings": {name: list(pair) for name, pair in settings.items()}},
    )


def _cause(walk: Walk, side: int) -> str:
    loaders = (walk.reference, walk.candidate)[side].loaders
    workers = loaders[0].get("num_workers") if loaders else None
    if loaders and loaders[0].get("length") is None and isinstance(workers, int) and workers > 1:
        return say(
            "Each of the {} workers reads the whole IterableDataset unless the dataset gives it a part "
            "(torch.utils.data.get_worker_info()).",
            workers,
        )
    return (
        "Look at the sampler: with replacement, padded to a multiple of the ranks, or a dataset whose index gives one "
        "sample twice."
    )
