"""AL206: both runs read the same data in the same order, one of them some samples ahead."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis.pair.data import given
from align.diagnosis.pair.data.given import Given
from align.diagnosis.registry import rule
from align.diagnosis.telling import Words
from align.records import Finding
from align.samples import SampleKind
from align.sentences import say

CODE = "AL206"
LABEL = "data-shifted"


@rule(CODE, LABEL, rank=13)
def find(walk: Walk) -> Iterator[Finding]:
    """Batches of the candidate that are those of the reference, some samples or steps earlier or later."""
    found = given.first_difference(walk)
    if found is None or found.kind is not SampleKind.SHIFTED:
        return
    ahead = found.samples.shift > 0
    first, second = ("candidate", "reference") if ahead else ("reference", "candidate")
    yield given.finding(
        walk,
        found,
        (CODE, LABEL),
        Words(
            say(
                "The {} is {} ahead of the {} in the same data: {} of {} agree when moved by that; {}.",
                first,
                _distance(found),
                second,
                wording.plural(found.samples.overlap, "sample"),
                wording.steps(found.steps),
                given.unjudged(found),
            ),
            say(
                "Look for a batch that the {} draws before it trains (a sanity check, the shape of an example, a "
                "warm-up), or for a resumed {} that skips other batches than the {}. To compare the models as they "
                "are, {}.",
                first,
                first,
                second,
                given.taking(walk) or "let both begin at one sample",
            ),
        ),
        {"ahead": first, "by_samples": abs(found.samples.shift), "overlap": found.samples.overlap},
    )


def _distance(found: Given) -> str:
    """`1 batch (32 samples)`, `5 samples`."""
    shift = abs(found.samples.shift)
    if found.batch and shift % found.batch == 0:
        batches = wording.plural(shift // found.batch, "batch", "batches")
        return say("{} ({})", batches, wording.plural(shift, "sample"))
    return wording.plural(shift, "sample")
