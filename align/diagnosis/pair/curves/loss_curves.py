"""AL804: the losses of the runs part for good, where nothing that was captured differs."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.curves import CurveComparison, compare_curves
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.records import Finding, Place, Severity
from align.sentences import say
from align.timelines import LOSS, LostLoss

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
    """Where only one loss is not finite, or the mean of the candidate's stays away from that of the reference."""
    if walk.lost_loss is not None:
        yield _lost(walk, walk.lost_loss)
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


def _lost(walk: Walk, lost: LostLoss) -> Finding:
    """An error where the runs part there, and not at a learning rate before it."""
    sides = ("candidate", "reference") if lost.by_candidate else ("reference", "candidate")
    return Finding(
        CODE,
        LABEL,
        Severity.ERROR if telling.parts_by(walk, LOSS) else Severity.WARNING,
        say(
            "What was captured agrees ({}), but the loss of the {} is not finite in {}, where that of the {} is {}.",
            wording.steps(walk.steps),
            sides[0],
            wording.step(lost.step),
            sides[1],
            wording.loss(lost.loss),
        ),
        say(
            "`align inspect {}` tells what it knows of the NaN or Inf. Capture both runs with "
            "`align capture --steps {}:{}` and compare again.",
            walk.candidate_path if lost.by_candidate else walk.reference_path,
            max(0, lost.step - 1),
            lost.step + 1,
        ),
        Place(step=lost.step, phase="loss", name=LOSS),
        {"step": lost.step, sides[1]: lost.loss},
        {"step": lost.step},
    )
