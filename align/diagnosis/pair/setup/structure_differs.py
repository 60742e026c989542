"""AL105: modules, parameters, calls or outputs that only one run has, or that only one capture kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.backward import unreduced
from align.diagnosis.pair.setup import explaining
from align.diagnosis.pair.setup.other_class import other_class
from align.diagnosis.registry import rule
from align.matching.rules import is_root
from align.pairing import ASIDE
from align.records import Finding, Kind, Origin, Phase, Place, RunInfo, Severity, TensorKey
from align.sentences import capital, joined, say
from align.walk import Suspect

CODE = "AL105"
LABEL = "structure-differs"

EXAMPLES = 5
SIDES = ("reference", "candidate")

ADVICE = (
    "Build both models from one configuration; pair renamed modules with `align diff --rename OLD=NEW` or `--map FILE`."
)
CALLS_ADVICE = (
    "Compare how often both scripts call the model and its modules: warm-up passes, repeated calls, micro-batches."
)
PASSES_ADVICE = (
    "Compare how many micro-batches both scripts accumulate for one optimizer.step, and whether one of them leaves an "
    "update out: a condition, a last incomplete group, a step that raises or is skipped."
)

SUMMED = frozenset({Phase.GRADIENT, Phase.UPDATE})


@dataclass(frozen=True, slots=True)
class Unanswered:
    """What one run made of modules that both have: whole micro-steps, calls, and outputs, each in words."""

    micros: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.all)

    @property
    def all(self) -> tuple[str, ...]:
        """All of them, the largest first."""
        return (*self.micros, *self.calls, *self.outputs)


@rule(CODE, LABEL, rank=15)
def find(walk: Walk) -> Iterator[Finding]:
    """Names without a partner, outputs of paired names that only one run made, and those that only one capture kept."""
    yield from other_class(walk)
    names = (walk.names.only_reference, walk.names.only_candidate)
    kept = _kept_on_one_side(walk)
    made = [_unanswered(walk, side, {*unpaired, *kept}) for side, unpaired in zip(SIDES, names, strict=True)]
    if any(names) or any(made):
        yield _structure(walk, names, (made[0], made[1]))
    if kept or _phases_differ(walk):
        yield _captured_apart(walk, kept)


def _structure(
    walk: Walk, names: tuple[tuple[str, ...], tuple[str, ...]], made: tuple[Unanswered, Unanswered]
) -> Finding:
    summary = say("The structure of the runs differs: {}.", wording.listing(list(_parts(names, made))))
    cause, sure = _cause(walk, names)
    passes = _other_passes(walk, made)
    if passes:
        cause, sure = passes, True
    by_code = sure and walk.first is not None and walk.first.origin is Origin.FUNCTIONAL
    told = [cause, summary] if by_code or passes else [summary, cause]
    advice = PASSES_ADVICE if passes else ADVICE if any(names) else CALLS_ADVICE
    if walk.first is None:
        advice = say("Nothing that could be compared differs because of it. {}", advice)
    return Finding(
        CODE,
        LABEL,
        explaining.severity(walk, sure=sure),
        joined(" ", filter(None, told)),
        advice,
        telling.place_of(walk.first.comparison.key) if sure and walk.first is not None else Place(),
        {
            "only_reference": list(names[0][:EXAMPLES]),
            "only_candidate": list(names[1][:EXAMPLES]),
            "only_reference_count": len(names[0]),
            "only_candidate_count": len(names[1]),
            "outputs_only_reference": list(made[0].all[:EXAMPLES]),
            "outputs_only_candidate": list(made[1].all[:EXAMPLES]),
        },
        {"only_reference": len(names[0]), "only_candidate": len(names[1])},
    )


def _other_passes(walk: Walk, made: tuple[Unanswered, Unanswered]) -> str:
    """Why gradients differ first in a step that has more passes in one run: they are sums over all of them."""
    first = walk.first
    if first is None or first.kind is not Kind.VALUE or first.comparison.key.phase not in SUMMED:
        return ""
    if unreduced.is_known(walk):
        return ""  # One process goes through what several ranks share.
    key = first.comparison.key
    counts = [len(_passes(walk, key.step, side)) for side in SIDES]
    if counts[0] == counts[1] or not any(each.micros for each in made):
        return ""
    passes = [wording.plural(count, "micro-step") for count in counts]
    return say(
        "{} has {} in the reference and {} in the candidate before the optimizer steps, and gradients add up over "
        "all of them: {} is the first that differs ({}).",
        capital(wording.step(key.step)),
        passes[0],
        passes[1],
        telling.tensor(key),
        telling.amount(first.comparison),
    )


def _passes(walk: Walk, step: int, side: str) -> set[int]:
    here = side == SIDES[0]
    keys = {each.reference.key if here else each.candidate.key for each in walk.comparisons}
    keys |= set(walk.only_reference if here else walk.only_candidate)
    return {key.micro for key in keys if (key.step, key.phase) == (step, Phase.FORWARD)}


def _parts(names: tuple[tuple[str, ...], tuple[str, ...]], made: tuple[Unanswered, Unanswered]) -> Iterator[str]:
    for found, side in zip(names, SIDES, strict=True):
        if found:
            yield say("{} only in the {} (such as {})", wording.plural(len(found), "name"), side, found[0])
    for each, side in zip(made, SIDES, strict=True):
        counted = (
            (each.micros, wording.plural(len(each.micros), "micro-step")),
            (each.calls, wording.plural(len(each.calls), "call")),
            (each.outputs, wording.plural(len(each.outputs), "output")),
        )
        for found, many in counted:
            if found:
                yield say("{} only in the {} (such as {})", many, side, found[0])


def _cause(walk: Walk, names: tuple[tuple[str, ...], tuple[str, ...]]) -> tuple[str, bool]:
    """Why the runs may part because of it, and whether that stands before all else.

    A module with parameters changes what runs through it; one without may have its like in the other run's code.
    """
    first = walk.first
    if first is None:
        return "", False
    if first.origin is Origin.WEIGHTS and draws_other_numbers(walk):
        drawn = (
            "Parameters that only one run has draw random numbers too, so all that are drawn after them differ, with "
            "the same seed. No module was judged."
        )
        return drawn, True
    by_code = first.origin is Origin.FUNCTIONAL and first.kind in {Kind.VALUE, Kind.SHAPE} and not first.statistics_only
    if not by_code or first.comparison.key.phase is not Phase.FORWARD:
        return "", False
    return _by_code(walk, first, names)


def _by_code(walk: Walk, first: Suspect, names: tuple[tuple[str, ...], tuple[str, ...]]) -> tuple[str, bool]:
    """What the code that made the first difference calls in one run only."""
    ran = _ran_alone(walk, first)
    inside = ran or _may_have_run(walk, first, names)
    if not inside:
        return "", False
    owners = {key.name for key in (*walk.only_reference, *walk.only_candidate) if key.phase is Phase.INIT}
    if ran:
        owners |= {record.key.name for found in walk.initial for record in (found.pair.reference, found.pair.candidate)}
    inside.sort(key=lambda name: not _owns(name, owners))
    key, name = first.comparison.key, inside[0]
    what = say("is where {} can run", name)
    if ran:
        side = next(side for side in SIDES if name in _alone(walk, first, side))
        what = say("runs {} in the {} only", name, side)
    much = telling.amount(first.comparison) if first.kind is Kind.VALUE else "another shape"
    cause = say(
        "{}: {} is the first tensor that differs ({}), and {}, which makes it, {}.",
        telling.opening(key),
        telling.tensor(key),
        much,
        telling.code_of(first),
        what,
    )
    return cause, _owns(name, owners)


def _may_have_run(walk: Walk, first: Suspect, names: tuple[tuple[str, ...], tuple[str, ...]]) -> list[str]:
    """The modules of one run whose parent's code made the first difference, where no record tells when they ran."""
    around = "" if is_root(first.owner) else first.owner
    inside = [name for side in names for name in side if _parent(name) in {around, walk.names.of(around)}]
    ran = {key.name for orders in walk.unpaired_orders for key in orders if key.phase is Phase.FORWARD}
    return [name for name in inside if name not in ran]


