"""What meets every limit and is odd all the same: one file twice, losses left out, single steps far apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from align import wording
from align.acceptance.case import Case
from align.acceptance_records import Criterion, Outcome
from align.curve_records import CurveKind
from align.sentences import say

FEWEST = 20
"""So many losses that are equal in every digit are no chance."""
FAR = 0.1
"""A single loss that is off by more has the height of a spike."""
USUAL = 20.0
"""Times the median difference: a single loss that is off by less may be the scatter of this pair."""
OF_THE_LOSS = frozenset({"first-loss", "early-window", "divergence", "mean-error", "worst-window", "spikes", "shift"})


def unlikely(case: Case, criteria: Sequence[Criterion]) -> list[str]:
    """A sentence for each thing that a person who signs should know."""
    return [*_copies(case), *_not_finite(case), *_unseen(case), *_far(case, criteria)]


def _copies(case: Case) -> list[str]:
    ours, theirs = case.pair.reference, case.pair.candidate
    if ours.sha256 and ours.sha256 == theirs.sha256:
        return [say("Both files are the same, byte by byte: a run was compared with itself.")]
    if ours.kind is theirs.kind is CurveKind.CAPTURE or len(case.losses) < FEWEST:
        return []
    first, second = case.losses.raw
    if not np.array_equal(first, second) or bool((first == first[0]).all()):
        return []
    return [
        say(
            "The losses of both logs are equal in every digit at all {}, as those of two devices hardly ever are: is "
            "one log a copy of the other?",
            wording.plural(len(first), "step"),
        )
    ]


def _not_finite(case: Case) -> list[str]:
    """Losses of the reference that are not finite: no loss of the candidate was held against them."""
    ours, theirs = case.pair.reference, case.pair.candidate
    lost = ours.nonfinite & ~ours.skipped
    if not lost.any():
        return []
    return [
        say(
            "The reference's loss is NaN or Inf at {}, first at step {}, and the candidate's too at {} of them: no "
            "loss was compared there.",
            wording.plural(int(lost.sum()), "step"),
            int(case.pair.steps[lost][0]),
            wording.count(int((lost & theirs.nonfinite).sum())),
        )
    ]


def _unseen(case: Case) -> list[str]:
    unseen = case.pair.unseen
    if not unseen:
        return []
    return [
        say(
            "The candidate's loss is NaN or Inf at {} that could not be compared, first at step {}: the reference's "
            "log does not have them.",
            wording.plural(len(unseen), "step"),
            int(unseen[0]),
        )
    ]


def _far(case: Case, criteria: Sequence[Criterion]) -> list[str]:
    """Single losses that are far apart, which means over windows hide; where a limit is missed, that is said."""
    if any(each.code in OF_THE_LOSS and each.outcome is Outcome.FAIL for each in criteria):
        return []
    losses = case.losses.only(~case.losses.near)
    if not len(losses):
        return []
    away = np.abs(losses.relative)
    usual = [float(np.abs(floor.relative).max(initial=0.0)) for floor in case.floors]
    far = np.flatnonzero(away > max(FAR, USUAL * float(np.median(away)), *usual))
    if not len(far):
        return []
    worst = int(far[np.argmax(away[far])])
    return [
        say(
            "Single losses are far apart at {}, most at step {}: {} in the reference and {} in the candidate.",
            wording.plural(len(far), "step"),
            int(losses.steps[worst]),
            wording.loss(float(losses.raw[0][worst])),
            wording.loss(float(losses.raw[1][worst])),
        )
    ]
