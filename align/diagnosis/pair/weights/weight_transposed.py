"""AL305: weights are transposed."""

from __future__ import annotations

from collections.abc import Iterator

from align.comparison import Walk
from align.diagnosis.pair.weights import unlike
from align.diagnosis.registry import rule
from align.records import Finding
from align.sentences import say

CODE = "AL305"
LABEL = "weight-transposed"

ADVICE = (
    "Transpose them where the checkpoint is converted: nn.Linear holds [out, in], Conv1D of transformers and most "
    "other frameworks [in, out]."
)


@rule(CODE, LABEL, rank=25)
def find(walk: Walk) -> Iterator[Finding]:
    """Weights that are those of the reference, transposed."""
    yield from unlike.of_relation(
        walk,
        (CODE, LABEL),
        lambda which, relations: say(
            "Initial weights are those of the reference transposed: {}. In the candidate {}. No module was judged.",
            which,
            relations,
        ),
        ADVICE,
    )
