"""AL103: tensors that have another dtype in the candidate."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.pairing import Pair
from align.records import Finding, Severity, TensorKey
from align.sentences import say

CODE = "AL103"
LABEL = "dtype-differs"

EXAMPLES = 5


@rule(CODE, LABEL, rank=60)
def find(walk: Walk) -> Iterator[Finding]:
    """All dtypes that differ; a warning where the first stands before or at the first difference."""
    differences = walk.dtype_differences
    if not differences:
        return
    first = differences[0]
    key = first.key
    ours, theirs = wording.dtype(first.reference.dtype), wording.dtype(first.candidate.dtype)
    more = (
        say("; {} changed dtype too", wording.plural(len(differences) - 1, "other tensor"))
        if len(differences) > 1
        else ""
    )
    yield Finding(
        CODE,
        LABEL,
        Severity.WARNING if _explains(walk, key) else Severity.NOTE,
        say(
            "{}: {} is {} in the reference and {} in the candidate{}.",
            telling.opening(key),
            telling.tensor(key),
            ours,
            theirs,
            more,
        ),
        "Give both runs one dtype there: autocast and its dtype, casts in the model, the dtype of the checkpoint.",
        telling.place_of(key),
        {"tensors": len(differences), "examples": [_example(pair) for pair in differences[:EXAMPLES]]},
        {
            "step": key.step,
            "phase": str(key.phase),
            "name": key.name,
            "slot": key.slot,
            "reference_dtype": ours,
            "candidate_dtype": theirs,
            "tensors": len(differences),
        },
    )


def _explains(walk: Walk, key: TensorKey) -> bool:
    if walk.first is None:
        return False
    comparison = walk.first.comparison
    first = (comparison.key.step, comparison.reference.order)
    order = next(pair.reference.order for pair in walk.dtype_differences if pair.key == key)
    return (key.step, order) <= first


def _example(pair: Pair) -> str:
    return say("{}: {} / {}", pair.key, wording.dtype(pair.reference.dtype), wording.dtype(pair.candidate.dtype))
