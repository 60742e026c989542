"""What the candidate's tensor is to the reference's, from statistics, sketches and hashes alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from align import sketch
from align.records import TensorRecord
from align.relations import record_changes, record_draws, record_likeness
from align.relations.both import Values
from align.relations.circumstances import Circumstances
from align.relations.from_values import relate_values
from align.relations.glance import Glance, contents_of_record
from align.relations.relation import Basis, Relation, RelationKind

__all__ = ["contents_of_record", "relate_records"]

STEPS: tuple[Callable[[Glance, Circumstances[TensorRecord]], Relation | None], ...] = (
    record_likeness.other_shape,
    record_likeness.equal,
    record_likeness.nonfinite,
    record_likeness.all_zero,
    record_likeness.repeated,
    record_changes.without_sketch,
    record_likeness.cast,
    record_likeness.within_noise,
    record_likeness.stale,
    record_changes.scaled,
    record_changes.offset,
    record_changes.reordered,
    record_changes.few_elements,
    record_draws.not_loaded,
    record_draws.independent,
)


def relate_records(
    reference: TensorRecord, candidate: TensorRecord, circumstances: Circumstances[TensorRecord] | None = None
) -> Relation:
    """What the candidate is to the reference, as far as records tell; UNKNOWN where one has no statistics.

    A tensor of at most K elements is recovered from its sketch and related by its values. Which slices moved or differ
    is not in a sketch: such tensors read REORDERED, DRIFTED or FEW_ELEMENTS.
    """
    known: Circumstances[TensorRecord] = circumstances if circumstances is not None else Circumstances()
    glance = Glance(reference, candidate, known.noise)
    if not glance.has_statistics:
        return glance.unknown("one of the records has no statistics")
    recovered = _recovered(reference), _recovered(candidate)
    if recovered[0] is not None and recovered[1] is not None:
        return _by_values(glance, (recovered[0], recovered[1]), known)
    for step in STEPS:
        found = step(glance, known)
        if found is not None:
            return found
    return glance.answer(RelationKind.UNRELATED)


def _by_values(glance: Glance, values: tuple[Values, Values], known: Circumstances[TensorRecord]) -> Relation:
    """The relation of small tensors, whose values are in their sketches but for the sign of a zero."""
    earlier = {name: kept for name, record in known.earlier.items() if (kept := _recovered(record)) is not None}
    found = relate_values(*values, Circumstances(known.noise, earlier, known.factors))
    contents = [
        replace(mine, hash=record.hash)
        for mine, record in zip((found.reference, found.candidate), glance.records, strict=True)
    ]
    kind = found.kind
    if kind is RelationKind.EQUAL and glance.hashes_differ:
        kind = RelationKind.EQUAL_BUT_BITS
    return replace(found, kind=kind, basis=Basis.RECORDS, reference=contents[0], candidate=contents[1])


def _recovered(record: TensorRecord) -> Values | None:
    """The values of a tensor of at most K elements; None for float64, of which a sketch holds a float32."""
    if record.sketch is None or record.dtype == "float64":
        return None
    found = sketch.recovered(record.sketch, record.numel)
    if found is None or found.size != record.numel:
        return None
    return Values(np.ascontiguousarray(found.reshape(record.shape)), record.dtype)
