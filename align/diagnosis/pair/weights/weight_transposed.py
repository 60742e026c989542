"""AL305: weights are transposed."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis.pair.weights import unlike
from align.diagnosis.registry import rule
from align.diagnosis.telling import Words
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
                "Initial weights are those of the reference transposed: {}. In the candidate {}. No module was judged.",
                unlike.of_total(walk, names),
                wording.listing(list(unlike.relation_words(tensors))),
            ),
            say("{} {}", ADVICE, unlike.same_weights(walk)),
        ),
    )
