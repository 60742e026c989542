"""AL701: the optimizers begin with other states: one was not loaded, was reset, or is that of other parameters."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.setup.hyperparameters import ALL_AGREE
from align.diagnosis.registry import rule
from align.records import Finding, Place, Severity
from align.sentences import joined, say
from align.state_differences import StateDifferences, StateKind, state_differences
from align.updates import differing_optimizers

CODE = "AL701"
LABEL = "optimizer-state-differs"

NAMED = 3


@rule(CODE, LABEL, rank=54)
def find(walk: Walk) -> Iterator[Finding]:
    """The states that the first compared step begins with, where they differ; an error where the runs part there."""
    if not walk.steps:
        return
    step = walk.steps[0]
    first = walk.first
    if first is not None and first.comparison.key.step < step:
        return
    aside = next((found for found in walk.evidence if found.step == step), None)
    if aside is None:
        return
    timelines = (walk.reference_timeline, walk.candidate_timeline)
    facts = walk.reference_facts.get(step, ()), walk.candidate_facts.get(step, ())
    found = state_differences(aside, facts, first_of_run=step == 0)
    rows = [next((row for row in rows if row.step == step), None) for rows in timelines]
    if found is None or differing_optimizers(*rows) is not None:
        return
    parts_here = telling.parts_in_update(walk, step)
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if parts_here else Severity.WARNING,
        say("{}{}", _summary(found, step), ALL_AGREE if parts_here else ""),
        _advice(found),
        Place(step=step, phase="optimizer", name=found.owners[0][0], slot=found.owners[0][1]),
        {
            "kind": str(found.kind),
            "states": [joined(" ", owner) for owner in found.owners],
            "compared": found.compared,
            "counts": list(found.counts) if found.counts is not None else None,
            "relative_l2": found.relative_l2,
        },
        {"step": step, "kind": str(found.kind), "states": len(found.owners), "compared": found.compared},
    )


def _summary(found: StateDifferences, step: int) -> str:
    names = wording.listing([joined(" ", owner) for owner in found.owners[:NAMED]], len(found.owners))
    where = wording.step(step)
    if found.kind is StateKind.ONE_SIDE:
        side, other = ("candidate", "reference") if found.missing_in_candidate else ("reference", "candidate")
        return say(
            "The optimizer of the {} begins {} with the state of earlier steps, that of the {} without: {} ({}) {} "
            "in the {} only.",
            other,
            where,
            side,
            wording.plural(len(found.owners), "state"),
            names,
            _are(len(found.owners)),
            other,
        )
    if found.kind is StateKind.COUNT and found.counts is not None:
        ours, theirs = (wording.count(int(number)) for number in found.counts)
        return say(
            "The optimizer begins {} after {} updates in the reference and after {} in the candidate ({}): bias "
            "corrections and schedules of the state differ.",
            where,
            ours,
            theirs,
            names,
        )
    if found.kind is StateKind.OTHER_PARAMETERS:
        return say(
            "The optimizer of the candidate begins {} with states of other parameters: {} {} what {} is in the "
            "reference.",
            where,
            names,
            _are(len(found.owners)),
            found.instead,
        )
    return say(
        "The optimizers begin {} with other states: {} of {} {} ({}; relative L2 {}).",
        where,
        wording.count(len(found.owners)),
        wording.plural(found.compared, "state"),
        _differ(len(found.owners)),
        names,
        wording.relative(found.relative_l2),
    )


def _advice(found: StateDifferences) -> str:
    if found.kind is StateKind.OTHER_PARAMETERS:
        return (
            "States are loaded in the order of the parameters: make the groups of both runs in one order before "
            "optimizer.load_state_dict. `align checkpoint A B` compares both checkpoints."
        )
    return (
        "Load the same optimizer state in both runs (optimizer.load_state_dict, after the model is on its device), or "
        "begin both without. `align checkpoint A B` compares both checkpoints."
    )


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _differ(number: int) -> str:
    return "differs" if number == 1 else "differ"
