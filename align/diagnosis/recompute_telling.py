"""The sentences about what an activation checkpoint computed again: in which way it differs, what to change."""

from __future__ import annotations

from typing import Any

from align import wording
from align.recomputing import Recomputing, Repetition
from align.sentences import say

KEEP_STATE = "checkpoint(..., preserve_rng_state=True)"

ADVICE = {
    "mask": (
        say(
            "Let the checkpoint put the random generator back: {}, which is torch's default. In code of its own, "
            "keep the state of the device's generator before the first forward and set it before the second. `align "
            "capture --no-dropout` shows whether anything else differs.",
            KEEP_STATE,
        )
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
    value = say("it differs from the first time by relative L2 {}", wording.relative(found.relative_l2))
    return {
        "mask": say("drops other elements than the first time ({} of it are zero first, {} then)", zeros[0], zeros[1]),
        "rate": say("{} the second time ({} of it are zero first, {} then)", gone, zeros[0], zeros[1]),
        "dtype": say("it is {} the second time, {} the first", dtypes[1], dtypes[0]),
        "shape": say("it has the shape {}, {} the first time", shapes[1], shapes[0]),
        "nonfinite": say("{} of its elements are NaN or Inf, {} the first time", counts[1], counts[0]),
        "value": value if found.relative_l2 is not None else "its statistics are others than the first time",
    }[found.cause]


def so_many(found: Recomputing) -> str:
    """How much of what was computed again is something else."""
    others = say("{} of {}", wording.count(len(found.differing)), wording.plural(found.compared, "repeated tensor"))
    return say("{} {}.", others, "differs" if len(found.differing) == 1 else "differ")


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
