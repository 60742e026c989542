"""A relation in words, to stand behind `the candidate's tensor is ...`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from align import wording
from align.relations.relation import (
    Factor,
    ModelKind,
    ModelRelation,
    Order,
    OrderKind,
    Part,
    Relation,
    RelationKind,
    Side,
)
from align.sentences import joined, say

EXAMPLES = 3
LARGE = 1000.0
AXES = {0: say("rows"), 1: say("columns")}
ONE = {0: say("row"), 1: say("column")}
SIDES = {Side.REFERENCE: "the reference", Side.CANDIDATE: "the candidate", Side.BOTH: "both runs"}


def describe(relation: Relation) -> str:
    """`0.125 times the reference (1/world size)`, `the rows of the reference rolled by 3`, ..."""
    said = PHRASES[relation.kind](relation)
    return say("{} ({})", said, relation.note) if relation.note else said


def describe_model(relation: ModelRelation) -> str:
    """`8 times those of the reference (world size)`, to stand behind `the candidate's tensors are`."""
    many = (
        ""
        if len(relation.names) == relation.total
        else say(" in {} of {} tensors", len(relation.names), relation.total)
    )
    said = MODEL_PHRASES[relation.kind](relation)
    return say(
        "{}{}{}",
        said,
        many if relation.kind not in WITHOUT_COUNT else "",
        say(" ({})", relation.note) if relation.note else "",
    )


def factor_words(factor: Factor | None, *, several: bool = False) -> str:
    """`8 times the reference (world size or accumulation steps)`; of several tensors `8 times those of ...`."""
    if factor is None:
        return "a multiple of those of the reference" if several else "a multiple of the reference"
    number = wording.value(factor.value) if abs(factor.value) >= LARGE else wording.factor(factor.value)
    meaning = say(" ({})", joined(" or ", map(say, factor.meanings))) if factor.meanings else ""
    if several:
        return say("{} times those of the reference{}", number, meaning)
    return say("{} times the reference{}", number, meaning)


def order_words(order: Order) -> str:
    """`the rows of the reference in reversed order`, ..."""
    what = AXES.get(order.dimension, say("slices along dimension {}", order.dimension))
    if order.how is OrderKind.REVERSED:
        return say("the {} of the reference in reversed order", what)
    if order.how is OrderKind.ROLLED:
        return say("the {} of the reference rolled by {}", what, order.shift)
    if order.how is OrderKind.EXCHANGED:
        return say(
            "the reference with {} {} exchanged", what, wording.listing([str(place) for place, _ in order.examples])
        )
    if order.how is OrderKind.SWAPPED_AXES:
        axes = joined(" x ", (str(each) for each in (order.outer, order.first, order.second, order.block) if each > 1))
        return say(
            "the {} of the reference, split into {}, with the {} and the {} exchanged",
            what,
            axes,
            order.first,
            order.second,
        )
    if order.how is OrderKind.GROUPED:
        widths = joined(" + ", (str(width) for width in order.parts))
        each = say(" of {}", order.block) if order.block > 1 else ""
        return say(
            "the {} of the reference between stacked parts and {} groups of {} blocks{}",
            what,
            order.first,
            widths,
            each,
        )
    together = say(", in blocks of {}", order.block) if order.block > 1 else ""
    return say("the {} of the reference in another order{} ({} of {} moved)", what, together, order.moved, order.length)


def part_words(part: Part) -> str:
    """`3 elements (7, 9, 11)`, `rows 4 to 7`."""
    if part.dimension is None:
        if part.run is not None:
            return say(
                "{} from {} to {} of the flat tensor",
                wording.plural(part.count, "element"),
                part.run[0],
                part.run[1] - 1,
            )
        shown = [str(index) for index in part.indices[:EXAMPLES]]
        places = say(" ({})", wording.listing(shown, part.count)) if shown else ""
        return say("{}{}", wording.plural(part.count, "element"), places)
    what = AXES.get(part.dimension, say("slices along dimension {}", part.dimension))
    if part.run is not None:
        return say("{} {} to {}", what, part.run[0], part.run[1] - 1)
    places = wording.listing([str(index) for index in part.indices[:EXAMPLES]], part.count)
    if part.count == 1:
        what = ONE.get(part.dimension, say("the slice along dimension {}", part.dimension))
    return say("{} {}", what, places)


def _side(side: Side | None) -> str:
    return SIDES[side] if side is not None else "one run"


def _distance(relation: Relation) -> str:
    return say("relative L2 {}", wording.relative(relation.relative_l2))


def _cast(relation: Relation) -> str:
    name = wording.dtype(relation.format)
    if relation.residual == relation.relative_l2 == 0.0 and relation.reference.dtype != relation.candidate.dtype:
        return say("equal in value, in {} in {}", name, _side(relation.side))
    if relation.side is Side.REFERENCE:
        return say("what the reference holds rounded to {}", name)
    return say("the reference rounded to {}", name)


def _stale(relation: Relation) -> str:
    return say("that of {}", relation.earlier)


def _not_loaded(relation: Relation) -> str:
    contents = relation.reference if relation.side is Side.REFERENCE else relation.candidate
    return say("at its default initialisation in {} ({})", _side(relation.side), contents.initial)


PHRASES: Mapping[RelationKind, Callable[[Relation], str]] = {
    RelationKind.EQUAL: lambda _: "equal",
    RelationKind.EQUAL_BUT_BITS: lambda _: "equal in value, with other bits (-0.0 or another NaN)",
    RelationKind.NONFINITE: lambda each: say("not finite in {}", _side(each.side)),
    RelationKind.ALL_ZERO: lambda each: say("all zeros in {}", _side(each.side)),
    RelationKind.CAST: _cast,
    RelationKind.WITHIN_NOISE: lambda each: say("within noise, {}", _distance(each)),
    RelationKind.STALE: _stale,
    RelationKind.SIGN_FLIPPED: lambda _: "the reference with its sign flipped",
    RelationKind.SCALED: lambda each: factor_words(each.factor),
    RelationKind.OFFSET: lambda each: say("the reference plus {} everywhere", wording.value(each.offset or 0.0)),
    RelationKind.RESHAPED: lambda _: "the values of the reference in another shape",
    RelationKind.TRANSPOSED: lambda each: say("the reference transposed by {}", wording.shape(each.axes)),
    RelationKind.PERMUTED: lambda each: order_words(each.order) if each.order else "the reference in another order",
    RelationKind.REORDERED: lambda _: "the values of the reference in another order",
    RelationKind.FEW_ELEMENTS: lambda each: say("the reference but for {}", part_words(each.part or Part(0))),
    RelationKind.FEW_SLICES: lambda each: say("the reference but for {}", part_words(each.part or Part(0))),
    RelationKind.NOT_LOADED: _not_loaded,
    RelationKind.OTHER_SEED: lambda _: "another draw of the same distribution",
    RelationKind.DRIFTED: lambda each: say("near the reference, {}", _distance(each)),
    RelationKind.UNRELATED: lambda _: "unrelated to the reference",
    RelationKind.OTHER_SHAPE: lambda each: say(
        "of shape {}, {} in the reference", wording.shape(each.candidate.shape), wording.shape(each.reference.shape)
    ),
    RelationKind.UNKNOWN: lambda _: "of a relation that cannot be told",
}

WITHOUT_COUNT = frozenset({ModelKind.EQUAL, ModelKind.WITHIN_NOISE, ModelKind.PERMUTED_KEYS, ModelKind.UNKNOWN})

MODEL_PHRASES: Mapping[ModelKind, Callable[[ModelRelation], str]] = {
    ModelKind.EQUAL: lambda _: "equal",
    ModelKind.WITHIN_NOISE: lambda _: "within noise",
    ModelKind.OTHER_SEED: lambda _: "another draw of the same distributions",
    ModelKind.NOT_LOADED: lambda each: say("at the defaults of a new model in {}", _side(each.side)),
    ModelKind.PARTIALLY_LOADED: lambda each: say("at the defaults of a new model in {}", _side(each.side)),
    ModelKind.PERMUTED_KEYS: lambda each: say(
        "those of the reference under other names ({}, {})", wording.plural(len(each.keys), "tensor"), _keys(each.keys)
    ),
    ModelKind.SCALED: lambda each: factor_words(each.factor, several=True),
    ModelKind.SIGN_FLIPPED: lambda _: "those of the reference with their sign flipped",
    ModelKind.STALE: lambda each: say("those of {}", each.earlier),
    ModelKind.CAST: lambda each: say("rounded to {} in {}", wording.dtype(each.format), _side(each.side)),
    ModelKind.ALL_ZERO: lambda each: say("all zeros in {}", _side(each.side)),
    ModelKind.NONFINITE: lambda each: say("not finite in {}", _side(each.side)),
    ModelKind.REORDERED: lambda _: "those of the reference in another order",
    ModelKind.SOME_TENSORS: lambda _: "different",
    ModelKind.DRIFTED: lambda _: "near those of the reference",
    ModelKind.UNRELATED: lambda _: "unrelated to those of the reference",
    ModelKind.UNKNOWN: lambda _: "not comparable",
}


def _keys(keys: tuple[tuple[str, str], ...]) -> str:
    shown = [say("{} is {}", mine, other) for mine, other in keys[:EXAMPLES]]
    return wording.listing(shown, len(keys))
