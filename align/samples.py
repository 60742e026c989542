"""What the samples that two runs trained on are to each other, from the hashes of the rows of their batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from align.records import Word

MOST_ALIGNED = 4096
"""Of more samples a side it is not looked for single ones that are missing or given twice."""

SMALLEST_COMMON = 2
"""One sample that both runs have may be a blank one; so many different ones are no accident: hashes have 64 bits."""

ALIGNED_SHARE = 0.5
"""Two runs read one stream where so many samples of the shorter one are in both, in one order."""

IN_ORDER = 0.9
"""Of the samples that both runs have so many stand in one order; of shuffled ones it is 2 / sqrt(n)."""

Samples = Sequence[int]
"""The hashes of the samples of one batch, in their order."""


class SampleKind(Word):
    """What the candidate's samples are to the reference's, the first that holds."""

    SAME = "same"
    ORDER_IN_BATCH = "order in the batch"
    SHIFTED = "shifted"
    GAPS = "gaps"
    ORDER = "order"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SampleRelation:
    """What the candidate's samples are to the reference's, over all batches that both captured.

    `total` counts the samples of the candidate, `common` those of them that the reference has too (order: at other
    places, unless `whole`). `moved` counts the
    places that hold another sample (order in the batch). `shift` says by how many samples the candidate is ahead (its
    sample i is the reference's i + shift); `overlap` over how many that holds. `missing` and `extra` count the samples
    that the candidate leaves out or puts in between those that both have; `repeated` those that the candidate gives
    more often than the reference does, `repeated_reference` the other way round. `whole` is True where both runs hold
    the very same samples.
    """

    kind: SampleKind
    total: int = 0
    common: int = 0
    moved: int = 0
    shift: int = 0
    overlap: int = 0
    missing: int = 0
    extra: int = 0
    repeated: int = 0
    repeated_reference: int = 0
    whole: bool = False


def relate_samples(reference: Sequence[Samples], candidate: Sequence[Samples]) -> SampleRelation:
    """Relate the batches of two runs, given step by step; UNKNOWN where most samples are alike within a batch."""
    ours = [sample for batch in reference for sample in batch]
    theirs = [sample for batch in candidate for sample in batch]
    if ours == theirs:
        return SampleRelation(SampleKind.SAME, len(theirs), len(theirs), whole=True)
    if not (_tells_apart(reference) and _tells_apart(candidate)):
        return SampleRelation(SampleKind.UNKNOWN, len(theirs))
    common = (Counter(ours) & Counter(theirs)).total()
    whole = Counter(ours) == Counter(theirs)
    if whole and all(Counter(one) == Counter(other) for one, other in zip(reference, candidate, strict=True)):
        moved = sum(one != other for one, other in zip(ours, theirs, strict=True))
        return SampleRelation(SampleKind.ORDER_IN_BATCH, len(theirs), common, moved=moved, whole=True)
    shifted = _shift(ours, theirs, min(map(len, (*reference, *candidate)), default=0))
    if shifted is not None:
        shift, overlap = shifted
        return SampleRelation(SampleKind.SHIFTED, len(theirs), common, shift=shift, overlap=overlap)
    gaps = _gaps(ours, theirs, common)
    if gaps is not None:
        return gaps
    elsewhere = _elsewhere(ours, theirs)
    kind = SampleKind.ORDER if len(elsewhere) >= SMALLEST_COMMON else SampleKind.OTHER
    return SampleRelation(kind, len(theirs), common if whole else elsewhere.total(), whole=whole)


def _elsewhere(ours: Sequence[int], theirs: Sequence[int]) -> Counter[int]:
    """The samples that both runs have, at other places."""
    differing = [pair for pair in zip_longest(ours, theirs) if pair[0] != pair[1]]
    first, second = (Counter(pair[side] for pair in differing if pair[side] is not None) for side in (0, 1))
    return first & second


def _tells_apart(batches: Sequence[Samples]) -> bool:
    """Whether the samples of a batch are mostly different ones, so that a hash names a sample."""
    return sum(len({*batch}) for batch in batches) > ALIGNED_SHARE * sum(map(len, batches))


def _shift(ours: Sequence[int], theirs: Sequence[int], batch: int) -> tuple[int, int] | None:
    """By how much the candidate is ahead, and over how many samples: a batch at least, of different ones.

    What stands before or behind those is not among them: else samples are given twice, and nothing is shifted.
    """
    ahead = [place for place, sample in enumerate(ours) if sample == theirs[0]]
    behind = [-place for place, sample in enumerate(theirs) if sample == ours[0]]
    for shift in sorted({*ahead, *behind} - {0}, key=abs):
        first, second = max(shift, 0), max(-shift, 0)
        pairs = list(zip(ours[first:], theirs[second:], strict=False))
        ends = first + len(pairs), second + len(pairs)
        seen = {one for one, _ in pairs}
        outside = [*ours[:first], *ours[ends[0] :], *theirs[:second], *theirs[ends[1] :]]
        if len(seen) < max(SMALLEST_COMMON, batch) or any(one != other for one, other in pairs):
            continue
        if seen.isdisjoint(outside):
            return shift, len(pairs)
    return None


def _gaps(ours: Sequence[int], theirs: Sequence[int], common: int) -> SampleRelation | None:
    """Samples that are left out, put in or given again between those that stand in one order in both runs."""
    if max(len(ours), len(theirs)) > MOST_ALIGNED:
        return None
    blocks = [
        block for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks() if block.size
    ]
    matched = sum(block.size for block in blocks)
    counts = Counter(ours), Counter(theirs)
    if matched < max(ALIGNED_SHARE * min(len(ours), len(theirs)), IN_ORDER * len(counts[0].keys() & counts[1].keys())):
        return None
    # Behind the last match one run has read on: what only one run has there says nothing.
    passed, given = ours[: blocks[-1].a + blocks[-1].size], theirs[: blocks[-1].b + blocks[-1].size]
    found = SampleRelation(
        SampleKind.GAPS,
        len(theirs),
        common,
        overlap=matched,
        missing=sum(sample not in counts[1] for sample in passed),
        extra=sum(sample not in counts[0] for sample in given),
        repeated=_repeated(counts[1], counts[0]),
        repeated_reference=_repeated(counts[0], counts[1]),
    )
    return found if found.missing or found.extra or found.repeated or found.repeated_reference else None


def _repeated(here: Counter[int], there: Counter[int]) -> int:
    """How many samples one run gives again that the other gives less often."""
    return sum(number - max(there[sample], 1) for sample, number in here.items() if number > max(there[sample], 1))
