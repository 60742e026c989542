"""AL307: one run starts from weights that the other has a step earlier or later."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis.pair.weights import unlike
from align.diagnosis.registry import rule
from align.diagnosis.telling import Words
from align.records import Finding
from align.sentences import say

CODE = "AL307"
LABEL = "weight-stale"

ADVICE = "Compare which checkpoint each script resumes from, and whether it is read before or after the first update."


@rule(CODE, LABEL, rank=27)
def find(walk: Walk) -> Iterator[Finding]:
    """Weights that the other run holds after one of its steps."""
    tensors = unlike.told(walk, LABEL)
    if not tensors:
        return
    names = [name for name, _ in tensors]
    yield unlike.finding(
        walk,
        names,
        (CODE, LABEL),
        Words(
            say(
                "One run starts from weights of another step: {}. In the candidate {}. No module was judged.",
                unlike.of_total(walk, names),
                wording.listing(list(unlike.relation_words(tensors))),
            ),
            say("{} {}", ADVICE, unlike.same_weights(walk)),
        ),
    )
