"""AL304: weights hold the same values in another order."""

from __future__ import annotations

from collections.abc import Iterator

from align.comparison import Walk
from align.diagnosis.pair.weights import unlike
from align.diagnosis.registry import rule
from align.records import Finding
from align.relations import Relation, RelationKind
from align.sentences import say

CODE = "AL304"
LABEL = "weight-permuted"

ADVICE = (
    "Compare how both scripts convert the checkpoint: the order of fused q, k and v rows, of gate and up halves, "
    "of rotary pairs, and how the parts of tensor-parallel ranks are put together."
)


@rule(CODE, LABEL, rank=24)
def find(walk: Walk) -> Iterator[Finding]:
    """Weights whose values are those of the reference, in another order."""
    yield from unlike.of_relation(
        walk,
        (CODE, LABEL),
        lambda which, relations: say(
            "Initial weights hold the values of the reference in another order: {}. In the candidate {}. No module "
            "was judged.",
            which,
            relations,
        ),
        say("{}{}", ADVICE, _more(unlike.told(walk, LABEL))),
    )


def _more(tensors: list[tuple[str, Relation]]) -> str:
    """What to capture where only that the order differs is known."""
    if all(relation.kind is not RelationKind.REORDERED for _, relation in tensors):
        return ""
    return " Capture both runs with `align capture --keep init` to be told which rows went where."
