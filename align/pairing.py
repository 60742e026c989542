"""Which record of the candidate answers which record of the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from align import wording
from align.errors import ComparisonError
from align.matching.calls import NO_SHIFTS, Shifts, find_shifts
from align.matching.looks import Look, Looks
from align.matching.names import Method, NameAligner, NameMatch
from align.matching.rules import MapRule, is_root, mapped, rename_of, renamed
from align.matching.slots import Place, pair_slots
from align.records import Phase, TensorKey, TensorRecord
from align.sentences import joined, say

LARGEST_SHARE_WITHOUT_PARTNER = 0.5
"""Above it the captures are of different models."""

GIVEN = frozenset({Phase.INPUT, Phase.LOSS})
"""Phases whose names are those of arguments and of the loss, which are no modules."""

RENAME_ADVICE = say(
    "If modules were renamed, pair them with --rename OLD=NEW or --map FILE; `align show RUN.h5` lists what each holds."
)

TOO_MANY = (
    "More than 2,000 modules of each run have no namesake in the other; they were not paired by what they are. Pair "
    "them with --rename OLD=NEW or --map FILE."
)

ASIDE = frozenset({Phase.OPTIMIZER, Phase.SCALER, Phase.RNG})
"""Phases that explain a difference and are none themselves; files of format 1 do not have them."""

LOADER = "<DataLoader"
"""Batches as a DataLoader handed them out; what reaches the model is seen again."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """One record of the reference and its answer in the candidate."""

    reference: TensorRecord
    candidate: TensorRecord

    @property
    def key(self) -> TensorKey:
        """The key of the reference's record."""
        return self.reference.key

    @property
    def same_shape(self) -> bool:
        """Whether both tensors have one shape."""
        return self.reference.shape == self.candidate.shape

    @property
    def same_dtype(self) -> bool:
        """Whether both tensors have one dtype."""
        return self.reference.dtype == self.candidate.dtype


@dataclass(frozen=True, slots=True, eq=False)
class PairedStep:
    """All pairs of one step in the reference's execution order, and the keys without an answer.

    `shifts` say where calls or micro-steps of the candidate have other numbers, `orders` when the tensors without an
    answer were seen, of the reference and of the candidate; `unpaired` are their records.
    """

    step: int
    pairs: tuple[Pair, ...]
    only_reference: tuple[TensorKey, ...] = ()
    only_candidate: tuple[TensorKey, ...] = ()
    shifts: Shifts = NO_SHIFTS
    orders: tuple[Mapping[TensorKey, int], Mapping[TensorKey, int]] = ({}, {})
    slots: Mapping[Place, Place] = field(default_factory=dict)
    shards: tuple[Pair, ...] = ()
    unpaired: tuple[tuple[TensorRecord, ...], tuple[TensorRecord, ...]] = ((), ())


@dataclass(frozen=True, slots=True)
class NamePairs:
    """Which name of the candidate stands for which name of the reference, and the names without a partner.

    `matches` are the pairs whose names are not equal. `notes` say which rules did nothing and what was not tried.
    """

    partner: Mapping[str, str]
    only_reference: tuple[str, ...] = ()
    only_candidate: tuple[str, ...] = ()
    matches: tuple[NameMatch, ...] = ()
    notes: tuple[str, ...] = ()

    def of(self, name: str) -> str:
        """The candidate's name for a name of the reference; empty where another module has the candidate's."""
        return self.partner.get(name, name)

    def reversed(self) -> dict[str, str]:
        """The reference's name for each name of the candidate that has a partner."""
        return {theirs: ours for ours, theirs in self.partner.items() if theirs}


def is_walked(record: TensorRecord) -> bool:
    """Whether a record is judged in the walk over its step; the others stand aside as evidence."""
    phase = record.key.phase
    if phase in ASIDE or record.recomputed:
        return False
    return not (phase is Phase.INPUT and record.key.name.startswith(LOADER))


LookAt: TypeAlias = Callable[[], tuple[Looks, Looks]]
"""Gives what is known of the modules of both runs; called only where names are not equal."""


