"""The module that makes the first difference is of another class in each run."""

from __future__ import annotations

from collections.abc import Iterator

from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.forward import forward_cause
from align.diagnosis.pair.setup import explaining
from align.records import Finding, Origin, Severity
from align.sentences import say

CODE = "AL105"
LABEL = "structure-differs"


def other_class(walk: Walk) -> Iterator[Finding]:
    """Both classes and the relation of the outputs, where a module without children makes the first difference.

    Of a parent it is no cause by itself: classes around the same modules are renamed from version to version.
    """
    first = walk.first
    if (
        first is None
        or first.statistics_only
        or not explaining.made_by_code(first)
        or first.origin is not Origin.MODULE
    ):
        return
    if forward_cause.is_isolated(walk):
        return
    ours, theirs = forward_cause.modules_of(walk, first.comparison.key.name)
    if ours is None or theirs is None or not (ours.leaf and theirs.leaf):
        return
    if not ours.class_name or not theirs.class_name or ours.class_name == theirs.class_name:
        return
    key = first.comparison.key
    relation = telling.relation(first.comparison, first.scale)
    what = say(" The candidate's is {}.", relation) if relation else ""
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "{} is a {} in the reference and a {} in the candidate. {}{}",
            key.name,
            ours.class_name,
            theirs.class_name,
            explaining.first_sentence(first),
            what,
        ),
        say(
            "Build {} of one class in both runs, or compare the code of both: factors, offsets, the order of "
            "operations, what is computed in float32. {}",
            key.name,
            telling.capture_advice(key.name),
        ),
        telling.place_of(key),
        {**telling.evidence_of(first.comparison), "classes": [ours.class_name, theirs.class_name]},
        {**telling.arguments_of(first), "reference_class": ours.class_name, "candidate_class": theirs.class_name},
    )
