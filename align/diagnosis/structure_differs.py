"""AL105: modules, parameters, calls or outputs that only one run has, or that only one capture kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.pairing import ASIDE
from align.records import Finding, Kind, Origin, Phase, Place, RunInfo, Severity, TensorKey

CODE = "AL105"
LABEL = "structure-differs"

EXAMPLES = 5
SIDES = ("reference", "candidate")


@rule(CODE, LABEL, rank=15)
def find(walk: Walk) -> Iterator[Finding]:
    """Names without a partner, outputs of paired names that only one run made, and those that only one capture kept."""
    names = (walk.names.only_reference, walk.names.only_candidate)
    kept = _kept_on_one_side(walk)
    calls = [
        _calls(walk, keys, {*unpaired, *kept})
        for keys, unpaired in zip((walk.only_reference, walk.only_candidate), names, strict=True)
    ]
    if any(names) or any(calls):
        yield _structure(walk, names, (calls[0], calls[1]))
    if kept or _phases_differ(walk):
        yield _captured_apart(walk, kept)


def _structure(
    walk: Walk, names: tuple[tuple[str, ...], tuple[str, ...]], calls: tuple[list[str], list[str]]
) -> Finding:
    summary = f"The structure of the runs differs: {wording.listing(list(_parts(names, calls)))}."
    cause, sure = _cause(walk, names)
    advice = "Build both models from one configuration; pair renamed modules with `align diff --rename OLD=NEW`."
    if walk.first is None:
        advice = f"Nothing that could be compared differs because of it. {advice}"
    return Finding(
        CODE,
        LABEL,
        _severity(walk, sure=sure),
        f"{summary} {cause}".strip(),
        advice,
        telling.place_of(walk.first.comparison.key) if sure and walk.first is not None else Place(),
        {
            "only_reference": list(names[0][:EXAMPLES]),
            "only_candidate": list(names[1][:EXAMPLES]),
            "only_reference_count": len(names[0]),
            "only_candidate_count": len(names[1]),
            "outputs_only_reference": calls[0][:EXAMPLES],
            "outputs_only_candidate": calls[1][:EXAMPLES],
        },
        {"only_reference": len(names[0]), "only_candidate": len(names[1])},
    )


def _parts(names: tuple[tuple[str, ...], tuple[str, ...]], calls: tuple[list[str], list[str]]) -> Iterator[str]:
    for found, side in zip(names, SIDES, strict=True):
        if found:
            yield f"{wording.plural(len(found), 'name')} only in the {side} (such as {found[0]})"
    for made, side in zip(calls, SIDES, strict=True):
        if made:
            yield f"{wording.plural(len(made), 'output')} only in the {side} (such as {made[0]})"


def _severity(walk: Walk, *, sure: bool) -> Severity:
    if sure:
        return Severity.ERROR
    return Severity.NOTE if walk.first is None else Severity.WARNING


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
    key = first.comparison.key
    if first.origin is not Origin.FUNCTIONAL or first.kind not in {Kind.VALUE, Kind.SHAPE} or first.statistics_only:
        return "", False
    inside = [
        name for side in names for name in side if _parent(name) == ("" if _is_root(first.owner) else first.owner)
    ]
    if key.phase is not Phase.FORWARD or not inside:
        return "", False
    owners = {key.name for key in (*walk.only_reference, *walk.only_candidate) if key.phase is Phase.INIT}
    inside.sort(key=lambda name: not _owns(name, owners))
    cause = (
        f"{telling.opening(key)}: {telling.tensor(key)} is the first tensor that differs "
        f"({telling.amount(first.comparison)}), and {telling.code_of(first)}, which makes it, is where {inside[0]} can "
        "run."
    )
    return cause, _owns(inside[0], owners)


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
    back = {new: old for old, new in walk.names.partner.items()}
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
            told.append(f"{wording.plural(len(names), 'module')} only of the {side} (such as {names[0]})")
    if _phases_differ(walk):
        ours, theirs = _phases(walk.reference), _phases(walk.candidate)
        for side, phases, others in ((SIDES[0], ours, theirs), (SIDES[1], theirs, ours)):
            more = [phase for phase in phases if phase not in others]
            if more:
                told.append(f"the {'phase' if len(more) == 1 else 'phases'} {wording.listing(more)} only of the {side}")
    return Finding(
        CODE,
        LABEL,
        Severity.NOTE,
        f"The captures kept different things, with other options: {wording.listing(told)}. "
        "This part was not compared; it is no difference between the runs.",
        "Capture both runs with the same --modules and --phases to compare all of it.",
        Place(),
        {"modules": len(kept), "examples": list(kept)[:EXAMPLES]},
        {"modules": len(kept), "reference_phases": list(walk.reference.phases),
         "candidate_phases": list(walk.candidate.phases)},
    )  # fmt: skip


def _calls(walk: Walk, keys: Iterable[TensorKey], left_out: set[str]) -> list[str]:
    """Outputs of paired names; a gradient that one run did not see is no difference."""
    if _phases_differ(walk) and not _both_kept(walk, Phase.FORWARD):
        return []
    paired = {_call(comparison.key) for comparison in walk.comparisons if comparison.key.phase is Phase.FORWARD}
    found: dict[str, None] = {}
    for key in keys:
        if key.phase is Phase.FORWARD and key.name not in left_out and key.slot.startswith("output"):
            whole = f"call {key.call} of {key.name} in {wording.step(key.step, key.micro)}"
            found[f"{key.name} {key.slot}" if _call(key) in paired else whole] = None
    return list(found)


def _both_kept(walk: Walk, phase: Phase) -> bool:
    return all(not run.phases or str(phase) in run.phases for run in (walk.reference, walk.candidate))


def _call(key: TensorKey) -> tuple[int, int, str, int]:
    return (key.step, key.micro, key.name, key.call)


def _parent(name: str) -> str:
    return name.rpartition(".")[0]


def _is_root(name: str) -> bool:
    return name.startswith("<") and name.endswith(">")