def pair_names(
    reference: Iterable[str], candidate: Iterable[str], renames: Sequence[tuple[str, str]] = (),
    rules: Sequence[MapRule] = (), look_at: LookAt | None = None,
) -> NamePairs:  # fmt: skip
    """Pair the module names of both runs.

    Rules come first: the renames, then the rules of a `--map` file, where what they make of a name is a name of the
    candidate. Then equal names. What is left is paired by what is known of the modules, without `look_at` only the
    lone roots of both sides.
    """
    ours, theirs = list(dict.fromkeys(reference)), dict.fromkeys(candidate)
    _check_renames(ours, renames)
    given, notes = _by_rules(ours, theirs, renames, rules)
    if not given and theirs.keys() == set(ours):
        return NamePairs({name: name for name in ours}, notes=notes)
    looks = look_at() if look_at is not None else None
    if looks is None:
        looks = Looks({name: _bare(name) for name in ours}), Looks({name: _bare(name) for name in theirs})
    aligner = NameAligner(*looks, given)
    found = aligner.run()
    if aligner.too_many:
        notes = (*notes, TOO_MANY)
    return _name_pairs(ours, theirs, found, notes)


def check_same_model(names: NamePairs, reference_path: str, candidate_path: str) -> None:
    """Refuse two captures of which most names have no partner."""
    doing = say("Cannot compare '{}' with '{}'", reference_path, candidate_path)
    shared = len(names.partner) - len(names.only_reference)
    totals = (len(names.partner), shared + len(names.only_candidate))
    if all(totals) and not shared:
        raise ComparisonError(say("{}: they have no name in common{}. {}", doing, _examples(names), RENAME_ADVICE))
    for total, side in zip(totals, ("reference", "candidate"), strict=True):
        if total and (total - shared) / total > LARGEST_SHARE_WITHOUT_PARTNER:
            raise ComparisonError(
                say(
                    "{}: they hold different models. Only {} of {} names of the {} have a partner{}. {}",
                    doing,
                    shared,
                    total,
                    side,
                    _examples(names),
                    RENAME_ADVICE,
                ),
            )


def pair_records(
    step: int,
    reference: Sequence[TensorRecord],
    candidate: Sequence[TensorRecord],
    names: NamePairs,
    shifts: Shifts | None = None,
) -> PairedStep:
    """Pair the records of one step by phase, name, slot, micro and call.

    Where the runs call a module, or run micro-steps, in other numbers, those are aligned; `shifts` are what was found
    before for other records of the same step.
    """
    back = names.reversed()
    found = _matched(reference, candidate, (names, back), shifts or NO_SHIFTS)
    slots: dict[Place, Place] = {}
    if shifts is None and (found.ours or found.theirs):
        shifts = find_shifts(reference, candidate, back.get)
        if shifts:
            found = _matched(reference, candidate, (names, back), shifts)
        slots = pair_slots(found.ours, found.theirs)
    pairs = [*found.pairs, *(Pair(found.ours.pop(ours), found.theirs.pop(theirs)) for ours, theirs in slots.items())]
    pairs.sort(key=lambda pair: pair.reference.order)
    left = [{record.key: record.order for record in side.values()} for side in (found.ours, found.theirs)]
    return PairedStep(
        step,
        tuple(pairs),
        tuple(left[0]),
        tuple(left[1]),
        shifts or NO_SHIFTS,
        (left[0], left[1]),
        slots,
        unpaired=(tuple(found.ours.values()), tuple(found.theirs.values())),
    )


class _Matched(NamedTuple):
    """Pairs by equal places, and what has none, by its place in the candidate's names and the reference's numbers."""

    pairs: list[Pair]
    ours: dict[Place, TensorRecord]
    theirs: dict[Place, TensorRecord]


def _matched(
    reference: Sequence[TensorRecord], candidate: Sequence[TensorRecord], words: tuple[NamePairs, Mapping[str, str]],
    shifts: Shifts,
) -> _Matched:  # fmt: skip
    names, back = words
    place = _moved(back, shifts) if shifts else _place
    found = _Matched([], {}, {place(record): record for record in candidate})
    for record in sorted(reference, key=_order):
        key = record.key
        name = key.name if key.phase in GIVEN else names.partner.get(key.name, key.name)
        here = (key.phase, name, key.slot, key.micro, key.call)
        answer = found.theirs.pop(here, None)
        if answer is None:
            found.ours[here] = record
        else:
            found.pairs.append(Pair(record, answer))
    return found


