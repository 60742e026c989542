"""Acceptance: two runs, a policy, and what each of its criteria says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from align import __version__, wording
from align.acceptance.beginning import early_window, first_loss
from align.acceptance.case import Case, OperatorResult, make_case
from align.acceptance.events import non_finite, spike_count
from align.acceptance.level import bias, divergence, mean_error, worst_window
from align.acceptance.norms import gradient_norm
from align.acceptance.operators import operators
from align.acceptance.order import data_order, shift
from align.acceptance.pairing import pair_curves
from align.acceptance.policy import Policy, Setting
from align.acceptance.speed import step_time, tokens_per_second
from align.acceptance.summary import deviations, not_covered, summary_of, verdict_of
from align.acceptance.telling import not_measured
from align.acceptance.tensors import equal_start, tensors
from align.acceptance_records import AcceptResult, Criterion, Outcome
from align.curve_records import Curves
from align.records import DiffResult
from align.sentences import say

CRITERIA: Mapping[str, Callable[[Case, Setting], Criterion]] = {
    "equal-start": equal_start,
    "non-finite": non_finite,
    "shift": shift,
    "data-order": data_order,
    "first-loss": first_loss,
    "early-window": early_window,
    "spikes": spike_count,
    "divergence": divergence,
    "mean-error": mean_error,
    "worst-window": worst_window,
    "bias": bias,
    "gradient-norm": gradient_norm,
    "tensors": tensors,
    "operators": operators,
    "step-time": step_time,
    "tokens-per-second": tokens_per_second,
}


OF_ALL_STEPS = frozenset({"spikes", "divergence", "mean-error", "worst-window", "bias", "gradient-norm"})
"""Criteria that speak of the whole run, and of none of which a part is missing."""


@dataclass(frozen=True, slots=True)
class Extras:
    """What is judged beside the curves: two captures' tensors, and operators measured elsewhere.

    Where there is no comparison of captures, `undiffed` says why, empty where a run is no capture. `steps` are the
    bounds of the steps to judge, in the reference's numbers. `made` is the time that the document bears.
    """

    undiffed: str = ""
    operators: Sequence[OperatorResult] | None = None
    steps: tuple[int | None, int | None] = (None, None)
    made: str = ""


def accept(  # noqa: PLR0913 - what a document bears is given by name
    reference: Curves, candidate: Curves, policy: Policy, *, floors: Sequence[Curves] = (),
    diff: DiffResult | None = None, title: str = "", project: str = "", extras: Extras | None = None,
) -> AcceptResult:  # fmt: skip
    """Judge the candidate's curves by the reference's, as the policy says.

    `floors` are further runs of the reference that differ from it by rounding alone: repeats, or runs from perturbed
    weights. `diff` is the comparison of both captures, where both runs are. The curves of the result are those of the
    common steps, in the reference's numbers. Raises ComparisonError where there is nothing to compare.
    """
    extras = extras or Extras()
    pair = pair_curves(reference, candidate, extras.steps)
    measured = None if extras.operators is None else tuple(extras.operators)
    case = make_case(policy, pair, floors, diff=diff, undiffed=extras.undiffed, operators=measured)
    criteria = tuple(_whole(case, setting, CRITERIA[setting.code](case, setting)) for setting in policy.settings)
    verdict = verdict_of(criteria)
    return AcceptResult(
        reference=pair.reference,
        candidate=pair.candidate,
        policy=policy.info,
        verdict=verdict,
        summary=summary_of(case, verdict, criteria),
        criteria=criteria,
        steps=len(pair.steps),
        preliminary=len(pair.steps) < policy.minimum_steps,
        window=case.losses.window,
        deviations=deviations(case, criteria),
        not_covered=not_covered(case),
        notes=(*pair.notes, *case.losses.notes, *case.notes, *_of_files(reference, candidate)),
        title=title,
        project=project,
        made=extras.made,
        align_version=__version__,
        floors=tuple(floor.path for floor in floors),
        recorded=pair.recorded,
    )


def _whole(case: Case, setting: Setting, criterion: Criterion) -> Criterion:
    """The criterion; not measured where it passes on what NaN and Inf have left of the candidate's losses."""
    lost = case.pair.candidate.nonfinite & ~case.pair.reference.nonfinite & ~case.pair.candidate.skipped
    if setting.code not in OF_ALL_STEPS or criterion.outcome is not Outcome.PASS or not lost.any():
        return criterion
    first = int(case.pair.steps[int(np.argmax(lost))])
    return not_measured(
        setting,
        criterion.measure,
        say(
            "{} of {} of the candidate have no finite loss, the first of them step {}: what remains tells nothing.",
            wording.count(int(lost.sum())),
            wording.plural(len(lost), "step"),
            first,
        ),
        say("See what is not finite with `align inspect`."),
    )


def _of_files(reference: Curves, candidate: Curves) -> list[str]:
    """What reading told, with the file that it is of; one file that was given twice tells it once."""
    runs = (reference,) if reference.path == candidate.path else (reference, candidate)
    return [say("{}: {}", run.path, note) for run in runs for note in run.notes]
