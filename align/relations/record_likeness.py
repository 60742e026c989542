"""Steps over records that find two tensors alike, as `likeness` does over values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from align import sketch
from align.records import TensorRecord, TensorStats
from align.relations.both import simple
from align.relations.circumstances import Circumstances
from align.relations.formats import FORMATS, Numbers, cut_off, rounded, unit_of
from align.relations.glance import Glance
from align.relations.likeness import STALE_SHARE
from align.relations.record_changes import hidden_factor, same_statistics
from align.relations.relation import Relation, RelationKind, Side
from align.tolerance import Precision

BANDS = ((rounded, (0.12, 0.9)), (cut_off, (0.25, 1.8)))
"""The relative L2 that a shorter format makes, in its unit roundoffs. Rounded: 0.5e-3 to 3.4e-3 for bf16 and 0.3e-3 to
4.3e-4 for fp16 over 452 tensors. What is cut off is twice that."""

Known = Circumstances[TensorRecord]


def other_shape(glance: Glance, _: Known) -> Relation | None:
    """Tensors of two shapes: the same values in another form, or not comparable."""
    if glance.same_shape:
        return None
    ours, theirs = glance.records
    if ours.numel != theirs.numel:
        return glance.answer(RelationKind.OTHER_SHAPE)
    if _same_order(glance):
        return glance.answer(RelationKind.RESHAPED)
    if not same_statistics(glance):
        return glance.answer(RelationKind.OTHER_SHAPE)
    axes = _only_axes(ours.shape, theirs.shape)
    if axes is not None:
        note = "by shape and statistics; the order of the values is not seen"
        return glance.answer(RelationKind.TRANSPOSED, axes=axes, note=note)
    return glance.answer(RelationKind.REORDERED, note="the values, not their order, are known to be the same")


def equal(glance: Glance, _: Known) -> Relation | None:
    """Equal hashes of one dtype, or without hashes sketches of the same bits that were made alike."""
    ours, theirs = glance.records
    if ours.dtype != theirs.dtype:
        return None
    if ours.hash is not None and ours.hash == theirs.hash:
        return glance.answer(RelationKind.EQUAL)
    if not _identical(ours, theirs):
        return None
    if glance.hashes_differ:
        note = "a difference too small for a sketch, if not in bits only"
        return glance.answer(RelationKind.EQUAL_BUT_BITS, note=note)
    return glance.answer(RelationKind.EQUAL)


def nonfinite(glance: Glance, _: Known) -> Relation | None:
    """Other counts of NaN or Inf."""
    counts = [(stats.nans, stats.positive_infs, stats.negative_infs) for stats in glance.stats]
    if counts[0] == counts[1]:
        return None
    bad = [any(each) for each in counts]
    return glance.answer(
        RelationKind.NONFINITE, side=Side.BOTH if all(bad) else Side.CANDIDATE if bad[1] else Side.REFERENCE
    )


def all_zero(glance: Glance, _: Known) -> Relation | None:
    """Zeros on one side only."""
    zero = [_is_zero(stats) for stats in glance.stats]
    if zero[0] == zero[1]:
        return None
    return glance.answer(RelationKind.ALL_ZERO, side=Side.REFERENCE if zero[0] else Side.CANDIDATE)


def repeated(glance: Glance, known: Known) -> Relation | None:
    """Equal to an earlier tensor by hash or sketch."""
    theirs = glance.records[1]
    for name, earlier in known.earlier.items():
        if earlier.shape != theirs.shape or earlier.dtype != theirs.dtype:
            continue
        by_hash = earlier.hash is not None and earlier.hash == theirs.hash
        unknown = earlier.hash is None or theirs.hash is None
        if by_hash or (unknown and _identical(earlier, theirs)):
            return glance.answer(RelationKind.STALE, earlier=name, residual=0.0)
    return None


def cast(glance: Glance, _: Known) -> Relation | None:
    """One side's extremes are those of the other rounded to a format, and so is the size of the difference."""
    names = [record.dtype for record in glance.records]
    units = [unit_of(name) for name in names]
    error = glance.distance
    if 0.0 in units or error is None:
        return None
    if names[0] != names[1] and error <= glance.resolution and _extremes(glance.stats[0]) == _extremes(glance.stats[1]):
        short = units[1] >= units[0]
        return glance.answer(RelationKind.CAST, format=names[int(short)], side=_side(candidate=short))
    if any(stats.minimum == stats.maximum for stats in glance.stats):
        return None  # gains near 1 all round to 1
    order = sorted(names, key=unit_of, reverse=True)
    for name in dict.fromkeys([*(name for name in order if name in FORMATS), *FORMATS]):
        for way, band in BANDS:
            if not band[0] <= error / FORMATS[name].unit <= band[1]:
                continue
            note = "cut off, not rounded" if way is cut_off else ""
            for candidate_short, (full, other) in ((True, glance.stats), (False, glance.stats[::-1])):
                if _becomes(full, other, name, way):
                    side = _side(candidate=candidate_short)
                    return glance.answer(RelationKind.CAST, format=name, side=side, note=note)
    return None