def _place(record: TensorRecord) -> Place:
    key = record.key
    return (key.phase, key.name, key.slot, key.micro, key.call)


def _moved(back: Mapping[str, str], shifts: Shifts) -> Callable[[TensorRecord], Place]:
    """Where a record of the candidate stands among those of the reference."""

    def place(record: TensorRecord) -> Place:
        key = record.key
        caller = record.within if key.phase is Phase.INPUT and record.within else key.name
        found = shifts.place(key, back.get(caller, caller))
        if found is None:
            # Micro-steps are counted from 0: nothing of the reference stands here.
            return (key.phase, key.name, key.slot, -1 - key.micro, key.call)
        return (key.phase, key.name, key.slot, *found)

    return place


def _order(record: TensorRecord) -> int:
    return record.order


def _bare(name: str) -> Look:
    return Look(name, name.strip("<>") if is_root(name) else None)


def _check_renames(names: Sequence[str], renames: Sequence[tuple[str, str]]) -> None:
    for old, new in renames:
        if old and not any(name == old or name.startswith(f"{old}.") for name in names):
            raise ComparisonError(
                say(
                    "Cannot rename '{}' to '{}': the reference has no module of that name. List its modules with "
                    "`align show`.",
                    old,
                    new,
                ),
            )


def _by_rules(
    ours: Sequence[str], theirs: Container[str], renames: Sequence[tuple[str, str]], rules: Sequence[MapRule]
) -> tuple[list[NameMatch], tuple[str, ...]]:
    """The pairs that the rules make, the first of each name of the candidate, and what is to be said of the rules."""
    matched: Counter[str] = Counter()
    used: Counter[str] = Counter()
    found: dict[str, NameMatch] = {}
    for name in ours:
        new = renamed(name, renames)
        rule = say("rename '{}'", "=".join(rename_of(name, renames) or ()))
        if new == name:
            made = mapped(name, rules)
            if made is None:
                continue
            new, rule = made[0], _title(made[1])
        matched[rule] += 1
        if new in theirs and new not in found:
            found[new] = NameMatch(name, new, Method.RULE)
            used[rule] += 1
    # A rename to the same name asks for nothing.
    titles = [say("rename '{}={}'", old, new) for old, new in renames if old != new]
    return list(found.values()), tuple(_rule_notes([*titles, *map(_title, rules)], matched, used))


def _title(rule: MapRule) -> str:
    return say("rule in {}, '{}',", rule.place, rule.text)


def _rule_notes(titles: Iterable[str], matched: Mapping[str, int], used: Mapping[str, int]) -> Iterator[str]:
    for title in dict.fromkeys(titles):
        if not matched[title]:
            yield say("The {} matches no name of the reference that is left to it.", title)
        elif not used[title]:
            count = wording.plural(matched[title], "name")
            yield (
                say(
                    "The {} matches {} of the reference, but the candidate has no free module of a name that it makes.",
                    title,
                    count,
                )
            )


def _name_pairs(
    ours: Sequence[str], theirs: Iterable[str], found: Mapping[str, NameMatch], notes: tuple[str, ...]
) -> NamePairs:
    answered = {match.candidate for match in found.values()}
    others = set(theirs)
    partner = {}
    for name in ours:
        match = found.get(name)
        # A name that another module of the candidate has must not lead to that.
        partner[name] = match.candidate if match is not None else "" if name in others else name
    return NamePairs(
        partner,
        tuple(name for name in ours if name not in found),
        tuple(sorted(others - answered)),
        tuple(match for match in found.values() if match.method and match.reference != match.candidate),
        notes,
    )


def _examples(names: NamePairs) -> str:
    parts = []
    if names.only_reference:
        parts.append(say("'{}' is only in the reference", names.only_reference[0]))
    if names.only_candidate:
        parts.append(say("'{}' only in the candidate", names.only_candidate[0]))
    return say("; for example {}", joined(" and ", parts)) if parts else ""
