"""What is said of an update that was made in a step which overflowed."""

from __future__ import annotations

from align import wording
from align.applied_skips import AppliedSkip
from align.sentences import joined, say

PROOFS = {
    "state": "and its own state moved with them",
    "gradient": "along their gradients",
    "nonfinite": "and some are not finite since",
}


def tell(found: AppliedSkip) -> str:
    """What moved, and how it is known that the optimizer did it."""
    name = joined(" ", found.moved[0])
    far = say(", by up to {}", wording.percent(found.farthest)) if found.farthest is not None else ""
    return say(
        "Step {}: the gradient scaler found an overflow, so that the step had to be skipped, but the optimizer "
        "moved {} of {} ({} first){}, {}.",
        found.step,
        wording.count(len(found.moved)),
        wording.plural(found.seen, "parameter"),
        name,
        far,
        PROOFS[found.proof],
    )


def advice(optimizer: str) -> str:
    """What to change."""
    which = optimizer or "the optimizer"
    return say(
        "Build {} without fused=True (or with foreach=True), so that the scaler itself leaves the step out; a fused "
        "optimizer has to read found_inf and grad_scale. Call scaler.step(optimizer), never optimizer.step().",
        which,
    )
