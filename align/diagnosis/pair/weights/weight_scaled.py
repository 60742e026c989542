"""AL312: weights are a multiple of the other run's."""

from __future__ import annotations

from collections.abc import Iterator

from align.comparison import Walk
from align.diagnosis.pair.weights import unlike
from align.diagnosis.registry import rule
from align.records import Finding
from align.sentences import say

CODE = "AL312"
LABEL = "weight-scaled"

ADVICE = (
    "Look for a scale that only one script puts into the weights: an initialisation by width or depth, a merged "
    "adapter, a quantisation scale, a norm that stores its gain as an offset from 1."
)


@rule(CODE, LABEL, rank=28)
def find(walk: Walk) -> Iterator[Finding]:
    """Weights that are the reference's times one factor, or with the other sign."""
    yield from unlike.of_relation(
        walk,
        (CODE, LABEL),
        lambda which, relations: say(
            "Initial weights are a multiple of those of the reference: {}. In the candidate {}. No module was judged.",
            which,
            relations,
        ),
        ADVICE,
    )
