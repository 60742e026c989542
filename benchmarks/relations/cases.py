"""One case: a pair of tensors, what is known around it, and which answers are right."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from align.records import Phase, TensorKey, TensorRecord
from align.relations import (
    ArraySource,
    Circumstances,
    Relation,
    RelationKind,
    Values,
    relate_records,
    relate_values,
    summarize,
)

FACTORS = {"world size": 8.0, "accumulation steps": 8.0, "loss scale": 65536.0}
RESOLUTION = 0.7 * 2.0**-24
K = RelationKind


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """`kind` is the truth, `check` what else the answer from values must say. `noise` is the calibrated one.

    `by_records` are the kinds that are right from records; `vague` marks cases whose sketch holds less than the truth.
    """

    family: str
    name: str
    kind: RelationKind
    reference: Values
    candidate: Values
    noise: float = 0.0
    earlier: Mapping[str, Values] = field(default_factory=dict)
    check: Callable[[Relation], bool] = lambda _: True
    by_records: frozenset[RelationKind] = frozenset()
    hashed: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said of a case, and whether it is right."""

    family: str
    name: str
    truth: RelationKind
    said: RelationKind
    right: bool


def by_values(case: Case) -> Answer:
    """Relate the values."""
    found = relate_values(case.reference, case.candidate, Circumstances(case.noise, case.earlier, FACTORS))
    right = (found.kind is case.kind and case.check(found)) or _is_within(case, found)
    return Answer(case.family, case.name, case.kind, found.kind, right)


def by_records(case: Case) -> Answer:
    """Relate the records: statistics and sketches, hashes where the values must be equal."""
    ours, theirs = (record_of(each, hashed=case.hashed) for each in (case.reference, case.candidate))
    earlier = {name: record_of(each, hashed=case.hashed) for name, each in case.earlier.items()}
    found = relate_records(ours, theirs, Circumstances(case.noise, earlier, FACTORS))
    right = found.kind in (case.by_records or {case.kind}) or found.kind is case.kind or _is_within(case, found)
    if found.kind is case.kind is K.SCALED:
        right = case.check(found)
    return Answer(case.family, case.name, case.kind, found.kind, right)


_RECORDS: dict[tuple[int, str, bool], tuple[NDArray[Any], TensorRecord]] = {}
"""Records of arrays that many cases share, with the array so that its identity stays."""

MOST_KEPT = 256


def record_of(values: Values, *, hashed: bool) -> TensorRecord:
    """The record that a capture would hold."""
    key = (id(values.array), values.name, hashed)
    if key not in _RECORDS:
        if len(_RECORDS) >= MOST_KEPT:
            _RECORDS.clear()
        _RECORDS[key] = values.array, _made_record(values, hashed=hashed)
    return _RECORDS[key][1]


def _made_record(values: Values, *, hashed: bool) -> TensorRecord:
    summary = summarize(ArraySource(values), with_sketch="float" in values.name)
    key = TensorKey(0, Phase.GRADIENT, "module", "weight")
    count = math.prod(values.array.shape)
    return TensorRecord(
        key,
        0,
        values.name,
        values.array.shape,
        summary.stats,
        summary.hash if hashed or summary.sketch is None else None,
        summary.sketch,
        RESOLUTION if summary.sketch is not None and count > len(summary.sketch) else 0.0,
    )


def distance(ours: NDArray[Any], theirs: NDArray[Any]) -> float:
    """The relative L2 of two arrays."""
    norm = float(np.linalg.norm(ours.astype(np.float64)))
    return float(np.linalg.norm(theirs.astype(np.float64) - ours)) / norm if norm else math.inf


def _is_within(case: Case, found: Relation) -> bool:
    """`within noise` is right where the difference really is: at most four times the calibrated noise."""
    if found.kind is not K.WITHIN_NOISE or case.noise == 0.0:
        return False
    return distance(case.reference.array, case.candidate.array) <= 4.0 * case.noise
