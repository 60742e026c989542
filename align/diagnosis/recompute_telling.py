"""The sentences about what an activation checkpoint computed again: in which way it differs, what to change."""

from __future__ import annotations

from typing import Any

from align import wording
from align.recomputing import Recomputing, Repetition

KEEP_STATE = "checkpoint(..., preserve_rng_state=True)"

ADVICE = {
    "mask": (
        f"Let the checkpoint put the random generator back: {KEEP_STATE}, which is torch's default. In code of its "
        "own, keep the state of the device's generator before the first forward and set it before the second. "
        "`align capture --no-dropout` shows whether anything else differs."
    ),
    "rate": (
        "Leave the model in one mode between forward and backward: a call of .eval() or .train() before the backward "
        "switches dropout for the second forward."
    ),
    "dtype": (
        "Run the second forward under the same autocast as the first: torch's checkpoint does that for the device "
        "types that it knows; code of its own has to enter torch.autocast itself."
    ),
}
OTHER_ADVICE = (
    "Look for what changed between the two forwards: an input or a buffer that is written in place, a mode or a "
    "counter, random numbers that no generator of torch gives, an operator that is not deterministic."
)


def how(found: Repetition) -> str:
    """In which way a repetition is not what it was first."""
    zeros = [wording.percent(share) for share in found.zeros]
    counts = [one.stats.nonfinite if one.stats is not None else 0 for one in (found.first, found.again)]
    gone = "drops none" if found.zeros[1] == 0.0 else "drops elements that it kept"
    dtypes = [wording.dtype(one.dtype) for one in (found.first, found.again)]
    shapes = [wording.shape(one.shape) for one in (found.first, found.again)]
    value = f"it differs from the first time by relative L2 {wording.relative(found.relative_l2)}"
    return {
        "mask": f"drops other elements than the first time ({zeros[0]} of it are zero first, {zeros[1]} then)",
        "rate": f"{gone} the second time ({zeros[0]} of it are zero first, {zeros[1]} then)",
        "dtype": f"it is {dtypes[1]} the second time, {dtypes[0]} the first",
        "shape": f"it has the shape {shapes[1]}, {shapes[0]} the first time",
        "nonfinite": f"{counts[1]} of its elements are NaN or Inf, {counts[0]} the first time",
        "value": value if found.relative_l2 is not None else "its statistics are others than the first time",
    }[found.cause]


def so_many(found: Recomputing) -> str:
    """How much of what was computed again is something else."""
    others = f"{wording.count(len(found.differing))} of {wording.plural(found.compared, 'repeated tensor')}"
    return f"{others} {'differs' if len(found.differing) == 1 else 'differ'}."


def advice(found: Repetition) -> str:
    """What to change."""
    return ADVICE.get(found.cause, OTHER_ADVICE)


def evidence_of(found: Recomputing) -> dict[str, Any]:
    """The numbers of a finding."""
    first = found.differing[0]
    return {
        "cause": first.cause,
        "relative_l2": first.relative_l2,
        "zero_shares": list(first.zeros),
        "dtypes": [first.first.dtype, first.again.dtype],
        "differing": len(found.differing),
        "compared": found.compared,
        "equal": found.equal,
    }
