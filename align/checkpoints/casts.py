"""Values in another dtype: the same numbers, rounded, or integers in the place of floats."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from align import wording
from align.checkpoints.relating import QUANTIZED, EntryPair
from align.checkpoints.telling import Compared, finding, of, some
from align.records import Finding, Severity
from align.relations import RelationKind, Side
from align.sentences import capital, say


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
                "AL306",
                compared.permitted(Severity.NOTE),
                say(
                    "{} {} {} in the reference and {} in the {}, with the same numbers.",
                    subject,
                    verb,
                    wording.dtype(ours),
                    wording.dtype(theirs),
                    compared.candidate_word,
                ),
                "Nothing needs to be done.",
                names,
            )
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
        return say(
            "{} {} finer in the {} ({}) than in the reference ({}): rounded to {} they are the same numbers.",
            subject,
            verb,
            compared.candidate_word,
            theirs,
            ours,
            form,
        )
    through = "" if form == theirs else say(", kept as {}", theirs)
    return say(
        "{} {} the reference's {} rounded to {}{}, and nothing else differs in them.",
        subject,
        verb,
        ours,
        form,
        through,
    )


def quantized(compared: Compared) -> Iterator[Finding]:
    """Integers on one side in the place of floats."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pair in compared.pairs:
        if pair.relation.note == QUANTIZED:
            groups[pair.reference.dtype, pair.candidate.dtype].append(pair.names.reference)
    for (ours, theirs), names in groups.items():
        yield finding(
            "AL306",
            Severity.ERROR,
            say(
                "{} {} {} in the reference and {} in the {}, with other numbers, as quantized weights are: {}. How "
                "near they are cannot be told without applying their scales.",
                capital(of(len(names), len(compared.pairs))),
                "is" if len(names) == 1 else "are",
                wording.dtype(ours),
                wording.dtype(theirs),
                compared.candidate_word,
                some(names),
            ),
            "Dequantize before comparing, or compare with what was quantized.",
            names,
        )
