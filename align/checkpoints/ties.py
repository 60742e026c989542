"""Weights that are tied on one side and not on the other: mostly the embedding and the head of a language model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from align import wording
from align.checkpoint_files import Checkpoint, Entry
from align.checkpoints.bytes_first import BytesReader
from align.checkpoints.contents import fingerprint
from align.checkpoints.schemes import role_of
from align.checkpoints.telling import Compared, finding
from align.records import Finding, Severity
from align.sentences import say

_Look: TypeAlias = tuple[tuple[int, ...], str, bytes]
HEAD_BYTES = 256

ADVICE = (
    "Tie both as the reference does (`tie_word_embeddings` of the configuration), and save both tensors where they "
    "are not tied."
)


def broken_ties(compared: Compared) -> Iterator[Finding]:
    """An embedding and a head that are equal in one checkpoint only, also where one of them was left out."""
    reader = BytesReader()
    saved_once = list(_saved_once(compared, reader))
    yield from saved_once
    if any(name in explained_by_ties(saved_once) for name in (*compared.only_reference, *compared.only_candidate)):
        return
    partners = {pair.names.reference: pair.names.candidate for pair in compared.pairs}
    ours, theirs = _twins(compared.reference), _twins(compared.candidate)
    if ours is None and theirs is None:
        return
    if ours is not None and theirs is not None:
        yield from _both_have(compared, ours, theirs, partners, reader)
    elif ours is not None and _alone(ours[1], compared.only_reference):
        yield from _left_out(ours, ("reference", compared.candidate_word), compared.reference, reader)
    elif theirs is not None and _alone(theirs[1], compared.only_candidate):
        yield from _left_out(theirs, (compared.candidate_word, "reference"), compared.candidate, reader)


def _alone(head: str, names: Sequence[str]) -> bool:
    """Whether the head is the one matrix that was left out: where others are missing, it is one of them."""
    return head in names and all(name == head or not name.endswith("weight") for name in names)


def _saved_once(compared: Compared, reader: BytesReader) -> Iterator[Finding]:
    """Entries of one side whose values stand there under another name, too, which the other side has."""
    paired = {pair.names.reference for pair in compared.pairs}, {pair.names.candidate for pair in compared.pairs}
    sides = (
        ("reference", compared.reference, compared.only_reference),
        (compared.candidate_word, compared.candidate, compared.only_candidate),
    )
    for known, (word, checkpoint, names) in zip(paired, sides, strict=True):
        alike = _alike(checkpoint, known) if names else {}
        found = {name: twin for name in names if (twin := _twin_of(name, checkpoint, known, alike, reader))}
        if found:
            told = [say("{} with the values of {}", name, twin) for name, twin in list(found.items())[:3]]
            yield finding(
                "AL308",
                compared.permitted(Severity.NOTE),
                say(
                    "Only the {} has {}: tied weights are saved once by some, under each name by others.",
                    word,
                    wording.listing(told, len(found)),
                ),
                "Nothing needs to be done where the model ties them when it is built.",
                list(found),
            )


def _alike(checkpoint: Checkpoint, known: set[str]) -> dict[_Look, list[str]]:
    """The matrices that the other side has, by what equal ones have in common."""
    found: dict[_Look, list[str]] = {}
    for name in known:
        entry = checkpoint.entries[name]
        if len(entry.shape) > 1:
            found.setdefault(_look(entry), []).append(name)
    return found


def _look(entry: Entry) -> _Look:
    """Shape, dtype and the first bytes: of 20,000 experts of one shape no two need be read for it."""
    head = bytearray(min(entry.nbytes, HEAD_BYTES) if entry.bytes_at is not None else 0)
    if head:
        entry.read_into(0, memoryview(head))
    return entry.shape, entry.dtype, bytes(head)


def _twin_of(
    name: str, checkpoint: Checkpoint, known: set[str], alike: Mapping[_Look, list[str]], reader: BytesReader
) -> str:
    """An entry that the other side has and that holds the same values: the same memory, or an equal matrix."""
    mine = checkpoint.entries[name]
    root = mine.tied_to or name
    if mine.tied_to:
        other = next((other for other in known if root in (other, checkpoint.entries[other].tied_to)), "")
        if other:
            return other
    for other in alike.get(_look(mine), ()):
        entry = checkpoint.entries[other]
        if root in (other, entry.tied_to):
            return other
        if mine.readable and entry.readable and reader.same(mine, entry) and not fingerprint(mine).constant:
            return other
        if not entry.readable and _same_record(mine, entry):
            return other
    return ""


def _twins(checkpoint: Checkpoint) -> tuple[str, str] | None:
    """(embedding, head) of one shape, by their names; None where there are none, or several."""
    found: dict[str, list[str]] = {"embedding": [], "head": []}
    for name in checkpoint.entries:
        role = role_of(name)
        if role is not None and role.layer < 0 and role.slot == "weight" and role.part in found:
            found[role.part].append(name)
    if any(len(names) != 1 for names in found.values()):
        return None
    embedding, head = found["embedding"][0], found["head"][0]
    same = checkpoint.entries[embedding].shape == checkpoint.entries[head].shape
    return (embedding, head) if same else None


def tied(checkpoint: Checkpoint, twins: tuple[str, str], reader: BytesReader) -> bool | None:
    """Whether two entries of a checkpoint hold the same values, None where that is not known."""
    first, second = (checkpoint.entries[name] for name in twins)
    if twins[0] == second.tied_to or twins[1] == first.tied_to:
        return True
    if first.bytes_at is not None and second.bytes_at is not None:
        return first.dtype == second.dtype and reader.same(first, second)
    return _same_record(first, second)


def _same_record(first: Entry, second: Entry) -> bool | None:
    if first.record is None or second.record is None or first.record.hash is None:
        return None
    return first.record.hash == second.record.hash


def _both_have(
    compared: Compared, ours: tuple[str, str], theirs: tuple[str, str], partners: dict[str, str], reader: BytesReader
) -> Iterator[Finding]:
    if any(partners.get(mine) != other for mine, other in zip(ours, theirs, strict=True)):
        return
    before, after = tied(compared.reference, ours, reader), tied(compared.candidate, theirs, reader)
    if before is None or after is None or before == after:
        return
    holder, twins = (compared.reference, ours) if before else (compared.candidate, theirs)
    first = holder.entries[twins[0]]
    if first.readable and fingerprint(first).constant:
        return  # two matrices of NaN or zeros are equal without being tied
    names = list(reversed(ours))
    if before:
        text = say(
            "{} and {} are the same values in the reference (tied weights), and differ in the {}: they were trained "
            "or loaded apart.",
            ours[1],
            ours[0],
            compared.candidate_word,
        )
    else:
        text = say(
            "{} and {} are the same values in the {}, and differ in the reference: they were tied on the way, and "
            "one of them is lost.",
            theirs[1],
            theirs[0],
            compared.candidate_word,
        )
    yield finding("AL308", Severity.ERROR, text, ADVICE, names)


def _left_out(
    twins: tuple[str, str], words: tuple[str, str], checkpoint: Checkpoint, reader: BytesReader
) -> Iterator[Finding]:
    """The head is in one checkpoint only."""
    holder, other = words
    same = tied(checkpoint, twins, reader)
    embedding, head = twins
    if same is False:
        yield finding(
            "AL308",
            Severity.ERROR,
            say(
                "{} is left out in the {}, as if it were tied to {}, but in the {} its values are others: a model "
                "that ties them gets a wrong head.",
                head,
                other,
                embedding,
                holder,
            ),
            ADVICE,
            [head],
        )


def explained_by_ties(findings: list[Finding]) -> frozenset[str]:
    """Names that are told here and need not be told as missing."""
    return frozenset(name for one in findings for name in one.evidence["names"])
