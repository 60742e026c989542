"""Values in another dtype: the same numbers, rounded, or integers in the place of floats."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from align import wording
from align.checkpoints.relating import QUANTIZED, EntryPair
from align.checkpoints.telling import Compared, capital, finding, of, some
from align.records import Finding, Severity
from align.relations import RelationKind, Side


def cast(compared: Compared) -> Iterator[Finding]:
    """The same numbers in another dtype, rounded or not."""
    groups: dict[tuple[str, str, str], list[EntryPair]] = defaultdict(list)
    for pair in compared.pairs:
        if pair.relation.kind is RelationKind.CAST:
            groups[pair.reference.dtype, pair.candidate.dtype, pair.relation.format].append(pair)
    for (ours, theirs, form), pairs in groups.items():
        names = [pair.names.reference for pair in pairs]
        subject = capital(of(len(pairs), len(compared.pairs)))
        verb = "is" if len(pairs) == 1 else "are"
        rounded = sum(not pair.lossless for pair in pairs)
        if not rounded:
            yield finding(
                "AL306", compared.permitted(Severity.NOTE),
                f"{subject} {verb} {wording.dtype(ours)} in the reference and {wording.dtype(theirs)} in the "
                f"{compared.candidate_word}, with the same numbers.", "Nothing needs to be done.", names,
            )  # fmt: skip
            continue
        yield finding(
            "AL306", compared.permitted(Severity.NOTE) if compared.allow_cast else Severity.ERROR,
            _rounded_sentence(compared, pairs, subject, verb),
            "Convert in the dtype of the reference to lose nothing; where the rounding is wanted, compare with "
            "`align checkpoint --allow-cast`.", names, format=form, changed=rounded,
        )  # fmt: skip


def _rounded_sentence(compared: Compared, pairs: Sequence[EntryPair], subject: str, verb: str) -> str:
    first = pairs[0]
    ours, theirs = wording.dtype(first.reference.dtype), wording.dtype(first.candidate.dtype)
    form = wording.dtype(first.relation.format)
    if first.relation.side is Side.REFERENCE:
        return (
            f"{subject} {verb} finer in the {compared.candidate_word} ({theirs}) than in the reference ({ours}): "
            f"rounded to {form} they are the same numbers."
        )
    through = "" if form == theirs else f", kept as {theirs}"
    return f"{subject} {verb} the reference's {ours} rounded to {form}{through}, and nothing else differs in them."


def quantized(compared: Compared) -> Iterator[Finding]:
    """Integers on one side in the place of floats."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pair in compared.pairs:
        if pair.relation.note == QUANTIZED:
            groups[pair.reference.dtype, pair.candidate.dtype].append(pair.names.reference)
    for (ours, theirs), names in groups.items():
        yield finding(
            "AL306", Severity.ERROR,
            f"{capital(of(len(names), len(compared.pairs)))} {'is' if len(names) == 1 else 'are'} "
            f"{wording.dtype(ours)} in the reference and {wording.dtype(theirs)} in the {compared.candidate_word}, "
            f"with other numbers, as quantized weights are: {some(names)}. How near they are cannot be told without "
            "applying their scales.",
            "Dequantize before comparing, or compare with what was quantized.", names,
        )  # fmt: skip
