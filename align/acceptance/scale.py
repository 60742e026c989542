"""Losses of two runs as relative differences, whatever kind of loss it is.

A difference counts relative to the reference's loss. Three kinds of losses need another scale:

* A loss that has come near 0 differs between healthy runs by a large share of itself (measured: up to 29 %), so that
  no difference is held against less than a share of the first loss. Before it does so it is little and scatters much:
  there, too, healthy runs differ by more than published limits, which are those of large models, allow.
* A loss that takes both signs passes through 0 by its nature (likelihoods of densities, policy gradients): its scale is
  the range that it spans.
* A perplexity is e to the power of a loss, and falls from tens of thousands to tens: its logarithm is judged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from align import wording
from align.acceptance.pairing import CurvePair
from align.acceptance.statistics import around, printed_unit, quotients, scatter
from align.curve_files.shown import shown
from align.curve_records import Curves, Quantity
from align.errors import ComparisonError
from align.sentences import say

Values = NDArray[np.float64]

SHORTEST_WINDOW = 20
WINDOW_SHARE = 20
"""Means are taken over a twentieth of the steps, at least so many."""

HIGH_PERPLEXITY = 100.0
"""A loss that begins above it, falls to a small share of it and is never below 1 is a perplexity: a model that knows
nothing of its vocabulary has one as large as that, and none is ever below 1."""

PERPLEXITY_NAME = re.compile(r"ppl|perplexity", re.IGNORECASE)
ALIKE = 0.1
"""A loss that is the logarithm of a perplexity is nearer to it than this, whatever else is wrong."""
RANGE = (5.0, 95.0)
"""Percentiles between which the range of a loss of both signs is taken."""

LITTLE = 0.2
SCATTER = 0.1
"""A loss is near 0 also where it is less than this share of the first and its single steps scatter by more than that
share of it. Measured on 3 healthy pairs of a small classifier in bf16 (loss 2.3 to 0.1 in 400 steps): over windows of
20 steps they differ by 2 to 6 % there, and by less than the limits before. Large models, from whose training the limits
are, scatter by 2 or 3 % throughout."""

LARGEST = 1e60
"""A loss beyond it counts as this much, so that sums of squares stay finite."""

TINY = float(np.finfo(np.float64).tiny)
SMALLEST = 1e-9
"""Of the largest loss: where the policy sets no other, no scale is smaller."""


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """The losses of two runs at the common steps at which both are finite.

    `reference` and `candidate` are what is judged (logarithms of a perplexity), `raw` what the files hold. `relative`
    is (candidate - reference) / `scale`; `near` marks steps whose loss is near 0, where healthy runs may differ by
    much. `window` is the length of means, in logged steps. `unit` is the relative size of the last digit
    that the files print, 0 where they hold all digits. `notes` say which scale was taken.
    """

    steps: NDArray[np.int64]
    reference: Values
    candidate: Values
    raw: tuple[Values, Values]
    scale: Values
    near: NDArray[np.bool_]
    window: int
    unit: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def relative(self) -> Values:
        """The relative differences."""
        return quotients(self.candidate - self.reference, self.scale)

    def only(self, kept: NDArray[np.bool_]) -> Losses:
        """The losses at some of the steps."""
        return Losses(
            self.steps[kept], self.reference[kept], self.candidate[kept], (self.raw[0][kept], self.raw[1][kept]),
            self.scale[kept], self.near[kept], self.window, self.unit, self.notes,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.steps)


def losses_of(pair: CurvePair, smallest: float) -> Losses:
    """The losses of a pair; `smallest` is the share of the first loss below which no scale goes.

    Raises ComparisonError where one run holds a perplexity and the other its logarithm.
    """
    values = [run.columns[Quantity.LOSS] for run in (pair.reference, pair.candidate)]
    kept = np.isfinite(values[0]) & np.isfinite(values[1])
    kept &= ~(pair.reference.nonfinite | pair.candidate.nonfinite)
    _check_alike(pair, values[0][kept], values[1][kept])
    ours, theirs = (np.clip(one[kept], -LARGEST, LARGEST) for one in values)
    steps = pair.steps[kept]
    window = max(SHORTEST_WINDOW, len(steps) // WINDOW_SHARE)

    def made(reference: Values, candidate: Values, scale: Values, near: NDArray[np.bool_], notes: list[str]) -> Losses:
        unit = _unit((ours, theirs), (reference, candidate), scale)
        return Losses(steps, reference, candidate, (ours, theirs), scale, near, window, unit, tuple(notes))

    if not len(steps):
        return made(ours, theirs, ours, np.zeros(0, dtype=np.bool_), [])
    if _takes_both_signs(ours):
        return _by_range(ours, theirs, made)
    if _is_perplexity(pair.reference, ours, smallest):
        return _by_logarithm(ours, theirs, smallest, made)
    return _by_itself(ours, theirs, smallest, made)


def _check_alike(pair: CurvePair, ours: Values, theirs: Values) -> None:
    """Raise where the logarithms of one side are the losses of the other: two quantities, and no fault of a device."""
    for high, low, first, second in (
        (ours, theirs, pair.reference, pair.candidate),
        (theirs, ours, pair.candidate, pair.reference),
    ):
        if not len(high) or high.min() < 1.0 or low.min() <= 0 or high.max() < HIGH_PERPLEXITY:
            continue
        if float(np.median(np.abs(np.log(high) / low - 1.0))) < ALIKE and float(np.median(high / low)) > 1.0 + ALIKE:
            name, other = (shown(run.taken.get(Quantity.LOSS, "loss")) for run in (first, second))
            raise ComparisonError(
                say(
                    "Cannot compare '{}' and '{}': '{}' of the first is a perplexity, and '{}' of the second is its "
                    "logarithm. Choose the same quantity of both with --column loss=NAME.",
                    first.path,
                    second.path,
                    name,
                    other,
                )
            )


Made = Callable[[Values, Values, Values, NDArray[np.bool_], list[str]], Losses]


def _by_itself(ours: Values, theirs: Values, smallest: float, made: Made) -> Losses:
    # A loss that begins at 0 has a size all the same; one that is 0 throughout has none.
    size = float(np.abs(ours).max()) or 1.0
    least = max(smallest * (abs(float(ours[0])) or size), SMALLEST * size, TINY)
    below = np.abs(ours) < least
    notes = []
    if below.any() and smallest > 0 and ours[0] == 0:
        notes.append(
            say(
                "The reference's loss begins at 0: differences are relative to {} where the loss is smaller.",
                wording.loss(least),
            )
        )
    elif below.any() and smallest > 0:
        notes.append(
            say(
                "At {} of {} the reference's loss is below {} of its first, {}: differences there are relative to {}.",
                wording.count(int(below.sum())),
                wording.plural(len(ours), "step"),
                wording.share(smallest),
                wording.loss(float(ours[0])),
                wording.loss(least),
            )
        )
    near = below | _little_and_scattered(ours, abs(float(ours[0])) or size)
    return made(ours, theirs, np.maximum(np.abs(ours), least), near, notes)


def _little_and_scattered(ours: Values, first: float) -> NDArray[np.bool_]:
    means = np.abs(around(ours, SHORTEST_WINDOW))
    marked: NDArray[np.bool_] = (means < LITTLE * first) & (scatter(ours, SHORTEST_WINDOW) > SCATTER * means)
    return marked


def _by_range(ours: Values, theirs: Values, made: Made) -> Losses:
    low, high = np.percentile(ours, RANGE)
    span = max(float(high - low), SMALLEST * float(np.abs(ours).max()), TINY)
    note = say(
        "The loss takes both signs: differences are relative to the range that it spans, {}, where the loss itself is "
        "smaller.",
        wording.loss(span),
    )
    return made(ours, theirs, np.maximum(np.abs(ours), span), np.zeros(len(ours), dtype=np.bool_), [note])


def _by_logarithm(ours: Values, theirs: Values, smallest: float, made: Made) -> Losses:
    note = say(
        "The loss is taken for a perplexity (it falls from {} to {}): its logarithm is judged.",
        wording.loss(float(ours[0])),
        wording.loss(float(ours.min())),
    )
    judged = _by_itself(np.log(ours), np.log(np.maximum(theirs, TINY)), smallest, made)
    return made(judged.reference, judged.candidate, judged.scale, judged.near, [note, *judged.notes])


def _takes_both_signs(values: Values) -> bool:
    return bool(values.min() < 0 < values.max())


def _is_perplexity(curves: Curves, ours: Values, smallest: float) -> bool:
    """Whether the loss is a perplexity, by the name of its column or by its course."""
    if ours.min() < 1.0:
        return False
    if PERPLEXITY_NAME.search(curves.taken.get(Quantity.LOSS, "")):
        return True
    first = float(ours[0])
    return first >= HIGH_PERPLEXITY and float(ours.min()) < smallest * first


def _unit(raw: tuple[Values, Values], judged: tuple[Values, Values], scale: Values) -> float:
    """The last printed digit relative to the losses; that of a logarithm is relative to what it was taken of."""
    unit = max(printed_unit(values) for values in raw)
    if unit == 0.0 or not len(scale):
        return 0.0
    factor = 1.0 if judged[0] is raw[0] else 1.0 / float(np.median(np.abs(raw[0])))
    return unit * factor / float(np.median(scale))
