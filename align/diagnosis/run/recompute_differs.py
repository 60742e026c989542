"""AL506 in one run: an activation checkpoint computes another thing than it did first."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.diagnosis import recompute_telling
from align.diagnosis.registry import run_rule
from align.inspection import Inspection
from align.records import Finding, Place, Severity
from align.sentences import capital, say

CODE = "AL506"
LABEL = "recompute-differs"


@run_rule(CODE, LABEL, rank=30)
def find(inspection: Inspection) -> Iterator[Finding]:
    """The first tensor, of the first step, whose repetition inside the backward is not what it was first."""
    found = next((one for one in inspection.recomputing if one.differing), None)
    if found is None:
        return
    first = found.differing[0]
    key = first.first.key
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "{}: an activation checkpoint computes {} {} again in the backward, and {}. {} The gradients belong to "
            "another forward than the one that made the loss.",
            capital(wording.step(key.step, key.micro)),
            key.name,
            key.slot,
            recompute_telling.how(first),
            recompute_telling.so_many(found),
        ),
        recompute_telling.advice(first),
        Place(key.step, str(key.phase), key.name, key.slot, key.micro, key.call),
        recompute_telling.evidence_of(found),
        {"step": key.step, "micro": key.micro, "name": key.name, "slot": key.slot, "cause": first.cause},
    )
