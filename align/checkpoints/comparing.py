"""Compares two checkpoints: pairs, relations, findings, the verdict and its sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from align import watching, wording
from align.checkpoint_files import Checkpoint
from align.checkpoint_records import CheckpointResult, CheckpointSide, EntryRow
from align.checkpoints import casts, keys, layouts, values
from align.checkpoints.changed_merges import relate_changed
from align.checkpoints.exchanges import exchanged, moved_values
from align.checkpoints.merging import Merge
from align.checkpoints.optimizer_states import optimizer_states
from align.checkpoints.pairing import Pairing, pair_checkpoints
from align.checkpoints.relating import EntryPair, counts_of, relate_pairs
from align.checkpoints.rules import told_rules
from align.checkpoints.telling import Compared
from align.checkpoints.ties import broken_ties, explained_by_ties
from align.records import INIT_STEP, Divergence, Finding, Kind, Origin, Phase, Severity, Verdict
from align.relations import RelationKind, describe
from align.sentences import joined, say

Rule: TypeAlias = Callable[[Compared], Iterator[Finding]]

_SEVERITIES = tuple(Severity)
MOVED_WEIGHTS = ("AL301", "AL302", "AL310")
NOT_LOADED = ("AL301", "AL302")
ZEROS = "all zeros"


def compare_checkpoints(
    reference: Checkpoint, candidate: Checkpoint, *, strict: bool = False, allow_cast: bool = False
) -> CheckpointResult:
    """What the candidate is to the reference. Every tensor is read once; those that differ up to four times more."""
    # Damaged values overflow when they are squared, and some NaN signal: both are told as what they are.
    with np.errstate(over="ignore", invalid="ignore"):
        return _compare(reference, candidate, strict=strict, allow_cast=allow_cast)


def _compare(reference: Checkpoint, candidate: Checkpoint, *, strict: bool, allow_cast: bool) -> CheckpointResult:
    watching.begin(watching.Stage.PAIRING)
    pairing = pair_checkpoints(reference, candidate)
    pairs = tuple(_related(pairing, reference, candidate))
    watching.begin(watching.Stage.EXPLAINING)
    changed = tuple(relate_changed(pairing.merges, reference, candidate))
    pairs += tuple(pair for _, pair in changed)
    merges = tuple(merge for merge in pairing.merges if merge.exact)
    merges += tuple(merge for merge, pair in changed if pair.relation.kind is not RelationKind.UNKNOWN)
    compared = Compared(
        reference, candidate, pairs, merges, pairing.only_reference, pairing.only_candidate, strict, allow_cast
    )
    found = _findings(compared)
    verdict = _verdict(compared, found)
    return CheckpointResult(
        reference=_side(reference),
        candidate=_side(candidate),
        verdict=verdict,
        summary=_summary(compared, verdict, found),
        findings=found,
        first_divergence=_first(compared, found) if verdict is Verdict.DIVERGED else None,
        rows=_rows(compared),
        only_reference=compared.only_reference,
        only_candidate=compared.only_candidate,
        renamed=tuple(told_rules(pairing.pairs)),
        counts=_counts(compared, pairing),
        notes=_notes(reference, candidate),
    )


def _related(pairing: Pairing, reference: Checkpoint, candidate: Checkpoint) -> Iterator[EntryPair]:
    """The relation of every pair, with the bytes of both told as they are done."""
    sizes = [
        reference.entries[names.reference].nbytes + candidate.entries[names.candidate].nbytes for names in pairing.pairs
    ]
    watching.begin(watching.Stage.BYTES, sum(sizes))
    pairs, done = relate_pairs(pairing.pairs, reference, candidate), 0
    for size in sizes:
        # What is equal is read once, what differs stops being read early, or is read again.
        watching.reach(done, done + size)
        yield next(pairs)
        done += size


def _findings(compared: Compared) -> tuple[Finding, ...]:
    """All findings; the root cause stands first: names explain values, and exchanged names explain them best."""
    if not compared.pairs and not compared.merges:
        return tuple(keys.unanswered(compared))
    ties = list(broken_ties(compared))
    elsewhere = moved_values(compared)
    told = explained_by_ties(ties) | frozenset(elsewhere.values())
    rest = Compared(
        compared.reference, compared.candidate, compared.pairs, compared.merges,
        tuple(name for name in compared.only_reference if name not in told),
        tuple(name for name in compared.only_candidate if name not in told), compared.strict, compared.allow_cast,
    )  # fmt: skip
    partners = {pair.names.reference: pair.names.candidate for pair in compared.pairs}
    moved = frozenset(elsewhere) | {partners[name] for name in explained_by_ties(ties) if name in partners}
    others = _without(compared, moved)
    found = [
        *exchanged(compared, elsewhere), *values.others(others), *ties, *casts.quantized(others), *keys.missing(rest),
    ]  # fmt: skip
    rules: tuple[Rule, ...] = (
        layouts.permuted, layouts.merged, layouts.transposed, values.corrupted, values.scaled, values.other_shapes,
        casts.cast, values.drifted, optimizer_states, values.unknown, keys.renamed,
    )  # fmt: skip
    for rule in rules:
        found.extend(rule(others))
    found.sort(key=lambda one: _SEVERITIES.index(one.severity))
    return tuple(_folded(found))


def _folded(found: list[Finding]) -> Iterator[Finding]:
    """The findings, what follows from weights that are others behind the one that tells so."""
    cause = next((one for one in found if one.code in MOVED_WEIGHTS and one.severity is Severity.ERROR), None)
    follow = [one for one in found if cause is not None and one is not cause and _follows(one, cause)]
    for one in found:
        if one not in follow:
            yield one
        if cause is not None and one is cause:
            yield from (replace(each, explained_by=cause.code) for each in follow)


def _follows(one: Finding, cause: Finding) -> bool:
    """Whether a finding follows from weights that were not loaded, or that moved on.

    What a run drew by itself is near to a checkpoint that was trained from the same draw, equal where it was frozen,
    and zero where an initialisation is.
    """
    if one.code == "AL701":
        return "changed" in one.evidence
    if cause.code not in NOT_LOADED:
        return False
    return one.code in {"AL307", "AL310"} or (
        one.code == "AL313" and str(one.evidence.get("how", "")).startswith(ZEROS)
    )


def _without(compared: Compared, moved: frozenset[str]) -> Compared:
    """The comparison without the pairs whose values stand under another name."""
    if not moved:
        return compared
    pairs = tuple(pair for pair in compared.pairs if pair.names.candidate not in moved)
    return Compared(
        compared.reference, compared.candidate, pairs, compared.merges, compared.only_reference,
        compared.only_candidate, compared.strict, compared.allow_cast,
    )  # fmt: skip


def _verdict(compared: Compared, found: tuple[Finding, ...]) -> Verdict:
    if not compared.pairs and not compared.merges:
        return Verdict.INCOMPARABLE
    if any(one.severity is Severity.ERROR for one in found):
        return Verdict.DIVERGED
    unknown = any(pair.relation.kind is RelationKind.UNKNOWN for pair in compared.pairs)
    return Verdict.INCOMPARABLE if unknown else Verdict.ALIGNED


def _summary(compared: Compared, verdict: Verdict, found: tuple[Finding, ...]) -> str:
    total = len(compared.pairs) + sum(merge.exact for merge in compared.merges)
    if verdict is Verdict.DIVERGED:
        return found[0].summary
    if verdict is Verdict.INCOMPARABLE:
        if not total:
            return say(
                "No entry of the one answers an entry of the other ({} and {} entries): they are of different "
                "models, or kept in a way that is not known here.",
                len(compared.reference.entries),
                len(compared.candidate.entries),
            )
        return "Some entries could not be compared, and nothing else differs."
    exact = sum(pair.relation.kind is RelationKind.EQUAL for pair in compared.pairs)
    codes = [one for one in found if one.code in ("AL303", "AL304", "AL305", "AL306")]
    if exact == total and not codes:
        return say("The same {}, equal to the bit.", wording.plural(total, "entry", "entries"))
    words = {"AL303": say("names"), "AL304": say("order"), "AL305": say("transposition"), "AL306": say("dtype")}
    ways = list(dict.fromkeys(words[one.code] for one in codes))
    apart = say(", apart from {}", wording.listing(ways)) if ways else ""
    return say("The same weights in {}{}.", wording.plural(total, "entry", "entries"), apart)


def _side(checkpoint: Checkpoint) -> CheckpointSide:
    size = sum(entry.nbytes for entry in checkpoint.entries.values() if not entry.tied_to)
    return CheckpointSide(checkpoint.path, checkpoint.what, len(checkpoint.entries), size)


def _counts(compared: Compared, pairing: Pairing) -> dict[str, int]:
    return {
        "paired": len(compared.pairs),
        "merged": sum(merge.exact for merge in compared.merges),
        "only_reference": len(pairing.only_reference),
        "only_candidate": len(pairing.only_candidate),
        **counts_of(list(compared.pairs)),
    }


def _notes(reference: Checkpoint, candidate: Checkpoint) -> tuple[str, ...]:
    notes = [*reference.notes, *candidate.notes]
    for word, checkpoint in (("reference", reference), ("candidate", candidate)):
        if checkpoint.others:
            held = joined(
                ", ",
                (say("{} ({})", name, wording.plural(count, "tensor")) for name, count in checkpoint.others.items()),
            )
            notes.append(say("Not compared: what the {} holds beside the model: {}.", word, held))
    mine, other = bool(reference.optimizers), bool(candidate.optimizers)
    if mine != other and not candidate.is_capture:
        notes.append(say("Only the {} holds states of an optimizer.", "reference" if mine else "candidate"))
    return tuple(notes)


def _first(compared: Compared, found: tuple[Finding, ...]) -> Divergence:
    """The first entry that the first finding is about."""
    where = found[0].where
    name, slot = where.name, where.slot or ""
    full = f"{name}.{slot}" if name != slot else name
    pair = next((pair for pair in compared.pairs if full in (pair.names.reference, pair.names.candidate)), None)
    kind, relative = _kind(full, pair, compared)
    return Divergence(
        INIT_STEP, 0, Phase.INIT, name, slot, 0, kind, Origin.WEIGHTS, relative, None, None,
    )  # fmt: skip


def _kind(full: str, pair: EntryPair | None, compared: Compared) -> tuple[Kind, float | None]:
    if pair is None:
        return (Kind.MISSING if full in compared.only_reference else Kind.EXTRA), None
    by_relation = {
        RelationKind.NONFINITE: Kind.NONFINITE, RelationKind.OTHER_SHAPE: Kind.SHAPE, RelationKind.CAST: Kind.DTYPE,
    }  # fmt: skip
    return by_relation.get(pair.relation.kind, Kind.EQUALITY), pair.relation.relative_l2


def _rows(compared: Compared) -> tuple[EntryRow, ...]:
    places = {name: place for place, name in enumerate(compared.candidate.entries)}
    rows = [_row(pair, places.get(pair.names.candidate)) for pair in compared.pairs]
    return (*rows, *(_merged_row(merge, compared) for merge in compared.merges if merge.exact))


def _row(pair: EntryPair, place: int | None) -> EntryRow:
    said = "" if pair.relation.kind is RelationKind.EQUAL else _phrase(pair)
    return EntryRow(
        pair.names.reference, pair.names.candidate, str(pair.relation.kind), said, str(pair.names.way),
        pair.relation.relative_l2, pair.reference.dtype, pair.candidate.dtype, pair.reference.shape,
        pair.candidate.shape, place,
    )  # fmt: skip


def _phrase(pair: EntryPair) -> str:
    if pair.relation.kind is RelationKind.CAST:
        if pair.lossless:
            return say("the same numbers as {}", wording.dtype(pair.candidate.dtype))
        return say("rounded to {}", wording.dtype(pair.relation.format))
    if pair.relation.kind is RelationKind.UNKNOWN:
        return say("not compared: {}", pair.relation.note)
    return describe(pair.relation)


def _merged_row(merge: Merge, compared: Compared) -> EntryRow:
    parts = joined(" + ", merge.parts)
    names = (parts, merge.merged) if merge.of_candidate else (merge.merged, parts)
    whole = (compared.candidate if merge.of_candidate else compared.reference).entries[merge.merged]
    part = (compared.reference if merge.of_candidate else compared.candidate).entries[merge.parts[0]]
    first, second = (part, whole) if merge.of_candidate else (whole, part)
    return EntryRow(
        *names, str(merge.order) if merge.exact else "merged", layouts.order_text(merge), "content", None, first.dtype,
        second.dtype, first.shape, second.shape,
    )  # fmt: skip
