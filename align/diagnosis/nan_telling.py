"""What is said of a NaN alike, of one run and of a pair."""

from __future__ import annotations

from align.sentences import say


def backward_advice(name: str) -> str:
    """Which operators of some code make NaN in the backward."""
    return say(
        "Look at the operators of {} whose derivative is not finite at some value: sqrt or norm at 0, a branch "
        "that torch.where does not select, a division. Make the argument safe before the operator.",
        name,
    )


def forward_advice(name: str, capture: str) -> str:
    """Which operators of some code make NaN in the forward; `capture` says how to see their values."""
    return say(
        "Look in {} for 0/0, the logarithm or root of a negative number, Inf - Inf, or a row that is masked "
        "completely. {}",
        name,
        capture,
    )
