"""The steps that two runs have in common, also where one counts from 0 and the other from 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from align import wording
from align.acceptance.intervals import Averaged, averaged, spacing
from align.curve_records import CurveKind, Curves, Quantity
from align.errors import ComparisonError
from align.sentences import say

Steps = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class CurvePair:
    """Two runs at the steps at which both recorded a loss, in the numbers of the reference.

    `recorded` says at how many steps each recorded a loss, `begins` whether the first common step is the first of both,
    as nearly as they log. `unseen` are the steps that were not compared at which the candidate's loss is NaN or Inf,
    and which it did not skip. `notes` tell of another numbering, of means and of steps left out.
    """

    reference: Curves
    candidate: Curves
    recorded: tuple[int, int]
    begins: bool = True
    unseen: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def steps(self) -> Steps:
        """The common steps."""
        return self.reference.steps


def pair_curves(
    reference: Curves, candidate: Curves, wanted: tuple[int | None, int | None] = (None, None)
) -> CurvePair:
    """Both runs at their common steps from `wanted[0]` on and before `wanted[1]`, None for no bound.

    Raises ComparisonError where a run recorded no loss, and where there is no common step.
    """
    ours, theirs = _with_loss(reference), _with_loss(candidate)
    shift = 0 if _same_counting(reference, candidate) else numbering_shift(ours.steps, theirs.steps)
    notes = [] if shift == 0 else [_shift_note(reference, candidate, shift)]
    moved = replace(theirs, steps=theirs.steps + shift)
    means = averaged(ours, moved), averaged(moved, ours)
    first = min(ours.steps[0], moved.steps[0])
    lost = moved.steps[moved.nonfinite & ~moved.skipped]
    recorded = (len(ours.steps), len(theirs.steps))
    ours, moved = (run if mean is None else mean.curves for run, mean in zip((ours, moved), means, strict=True))
    common = np.intersect1d(ours.steps, moved.steps, assume_unique=True)
    if not len(common):
        raise ComparisonError(
            say(
                "Cannot compare '{}' and '{}': no step is in both; the first records {}, the second {}. Name "
                "logs of the same steps.",
                reference.path,
                candidate.path,
                _written(ours.steps),
                _written(theirs.steps),
            )
        )
    chosen = _bounded(common, wanted)
    if not len(chosen):
        raise ComparisonError(
            say(
                "Cannot compare '{}' and '{}' at {}: they have {} in common. Ask for steps within.",
                reference.path,
                candidate.path,
                _asked(wanted),
                _written(common),
            )
        )
    notes += _mean_notes(reference, candidate, means)
    notes += _left_out(chosen, recorded, means)
    begins = bool(chosen[0] - first <= spacing(common))
    unseen = tuple(np.setdiff1d(_bounded(lost, wanted), _covered(chosen, means[1])).tolist())
    return CurvePair(at_steps(ours, chosen), at_steps(moved, chosen), recorded, begins, unseen, tuple(notes))


def at_steps(curves: Curves, steps: Steps) -> Curves:
    """The run at some of its steps, which must all be there."""
    return _taken(curves, np.searchsorted(curves.steps, steps))


def numbering_shift(reference: Steps, candidate: Steps) -> int:
    """What to add to the candidate's numbers: 0, or 1 or -1 where one run counts from 0 and the other from 1.

    The first numbers tell it where both record every n-th step with n = 1. A run that counts from 1 and records every
    n-th step begins with n: where it also ends one number after the other, which begins with 0, that is told, too. Two
    runs that end alike count alike: one only lacks its first step.
    """
    if not len(reference) or not len(candidate):
        return 0
    if _from_zero_and_one(reference, candidate):
        return -1
    return 1 if _from_zero_and_one(candidate, reference) else 0


def _from_zero_and_one(zero: Steps, one: Steps) -> bool:
    """Whether the first counts from 0 and the second from 1."""
    if zero[0] != 0 or one[0] < 1:
        return False
    if one[0] == 1:
        return bool(zero[-1] != one[-1] and spacing(zero) == spacing(one))
    return bool(spacing(zero) == 1 and spacing(one) == one[0] and one[-1] == zero[-1] + 1)


def _same_counting(reference: Curves, candidate: Curves) -> bool:
    """Captures all count from 0."""
    return reference.kind is CurveKind.CAPTURE and candidate.kind is CurveKind.CAPTURE


def _with_loss(curves: Curves) -> Curves:
    """The run at the steps at which it recorded a loss, finite or not."""
    loss = curves.columns.get(Quantity.LOSS)
    kept = curves.nonfinite if loss is None else curves.nonfinite | ~np.isnan(loss)
    if not kept.any():
        raise ComparisonError(
            say(
                "Cannot judge '{}': it records no loss. Name the column that is the loss by `--column "
                "loss=NAME`, or another file of this run.",
                curves.path,
            )
        )
    return _taken(curves, np.flatnonzero(kept))


def _taken(curves: Curves, places: NDArray[np.intp]) -> Curves:
    return replace(
        curves,
        steps=curves.steps[places],
        columns={quantity: values[places] for quantity, values in curves.columns.items()},
        nonfinite=curves.nonfinite[places],
        skipped=curves.skipped[places],
    )


def _bounded(steps: Steps, wanted: tuple[int | None, int | None]) -> Steps:
    low, high = wanted
    if low is not None:
        steps = steps[steps >= low]
    return steps if high is None else steps[steps < high]


def _shift_note(reference: Curves, candidate: Curves, shift: int) -> str:
    zero, one = (reference, candidate) if shift < 0 else (candidate, reference)
    return say(
        "{} counts its steps from 0 and {} from 1: steps that are the same update were compared, and are named by "
        "the reference's numbers.",
        zero.path,
        one.path,
    )


def _covered(chosen: Steps, means: Averaged | None) -> Steps:
    """The steps that the compared rows stand for."""
    if means is None:
        return chosen
    distance = spacing(chosen) // means.rows
    return np.unique(np.concatenate([chosen - distance * (back + means.late) for back in range(means.rows)]))


def _mean_notes(reference: Curves, candidate: Curves, means: Sequence[Averaged | None]) -> list[str]:
    """What was averaged, a sentence for the run with the finer log."""
    sides = ((reference, candidate), (candidate, reference))
    return [
        say(
            "Each loss of {} is a mean over {} rows of {}: it was compared with the mean of these rows.",
            coarse.path,
            found.rows,
            fine.path,
        )
        for (fine, coarse), found in zip(sides, means, strict=True)
        if found is not None
    ]


def _left_out(common: Steps, recorded: Sequence[int], means: Sequence[Averaged | None]) -> list[str]:
    """A note for each run of which not all steps were compared."""
    names = (say("the reference"), say("the candidate"))
    return [
        say(
            "Of {} in the log of {}, {} were compared: {}.",
            wording.plural(count, "step"),
            name,
            wording.count(len(common)),
            _written(common),
        )
        for name, count, found in zip(names, recorded, means, strict=True)
        if count > len(common) * (1 if found is None else found.rows)
    ]


def _written(steps: Steps) -> str:
    """`step 7`, `steps 0-999`, `steps 0-990 (100 of them)`."""
    first, last = int(steps[0]), int(steps[-1])
    if len(steps) == 1:
        return say("step {}", first)
    if last - first + 1 == len(steps):
        return say("steps {}-{}", first, last)
    return say("steps {}-{} ({} of them)", first, last, wording.count(len(steps)))


def _asked(wanted: tuple[int | None, int | None]) -> str:
    low, high = ("" if bound is None else str(bound) for bound in wanted)
    return f"--steps {low}:{high}"
