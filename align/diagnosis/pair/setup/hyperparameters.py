"""AL106: the runs train with different optimizers, or with one that is set differently."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.hyperparameters import RATE, SettingDifference, SettingsCheck
from align.records import FactValue, Finding, Place, Severity
from align.sentences import joined, say
from align.updates import differing_optimizers, other_formula

CODE = "AL106"
LABEL = "hyperparameters-differ"
ADVICE = "Give both runs one optimizer with the same settings."

ALL_AGREE = " All gradients of the step agree: the runs part in the optimizer."
"""What a setting does may show in the parameters later only, as momentum does in the second step."""

DECAY = "weight_decay"

TOLD = 3
"""How many settings one sentence names."""


@rule(CODE, LABEL, rank=53)
def find(walk: Walk) -> Iterator[Finding]:
    """The classes of the optimizers of the first compared step where they differ, else their settings.

    An error where the runs part there. Fused and other classes may compute the formula of torch's own: then it is a
    note, and the update itself is judged.
    """
    ours = {row.step: row for row in walk.reference_timeline}
    theirs = {row.step: row for row in walk.candidate_timeline}
    found = {step: differing_optimizers(ours.get(step), theirs.get(step)) for step in walk.steps}
    differing = {step: names for step, names in found.items() if names is not None}
    if differing:
        yield _classes(walk, differing)
    check = next((check for check in walk.settings_checks if told_here(check)), None)
    if check is not None:
        yield _set_differently(walk, check)
    elif not differing and not walk.settings_checks:
        yield from _settings(walk)


def told_here(check: SettingsCheck) -> tuple[SettingDifference, ...]:
    """The settings that this rule tells: AL703 tells a rate that is another for all parameters, AL704 groups."""
    groups = decay_of_some(check)
    return tuple(
        each
        for each in check.differences
        if each is not groups and (each.name != RATE or len(each.owners) < each.compared)
    )


def decay_of_some(check: SettingsCheck) -> SettingDifference | None:
    """The weight decay, where some parameters have another one and others do not."""
    return next((each for each in check.differences if each.name == DECAY and len(each.owners) < each.compared), None)


def _set_differently(walk: Walk, check: SettingsCheck) -> Finding:
    differences = told_here(check)
    parts_here = telling.parts_in_update(walk, check.step)
    first = differences[0]
    more = (
        "" if len(differences) <= TOLD else say(" {} differ.", wording.plural(len(differences) - TOLD, "more setting"))
    )
    return Finding(
        CODE,
        LABEL,
        Severity.ERROR if parts_here else Severity.WARNING,
        say(
            "The optimizers are set differently in {}: {}.{}{}",
            wording.step(check.step),
            joined("; ", (_setting(each) for each in differences[:TOLD])),
            more,
            ALL_AGREE if parts_here else "",
        ),
        ADVICE,
        Place(step=check.step, phase="optimizer", name=first.owners[0][0]),
        {
            "settings": {each.name: [each.reference, each.candidate] for each in differences},
            "parameters": {each.name: len(each.owners) for each in differences},
            "first": {each.name: joined(" ", each.owners[0]) for each in differences},
            "compared": check.compared,
        },
        {
            "step": check.step,
            "setting": first.name,
            "reference": first.reference,
            "candidate": first.candidate,
            "parameters": len(first.owners),
            "compared": check.compared,
        },
    )


def _setting(found: SettingDifference) -> str:
    """`weight_decay is 0 in the reference and 0.1 in the candidate for 1 of 3 parameters (norm weight)`."""
    count, first = len(found.owners), joined(" ", found.owners[0])
    share = say("{} of {} parameters", wording.count(count), wording.count(found.compared))
    example = first if count == 1 else say("first {}", first)
    return say(
        "{} is {} in the reference and {} in the candidate for {} ({})",
        found.name,
        _value(found.reference),
        _value(found.candidate),
        share,
        example,
    )


def _value(value: FactValue) -> str:
    return f"{value:.7g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def _classes(walk: Walk, differing: dict[int, tuple[str, str]]) -> Finding:
    step, names = next(iter(differing.items()))
    formula = other_formula(names)
    parts_here = formula and telling.parts_in_update(walk, step)
    end = " All gradients agree; the parameters part here." if parts_here else ""
    if not formula:
        end = " Both may compute one formula; the updates were compared where they were captured."
    return Finding(
        CODE,
        LABEL,
        _severity(walk, formula=formula, parts_here=parts_here),
        say(
            "The optimizer of {} is {} in the reference and {} in the candidate.{}",
            wording.step(step),
            names[0],
            names[1],
            end,
        ),
        ADVICE,
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
        say(
            "The settings of the optimizers differ: {} in the reference, {} in the candidate.",
            only_ours[0],
            only_theirs[0],
        ),
        ADVICE,
        Place(phase="optimizer"),
        {"reference": list(ours), "candidate": list(theirs)},
        {"reference": only_ours[0], "candidate": only_theirs[0]},
    )


def _severity(walk: Walk, *, formula: bool, parts_here: bool) -> Severity:
    if parts_here:
        return Severity.ERROR
    return Severity.WARNING if formula or walk.first is not None else Severity.NOTE
