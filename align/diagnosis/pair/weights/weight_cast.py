"""AL306: weights went through a shorter format."""

from __future__ import annotations

from collections.abc import Iterator

from align.comparison import Walk
from align.diagnosis.pair.weights import unlike
from align.diagnosis.registry import rule
from align.records import Finding
from align.sentences import say

CODE = "AL306"
LABEL = "weight-cast"

ADVICE = (
    "Load the checkpoint in the dtype that it was saved in, and cast in both runs at the same point "
    "(`torch_dtype=`, `model.to(dtype)`)."
)


@rule(CODE, LABEL, rank=26)
def find(walk: Walk) -> Iterator[Finding]:
    """Weights that are those of the other run, rounded to a shorter format."""
    yield from unlike.of_relation(
        walk,
        (CODE, LABEL),
        lambda which, relations: say(
            "Initial weights went through a shorter format in one run: {}. In the candidate {}. No module was judged.",
            which,
            relations,
        ),
        ADVICE,
    )
