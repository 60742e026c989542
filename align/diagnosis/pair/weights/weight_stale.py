"""AL307: one run starts from weights that the other has a step earlier or later."""

from __future__ import annotations

from collections.abc import Iterator

from align.comparison import Walk
from align.diagnosis.pair.weights import unlike
from align.diagnosis.registry import rule
from align.records import Finding
from align.sentences import say

CODE = "AL307"
LABEL = "weight-stale"

ADVICE = "Compare which checkpoint each script resumes from, and whether it is read before or after the first update."


@rule(CODE, LABEL, rank=27)
def find(walk: Walk) -> Iterator[Finding]:
    """Weights that the other run holds after one of its steps."""
    yield from unlike.of_relation(
        walk,
        (CODE, LABEL),
        lambda which, relations: say(
            "One run starts from weights of another step: {}. In the candidate {}. No module was judged.",
            which,
            relations,
        ),
        ADVICE,
    )
