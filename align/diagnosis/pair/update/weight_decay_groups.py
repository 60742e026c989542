"""AL704: some parameters are decayed in one run only."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.setup.hyperparameters import ALL_AGREE, decay_of_some
from align.diagnosis.registry import rule
from align.hyperparameters import SettingDifference
from align.records import Finding, Place, Severity
from align.sentences import capital, joined, say

CODE = "AL704"
LABEL = "weight-decay-groups"

NAMED = 5


@rule(CODE, LABEL, rank=52)
def find(walk: Walk) -> Iterator[Finding]:
    """The first step in which the weight decay of some parameters differs, and that of others does not."""
    check = next((check for check in walk.settings_checks if decay_of_some(check) is not None), None)
    found = decay_of_some(check) if check is not None else None
    if check is None or found is None:
        return
    parts_here = telling.parts_in_update(walk, check.step)
    name, slot = found.owners[0]
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR if parts_here else Severity.WARNING,
        say(
            "{}: {} {} in the reference and {} in the candidate; that of the other {} agrees.{}",
            capital(wording.step(check.step)),
            _what(found),
            wording.factor(_number(found.reference)),
            wording.factor(_number(found.candidate)),
            wording.plural(found.compared - len(found.owners), "parameter"),
            ALL_AGREE if parts_here else "",
        ),
        say(
            "Make the parameter groups of both runs by one filter. One that goes by a name or a class misses what "
            "has neither, as RMSNorm is no LayerNorm: see how {} is called and of which class it is in both runs.",
            name,
        ),
        Place(step=check.step, phase="optimizer", name=name, slot=slot),
        {
            "parameters": [joined(" ", owner) for owner in found.owners],
            "weight_decay": [found.reference, found.candidate],
            "compared": found.compared,
        },
        {
            "step": check.step,
            "name": name,
            "slot": slot,
            "reference": found.reference,
            "candidate": found.candidate,
            "parameters": len(found.owners),
            "compared": found.compared,
        },
    )


def _what(found: SettingDifference) -> str:
    """`the weight decay of norm weight is`, `the weight decay of 3 parameters (a, b and c) is`."""
    names = [joined(" ", owner) for owner in found.owners]
    if len(names) == 1:
        return say("the weight decay of {} is", names[0])
    return say("the weight decay of {} parameters ({}) is", len(names), wording.listing(names[:NAMED], len(names)))


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
