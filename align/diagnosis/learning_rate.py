"""AL703: the runs learn at different rates."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.records import Finding, Place, Severity
from align.updates import differing_learning_rates

CODE = "AL703"
LABEL = "learning-rate-differs"


@rule(CODE, LABEL, rank=55)
def find(walk: Walk) -> Iterator[Finding]:
    """The learning rates of the first compared step where they differ; an error where the runs part there."""
    ours = {row.step: row for row in walk.reference_timeline}
    theirs = {row.step: row for row in walk.candidate_timeline}
    found = {step: differing_learning_rates(ours.get(step), theirs.get(step)) for step in walk.steps}
    differing = {step: rates for step, rates in found.items() if rates is not None}
    if not differing:
        return
    step, rates = next(iter(differing.items()))
    told = [f"{rate:.6g}" for rate in rates]
    parts_here = telling.parts_in_update(walk, step)
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if parts_here else Severity.WARNING,
        f"The learning rate of {wording.step(step)} is {told[0]} in the reference and {told[1]} in the candidate. "
        f"{'All gradients agree; the parameters part here.' if parts_here else ''}".strip(),
        "Give both runs one learning rate and one schedule: warm-up, scaling by world size, steps per epoch.",
        Place(step=step, phase="optimizer", name=telling.first_name(walk) if parts_here else ""),
        {"learning_rates": {str(step): list(pair) for step, pair in differing.items()}},
        {"step": step, "reference": rates[0], "candidate": rates[1]},
    )
