"""What an acceptance comes to, in a sentence or two, and what it says nothing of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from align import wording
from align.acceptance.case import Case
from align.acceptance.order import strange_repeats
from align.acceptance.unlikely import unlikely
from align.acceptance_records import Acceptance, Criterion, Outcome
from align.curve_records import Quantity
from align.records import Verdict
from align.sentences import joined, say

OF_TENSORS = frozenset({"equal-start", "tensors"})

SAME_RATE = 1e-3
"""Learning rates that differ by less are the same, printed with few digits."""


def verdict_of(criteria: Sequence[Criterion]) -> Acceptance:
    """Fail where a required criterion fails, unknown where one could not be measured or none was, else pass."""
    outcomes = [criterion.outcome for criterion in criteria if criterion.required]
    if Outcome.FAIL in outcomes:
        return Acceptance.FAIL
    return Acceptance.PASS if outcomes and Outcome.NOT_MEASURED not in outcomes else Acceptance.UNKNOWN


def summary_of(case: Case, verdict: Acceptance, criteria: Sequence[Criterion]) -> str:
    """The sentence that stands above everything."""
    required = [criterion for criterion in criteria if criterion.required]
    failed = sorted((criterion for criterion in required if criterion.outcome is Outcome.FAIL), key=_says_why)
    if failed:
        return say(
            "Missed: {} of {}. First: {}",
            wording.count(len(failed)),
            wording.plural(len(required), "required criterion", "required criteria"),
            joined(" ", [part for part in (failed[0].sentence, failed[0].advice) if part]),
        )
    open_ones = [criterion for criterion in required if criterion.outcome is Outcome.NOT_MEASURED]
    if verdict is Acceptance.UNKNOWN:
        if not open_ones:
            return say("Cannot tell: nothing that this policy requires could be measured.")
        first = open_ones[0]
        return say(
            "Cannot tell: {} could not be measured. {} {}",
            wording.plural(len(open_ones), "required criterion", "required criteria"),
            first.sentence,
            first.advice,
        )
    remarks = len(deviations(case, criteria))
    met = say(
        "Met: {} of {}; {} not measured. The candidate follows the reference over {}, with a mean relative difference "
        "of the loss of {}.",
        wording.count(len(required)),
        wording.plural(len(required), "required criterion", "required criteria"),
        wording.count(sum(criterion.outcome is Outcome.NOT_MEASURED for criterion in criteria)),
        wording.plural(len(case.pair.steps), "step"),
        wording.share(float(np.abs(case.losses.relative).mean())),
    )
    if not remarks:
        return met
    return met + say(" Read the {} below before you sign.", wording.plural(remarks, "remark"))


def _says_why(criterion: Criterion) -> bool:
    """A key that puts what tensors tell before what curves tell: they name the place."""
    return criterion.code not in OF_TENSORS


def not_covered(case: Case) -> tuple[str, ...]:
    """What nobody may read out of this acceptance."""
    said = [say("Evaluation on downstream tasks.")]
    ours, theirs = case.pair.reference, case.pair.candidate
    if case.diff is None:
        said.append(say("Weights, batches, activations and gradients: only curves were compared."))
    else:
        said.append(say("Tensors of other steps than the captured ones."))
    if any(run.run is not None and run.run.world_size > 1 for run in (ours, theirs)):
        said.append(say("The curves of other ranks than the one that was read."))
    said.append(say("What happens after {}.", wording.step(int(case.pair.steps[-1]))))
    if case.losses.unit > 0:
        said.append(
            say(
                "Differences of single losses below {}: the files print no more digits.",
                wording.share(case.losses.unit),
            )
        )
    return tuple(said)


def deviations(case: Case, criteria: Sequence[Criterion]) -> tuple[str, ...]:
    """What passes and is worth a word all the same."""
    remarks = [
        joined(" ", [part for part in (criterion.sentence, criterion.advice) if part])
        for criterion in criteria
        if criterion.remark or (criterion.outcome is Outcome.FAIL and not criterion.required)
    ]
    parted = _unasked_tensors(case, criteria)
    return (*parted, *unlikely(case, criteria), *remarks, *strange_repeats(case), *_rates(case), *_skipped(case))


def _unasked_tensors(case: Case, criteria: Sequence[Criterion]) -> list[str]:
    """A word where the tensors of both captures part, and the policy does not ask."""
    asked = any(criterion.code in OF_TENSORS for criterion in criteria)
    if asked or case.diff is None or case.diff.verdict is not Verdict.DIVERGED:
        return []
    return [say("The policy asks for no tensors, but those that were captured differ. {}", case.diff.summary)]


def _rates(case: Case) -> list[str]:
    """A word where the learning rates differ, which explains losses that do."""
    ours, theirs = (run.columns.get(Quantity.LEARNING_RATE) for run in (case.pair.reference, case.pair.candidate))
    if ours is None or theirs is None:
        return []
    differ = np.flatnonzero(np.abs(theirs - ours) > SAME_RATE * np.maximum(np.abs(ours), np.abs(theirs)))
    if not len(differ):
        return []
    place = int(differ[0])
    return [
        say(
            "The learning rates differ at {}: first at step {}, {} in the reference and {} in the candidate.",
            wording.plural(len(differ), "step"),
            int(case.pair.steps[place]),
            wording.value(float(ours[place])),
            wording.value(float(theirs[place])),
        )
    ]


def _skipped(case: Case) -> list[str]:
    ours, theirs = (int(run.skipped.sum()) for run in (case.pair.reference, case.pair.candidate))
    if ours == theirs:
        return []
    return [say("The reference skipped {}, the candidate {}.", wording.plural(ours, "step"), wording.count(theirs))]
