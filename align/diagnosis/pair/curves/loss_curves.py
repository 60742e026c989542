"""AL804: the losses of the runs part for good, where nothing that was captured differs."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.curves import CurveComparison, compare_curves, first_lost
from align.diagnosis.registry import rule
from align.records import Finding, Place, Severity
from align.sentences import say

CODE = "AL804"
LABEL = "loss-diverges"

AROUND = 20
"""How many steps before the losses part are worth capturing: a window of means sees it that late."""


def uncaptured(walk: Walk) -> CurveComparison | None:
    """The curves of both runs, where all that was captured agrees; None where tensors say more."""
    if walk.first is not None:
        return None
    return compare_curves(walk.reference_timeline, walk.candidate_timeline)


@rule(CODE, LABEL, rank=70)
def find(walk: Walk) -> Iterator[Finding]:
    """Where only the candidate's loss is not finite, or its mean stays away from that of the reference."""
    lost = first_lost(walk.reference_timeline, walk.candidate_timeline) if walk.first is None else None
    if lost is not None:
        yield _lost(walk, *lost)
        return
    curves = uncaptured(walk)
    if curves is None or curves.apart is None:
        return
    begin = max(0, curves.apart - AROUND)
    side = "above" if curves.last > 0 else "below"
    yield Finding(
        CODE,
        LABEL,
        Severity.WARNING,
        say(
            "What was captured agrees ({}), but from {} on the loss of the candidate stays {} that of the "
            "reference, at the end by {}.",
            wording.steps(walk.steps),
            wording.step(curves.apart),
            side,
            wording.percent(abs(curves.last)),
        ),
        say(
            "Capture both runs there with `align capture --steps {}:{} --every {}` and compare again. Where the "
            "data order, dropout or the number of devices differ, losses differ without a fault; a second run of "
            "the reference shows by how much.",
            begin,
            curves.apart + 1,
            AROUND // 4,
        ),
        Place(step=curves.apart, phase="loss", name="loss"),
        {"last": curves.last, "largest": curves.largest, "steps": curves.count},
        {"step": curves.apart, "last": curves.last},
    )


def _lost(walk: Walk, step: int, loss: float) -> Finding:
    return Finding(
        CODE,
        LABEL,
        Severity.WARNING,
        say(
            "What was captured agrees ({}), but the loss of the candidate is not finite in {}, where that of the "
            "reference is {}.",
            wording.steps(walk.steps),
            wording.step(step),
            wording.loss(loss),
        ),
        say(
            "`align inspect {}` tells what it knows of the NaN or Inf. Capture both runs with "
            "`align capture --steps {}:{}` and compare again.",
            walk.candidate_path,
            max(0, step - 1),
            step + 1,
        ),
        Place(step=step, phase="loss", name="loss"),
        {"step": step, "reference": loss},
        {"step": step},
    )