def _ran_alone(walk: Walk, first: Suspect) -> list[str]:
    """The outermost modules that one run called, and the other did not, where the first difference was made."""
    found = [name for side in SIDES for name in _alone(walk, first, side)]
    return [name for name in found if not any(name.startswith(f"{other}.") for other in found)]


def _alone(walk: Walk, first: Suspect, side: str) -> list[str]:
    """The modules that one run alone called between the child before the first difference and that."""
    key, here = first.comparison.key, side == SIDES[0]
    mine = first.comparison.reference if here else first.comparison.candidate
    in_step = [
        each.reference if here else each.candidate
        for each in walk.comparisons
        if (each.key.step, each.key.phase) == (key.step, Phase.FORWARD)
    ]
    both = {record.key.name for record in in_step}
    sibling = first.sibling if here else walk.names.of(first.sibling)
    before = (
        record.order
        for record in in_step
        if (record.key.name, record.key.micro) == (sibling, mine.key.micro) and record.order < mine.order
    )
    begin = max(before, default=-1)
    ran = {
        other.name: None
        for other, order in walk.unpaired_orders[not here].items()
        if (other.step, other.phase) == (key.step, Phase.FORWARD) and begin < order < mine.order
    }
    return [name for name in ran if name not in both and not is_root(name)]


def _owns(name: str, owners: set[str]) -> bool:
    return any(owner == name or owner.startswith(f"{name}.") for owner in owners)


