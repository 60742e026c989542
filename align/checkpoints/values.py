"""Values that differ under names that fit: scaled, corrupted, not loaded, of another step."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from align import wording
from align.checkpoint_files import Entry
from align.checkpoints.changed_merges import ORDER_UNKNOWN
from align.checkpoints.contents import ELEMENTS, blocks
from align.checkpoints.relating import QUANTIZED, EntryPair
from align.checkpoints.telling import Compared, finding, of, some
from align.records import Finding, Severity
from align.relations import RelationKind, Side, describe
from align.sentences import capital, joined, say

CORRUPTED = frozenset({
    RelationKind.NONFINITE, RelationKind.ALL_ZERO, RelationKind.FEW_ELEMENTS, RelationKind.FEW_SLICES,
})  # fmt: skip
SCALED = frozenset({RelationKind.SCALED, RelationKind.SIGN_FLIPPED, RelationKind.OFFSET})
OTHERS = frozenset({RelationKind.NOT_LOADED, RelationKind.OTHER_SEED, RelationKind.UNRELATED})
NEAR = frozenset({RelationKind.DRIFTED, RelationKind.WITHIN_NOISE, RelationKind.STALE})
NEAR_NORM = 0.5
"""Values are near below this relative L2: then the cosine is above 0.86. That of independent draws is 1 and more."""


def scaled(compared: Compared) -> Iterator[Finding]:
    """A factor, a sign, a constant: one finding for each."""
    said: dict[str, list[str]] = defaultdict(list)
    for pair in compared.pairs:
        if pair.relation.kind in SCALED:
            said[describe(pair.relation)].append(pair.names.reference)
    for phrase, names in said.items():
        yield finding(
            "AL312",
            Severity.ERROR,
            say(
                "{} of the {} {} {}: {}.",
                capital(of(len(names), len(compared.pairs))),
                compared.candidate_word,
                "is" if len(names) == 1 else "are",
                phrase,
                some(names),
            ),
            "Look for a scale that the conversion folds into weights, or takes out: of attention, of a norm, of LoRA.",
            names,
            how=phrase,
        )


def corrupted(compared: Compared) -> Iterator[Finding]:
    """A few elements, a stretch, zeros to the end, NaN."""
    said: dict[str, list[str]] = defaultdict(list)
    unlike = {id(pair) for pair in _unlike_and_near(compared)[0]}
    zero: list[str] = []
    for pair in compared.pairs:
        phrase = ""
        if pair.relation.kind in CORRUPTED and id(pair) not in unlike:
            if pair.relation.kind is RelationKind.ALL_ZERO and pair.relation.side is Side.REFERENCE:
                zero.append(pair.names.reference)
            else:
                phrase = _corruption(pair)
        start = zeros_from(pair)
        if start is not None:
            left = pair.candidate.numel - start
            phrase = say(
                "the reference up to element {}, and zero in the {} elements from there to the end",
                f"{start:,}",
                f"{left:,}",
            )
        if phrase:
            said[phrase].append(pair.names.reference)
    for phrase, names in said.items():
        yield finding(
            "AL313", Severity.ERROR, say("{}: the {}'s tensor is {}.", some(names), compared.candidate_word, phrase),
            "Copy or save the file again and compare once more; where the same elements differ again, look at what "
            "writes them.", names, how=phrase,
        )  # fmt: skip

    if zero:
        yield finding(
            "AL310",
            Severity.ERROR,
            say(
                "{} {} all zeros in the reference, and not in the {}: {}.",
                capital(of(len(zero), len(compared.pairs))),
                "is" if len(zero) == 1 else "are",
                compared.candidate_word,
                some(zero),
            ),
            "Look at what the reference is: weights that begin at zero, before training, or a copy that lost its "
            "values.",
            zero,
        )


def _corruption(pair: EntryPair) -> str:
    if pair.relation.kind is RelationKind.ALL_ZERO:
        return (
            "all zeros, which the reference is not" if pair.relation.side is Side.CANDIDATE else describe(pair.relation)
        )
    if pair.relation.kind is not RelationKind.NONFINITE:
        return describe(pair.relation)
    ours, theirs = pair.relation.reference.nonfinite, pair.relation.candidate.nonfinite
    total = pair.reference.numel
    told = "everywhere" if theirs == total else say("in {}", wording.plural(theirs, "element"))
    before = "everywhere" if ours == total else say("in {}", wording.count(ours))
    if not theirs:
        return say("finite, and that of the reference NaN or infinite {}", before)
    return say("NaN or infinite {}, that of the reference {}", told, before if ours else "in none")


def zeros_from(pair: EntryPair) -> int | None:
    """From where on the candidate is zero though the reference is not, where all before it is equal; else None."""
    if pair.same or not _same_form(pair) or pair.relation.kind is RelationKind.ALL_ZERO:
        return None
    first: int | None = None
    for (start, ours), (_, theirs) in zip(
        blocks(pair.reference, ELEMENTS), blocks(pair.candidate, ELEMENTS), strict=True
    ):
        differing = np.flatnonzero(ours != theirs)
        if first is None and len(differing):
            first = start + int(differing[0])
        tail = theirs if first is None or first < start else theirs[first - start :]
        if first is not None and tail.any():
            return None
    return first or None


def _same_form(pair: EntryPair) -> bool:
    ours, theirs = pair.reference, pair.candidate
    return ours.readable and theirs.readable and (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)


def others(compared: Compared) -> Iterator[Finding]:
    """Values that are not those of the reference at all: not loaded, partly loaded, another draw."""
    pairs = _unlike_and_near(compared)[0]
    if not pairs:
        return
    names = [pair.names.reference for pair in pairs]
    telling = [pair for pair in compared.pairs if pair.reference.floating and not _is_default(pair)]
    loaded = [pair for pair in telling if pair.same]
    if compared.candidate.is_capture:
        yield _of_run(names, loaded, telling)
        return
    kinds = {pair.relation.kind for pair in pairs} & OTHERS
    what = (
        "another draw of the same distribution, as two seeds give it"
        if kinds == {RelationKind.OTHER_SEED}
        else "not related to those of the reference"
    )
    if kinds == set() and all(pair.relation.kind is RelationKind.DRIFTED for pair in pairs):
        sizes = [pair.relation.relative_l2 for pair in pairs if pair.relation.relative_l2 is not None]
        what = say("far from those of the reference, though they follow them ({})", _median(sizes))
    initial = sorted(
        {pair.relation.candidate.initial for pair in pairs if pair.relation.kind is RelationKind.NOT_LOADED}
    )
    if initial and kinds == {RelationKind.NOT_LOADED}:
        what = say("as an initialisation makes them ({}), on one side only", joined(", ", initial[:3]))
    yield finding(
        "AL310", Severity.ERROR,
        say("The values of {} of the candidate are {}: {}.", of(len(names), len(compared.pairs)), what, some(names)),
        "Check that both files belong to the same training, and that the candidate was saved after its weights were "
        "loaded.", names,
    )  # fmt: skip


def _median(sizes: Sequence[float]) -> str:
    return say("relative L2 {} in the median", wording.relative(statistics.median(sizes)))


def _unlike_and_near(compared: Compared) -> tuple[list[EntryPair], list[EntryPair]]:
    """Pairs whose values are others, and those whose values are near; told together where most are others.

    Values around a mean, as those of a norm, are near whatever they are: they follow what the matrices say.
    """
    differing = [pair for pair in compared.pairs if pair.relation.kind in OTHERS | NEAR and zeros_from(pair) is None]
    near = [pair for pair in differing if _is_near(pair)]
    unlike = [pair for pair in differing if not _is_near(pair)]
    if unlike and len(unlike) >= len(near):
        # Biases that are zero on one side follow what the matrices say.
        return [*differing, *(pair for pair in compared.pairs if pair.relation.kind is RelationKind.ALL_ZERO)], []
    return unlike, near


def _is_near(pair: EntryPair) -> bool:
    """By how far apart both are; where that is not known, by the relation."""
    relative = pair.relation.relative_l2
    return relative <= NEAR_NORM if relative is not None else pair.relation.kind in NEAR


def _is_default(pair: EntryPair) -> bool:
    """Ones and zeros are equal whether they were loaded or not."""
    ours = pair.relation.reference
    return pair.relation.agrees and (not pair.reference.numel or (_constant(pair.reference) and not ours.nonfinite))


def _constant(entry: Entry) -> bool:
    if not entry.readable:
        stats = entry.record.stats if entry.record is not None else None
        return stats is not None and stats.minimum == stats.maximum
    lowest, highest = np.inf, -np.inf
    for _, numbers in blocks(entry, ELEMENTS):
        lowest, highest = min(lowest, float(numbers.min())), max(highest, float(numbers.max()))
        if lowest != highest:
            return False
    return True


def _of_run(names: Sequence[str], loaded: Sequence[EntryPair], telling: Sequence[EntryPair]) -> Finding:
    advice = (
        "Look which file the run loads, and print what `load_state_dict(state, strict=False)` returns: it lists "
        "missing and unexpected keys. To begin with weights that are known, capture with "
        "`align capture --init-from REF.h5`."
    )
    if not loaded:
        total = wording.plural(len(telling), "entry", "entries")
        return finding(
            "AL301",
            Severity.ERROR,
            say(
                "The run did not begin with the checkpoint: of {} that can tell none holds its values ({}).",
                total,
                some(names),
            ),
            advice,
            names,
        )
    return finding(
        "AL302",
        Severity.ERROR,
        say(
            "The run began with a part of the checkpoint: {} that can tell hold its values, {} do not: {}.",
            of(len(loaded), len(telling)),
            len(names),
            some(names),
        ),
        advice,
        names,
        loaded=len(loaded),
    )


def drifted(compared: Compared) -> Iterator[Finding]:
    """Values near those of the reference: another step, or a conversion that computes. Entries that stood still."""
    pairs = _unlike_and_near(compared)[1]
    if not pairs:
        return
    names = [pair.names.reference for pair in pairs]
    sizes = [pair.relation.relative_l2 for pair in pairs if pair.relation.relative_l2 is not None]
    size = say(" ({})", _median(sizes)) if sizes else ""
    what = "began with" if compared.candidate.is_capture else "holds"
    yield finding(
        "AL310",
        Severity.ERROR,
        say(
            "In {} the {} {} values near those of the reference, but not these{}: {}. Two steps of one training "
            "look so, or a conversion that computes.",
            of(len(names), len(compared.pairs)),
            compared.candidate_word,
            what,
            size,
            some(names),
        ),
        "Check the steps at which both were saved; where it should be one step, look for arithmetic in the conversion.",
        names,
        median_relative_l2=statistics.median(sizes) if sizes else None,
    )
    still = [pair for pair in compared.pairs if pair.same and pair.reference.floating and not _is_default(pair)]
    if still and len(still) < len(pairs):
        unmoved = [pair.names.reference for pair in still]
        yield finding(
            "AL307",
            Severity.WARNING,
            say(
                "{} did not change at all while {} did: {}. They are frozen, or were not saved anew.",
                capital(wording.plural(len(still), "entry", "entries")),
                len(pairs),
                some(unmoved),
            ),
            "Look whether these parameters are meant to be frozen (requires_grad=False, not in the optimizer).",
            unmoved,
        )


def other_shapes(compared: Compared) -> Iterator[Finding]:
    """Entries of another shape."""
    groups: dict[str, list[EntryPair]] = defaultdict(list)
    for pair in compared.pairs:
        if pair.relation.kind in (RelationKind.OTHER_SHAPE, RelationKind.RESHAPED):
            groups[_shape_text(pair)].append(pair)
    for text, pairs in groups.items():
        names = [pair.names.reference for pair in pairs]
        reshaped = pairs[0].relation.kind is RelationKind.RESHAPED
        yield finding(
            "AL104",
            compared.permitted(Severity.WARNING) if reshaped else Severity.ERROR,
            say("{}: {}.", some(names), text),
            "`load_state_dict` refuses another shape even with strict=False: reshape it, or build the model with this "
            "size.",
            names,
        )


def _shape_text(pair: EntryPair) -> str:
    ours, theirs = pair.reference.shape, pair.candidate.shape
    text = say("shape {} in the reference, {} in the candidate", wording.shape(ours), wording.shape(theirs))
    if pair.relation.kind is RelationKind.RESHAPED:
        return say("{}, with the same values", text)
    common = _common_rows(pair)
    if common:
        return say(
            "{}; the first {} rows hold the same values, so one was padded or cut (a vocabulary, mostly)",
            text,
            f"{common:,}",
        )
    return text


def _common_rows(pair: EntryPair) -> int:
    """The rows of the shorter one where they are equal to the first of the other, else 0."""
    ours, theirs = pair.reference, pair.candidate
    alike = ours.shape and theirs.shape and ours.shape[1:] == theirs.shape[1:] and ours.dtype == theirs.dtype
    if not alike or not (ours.readable and theirs.readable):
        return 0
    rows = min(ours.shape[0], theirs.shape[0])
    total = min(ours.numel, theirs.numel)
    for start in range(0, total, ELEMENTS):
        stop = min(start + ELEMENTS, total)
        if ours.read(start, stop).tobytes() != theirs.read(start, stop).tobytes():
            return 0
    return rows


def unknown(compared: Compared) -> Iterator[Finding]:
    """Pairs of which nothing can be said, and why."""
    groups: dict[str, list[str]] = defaultdict(list)
    for pair in compared.pairs:
        if pair.relation.kind is RelationKind.UNKNOWN and pair.relation.note != QUANTIZED:
            groups[pair.relation.note].append(pair.names.reference)
    for why, names in groups.items():
        yield finding(
            "AL310", Severity.WARNING, say("Not compared: {} ({}).", some(names), why or "no values to compare"),
            "Split them in the order of the model that reads them, and compare the parts."
            if why == ORDER_UNKNOWN
            else "Save these tensors in a plain dense form, or capture with `align capture --keep init`.",
            names,
        )  # fmt: skip
