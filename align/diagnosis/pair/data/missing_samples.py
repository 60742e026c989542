"""AL209: one run leaves out samples that the other trains on."""

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

CODE = "AL209"
LABEL = "missing-samples"


@rule(CODE, LABEL, rank=12)
def find(walk: Walk) -> Iterator[Finding]:
    """Samples of one run that the other passes over, where all else stands in one order; not samples that changed."""
    found = given.first_difference(walk)
    if found is None or found.kind is not SampleKind.GAPS:
        return
    samples = found.samples
    if bool(samples.missing) == bool(samples.extra):
        return
    number = samples.missing or samples.extra
    side, other = ("candidate", "reference") if samples.missing else ("reference", "candidate")
    yield given.finding(
        walk,
        found,
        (CODE, LABEL),
        Words(
            say(
                "The {} leaves out {} that the {} trains on in {}, the {} others stand in the same order; {}.{}",
                side,
                wording.plural(number, "sample"),
                other,
                wording.steps(found.steps),
                wording.count(samples.overlap),
                given.unjudged(found),
                given.tell_settings(given.loader_settings(walk)),
            ),
            say(
                "Look for what passes samples over in the {} alone: a filter (length, empty text, images that "
                "cannot be read), drop_last, a part of the data that a worker or rank gets. To compare the models "
                "as they are, {}.",
                side,
                given.taking(walk) or "give both runs the same files",
            ),
        ),
        {"side": side, "missing": number},
    )
