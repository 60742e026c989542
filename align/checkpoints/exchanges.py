"""Values that stand under the name of another entry: two layers exchanged, layers counted from another begin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from align import wording
from align.checkpoint_files import Entry
from align.checkpoints.contents import fingerprint
from align.checkpoints.relating import EntryPair
from align.checkpoints.rules import NUMBER, template
from align.checkpoints.telling import Compared, finding, some
from align.records import Finding, Severity
from align.relations import RelationKind
from align.sentences import capital, joined, say

MOVED = frozenset({
    RelationKind.UNRELATED, RelationKind.OTHER_SEED, RelationKind.NOT_LOADED, RelationKind.DRIFTED,
    RelationKind.SCALED, RelationKind.OFFSET, RelationKind.FEW_ELEMENTS, RelationKind.FEW_SLICES,
    RelationKind.ALL_ZERO, RelationKind.NONFINITE,
})  # fmt: skip
"""Relations of pairs whose values may stand under another name; gains of two norms are near each other."""

SHOWN = 3


def moved_values(compared: Compared) -> dict[str, str]:
    """Of each entry of the candidate that holds the values of another entry, in their order: whose they are.

    Only tensors with more than one value tell; those of a shape are compared where two of them differ.
    """
    groups: dict[tuple[tuple[int, ...], str], list[EntryPair]] = defaultdict(list)
    for pair in compared.pairs:
        if pair.relation.kind in MOVED and pair.reference.readable and pair.candidate.readable:
            groups[pair.reference.shape, pair.reference.dtype].append(pair)
    left: dict[tuple[tuple[int, ...], str], list[Entry]] = defaultdict(list)
    for name in compared.only_reference:
        entry = compared.reference.entries[name]
        left[entry.shape, entry.dtype].append(entry)
    moved: dict[str, str] = {}
    for key, pairs in groups.items():
        others = [entry for entry in left[key] if entry.readable]
        if len(pairs) + len(others) > 1:
            moved |= _moved_among(pairs, others)
    return moved


def _moved_among(pairs: list[EntryPair], others: list[Entry]) -> dict[str, str]:
    known = {_extremes(pair) for pair in pairs}
    likely = [pair for pair in pairs if others or _extremes(pair, candidate=True) in known]
    wanted = {_extremes(pair, candidate=True) for pair in likely}
    entries = [*(pair.reference for pair in pairs if _extremes(pair) in wanted), *others] if likely else []
    homes: dict[int, str] = {}
    for entry in entries:
        made = fingerprint(entry)
        if not made.constant:
            homes.setdefault(made.multiset, entry.name)
    moved = {}
    for pair in likely if homes else ():
        home = homes.get(fingerprint(pair.candidate).multiset)
        if home is not None and home != pair.names.reference:
            moved[pair.names.candidate] = home
    return moved


def _extremes(pair: EntryPair, *, candidate: bool = False) -> tuple[float, float]:
    """What tensors that hold the same values in any order have in common, and few others."""
    contents = pair.relation.candidate if candidate else pair.relation.reference
    return contents.minimum, contents.maximum


def exchanged(compared: Compared, moved: Mapping[str, str]) -> Iterator[Finding]:
    """Say which values stand where: of whole layers, where all their entries tell the same."""
    if not moved:
        return
    partners = {pair.names.candidate: pair.names.reference for pair in compared.pairs if pair.names.candidate in moved}
    layers = _layers({partners[name]: home for name, home in moved.items()})
    examples = layers or moved
    told = [
        say("{} holds {} of {}", name, "those" if layers else "that", home)
        for name, home in list(examples.items())[:SHOWN]
    ]
    if len(examples) > SHOWN:
        told.append(say("and {} more", len(examples) - SHOWN))
    lost = [name for name in partners.values() if name not in set(moved.values())]
    nowhere = say(" The values of {} are nowhere in it.", some(lost)) if lost and not compared.only_candidate else ""
    yield finding(
        "AL303",
        Severity.ERROR,
        say(
            "{} of the {} {} the values of another entry: {}.{}",
            capital(wording.plural(len(moved), "entry", "entries")),
            compared.candidate_word,
            "holds" if len(moved) == 1 else "hold",
            joined("; ", told),
            nowhere,
        ),
        "Look at how the conversion counts layers: from which number, and whether it leaves one out or exchanges two."
        if layers
        else "Look at the table of names of the conversion: it puts these values under wrong names.",
        list(moved),
        holds=dict(list(moved.items())[:50]),
    )


def _layers(moved: Mapping[str, str]) -> dict[str, str]:
    """`layers.1 -> layers.2` where names differ in the number of one level, and all of a layer tell the same."""
    found: dict[str, str] = {}
    for name, home in moved.items():
        (mine, ours), (other, theirs) = template(name), template(home)
        places = [place for place, (one, two) in enumerate(zip(ours, theirs, strict=False)) if one != two]
        if mine != other or len(places) != 1:
            return {}
        level = [index for index, part in enumerate(mine.split(".")) if part == NUMBER][places[0]] + 1
        layer, holder = (".".join(each.split(".")[:level]) for each in (name, home))
        if found.setdefault(layer, holder) != holder:
            return {}
    return found
