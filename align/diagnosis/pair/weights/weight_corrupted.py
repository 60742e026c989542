"""AL313: few elements of a weight differ, all others are equal."""

from __future__ import annotations

from collections.abc import Iterator

from align.comparison import Walk
from align.diagnosis.pair.weights import unlike
from align.diagnosis.registry import rule
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
    yield from unlike.of_relation(
        walk,
        (CODE, LABEL),
        lambda which, relations: say(
            "A few elements of initial weights differ, all others are equal: {}. In the candidate {}. No module was "
            "judged.",
            which,
            relations,
        ),
        ADVICE,
    )
