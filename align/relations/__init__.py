"""What a candidate's tensor is to the reference's: equal, cast, scaled, permuted, stale, another draw, not loaded, ...

Three ways in, one record out (`Relation`):

* `relate_values(Values(array, dtype), Values(array, dtype), ...)`: both tensors are in memory.
* `relate_records(record, record, ...)`: statistics, sketches and hashes only.
* `same_bits(source, source)`, or `summarize(source)` for each tensor, then `relate_sources(source, source, ...)` only
  where they differ: tensors of any size in the memory of a few blocks.

All of them take the same optional facts, a `Circumstances`: the calibrated noise, earlier tensors that the candidate
may repeat, numbers that a factor may be. `aggregate` makes one answer of a model's relations, `describe` a phrase.
"""

from __future__ import annotations

from align.relations.circumstances import Circumstances
from align.relations.from_records import contents_of_record, relate_records
from align.relations.from_sources import ArraySource, Summary, TensorSource, relate_sources, same_bits, summarize
from align.relations.from_values import Values, contents_of_values, relate_values
from align.relations.model import aggregate
from align.relations.phrases import describe, describe_model
from align.relations.relation import (
    AGREEING,
    TOLD_APART_BY_VALUES,
    Basis,
    Contents,
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

__all__ = [
    "AGREEING",
    "TOLD_APART_BY_VALUES",
    "ArraySource",
    "Basis",
    "Circumstances",
    "Contents",
    "Factor",
    "ModelKind",
    "ModelRelation",
    "Order",
    "OrderKind",
    "Part",
    "Relation",
    "RelationKind",
    "Side",
    "Summary",
    "TensorSource",
    "Values",
    "aggregate",
    "contents_of_record",
    "contents_of_values",
    "describe",
    "describe_model",
    "relate_records",
    "relate_sources",
    "relate_values",
    "same_bits",
    "summarize",
]