def draws_other_numbers(walk: Walk) -> bool:
    """Whether one run has initial parameters that the other has not, while no recorded seed differs."""
    if not any(key.phase is Phase.INIT for key in (*walk.only_reference, *walk.only_candidate)):
        return False
    ours, theirs = walk.reference.seeds, walk.candidate.seeds
    return not any(ours[name] != theirs[name] for name in ours if name in theirs and not name.endswith("_state"))


def _kept_on_one_side(walk: Walk) -> dict[str, str]:
    """Modules that ran in both runs and have records in one capture only (name -> side)."""
    compared = {each.key.name for each in walk.comparisons if each.key.phase in {Phase.FORWARD, Phase.BACKWARD}}
    back = walk.names.reversed()
    found: dict[str, str] = {}
    for side, keys in zip(SIDES, (walk.only_reference, walk.only_candidate), strict=True):
        for key in keys:
            ours = key.name if side == SIDES[0] else back.get(key.name, key.name)
            ran_twice = ours in walk.modules and walk.names.of(ours) in walk.candidate_modules
            if key.phase is Phase.FORWARD and ran_twice and ours not in compared:
                found[key.name] = side
    return found


def _phases(run: RunInfo) -> list[str]:
    """The phases that were captured, without those that are never compared (older files do not have them)."""
    return [phase for phase in run.phases if phase not in ASIDE]


def _phases_differ(walk: Walk) -> bool:
    ours, theirs = set(_phases(walk.reference)), set(_phases(walk.candidate))
    return bool(ours and theirs and ours != theirs)


def _captured_apart(walk: Walk, kept: dict[str, str]) -> Finding:
    told = []
    for side in SIDES:
        names = [name for name, kept_by in kept.items() if kept_by == side]
        if names:
            told.append(say("{} only of the {} (such as {})", wording.plural(len(names), "module"), side, names[0]))
    if _phases_differ(walk):
        ours, theirs = _phases(walk.reference), _phases(walk.candidate)
        for side, phases, others in ((SIDES[0], ours, theirs), (SIDES[1], theirs, ours)):
            more = [phase for phase in phases if phase not in others]
            if more:
                which = say("phase" if len(more) == 1 else "phases")
                told.append(say("the {} {} only of the {}", which, wording.listing(more), side))
    return Finding(
        CODE,
        LABEL,
        Severity.NOTE,
        say(
            "The captures kept different things, with other options: {}. This part was not compared; it is no "
            "difference between the runs.",
            wording.listing(told),
        ),
        "Capture both runs with the same --modules and --phases to compare all of it.",
        Place(),
        {"modules": len(kept), "examples": list(kept)[:EXAMPLES]},
        {
            "modules": len(kept),
            "reference_phases": list(walk.reference.phases),
            "candidate_phases": list(walk.candidate.phases),
        },
    )


def _unanswered(walk: Walk, side: str, left_out: set[str]) -> Unanswered:
    """What one run made of paired names and the other did not; a gradient that was not seen is no difference.

    What is inside a micro-step or call that has no answer has none either, and is not told.
    """
    if _phases_differ(walk) and not _both_kept(walk, Phase.FORWARD):
        return Unanswered()
    here = side == SIDES[0]
    paired = {
        _call(each.reference.key if here else each.candidate.key)
        for each in walk.comparisons
        if each.key.phase is Phase.FORWARD
    }
    steps, micros = {call[0] for call in paired}, {call[:2] for call in paired}
    keys = [
        key
        for key in (walk.only_reference if here else walk.only_candidate)
        if key.phase is Phase.FORWARD and key.name not in left_out and key.slot.startswith("output")
    ]
    whole = {_call(key) for key in keys} - paired
    roots = {call[2] for call in whole if is_root(call[2])}
    alone = {call[:2] for call in whole if call[0] in steps} - micros
    found: tuple[dict[str, None], ...] = ({}, {}, {})
    for key in keys:
        call = _call(key)
        if call[:2] in alone:
            found[0][say("micro-step {} of {}", key.micro, wording.step(key.step))] = None
        elif call not in whole:
            found[2][say("{} {}", key.name, key.slot)] = None
        elif not any((*call[:2], around, key.call) in whole for around in {*_around(key.name), *roots} - {key.name}):
            found[1][say("call {} of {} in {}", key.call, key.name, wording.step(key.step, key.micro))] = None
    return Unanswered(*(tuple(each) for each in found))


def _around(name: str) -> Iterator[str]:
    """The modules around one: where a call of one of them is repeated, so are those of what it holds."""
    while name := _parent(name):
        yield name


def _both_kept(walk: Walk, phase: Phase) -> bool:
    return all(not run.phases or str(phase) in run.phases for run in (walk.reference, walk.candidate))


def _call(key: TensorKey) -> tuple[int, int, str, int]:
    return (key.step, key.micro, key.name, key.call)


def _parent(name: str) -> str:
    return name.rpartition(".")[0]
