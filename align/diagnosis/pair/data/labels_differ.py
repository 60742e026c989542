"""AL207: the models are given the same inputs, the loss is given other labels."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.data import given
from align.diagnosis.pair.data.given import Given
from align.diagnosis.registry import rule
from align.diagnosis.telling import Words
from align.records import Finding, Phase
from align.sentences import say

CODE = "AL207"
LABEL = "labels-differ"


@rule(CODE, LABEL, rank=15)
def find(walk: Walk) -> Iterator[Finding]:
    """Labels or targets that differ while all other inputs agree; moved along the sequence where that is seen."""
    found = given.first_difference(walk)
    if found is None or not found.only_labels:
        return
    what = "the targets handed to the loss" if found.key.phase is Phase.LOSS else say("the labels ({})", _names(found))
    agreeing = "the logits agree" if given.parts_here(walk, found) and found.key.phase is Phase.LOSS else ""
    agreeing = agreeing or "the other inputs agree"
    moved = found.labels
    evidence = {"moved_by": moved.by, "agreeing": moved.agreeing, "compared": moved.compared} if moved else {}
    yield given.finding(
        walk,
        found,
        (CODE, LABEL),
        Words(
            say(
                "{}: {}, {} differ{}. No module is to blame.", telling.opening(found.key), agreeing, what, _moved(found)
            ),
            _advice(found),
        ),
        {"labels": evidence},
    )


def _names(found: Given) -> str:
    return wording.listing(list(dict.fromkeys(given.name_of(each.pair.key) for each in found.unequal)))


def _moved(found: Given) -> str:
    moved = found.labels
    if moved is None:
        return ""
    ahead = "later" if moved.by > 0 else "earlier"
    share = say("{} of {}", wording.count(moved.agreeing), wording.count(moved.compared))
    places = "one place" if abs(moved.by) == 1 else say("{} places", abs(moved.by))
    return say(
        ": they are shifted by {} along the sequence (the candidate's are those that stand {} {} in the reference, "
        "{} agree)",
        places,
        places,
        ahead,
        share,
    )


def _advice(found: Given) -> str:
    if found.labels is not None:
        return (
            "Shift the labels once: either the data collator does it, or the model or its loss (models of transformers "
            "shift inside when they are given labels). Take the other shift out of the script."
        )
    return given.TARGETS_ADVICE
