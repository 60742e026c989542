"""What a report says of the pairing: in a sentence each, and as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from align import wording
from align.records import Detail
from align.reports.visible import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from align.records import DiffResult, PairedCalls, PairedNames
    from align.reports.language import Language

EXAMPLES = 3
ROWS = 20
ROOT, RULE = "root", "rule"
TOLD = (
    "order", "initial weights", "class", "children", "parameter shapes", "output values", "output shapes", "name",
)  # fmt: skip
"""The reasons that are told, in this order; the JSON has all."""
MOST_TOLD = 3
"""How many reasons one sentence names."""
DETAILS = tuple(str(detail) for detail in Detail)
"""From the lowest on."""


@dataclass(frozen=True, slots=True)
class PairingRow:
    """Modules that were paired in one way, as a row of a table."""

    reference: str
    candidate: str
    modules: str
    by: str
    confidence: str


def pairing_notes(result: DiffResult, phrases: Language) -> Iterator[str]:
    """What was paired by other than equal names and numbers, and what only one capture holds."""
    yield from _names_notes(result.pairing.names, phrases)
    yield from _calls_notes(result.pairing.calls, phrases)
    tensors = result.pairing.tensors
    if tensors:
        shown = [f"{visible(ours)} -> {visible(theirs)}" for ours, theirs in tensors[:EXAMPLES]]
        key = "note_tensors_one" if len(tensors) == 1 else "note_tensors_many"
        yield phrases[key].format(count=wording.count(len(tensors)), names=wording.listing(shown, len(tensors)))
    yield from (visible(phrases.said(note)) for note in result.pairing.notes)
    if result.pairing.shards:
        key = "note_shard" if result.pairing.shards == 1 else "note_shards"
        yield phrases[key].format(count=wording.count(result.pairing.shards))
    if result.comparisons:
        yield from _windows(result, phrases)
        yield from _details(result, phrases)


def pairing_rows(result: DiffResult, phrases: Language) -> tuple[PairingRow, ...]:
    """The groups of names, those of most modules first."""
    return tuple(
        PairingRow(
            _begin(each.reference, phrases),
            _begin(each.candidate, phrases),
            wording.count(each.modules),
            _by(each, phrases),
            _confidence(each.confidence),
        )
        for each in result.pairing.names[:ROWS]
    )


def _names_notes(groups: Sequence[PairedNames], phrases: Language) -> Iterator[str]:
    """One sentence for what the user's rules paired, one for the rest."""
    for by_rule in (True, False):
        here = [each for each in groups if (each.method == RULE) is by_rule]
        if not here:
            continue
        modules = sum(each.modules for each in here)
        shown = [f"{_begin(each.reference, phrases)} -> {_begin(each.candidate, phrases)}" for each in here[:EXAMPLES]]
        # A root alone has no other reason than its place.
        reasons = next((each for each in here if each.method != ROOT), here[0])
        yield phrases[f"note_paired{'_rule' if by_rule else ''}_{'one' if modules == 1 else 'many'}"].format(
            count=wording.count(modules),
            by=_by(reasons, phrases),
            names=wording.listing(shown, len(here)),
            confidence=_confidence(min(each.confidence for each in here)),
        )


def _begin(name: str, phrases: Language) -> str:
    return shortened(name) if name else phrases["pairing_all"]


def _by(group: PairedNames, phrases: Language) -> str:
    if group.method in (ROOT, RULE):
        return phrases[f"pairing_{group.method}"]
    told = [word for word in TOLD if word in group.by][:MOST_TOLD]
    return wording.listing([phrases[f"pairing_{word}"] for word in told])


def _confidence(confidence: float) -> str:
    """Two digits, rounded down: 1.00 is said of what is sure only."""
    return f"{int(confidence * 100 + 1e-4) / 100:.2f}"


def _calls_notes(calls: Sequence[PairedCalls], phrases: Language) -> Iterator[str]:
    """One sentence for the micro-steps and one for the calls: the first of each, and how many more there are."""
    micros = next((each for each in calls if not each.name), None)
    if micros is not None:
        counts = [_counted("micros", total, phrases) for total in micros.totals]
        yield _filled("note_micros", micros, counts, phrases)
    named = [each for each in calls if each.name]
    if named:
        more = len({each.name for each in named}) - 1
        others = "" if not more else phrases["note_calls_one_more" if more == 1 else "note_calls_more"]
        counts = [_counted("times", total, phrases) for total in named[0].totals]
        yield _filled("note_calls", named[0], counts, phrases, more=others.format(count=wording.count(more)))


def _filled(key: str, calls: PairedCalls, counts: Sequence[str], phrases: Language, **words: str) -> str:
    pairs = [phrases["note_pair"].format(reference=one, candidate=other) for one, other in calls.pairs]
    return phrases[key].format(
        name=shortened(calls.name),
        reference=counts[0],
        candidate=counts[1],
        step=wording.step(calls.step, calls.micro),
        pairs=wording.listing(pairs[:EXAMPLES], len(pairs)),
        confidence=_confidence(calls.confidence),
        **words,
    )


def _counted(word: str, number: int, phrases: Language) -> str:
    return phrases[f"{word}_{'one' if number == 1 else 'many'}"].format(count=wording.count(number))


def _windows(result: DiffResult, phrases: Language) -> Iterator[str]:
    ours, theirs = result.pairing.reference_steps, result.pairing.candidate_steps
    if ours != theirs:
        yield phrases["note_steps"].format(reference=wording.steps(ours), candidate=wording.steps(theirs))


def _details(result: DiffResult, phrases: Language) -> Iterator[str]:
    ours, theirs = result.reference.detail, result.candidate.detail
    if ours == theirs or not {ours, theirs} <= set(DETAILS):
        return
    low, high = sorted((ours, theirs), key=DETAILS.index)
    yield phrases["note_detail"].format(side=phrases["reference" if low == ours else "candidate"], low=low, high=high)
