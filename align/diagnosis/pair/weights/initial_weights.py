"""AL310: the runs do not start from the same weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.data.seed_mismatch import looks_like_another_seed
from align.diagnosis.pair.weights import unlike
from align.diagnosis.registry import rule
from align.drift import root_of
from align.equality import Answer, Equality
from align.initial_relations import name_of
from align.records import Finding, Kind, Origin, Severity
from align.relations import ModelKind, Side, describe
from align.sentences import say
from align.walk import Suspect, equality_comparison

CODE = "AL310"
LABEL = "initial-weights-differ"

EXAMPLES = 5


@rule(CODE, LABEL, rank=30)
def find(walk: Walk) -> Iterator[Finding]:
    """Initial weights and buffers that differ and of which no other rule tells how, or that are equal but for rounding.

    Another shape is told by AL104.
    """
    names = unlike.groups(walk).get(LABEL, ())
    unequal = [found for found in map(partial(unlike.equality_of, walk), names) if found.pair.same_shape]
    if unequal:
        yield _differ(walk, unequal)
    if walk.unequal_weights:
        return
    if walk.first is not None and (walk.first.origin, walk.first.kind) == (Origin.WEIGHTS, Kind.VALUE):
        yield _not_known(walk, walk.first)
    close = [found for found in walk.initial if found.answer is Answer.CLOSE]
    if close:
        yield _close(close, len(walk.initial))


def _not_known(walk: Walk, first: Suspect) -> Finding:
    """The first difference is made with weights that were not captured, so that they may be the cause."""
    key = first.comparison.key
    root = root_of(key.name)
    since = min(each.key.step for each in walk.comparisons if root_of(each.key.name) == root)
    evidence = telling.evidence_of(first.comparison)
    evidence["carried_on"] = telling.carried_on(walk.comparisons, first.comparison)
    return Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        telling.statistics_summary(first)
        if first.statistics_only
        else (
            say(
                "{}: {} is the first tensor that differs: {}{}. Its inputs agree; whether its weights do is not "
                "known, as {} was first called in {}, after the initial weights had been captured.",
                telling.opening(key),
                telling.tensor(key),
                telling.amount(first.comparison),
                telling.comma_relation(first.comparison, first.scale),
                root,
                wording.step(since),
            )
        ),
        telling.STATISTICS_ADVICE
        if first.statistics_only
        else (
            say(
                "Compare the weights of {} in both runs: build it from one seed (`align capture --seed 1`), or load "
                "one checkpoint into it in both. `--init-from` does not reach it. Where they are equal, compare the "
                "settings and the operators of {}.",
                root,
                key.name,
            )
        ),
        telling.place_of(key),
        evidence,
        {**telling.arguments_of(first), "root": root, "since": since},
    )


def _differ(walk: Walk, unequal: Sequence[Equality]) -> Finding:
    total = len(walk.initial)
    cause = _cause(walk, unequal)
    names = [_name(found) for found in unequal[:EXAMPLES]]
    return Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "The initial weights differ in {} of {}{}. No module was judged.",
            wording.count(len(unequal)),
            wording.plural(total, "tensor"),
            say(": {}", cause) if cause else "",
        ),
        say(
            "Start both runs from one set of weights: {}load the same checkpoint in both. Then compare again.",
            unlike.taking(walk),
        ),
        telling.place_of(unequal[0].pair.key),
        {
            "differing": len(unequal),
            "tensors": total,
            "examples": names,
            "relative_l2": {_name(found): found.relative_l2 for found in unequal[:EXAMPLES]},
        },
        {"differing": len(unequal), "tensors": total, "cause": cause, "names": names},
    )


def _cause(walk: Walk, unequal: Sequence[Equality]) -> str:
    """What the candidate's weights are to the reference's where that is simple."""
    if looks_like_another_seed(walk):
        return "they look like another draw of the same distribution"
    side = walk.weights.model.side
    if walk.weights.model.kind is ModelKind.NOT_LOADED and side is not None and _vectors_at_defaults(walk, side):
        return say("the vectors of the {} are at their defaults, as if no checkpoint had been loaded there", side)
    relations = [telling.relation(equality_comparison(found)) for found in unequal]
    if relations[0] and all(relation == relations[0] for relation in relations):
        return relations[0]
    related = walk.weights.relations.get(name_of(unequal[0].pair.reference))
    said = say(" ({})", describe(related)) if related is not None and not relations[0] else ""
    if relations[0]:
        said = say(", {}", relations[0])
    return say("first {}{}", _name(unequal[0]), said)


def _vectors_at_defaults(walk: Walk, side: Side) -> bool:
    """Whether most of the vectors that differ are constant on that side."""
    sides = [
        relation.reference if side is Side.REFERENCE else relation.candidate
        for relation in walk.weights.relations.values()
        if not relation.agrees and len(relation.reference.shape) == 1
    ]
    return 2 * sum(contents.minimum == contents.maximum for contents in sides) > len(sides)


def _close(close: Sequence[Equality], total: int) -> Finding:
    largest = max(close, key=lambda found: found.relative_l2 or 0.0)
    dtypes = (largest.pair.reference.dtype, largest.pair.candidate.dtype)
    many = say("{} of {}", wording.count(len(close)), wording.plural(total, "initial tensor"))
    number = wording.relative(largest.relative_l2)
    if dtypes[0] != dtypes[1]:
        formats = say("{} in the reference and {} in the candidate", wording.dtype(dtypes[0]), wording.dtype(dtypes[1]))
        summary = say(
            "{} {} of another format ({}), their values equal", many, "is" if len(close) == 1 else "are", formats
        )
        summary += say(" but for its rounding; the largest difference is {} in {}.", number, _name(largest))
        if not largest.relative_l2:
            summary = say(
                "{} {} of another format ({}) with equal values.", many, "is" if len(close) == 1 else "are", formats
            )
        advice = "Nothing to do where that is meant; build both models in one format to compare them more closely."
    else:
        summary = say(
            "{} {} equal but for rounding; the largest difference is {} in {}. It is part of the floor.",
            many,
            "is" if len(close) == 1 else "are",
            number,
            _name(largest),
        )
        advice = "Nothing to do; load one file on both sides to make them equal bit for bit."
    return Finding(
        CODE,
        LABEL,
        Severity.NOTE,
        summary,
        advice,
        telling.place_of(largest.pair.key),
        {"close": len(close), "tensors": total, "largest_relative_l2": largest.relative_l2},
        {"close": len(close), "tensors": total, "name": largest.pair.key.name, "slot": largest.pair.key.slot},
    )


def _name(found: Equality) -> str:
    key = found.pair.key
    return f"{key.name}.{key.slot}"
