"""What the candidate's tensor is to the reference's where neither fits in memory: blocks are read one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from align.relations import changes, independence, likeness
from align.relations.both import NOISE_OF_PAIR, Values
from align.relations.circumstances import Circumstances
from align.relations.formats import FORMATS, unit_of
from align.relations.from_values import relate_values
from align.relations.likeness import STALE_SHARE
from align.relations.orders import order_along, transposed_axes
from align.relations.parts import FEW_ELEMENTS, FEWEST_ELEMENTS, LONGEST_RUN, SHORTEST_RUN, few_slices, fills
from align.relations.relation import Basis, Part, Relation, RelationKind, Side
from align.relations.sources import ArraySource, Summary, TensorSource, same_bits, summarize
from align.relations.streamed import Streamed
from align.sentences import say

__all__ = ["ArraySource", "Summary", "TensorSource", "relate_sources", "same_bits", "summarize"]

IN_MEMORY = 1 << 20
"""Elements of a tensor that is related as a whole: about 100 MB for both, as float64 several times."""

Known = Circumstances[TensorSource]


def relate_sources(
    reference: TensorSource,
    candidate: TensorSource,
    circumstances: Known | None = None,
    summaries: tuple[Summary, Summary] | None = None,
    in_memory: int = IN_MEMORY,
) -> Relation:
    """The second pass, for tensors that differ; without `summaries` it makes them first.

    Tensors of at most `in_memory` elements are related by `relate_values` (about 100 bytes an element of memory, 100 MB
    at most). Larger ones are read in blocks, once for what differs, once more where another order is possible, and once
    for each earlier tensor: below 60 MB, and 24 bytes for each slice along each dimension. Blocks do not show another
    order or single elements under noise: without noise the answers are those of `relate_values`.
    """
    known: Known = circumstances if circumstances is not None else Circumstances()
    if max(math.prod(reference.shape), math.prod(candidate.shape)) <= in_memory:
        earlier = {name: _read(source) for name, source in known.earlier.items()}
        found = relate_values(_read(reference), _read(candidate), Circumstances(known.noise, earlier, known.factors))
        return replace(found, basis=Basis.BLOCKS)
    made = summaries if summaries is not None else (summarize(reference), summarize(candidate))
    streamed = Streamed((reference, candidate), made, known.noise)
    for step in STEPS:
        answer = step(streamed, known)
        if answer is not None:
            return answer
    return streamed.answer(RelationKind.UNRELATED)


def _read(source: TensorSource) -> Values:
    return Values(source.read(0, math.prod(source.shape)).reshape(source.shape), source.dtype)


def _equal(streamed: Streamed, _: Known) -> Relation | None:
    ours, theirs = streamed.contents
    if ours.dtype != theirs.dtype or not streamed.same_shape:
        return None
    if ours.hash == theirs.hash:
        return streamed.answer(RelationKind.EQUAL)
    if streamed.differing == streamed.other_classes == 0:
        return streamed.answer(RelationKind.EQUAL_BUT_BITS)
    return None


def _other_shape(streamed: Streamed, _: Known) -> Relation | None:
    if streamed.same_shape:
        return None
    ours, theirs = streamed.contents
    if math.prod(ours.shape) != math.prod(theirs.shape):
        return streamed.answer(RelationKind.OTHER_SHAPE)
    if ours.hash == theirs.hash and ours.dtype == theirs.dtype:
        return streamed.answer(RelationKind.RESHAPED, residual=0.0)
    return _elsewhere(streamed) or streamed.answer(RelationKind.OTHER_SHAPE)


def _nonfinite(streamed: Streamed, _: Known) -> Relation | None:
    if not streamed.other_classes:
        return None
    counts = [contents.nonfinite for contents in streamed.contents]
    side = Side.BOTH if min(counts) else Side.CANDIDATE if counts[1] else Side.REFERENCE
    return streamed.answer(RelationKind.NONFINITE, side=side, part=Part(streamed.other_classes))


def _cast(streamed: Streamed, _: Known) -> Relation | None:
    ours, theirs = streamed.contents
    if ours.dtype != theirs.dtype and streamed.differing == 0:
        short = unit_of(theirs.dtype) >= unit_of(ours.dtype)
        side = Side.CANDIDATE if short else Side.REFERENCE
        return streamed.answer(RelationKind.CAST, format=(theirs if short else ours).dtype, side=side, residual=0.0)
    if not streamed.formats or any(contents.minimum == contents.maximum for contents in streamed.contents):
        return None
    found = streamed.formats[0]
    side = Side.CANDIDATE if found.candidate_short else Side.REFERENCE
    note = "cut off, not rounded" if found.cut else ""
    return streamed.answer(RelationKind.CAST, format=found.name, side=side, residual=0.0, note=note)


def _stale(streamed: Streamed, known: Known) -> Relation | None:
    """Equal to, or much nearer to, an earlier tensor."""
    best: tuple[float, str] | None = None
    for name, earlier in known.earlier.items():
        if earlier.shape != streamed.contents[1].shape:
            continue
        residual = streamed.sums_with(earlier).relative_l2
        rounding = 2.0 * streamed.unit if earlier.dtype != streamed.contents[1].dtype else 0.0
        limit = min(max(streamed.tolerance, rounding), STALE_SHARE * streamed.sums.relative_l2)
        if residual <= limit and (best is None or residual < best[0]):
            best = residual, name
    return streamed.answer(RelationKind.STALE, earlier=best[1], residual=best[0]) if best is not None else None


def _rearranged(streamed: Streamed, _: Known) -> Relation | None:
    return _elsewhere(streamed)


def _elsewhere(streamed: Streamed) -> Relation | None:
    """The same values at other places, where both hold the same values or dtypes differ."""
    ours, theirs = streamed.contents
    short = max((ours.dtype, theirs.dtype), key=unit_of) if ours.dtype != theirs.dtype else ""
    if short and (short not in FORMATS or 0.0 in {unit_of(ours.dtype), unit_of(theirs.dtype)}):
        short = ""
    if not short and ours.multiset != theirs.multiset:
        return None
    mine, others = streamed.slice_hashes(short)
    note = say("rounded to {} too", short) if short else ""
    places = [place for place, hashes in enumerate(mine) if hashes.size > 1]
    axes = transposed_axes([mine[place] for place in places], [each for each in others if each.size > 1])
    if axes is not None:
        whole = tuple(places[axis] for axis in axes)
        return streamed.answer(RelationKind.TRANSPOSED, axes=whole, residual=0.0, note=note)
    order = order_along(mine, others) if streamed.same_shape else None
    if order is not None:
        return streamed.answer(RelationKind.PERMUTED, order=order, residual=0.0, note=note)
    if short or ours.minimum == ours.maximum:
        return None
    return streamed.answer(
        RelationKind.REORDERED, residual=0.0, part=Part(streamed.differing) if streamed.same_shape else None
    )


def _few_places(streamed: Streamed, _: Known) -> Relation | None:
    """Few slices; few elements where there is no noise, so that those that differ at all are counted."""
    size = math.prod(streamed.contents[0].shape)
    allowed = (NOISE_OF_PAIR * streamed.noise) ** 2 * streamed.sums.ours_squared
    slices = few_slices(streamed.by_slice, size, allowed)
    if slices is not None and (allowed or fills(streamed.differing, streamed.contents[0].shape, slices.part, 0.75)):
        return streamed.answer(
            RelationKind.FEW_SLICES, part=slices.part, residual=math.sqrt(slices.left) * streamed.sums.relative_l2
        )
    if not allowed and streamed.differing:
        length = streamed.last + 1 - streamed.first[0]
        run = (streamed.first[0], streamed.last + 1) if SHORTEST_RUN <= streamed.differing >= 0.9 * length else None
        if size >= FEWEST_ELEMENTS and streamed.differing <= max(1, (LONGEST_RUN if run else FEW_ELEMENTS) * size):
            part = Part(streamed.differing, None, tuple(streamed.first), run)
            return streamed.answer(RelationKind.FEW_ELEMENTS, part=part, residual=0.0)
    return None


STEPS: tuple[Callable[[Streamed, Any], Relation | None], ...] = (
    _other_shape,
    _equal,
    _nonfinite,
    likeness.all_zero,
    _cast,
    _stale,
    likeness.within_noise,
    changes.scaled,
    changes.offset,
    _rearranged,
    _few_places,
    independence.not_loaded,
    independence.independent,
)
