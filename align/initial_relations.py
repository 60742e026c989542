"""What the candidate's initial weights and buffers are to the reference's: tensor by tensor, and as one answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from align.capture_reader import Capture
from align.equality import Answer, Equality
from align.pairing import Pair
from align.records import Comparison, Phase, TensorRecord
from align.relations import (
    Circumstances,
    ModelKind,
    ModelRelation,
    Relation,
    RelationKind,
    Values,
    aggregate,
    contents_of_record,
    relate_records,
    relate_values,
)
from align.sentences import say

LARGEST_READ = 1 << 24
"""Of tensors with more elements no values are read: 64 MB each of float32, and about ten times that to relate them."""

NOTHING = ModelRelation(ModelKind.UNKNOWN, 0, 0)

ALMOST = 1.01
"""What is close is within its own distance."""

WORTH_READING = frozenset(
    {
        RelationKind.REORDERED,
        RelationKind.DRIFTED,
        RelationKind.FEW_ELEMENTS,
        RelationKind.OTHER_SHAPE,
        RelationKind.UNKNOWN,
    }
)
"""What records tell of these is less than values do: which slices moved, where they differ."""


@dataclass(frozen=True, slots=True, eq=False)
class TiedPair:
    """Two tensors that are equal in one run (`reference` says which) and not in the other, of which `name` differs."""

    name: str
    other: str
    reference: bool


@dataclass(frozen=True, slots=True, eq=False)
class InitialRelations:
    """Relations by `module.slot`, and the answer for the model; empty where all initial tensors are equal.

    `tied` are tensors that are tied to another one in one run only. `missing` and `extra` are the records that only
    the reference, only the candidate has. `trained` are the names of those that an optimizer trains, empty where that
    is not known.
    """

    relations: Mapping[str, Relation] = field(default_factory=dict)
    model: ModelRelation = NOTHING
    tied: tuple[TiedPair, ...] = ()
    missing: Mapping[str, TensorRecord] = field(default_factory=dict)
    extra: Mapping[str, TensorRecord] = field(default_factory=dict)
    trained: frozenset[str] = frozenset()

    @property
    def keys_moved(self) -> bool:
        """Whether weights stand under other names in the candidate.

        Where only one run has some, the others may have got their numbers, drawn with one seed.
        """
        return self.model.kind is ModelKind.PERMUTED_KEYS and not (self.missing or self.extra)


def relate_initial(
    initial: Sequence[Equality],
    unpaired: tuple[Iterable[TensorRecord], Iterable[TensorRecord]],
    comparisons: Iterable[Comparison],
    captures: tuple[Capture, Capture],
) -> InitialRelations:
    """Relate the initial tensors of two runs; nothing is done where all are equal and all have a partner.

    `comparisons` are those of the steps: what the parameters were after an update may be what the other run began with.
    """
    missing, extra = ({name_of(record): record for record in records} for records in unpaired)
    unequal = {name_of(found.pair.reference): found.pair for found in initial if found.answer is Answer.UNEQUAL}
    after = _after_updates(comparisons)
    if not unequal and not (missing and extra):
        return InitialRelations(missing=missing, extra=extra, trained=frozenset(after))
    relations = {
        name: _relate(found.pair, after.get(name, {}), captures) if name in unequal else _alike(found)
        for found in initial
        for name in [name_of(found.pair.reference)]
    }
    contents = [
        {name: known for name, record in side.items() if (known := contents_of_record(record)) is not None}
        for side in (missing, extra)
    ]
    return InitialRelations(
        relations,
        aggregate(relations, *contents),
        tuple(_tied(initial, unequal)),
        missing,
        extra,
        frozenset(after),
    )


def name_of(record: TensorRecord) -> str:
    """`layers.0.mlp.weight`."""
    return f"{record.key.name}.{record.key.slot}"


def _after_updates(comparisons: Iterable[Comparison]) -> dict[str, dict[int, Pair]]:
    """Each parameter as it was after the captured steps."""
    found: dict[str, dict[int, Pair]] = {}
    for each in comparisons:
        if each.key.phase is Phase.PARAM:
            found.setdefault(name_of(each.reference), {})[each.key.step] = Pair(each.reference, each.candidate)
    return found


def _alike(found: Equality) -> Relation:
    """The relation of a pair that is equal, or close."""
    allowed: Circumstances[TensorRecord] = Circumstances(noise=ALMOST * (found.relative_l2 or 0.0))
    return relate_records(found.pair.reference, found.pair.candidate, allowed)


def _relate(pair: Pair, after: Mapping[int, Pair], captures: tuple[Capture, Capture]) -> Relation:
    """The relation of a pair that is not equal, with the values where they say more."""
    ours, theirs = pair.reference, pair.candidate
    later = {say("the reference after step {}", step): each.reference for step, each in after.items()}
    found = _relate_to(ours, theirs, later)
    if found.kind is RelationKind.STALE:
        return found
    turned = _relate_to(
        theirs, ours, {say("the candidate after step {}", step): each.candidate for step, each in after.items()}
    )
    if turned.kind is RelationKind.STALE:
        return replace(turned, reference=found.reference, candidate=found.candidate, relative_l2=found.relative_l2)
    readable = ours.has_values and theirs.has_values and max(ours.numel, theirs.numel) <= LARGEST_READ
    if not readable or found.kind not in WORTH_READING:
        return found
    values = (
        Values(capture.raw_values(each), each.dtype) for capture, each in zip(captures, (ours, theirs), strict=True)
    )
    return relate_values(next(values), next(values))


def _relate_to(ours: TensorRecord, theirs: TensorRecord, earlier: Mapping[str, TensorRecord]) -> Relation:
    known: Circumstances[TensorRecord] = Circumstances(earlier=earlier)
    return relate_records(ours, theirs, known)


def _tied(initial: Sequence[Equality], unequal: Mapping[str, Pair]) -> Iterator[TiedPair]:
    """Tensors that differ and are, in one run only, bit for bit another tensor of the model.

    Layers that are copies of one another begin equal in both runs, whatever they were drawn as.
    """
    pairs = {name_of(found.pair.reference): (found.pair.reference, found.pair.candidate) for found in initial}
    for side in (0, 1):
        by_hash: dict[tuple[int | None, tuple[int, ...]], list[str]] = {}
        for name, records in pairs.items():
            by_hash.setdefault((records[side].hash, records[side].shape), []).append(name)
        for name in unequal:
            record, other = pairs[name][side], pairs[name][1 - side]
            constant = record.stats is None or record.stats.minimum == record.stats.maximum
            twins = [
                twin
                for twin in by_hash.get((record.hash, record.shape), ())
                if twin != name and pairs[twin][1 - side].hash != other.hash
            ]
            if record.hash is not None and not constant and twins and other.hash is not None:
                yield TiedPair(name, twins[0], reference=side == 0)
