"""AL407: another difference starts where the first cannot have caused it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from align import wording
from align.comparison import Walk
from align.configuration import config_differences
from align.diagnosis import telling
from align.diagnosis.pair.backward import backward_cause, unreduced
from align.diagnosis.registry import rule
from align.records import Finding, Phase, Severity
from align.sentences import joined, say
from align.walk import Suspect

CODE = "AL407"
LABEL = "independent-origin"

MOST = 5
"""Of so many a finding is made; after that, others are the likelier to follow from the first."""


@rule(CODE, LABEL, rank=55)
def find(walk: Walk) -> Iterator[Finding]:
    """Later differences in the step of the first that are far above what their own inputs explain.

    Not those that have the factor that the first has, nor gradients that another reduction makes.
    """
    found = [suspect for suspect in walk.independent if not backward_cause.has_the_factor(walk, suspect.comparison)]
    if unreduced.is_known(walk):
        found = [suspect for suspect in found if suspect.comparison.key.phase is not Phase.UPDATE]
    places = wording.plural(len(found), "later place")
    for number, suspect in enumerate(found[:MOST], 1):
        key = suspect.comparison.key
        yield Finding(
            CODE,
            LABEL,
            Severity.WARNING,
            _summary(suspect, telling.users_of(walk, suspect)),
            say("Mend the first difference, capture again and compare: what is told of {} is less sure.", places),
            telling.place_of(key, telling.blamed(suspect)),
            telling.evidence_of(suspect.comparison) | _known_of(walk, suspect),
            {**telling.arguments_of(suspect), "number": number, "of": len(found)},
        )


def _known_of(walk: Walk, suspect: Suspect) -> dict[str, Any]:
    """What may explain it too: settings of its module that differ, and whether it drops elements at random."""
    name = telling.blamed(suspect)
    module = walk.modules.get(name)
    settings = (
        [each.attribute for each in config_differences({name: module}, walk.candidate_modules, walk.names)]
        if module is not None
        else []
    )
    return {"settings": settings, "drops": telling.is_dropout(module) or telling.dropout_inside(module) > 0.0}


def _summary(suspect: Suspect, users: Sequence[str]) -> str:
    comparison = suspect.comparison
    key = comparison.key
    much = joined("", (telling.amount(comparison), telling.comma_relation(comparison, suspect.scale)))
    where = "" if telling.is_module(suspect) else say(" It is made by {}.", telling.maker(suspect, users))
    return say(
        "Another difference starts in {}, at {}: {}, beyond what it inherits from the first.{}",
        telling.point(key),
        telling.tensor(key),
        much,
        where,
    )
