"""Judges one pair of runs by the default policy, with repeats and without, and by published rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from align.acceptance import Policy, accept
from align.acceptance.pairing import pair_curves
from align.acceptance.scale import losses_of
from align.acceptance.statistics import window_means
from align.acceptance_records import Acceptance
from align.curve_files import read_curves
from align.curve_records import Curves
from benchmarks.acceptance import failing, policies
from benchmarks.paired_trainings.recipes import Case

DEFAULT, WITH_REPEATS = "default", "with repeats"
SMALLEST_FLOOR = 1e-5
"""What the default policy, too, counts the repeats to differ by at least."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What was said of one pair.

    `verdicts` are those of all rules by name, `failed` the codes of the criteria of the default policy that fail, by
    whether repeats were given; `remarked` names the rules that pass it with a remark. `times_repeats` is how far the
    losses are apart, in times of what the reference and its repeats are at most: near 1 the fault, if there is one,
    cannot be seen in the level of the loss.
    """

    case: Case
    pair: str
    verdicts: Mapping[str, Acceptance]
    failed: Mapping[str, Sequence[str]]
    remarked: frozenset[str]
    times_repeats: float

    @property
    def false_alarm(self) -> bool:
        """Whether a healthy pair fails by the default policy."""
        return not self.case.fault and Acceptance.FAIL in (self.verdicts[DEFAULT], self.verdicts[WITH_REPEATS])


def rules() -> dict[str, Policy]:
    """The default policy, and the published rules that it is held against."""
    return policies()


def judge(case: Case, pair: str, files: Sequence[Path], policies: Mapping[str, Policy]) -> Judged:
    """Judge the runs in these files: the reference, the candidate, and repeats of the reference."""
    reference, candidate, *repeats = (read_curves(str(file)) for file in files)
    results = {name: accept(reference, candidate, policy) for name, policy in policies.items()}
    results[WITH_REPEATS] = accept(reference, candidate, policies[DEFAULT], floors=repeats)
    floor = max(SMALLEST_FLOOR, *(_apart(*pair) for pair in combinations([reference, *repeats], 2)))
    return Judged(
        case,
        pair,
        {name: result.verdict for name, result in results.items()},
        {name: failing(results[name]) for name in (DEFAULT, WITH_REPEATS)},
        frozenset(name for name, result in results.items() if result.verdict is Acceptance.PASS and result.deviations),
        _apart(reference, candidate) / floor,
    )


def _apart(reference: Curves, candidate: Curves) -> float:
    """The mean of the differences of the losses, each a mean over a window of steps."""
    losses = losses_of(pair_curves(reference, candidate), 0.05)
    return float(np.abs(window_means(losses.relative, losses.window)).mean())
