"""AL106: the runs train with different optimizers."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.records import Finding, Place, Severity
from align.updates import differing_optimizers, other_formula

CODE = "AL106"
LABEL = "hyperparameters-differ"


@rule(CODE, LABEL, rank=53)
def find(walk: Walk) -> Iterator[Finding]:
    """The classes of the optimizers of the first compared step where they differ; an error where the runs part there.

    Fused and other classes may compute the formula of torch's own: then it is a note, and the update itself is judged.
    """
    ours = {row.step: row for row in walk.reference_timeline}
    theirs = {row.step: row for row in walk.candidate_timeline}
    found = {step: differing_optimizers(ours.get(step), theirs.get(step)) for step in walk.steps}
    differing = {step: names for step, names in found.items() if names is not None}
    if not differing:
        yield from _settings(walk)
        return
    step, names = next(iter(differing.items()))
    formula = other_formula(names)
    parts_here = formula and telling.parts_in_update(walk, step)
    end = " All gradients agree; the parameters part here." if parts_here else ""
    if not formula:
        end = " Both may compute one formula; the updates were compared where they were captured."
    yield Finding(
        CODE,
        LABEL,
        _severity(walk, formula=formula, parts_here=parts_here),
        f"The optimizer of {wording.step(step)} is {names[0]} in the reference and {names[1]} in the candidate.{end}",
        "Give both runs one optimizer with the same settings.",
        Place(step=step, phase="optimizer", name=telling.first_name(walk) if parts_here else ""),
        {"optimizers": {str(step): list(pair) for step, pair in differing.items()}},
        {"step": step, "reference": names[0], "candidate": names[1]},
    )


def _settings(walk: Walk) -> Iterator[Finding]:
    """The hyper-parameters that both runs recorded, where they differ although the optimizers are the same."""
    ours, theirs = walk.reference.optimizers, walk.candidate.optimizers
    only_ours = [settings for settings in ours if settings not in theirs]
    only_theirs = [settings for settings in theirs if settings not in ours]
    if not only_ours or not only_theirs:
        return
    yield Finding(
        CODE,
        LABEL,
        Severity.WARNING,
        f"The settings of the optimizers differ: {only_ours[0]} in the reference, {only_theirs[0]} in the candidate.",
        "Give both runs one optimizer with the same settings.",
        Place(phase="optimizer"),
        {"reference": list(ours), "candidate": list(theirs)},
        {"reference": only_ours[0], "candidate": only_theirs[0]},
    )


def _severity(walk: Walk, *, formula: bool, parts_here: bool) -> Severity:
    if parts_here:
        return Severity.ERROR
    return Severity.WARNING if formula or walk.first is not None else Severity.NOTE
