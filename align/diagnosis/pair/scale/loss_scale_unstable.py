"""AL608: the loss scale of one of two runs jumps, or it alone skips steps."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import scale_telling
from align.diagnosis.registry import rule
from align.inspection.loss_scale import CALIBRATION_STEPS
from align.records import Finding, Phase, Place, Severity
from align.sentences import say

CODE = "AL608"
LABEL = "loss-scale-unstable"

REPEATED = 3
"""So many steps that one run alone skips are no outliers (published rule)."""


@rule(CODE, LABEL, rank=46)
def find(walk: Walk) -> Iterator[Finding]:
    """Jumps of one scale alone, and steps that one run alone skips at a scale that both have."""
    found = list(scale_telling.of_pair(walk, CODE, LABEL))
    yield from found
    if not found:
        yield from _skips_of_one(walk)


def _skips_of_one(walk: Walk) -> Iterator[Finding]:
    theirs = {row.step: row for row in walk.candidate_timeline}
    both = [(row, theirs[row.step]) for row in walk.reference_timeline if row.step in theirs]
    later = [
        (ours, other)
        for ours, other in both
        if ours.step >= CALIBRATION_STEPS and ours.loss_scale == other.loss_scale and ours.skipped != other.skipped
    ]
    alone = [ours.step for ours, other in later if other.skipped]
    mirrored = len(later) - len(alone)
    grown = sum(row.loss_scale_after > row.loss_scale for row in walk.candidate_timeline)
    # After each growth either run may be the one that overflows.
    if len(alone) - mirrored < REPEATED + grown:
        return
    yield Finding(
        CODE,
        LABEL,
        Severity.WARNING,
        say(
            "The candidate alone skips {} at a loss scale that both runs have, step {} first; the reference alone "
            "skips {}.",
            wording.plural(len(alone), "step"),
            alone[0],
            mirrored,
        ),
        say(
            "Capture step {} in both runs, `align capture --steps {} ...`, and compare: what overflows in the "
            "candidate is smaller in the reference.",
            alone[0],
            alone[0],
        ),
        Place(alone[0], str(Phase.SCALER), scale_telling.SCALER, "scale"),
        {"candidate_alone": len(alone), "reference_alone": mirrored, "first": alone[0]},
        {"step": alone[0], "candidate_alone": len(alone), "reference_alone": mirrored},
    )