def within_noise(glance: Glance, known: Known) -> Relation | None:
    """Not further from the reference than noise, and no common factor is nearly all of the difference."""
    error = glance.distance
    if error is None or error > max(4.0 * glance.noise, 1e-12):
        return None
    return hidden_factor(glance, known) or glance.answer(RelationKind.WITHIN_NOISE)


def stale(glance: Glance, known: Known) -> Relation | None:
    """Much nearer to an earlier tensor than to the reference."""
    error = glance.distance
    best: tuple[float, str] | None = None
    for name, earlier in known.earlier.items():
        if error is None or earlier.shape != glance.records[1].shape:
            continue
        other = Glance(earlier, glance.records[1], glance.noise)
        residual = other.distance
        rounding = 2.0 * other.unit if earlier.dtype != glance.records[1].dtype else 0.0
        limit = min(max(4.0 * glance.noise, rounding, simple(glance.noise, error), 1e-12), STALE_SHARE * error)
        if residual is not None and residual <= limit and (best is None or residual < best[0]):
            best = residual, name
    return glance.answer(RelationKind.STALE, earlier=best[1], residual=best[0]) if best is not None else None


def _side(*, candidate: bool) -> Side:
    return Side.CANDIDATE if candidate else Side.REFERENCE


def _is_zero(stats: TensorStats) -> bool:
    return stats.nonfinite == 0 and stats.minimum == stats.maximum == 0.0


def _identical(ours: TensorRecord, theirs: TensorRecord) -> bool:
    left, right = sketch.sketch_of(ours), sketch.sketch_of(theirs)
    return left is not None and right is not None and ours.stats == theirs.stats and sketch.identical(left, right)


def _same_order(glance: Glance) -> bool:
    """Whether both hold the same values in row-major order."""
    ours, theirs = glance.records
    if ours.hash is not None and ours.hash == theirs.hash and ours.dtype == theirs.dtype:
        return True
    return glance.records[0].sketch is not None and _identical(ours, theirs)


def _only_axes(ours: tuple[int, ...], theirs: tuple[int, ...]) -> tuple[int, ...] | None:
    """The transpose that the shapes show, None where they show none."""
    if len(ours) != len(theirs) or sorted(ours) != sorted(theirs):
        return None
    left = list(range(len(ours)))
    axes = []
    for length in theirs:
        axis = next(place for place in left if ours[place] == length)
        left.remove(axis)
        axes.append(axis)
    return tuple(axes)


def _extremes(stats: TensorStats) -> tuple[float, float]:
    return stats.minimum, stats.maximum


def _becomes(full: TensorStats, short: TensorStats, name: str, way: Callable[[Numbers, Precision], Numbers]) -> bool:
    ends = np.array(_extremes(full))
    return bool(np.all(np.isfinite(ends))) and tuple(way(ends, FORMATS[name]).tolist()) == _extremes(short)
