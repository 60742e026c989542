"""Whether two captures are of one run, repeated, and where two such runs are no longer equal to the last bit."""

from __future__ import annotations

from align import metrics
from align.comparison import Walk
from align.pairing import Pair
from align.records import Comparison, Detail, Phase, RunInfo

SAME = (
    "device_type", "device_name", "device_count", "parameters_on", "simulated", "rank", "world_size", "versions",
    "environment", "flags", "seeds", "autocast", "command", "script_hash", "optimizers", "same_start", "loaders",
    "perturbed", "classes",
)  # fmt: skip
"""What says how a run was made, all of which must be equal."""

CHAINED = frozenset({Phase.FORWARD, Phase.LOSS, Phase.BACKWARD, Phase.GRADIENT, Phase.UPDATE})
"""What a step computes; batches and initial weights are what it computes from."""


def is_repeat(reference: RunInfo, candidate: RunInfo) -> bool:
    """Whether both runs are one command on one kind of device with one configuration, as far as the files tell."""
    known = bool(reference.script_hash and reference.device_name and reference.seeds and reference.command)
    return known and all(getattr(reference, name) == getattr(candidate, name) for name in SAME)


def first_unequal(walk: Walk) -> Comparison | None:
    """The first computed tensor that is not equal to the last bit, where all before it is.

    None where that is not known: from statistics alone, where the runs were given other batches or weights, or hold
    tensors that the other has not.
    """
    if Detail.STATS in {walk.reference.detail, walk.candidate.detail} or walk.only_reference or walk.only_candidate:
        return None
    for comparison in walk.comparisons:
        if not metrics.identical(Pair(comparison.reference, comparison.candidate)):
            return comparison if comparison.key.phase in CHAINED and comparison.relative_l2 is not None else None
    return None
