"""AL605: zeros of one run where the other has numbers below the normal ones of fp16 or bf16."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.records import Comparison, Finding, Severity, TensorStats
from align.sentences import say

CODE = "AL605"
LABEL = "denormal-flush"

SHORT = frozenset({"float16", "bfloat16"})
SIDES = ("reference", "candidate")

FEWEST = 100
"""Fewer subnormal numbers in all may differ by chance."""

LEFT = 0.01
"""A device that flushes leaves none of them; this share allows for what is only moved."""

WITHIN = 0.1
"""The zeros that one run has more are the subnormals of the other within this share (numerics)."""

SHARE_OF_TENSOR = 0.2
"""A tensor that loses this share of its elements is another one."""


@rule(CODE, LABEL, rank=45)
def find(walk: Walk) -> Iterator[Finding]:
    """Over all tensors that agree otherwise: as many zeros more on one side as the other has subnormals."""
    pairs = [each for each in walk.comparisons if _is_short(each)]
    for side in (1, 0):
        flushed = [each for each in pairs if _stats(each, 1 - side).subnormals and not _stats(each, side).subnormals]
        lost = sum(_stats(each, 1 - side).subnormals for each in flushed)
        more = sum(_stats(each, side).zeros - _stats(each, 1 - side).zeros for each in flushed)
        kept = sum(_stats(each, side).subnormals for each in pairs)
        if lost >= FEWEST and kept <= LEFT * lost and abs(more - lost) <= WITHIN * lost:
            yield _finding(walk, flushed, side, lost, more)
            return


def _finding(walk: Walk, flushed: list[Comparison], side: int, lost: int, more: int) -> Finding:
    first = flushed[0]
    worst = max(flushed, key=lambda each: _stats(each, 1 - side).subnormals / max(_stats(each, side).count, 1))
    share = _stats(worst, 1 - side).subnormals / max(_stats(worst, side).count, 1)
    parts = walk.first is not None and any(each.reference is walk.first.comparison.reference for each in flushed)
    return Finding(
        CODE,
        LABEL,
        Severity.ERROR if parts else Severity.WARNING if share >= SHARE_OF_TENSOR else Severity.NOTE,
        say(
            "The {} makes 0 of the smallest numbers: in {} it has {} zeros more, where the {} has {} numbers below "
            "the normal ones of {}. Most is lost in {} ({} of it).",
            SIDES[side],
            wording.plural(len(flushed), "tensor"),
            wording.count(more),
            SIDES[1 - side],
            wording.count(lost),
            wording.dtype(first.reference.dtype),
            telling.tensor(worst.key),
            wording.percent(share),
        ),
        "Raise the loss scale, so that gradients stay above 6.1e-5, or train in bf16; see `align inspect` of the run "
        "for the scales that would fit.",
        telling.place_of(first.key),
        {"side": SIDES[side], "zeros_more": more, "subnormals_of_other": lost, "largest_share": share},
        {"side": SIDES[side], "tensors": len(flushed), "subnormals": lost, "zeros": more},
    )


def _is_short(each: Comparison) -> bool:
    ours, theirs = each.reference, each.candidate
    same = ours.dtype == theirs.dtype and ours.shape == theirs.shape and ours.same_as is None
    return same and ours.dtype in SHORT and ours.stats is not None and theirs.stats is not None


def _stats(each: Comparison, side: int) -> TensorStats:
    return (each.reference, each.candidate)[side].stats or TensorStats(0)
