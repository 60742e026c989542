"""AL307: one run starts from weights that the other has a step earlier or later."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis.pair.weights import unlike
from align.diagnosis.registry import rule
from align.diagnosis.telling import Words
from align.records import Finding

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
            f"One run starts from weights of another step: {unlike.of_total(walk, names)}. "
            f"In the candidate {wording.listing(list(unlike.relation_words(tensors)))}. No module was judged.",
            f"{ADVICE} {unlike.same_weights(walk)}",
        ),
    )
