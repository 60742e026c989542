"""AL309: buffers differ, tensors that no optimizer trains."""

from __future__ import annotations

from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.setup import explaining
from align.diagnosis.pair.weights import unlike
from align.diagnosis.registry import rule
from align.diagnosis.telling import Words
from align.equality import Answer
from align.initial_relations import name_of
from align.records import Finding, Kind, Severity
from align.relations import Relation, RelationKind
from align.sentences import say

CODE = "AL309"
LABEL = "buffer-differs"


@rule(CODE, LABEL, rank=29)
def find(walk: Walk) -> Iterator[Finding]:
    """Initial tensors that differ and that no optimizer trains, in a run whose trained parameters are known.

    Also one that is rounded to a shorter dtype in one run, where the first difference is the output of its module.
    """
    tensors = unlike.told(walk, LABEL)
    if not tensors:
        yield from _shorter_table(walk)
        return
    names = [name for name, _ in tensors]
    said = [say("{}{}", words, _distance(tensors)) for words in unlike.relation_words(tensors)]
    cast = any(relation.kind is RelationKind.CAST for _, relation in tensors)
    yield unlike.finding(
        walk,
        names,
        (CODE, LABEL),
        Words(
            say(
                "Tensors that no optimizer trains (buffers, frozen parameters) differ: {}. In the candidate {}. No "
                "module was judged.",
                unlike.of_total(walk, names),
                wording.listing(said),
            ),
            say("{} {}", _cause(cast=cast), unlike.same_weights(walk)),
        ),
    )


def _distance(tensors: list[tuple[str, Relation]]) -> str:
    """How far the first is away where its phrase does not say it."""
    relation = tensors[0][1]
    if len(tensors) > 1 or relation.kind is not RelationKind.CAST or not relation.relative_l2:
        return ""
    return say(" (relative L2 {})", wording.relative(relation.relative_l2))


def _cause(*, cast: bool) -> str:
    if cast:
        return (
            "Make and keep tables in float32 in both runs: `model.to(torch.bfloat16)` casts buffers too, and an angle "
            "of position times frequency multiplies the rounding by the position."
        )
    return (
        "Compare how both scripts make these tables (base, length, dtype), and whether running statistics were loaded."
    )


def _shorter_table(walk: Walk) -> Iterator[Finding]:
    """A table of another dtype in the module that makes the first difference: what it computes shows the rounding."""
    first = walk.first
    if first is None or first.kind is not Kind.VALUE or first.statistics_only or not walk.weights.trained:
        return
    for found in walk.initial:
        key, (ours, theirs) = found.pair.key, (found.pair.reference, found.pair.candidate)
        trained = name_of(found.pair.reference) in walk.weights.trained
        if (
            found.answer is not Answer.CLOSE
            or trained
            or ours.dtype == theirs.dtype
            or key.name != telling.blamed(first)
        ):
            continue
        dtypes = say(
            "{} in the reference and {} in the candidate", wording.dtype(ours.dtype), wording.dtype(theirs.dtype)
        )
        yield Finding(
            CODE,
            LABEL,
            Severity.ERROR,
            say(
                "{}.{}, which no optimizer trains, is {} (relative L2 {}). {}",
                key.name,
                key.slot,
                dtypes,
                wording.relative(found.relative_l2),
                explaining.first_sentence(first),
            ),
            _cause(cast=True),
            telling.place_of(first.comparison.key),
            {"name": name_of(ours), "relative_l2": found.relative_l2, "dtypes": [ours.dtype, theirs.dtype]},
            telling.arguments_of(first),
        )
        return
