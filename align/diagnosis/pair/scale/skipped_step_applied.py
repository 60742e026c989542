"""AL610: one of two runs made an update in a step that overflowed in both."""

from __future__ import annotations

from collections.abc import Iterator

from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.diagnosis.skipped_step_telling import advice, tell
from align.records import Finding, Phase, Place, Severity
from align.sentences import say, small

CODE = "AL610"
LABEL = "skipped-step-applied"


@rule(CODE, LABEL, rank=38)
def find(walk: Walk) -> Iterator[Finding]:
    """The step in which only one run left the parameters as they were."""
    for found, by_candidate in walk.applied_skips[:1]:
        side, other = ("candidate", "reference") if by_candidate else ("reference", "candidate")
        timeline = walk.candidate_timeline if by_candidate else walk.reference_timeline
        optimizer = next((row.optimizer for row in timeline if row.step == found.step), "")
        summary = tell(found)
        first = walk.first.comparison.key if walk.first is not None else None
        place = Place(found.step, str(Phase.PARAM), *found.moved[0])
        if first is not None and (first.step, first.phase) == (found.step, Phase.PARAM):
            place = telling.place_of(first)
        yield Finding(
            CODE,
            LABEL,
            Severity.ERROR,
            say("In the {} alone, {} The {} skipped it.", say(side), small(summary), say(other)),
            advice(optimizer),
            place,
            {"moved": len(found.moved), "parameters": found.seen, "proof": found.proof, "farthest": found.farthest,
             "side": side},
            {"step": found.step, "side": side, "name": found.moved[0][0], "moved": len(found.moved)},
        )  # fmt: skip
