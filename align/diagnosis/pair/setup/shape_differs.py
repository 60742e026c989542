"""AL104: tensors that have another shape in the candidate."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.setup import explaining
from align.diagnosis.registry import rule
from align.pairing import Pair
from align.records import Finding, Kind, Origin, Phase
from align.sentences import say

CODE = "AL104"
LABEL = "shape-differs"

EXAMPLES = 5


@rule(CODE, LABEL, rank=25)
def find(walk: Walk) -> Iterator[Finding]:
    """All shapes that differ; the cause where the walk stops at one, else an explanation."""
    differences = walk.shape_differences
    if not differences:
        return
    stops = walk.first is not None and walk.first.kind is Kind.SHAPE
    told = _told(walk, stops=stops)
    key = told.key
    shapes = wording.shape(told.reference.shape), wording.shape(told.candidate.shape)
    by_module = stops and walk.first is not None and walk.first.origin in {Origin.MODULE, Origin.FUNCTIONAL}
    yield Finding(
        CODE,
        LABEL,
        explaining.severity(walk, sure=stops and not by_module),
        say(
            "{}: {} has shape {} in the reference and {} in the candidate{}.",
            telling.opening(key),
            telling.tensor(key),
            shapes[0],
            shapes[1],
            _others(len(differences) - 1),
        ),
        _advice(told),
        telling.place_of(key),
        {"tensors": len(differences), "examples": [_example(pair) for pair in differences[:EXAMPLES]]},
        {
            "step": key.step,
            "phase": str(key.phase),
            "name": key.name,
            "slot": key.slot,
            "reference_shape": list(told.reference.shape),
            "candidate_shape": list(told.candidate.shape),
        },
    )


def _told(walk: Walk, *, stops: bool) -> Pair:
    """The pair that the walk stopped at, else the argument of the module that is to blame, else the first."""
    if walk.first is not None:
        key = walk.first.comparison.key
        for pair in walk.shape_differences:
            if pair.key == key if stops else (pair.key.phase, pair.key.name) == (Phase.FORWARD, key.name):
                return pair
    return walk.shape_differences[0]


def _others(count: int) -> str:
    if count == 0:
        return ""
    return say("; {} {} in shape too", wording.plural(count, "other tensor"), "differs" if count == 1 else "differ")


def _advice(pair: Pair) -> str:
    if pair.key.phase is Phase.INIT:
        return "Build both models from one configuration, or pair renamed modules with `align diff --rename OLD=NEW`."
    if pair.key.phase in {Phase.INPUT, Phase.LOSS}:
        return "Feed both runs batches of one shape: batch size, padding, sequence length, the last batch."
    return say(
        "Compare how both runs make {} of {}, and what its code expects of the shape.", pair.key.slot, pair.key.name
    )


def _example(pair: Pair) -> str:
    return say("{}: {} / {}", pair.key, wording.shape(pair.reference.shape), wording.shape(pair.candidate.shape))
