"""Two records, made ready to be related: what their statistics and sketches say of the difference."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any

from align import sketch
from align.records import TensorRecord, TensorStats
from align.relations.both import simple
from align.relations.draws import Spread, initial_look
from align.relations.formats import unit_of
from align.relations.relation import Basis, Contents, Factor, Relation, RelationKind

NOISE_OF_PAIR = 2.8
"""As for values (2.5), and a sketch reads up to 15 % more."""

READING = 1e-6
"""Residuals below are those of float32 sketches (at most 3.5 unit roundoffs each)."""


def contents_of_record(record: TensorRecord) -> Contents | None:
    """One tensor by itself, None where the record has no statistics."""
    stats = record.stats
    if stats is None:
        return None
    deviation = deviation_of(stats)
    contents = Contents(
        record.dtype,
        record.shape,
        stats.minimum,
        stats.maximum,
        stats.mean,
        deviation,
        stats.norm,
        stats.zeros,
        stats.nonfinite,
        hash=record.hash,
    )
    spread = Spread(stats.count - stats.nonfinite, stats.minimum, stats.maximum, stats.mean, deviation)
    look = "" if stats.nonfinite else initial_look(spread, record.shape, None, unit_of(record.dtype))
    return replace(contents, initial=look)


def deviation_of(stats: TensorStats) -> float:
    """The standard deviation of the finite elements."""
    finite = stats.count - stats.nonfinite
    return math.sqrt(max(stats.total_squares / finite - stats.mean**2, 0.0)) if finite else 0.0


class Glance:
    """Two records of as many elements; everything costly is made when it is first asked for."""

    def __init__(self, reference: TensorRecord, candidate: TensorRecord, noise: float) -> None:
        self.records = (reference, candidate)
        self.noise = noise
        self.unit = max(unit_of(reference.dtype), unit_of(candidate.dtype))

    @property
    def has_statistics(self) -> bool:
        """Whether both records have statistics."""
        return all(record.stats is not None for record in self.records)

    @property
    def same_shape(self) -> bool:
        """Whether both have one shape."""
        return self.records[0].shape == self.records[1].shape

    @property
    def hashes_differ(self) -> bool:
        """Whether both have a hash, of one dtype, and it differs."""
        ours, theirs = self.records
        return None not in {ours.hash, theirs.hash} and ours.hash != theirs.hash and ours.dtype == theirs.dtype

    @cached_property
    def contents(self) -> tuple[Contents, Contents]:
        """Each tensor by itself."""
        ours, theirs = (contents_of_record(record) or Contents(record.dtype, record.shape) for record in self.records)
        return ours, theirs

    @cached_property
    def stats(self) -> tuple[TensorStats, TensorStats]:
        """The statistics of both; of a record without any, those of no elements."""
        ours, theirs = (record.stats or TensorStats(0) for record in self.records)
        return ours, theirs

    @cached_property
    def sketches(self) -> tuple[sketch.Sketch, sketch.Sketch] | None:
        """Both sketches where they can be compared."""
        ours, theirs = (sketch.sketch_of(record) for record in self.records)
        if ours is None or theirs is None or not self.same_shape or len(ours.values) != len(theirs.values):
            return None
        return ours, theirs

    @property
    def resolution(self) -> float:
        """What the summation of both sketches may add to a distance, relative to the norm."""
        return math.hypot(self.records[0].resolution, self.records[1].resolution)

    @cached_property
    def distance(self) -> float | None:
        """The relative L2 distance by sketches."""
        return sketch.distance(*self.sketches) if self.sketches is not None else None

    @cached_property
    def scale(self) -> sketch.ScaleFactor | None:
        """The factor between both by their norms."""
        return sketch.scale_factor(*self.sketches) if self.sketches is not None else None

    @cached_property
    def correlation(self) -> float | None:
        """The cosine after taking out the means, within 1/sqrt(K); None where one side is constant."""
        product = sketch.inner_product(*self.sketches) if self.sketches is not None else None
        ours, theirs = self.stats
        spreads = [deviation_of(stats) for stats in self.stats]
        if product is None or min(spreads) <= 0.0 or not ours.count:
            return None
        return (product / ours.count - ours.mean * theirs.mean) / (spreads[0] * spreads[1])

    @property
    def buckets(self) -> int:
        """K, 0 without sketches."""
        return len(self.sketches[0].values) if self.sketches is not None else 0

    def fits(self, residual: float, before: float) -> bool:
        """Whether this is all that noise and rounding leave of an explanation that holds; as for values."""
        allowed = max(NOISE_OF_PAIR * self.noise, 2.0 * self.unit, READING)
        return residual <= min(max(allowed, simple(self.noise, before)), 0.5)

    @property
    def of_candidate(self) -> float:
        """||candidate - reference|| / ||candidate|| by sketches, infinite where it is not known."""
        ours, theirs = (stats.norm for stats in self.stats)
        return self.distance * ours / theirs if self.distance is not None and theirs > 0.0 else math.inf

    def answer(self, kind: RelationKind, **more: Any) -> Relation:
        """A relation of this kind, with what is known of every pair of one shape."""
        if not self.same_shape:
            return Relation(kind, Basis.RECORDS, *self.contents, noise=self.noise, **more)
        scale = self.scale
        facts = {
            "relative_l2": self.distance,
            "residual": self.distance,
            "correlation": self.correlation,
            "factor": Factor(scale.factor) if scale is not None else None,
        }
        return Relation(kind, Basis.RECORDS, *self.contents, noise=self.noise, **{**facts, **more})

    def unknown(self, note: str) -> Relation:
        """Nothing can be told; the note says without what."""
        return self.answer(RelationKind.UNKNOWN, note=note)
