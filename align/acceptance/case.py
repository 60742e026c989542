"""What every criterion is told by: both runs side by side, and how far repeats of the reference are from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from align import wording
from align.acceptance.pairing import CurvePair, at_steps, pair_curves
from align.acceptance.policy import Policy, Setting
from align.acceptance.scale import Losses, Values, losses_of
from align.acceptance.together import another_training
from align.acceptance_records import Limit
from align.curve_records import Curves, Quantity
from align.errors import ComparisonError
from align.records import DiffResult
from align.sentences import say

Statistic = Callable[[Losses], float]

DOUBTFUL = 0.3
"""Where a loss is near 0, healthy runs were seen to differ by up to 29 % of it: so much of the scale, which is larger
than the loss there, is no fault for certain."""


@dataclass(frozen=True, slots=True)
class OperatorResult:
    """One operator held against a standard elsewhere: what was measured, the limit, and where that is from."""

    name: str
    dtype: str
    measured: float
    limit: float
    source: str = ""

    @property
    def met(self) -> bool:
        """Whether the limit is kept; what was not a number keeps none."""
        return self.measured <= self.limit


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """An acceptance before it is judged.

    `floors` are the losses of pairs of runs of the reference that differ by rounding alone, `norms` the pairs that
    they were taken from. `diff` is the comparison of two captures; where there is none, `undiffed` says why.
    `operators` is None where no results of operators were given.
    """

    policy: Policy
    pair: CurvePair
    losses: Losses
    floors: tuple[Losses, ...] = ()
    norms: tuple[CurvePair, ...] = ()
    diff: DiffResult | None = None
    undiffed: str = ""
    operators: tuple[OperatorResult, ...] | None = None
    notes: tuple[str, ...] = ()

    def raised(self, setting: Setting, statistic: Statistic) -> Limit:
        """The limit of a criterion, raised to what repeats of the reference differ by where that is more."""
        return self.raised_by(setting, [abs(statistic(floor)) for floor in self.floors])

    def raised_by(self, setting: Setting, distances: Sequence[float]) -> Limit:
        """As `raised`, by distances that are not of losses."""
        limit = setting.limit or 0.0
        times = self.policy.floor_times
        measured = times * max(distances, default=0.0)
        if measured <= limit:
            return Limit(limit, setting.form.way, setting.source)
        source = say(
            "{} times what repeats of the reference differ by, which is more than the policy's {} ({})",
            f"{times:g}",
            wording.share(limit),
            self.policy.floor_source or setting.source,
        )
        return Limit(measured, setting.form.way, source)

    def doubtful(self, statistic: Statistic, limit: float, losses: Losses | None = None) -> bool:
        """Whether a limit is missed only where the loss is near 0 and healthy runs may differ by as much.

        Looks at all steps, or at those of `losses`. Repeats of the reference remove that doubt.
        """
        losses = self.losses if losses is None else losses
        near = losses.near
        if self.floors or self.policy.smallest == 0.0 or not near.any() or abs(statistic(losses)) > DOUBTFUL:
            return False
        away = losses.only(~near)
        return not len(away) or abs(statistic(away)) <= limit


def make_case(
    policy: Policy, pair: CurvePair, floors: Sequence[Curves], *, diff: DiffResult | None = None, undiffed: str = "",
    operators: tuple[OperatorResult, ...] | None = None,
) -> Case:  # fmt: skip
    """Measure both runs, and the repeats against the reference and one another.

    Raises ComparisonError for a repeat that has no step in common with the reference, or is the candidate itself.
    """
    for floor in floors:
        _check_repeat(floor, pair.candidate)
    pairs = [pair_curves(pair.reference, floor) for floor in floors]
    foreign = [another_training(losses_of(each, policy.smallest)) if each.begins else False for each in pairs]
    notes = [_foreign_note(floor) for floor, apart in zip(floors, foreign, strict=True) if apart]
    floors = [floor for floor, apart in zip(floors, foreign, strict=True) if not apart]
    pairs = [each for each, apart in zip(pairs, foreign, strict=True) if not apart]
    pairs += [
        CurvePair(at_steps(first.candidate, common), at_steps(second.candidate, common), (0, 0))
        for first, second in combinations(pairs, 2)
        if len(common := np.intersect1d(first.steps, second.steps, assume_unique=True))
    ]
    measured = [losses_of(each, policy.smallest) for each in pairs]
    telling = [place for place, each in enumerate(measured) if len(each) and bool(np.any(each.relative != 0.0))]
    notes += [_repeat_note(floor, pair, pairs[place], place in telling) for place, floor in enumerate(floors)]
    return Case(
        policy,
        pair,
        losses_of(pair, policy.smallest),
        tuple(measured[place] for place in telling),
        tuple(pairs[place] for place in telling),
        diff,
        undiffed,
        operators,
        tuple(note for note in notes if note),
    )


def _check_repeat(floor: Curves, candidate: Curves) -> None:
    """Raise where a repeat is the candidate, which would excuse whatever it does."""
    if floor.sha256 and floor.sha256 == candidate.sha256:
        raise ComparisonError(
            say(
                "Cannot take '{}' as a repeat of the reference: it is the candidate '{}', byte by byte. Give "
                "further runs of the reference as --floor.",
                floor.path,
                candidate.path,
            )
        )


def _foreign_note(floor: Curves) -> str:
    return say(
        "{} differs from the reference by more than rounding from the first steps on, and does not go together with "
        "it: it was trained from other weights or on other batches, is no repeat and was left out.",
        floor.path,
    )


def _repeat_note(floor: Curves, pair: CurvePair, made: CurvePair, telling: bool) -> str:  # noqa: FBT001
    if not telling:
        return say(
            "{} is equal to the reference in every digit: it says nothing of what rounding does and was left out. "
            "Repeat the reference with `align capture --perturb 1`.",
            floor.path,
        )
    if len(made.steps) < len(pair.steps):
        return say(
            "{} has {} of the {} that were compared.",
            floor.path,
            wording.count(len(made.steps)),
            wording.plural(len(pair.steps), "step"),
        )
    return ""


def excused(setting: Setting, limit: Limit, measured: float) -> bool:
    """Whether a measurement is within the limit only because repeats of the reference raised it."""
    return (setting.limit or 0.0) < measured <= limit.value


def both(pair: CurvePair, quantity: Quantity) -> tuple[Values, Values] | None:
    """The finite values of a quantity that both runs have at the same steps, None where there are none."""
    ours, theirs = (run.columns.get(quantity) for run in (pair.reference, pair.candidate))
    if ours is None or theirs is None:
        return None
    kept = np.isfinite(ours) & np.isfinite(theirs)
    return (ours[kept], theirs[kept]) if kept.any() else None
