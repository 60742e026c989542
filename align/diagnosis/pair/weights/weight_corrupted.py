"""AL313: few elements of a weight differ, all others are equal."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis.pair.weights import unlike
from align.diagnosis.registry import rule
from align.diagnosis.telling import Words
from align.records import Finding
from align.sentences import say

CODE = "AL313"
LABEL = "weight-corrupted"

ADVICE = (
    "Compare the files that were loaded by their checksum (`align checkpoint A B`), and look for rows that only "
    "one script sets: added words, a padding row, an interrupted download."
)


@rule(CODE, LABEL, rank=29)
def find(walk: Walk) -> Iterator[Finding]:
    """Weights of which a few elements or slices differ."""
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
                "A few elements of initial weights differ, all others are equal: {}. In the candidate {}. No module "
                "was judged.",
                unlike.of_total(walk, names),
                wording.listing(list(unlike.relation_words(tensors))),
            ),
            say("{} {}", ADVICE, unlike.same_weights(walk)),
        ),
    )
