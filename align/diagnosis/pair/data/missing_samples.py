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
            f"The {side} leaves out {wording.plural(number, 'sample')} that the {other} trains on in "
            f"{wording.steps(found.steps)}, the {wording.count(samples.overlap)} others stand in the same order; "
            f"{given.unjudged(found)}.{given.tell_settings(given.loader_settings(walk))}",
            f"Look for what passes samples over in the {side} alone: a filter (length, empty text, images that cannot "
            f"be read), drop_last, a part of the data that a worker or rank gets. To compare the models as they are, "
            f"{given.taking(walk).removesuffix('; or ') or 'give both runs the same files'}.",
        ),
        {"side": side, "missing": number},
    )
