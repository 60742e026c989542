"""Parameters that get a gradient in one run only: what stands before them is not trained there.

A gradient of an activation that was not seen says nothing. That of a parameter is read after every backward and again
where the optimizer takes it: one that is not there was not made. It is no fault of a run that

* a module was not called, or was given nothing: an expert that got no tokens;
* a gradient of zeros is not made at all, which moves nothing either way;
* gradients are made that no optimizer takes in this step: those of the other network of a GAN;
* an update was skipped, or a rank holds a part of the parameters only.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from align.pairing import Pair, PairedStep
from align.records import Comparison, Kind, ModuleInfo, Origin, Owner, Phase, Status, TensorRecord
from align.units import SCRIPT
from align.walk import StepResult, Suspect

GRADIENT_OF_OUTPUT = "grad_output"

NOT_THERE = "missing"
"""The dtype of a record that stands for a tensor that was not made."""

GRADIENTS = (Phase.GRADIENT, Phase.UPDATE)

DIFFERENT = frozenset({Status.ORIGIN, Status.PROPAGATED, Status.NONFINITE})

SHARDED = frozenset({Phase.INIT, Phase.GRADIENT, Phase.UPDATE, Phase.PARAM})


@dataclass(frozen=True, slots=True, eq=False)
class GradientGap:
    """Parameters of one micro-step that get a gradient in one run only.

    `by_candidate` says that the candidate lacks them. `owners` are modules and names of the reference, what is nearest
    to the loss first, of `total` parameters that get a gradient in the other run. `cut` says that nothing before the
    first of them gets one either; `reached` whether the gradient of its module's output was seen in the run that lacks
    it, None where that is not known; `stops_at` is the outermost module, the last that ran, whose output that run's
    backward does not reach, empty where it is not known. In the phase `update` gradients were made and the optimizer
    did not get them.
    """

    suspect: Suspect
    by_candidate: bool
    owners: tuple[Owner, ...]
    total: int
    cut: bool
    reached: bool | None
    stops_at: str = ""

    @property
    def phase(self) -> Phase:
        """Where the gradients are missing: after backward, or in the optimizer."""
        return self.suspect.comparison.key.phase


class _Lost(NamedTuple):
    """A gradient that one run has, by the reference's names and numbers."""

    owner: Owner
    micro: int
    record: TensorRecord


def find_gap(
    paired: PairedStep,
    result: StepResult,
    partner: Mapping[Owner, Owner],
    modules: Mapping[str, ModuleInfo],
    *,
    one_rank: bool,
) -> GradientGap | None:
    """The gradients of paired parameters that only one run made in this step, None where there are none.

    `partner` gives the candidate's parameter for each of the reference; `one_rank` says that both runs have one process
    each: of several, one may keep gradients of what its optimizer holds only.
    """
    if not any(record.key.phase in GRADIENTS for side in paired.unpaired for record in side):
        return None
    if any(pair.key.phase in SHARDED for pair in paired.shards):
        return None
    held = {pair.reference.key.owner for pair in paired.pairs if pair.key.phase is Phase.PARAM}
    search = _Search(
        paired, result, {ours: theirs for ours, theirs in partner.items() if one_rank or ours in held}, modules
    )
    for phase in GRADIENTS:
        for by_candidate in (True, False):
            lost = search.lost(phase, side=0 if by_candidate else 1)
            if lost:
                return search.gap(phase, lost, by_candidate=by_candidate)
    return None


def laid_on_gap(result: StepResult, gap: GradientGap) -> StepResult:
    """The step with the gap as what parts the runs, unless something parts them before."""
    if result.suspects and not _precedes(gap, result.suspects[0], result):
        return result
    place = gap.suspect.comparison
    comparisons = [
        replace(each, status=Status.PROPAGATED) if each.status is Status.ORIGIN else each for each in result.comparisons
    ]
    behind = (at for at, each in enumerate(comparisons) if each.reference.order > place.reference.order)
    comparisons.insert(next(behind, len(comparisons)), place)
    later = tuple(
        replace(suspect, comparison=replace(suspect.comparison, status=Status.PROPAGATED))
        if suspect.comparison.status is Status.ORIGIN
        else suspect
        for suspect in result.suspects
    )
    return replace(result, comparisons=tuple(comparisons), suspects=(gap.suspect, *later))


def _precedes(gap: GradientGap, suspect: Suspect, result: StepResult) -> bool:
    """Whether the gap stands before what the walk found, or explains it.

    The gradients of the parameters are read after the whole backward. A gradient of a module before the gap lacks what
    would have come through it.
    """
    place, found = gap.suspect.comparison, suspect.comparison
    side = 0 if gap.by_candidate else 1
    orders = [(each.reference, each.candidate)[side].order for each in (place, found)]
    if orders[0] < orders[1]:
        return True
    if found.key.phase not in {Phase.BACKWARD, Phase.GRADIENT} or gap.phase is not Phase.GRADIENT:
        return False
    ran = _last_calls(result.comparisons, place.key.micro)
    mine, other = ran.get(place.key.name), ran.get(found.key.name)
    return found.key.micro == place.key.micro and mine is not None and other is not None and other < mine


class _Search:
    """The gradients of one step that have no answer."""

    def __init__(
        self,
        paired: PairedStep,
        result: StepResult,
        partner: Mapping[Owner, Owner],
        modules: Mapping[str, ModuleInfo],
    ) -> None:
        self.paired, self.result = paired, result
        self.partner, self.modules = partner, modules
        self.back = {theirs: ours for ours, theirs in partner.items()}
        self.unpaired = tuple(list(self._unpaired(side)) for side in (0, 1))
        self.micros = {pair.key.micro for pair in paired.pairs if pair.key.phase is Phase.GRADIENT}
        self.has = {
            phase: {pair.reference.key.owner for pair in paired.pairs if pair.key.phase is phase} for phase in GRADIENTS
        }
        self.taken = [{each.owner for each in lost if each.record.key.phase is Phase.UPDATE} for lost in self.unpaired]
        self.differ = {
            (each.key.phase, each.reference.key.owner) for each in result.comparisons if each.status in DIFFERENT
        }
        self.called = {pair.key.name for pair in paired.pairs if pair.key.phase is Phase.FORWARD}
        self.empty = {
            pair.key.name
            for pair in paired.pairs
            if pair.key.phase is Phase.FORWARD and 0 in {pair.reference.numel, pair.candidate.numel}
        }
        self.called_once = {record.key.name for side in paired.unpaired for record in side
                            if record.key.phase is Phase.FORWARD}  # fmt: skip

    def lost(self, phase: Phase, side: int) -> list[_Lost]:
        """The gradients of paired parameters that only this side made, and that move something."""
        found = [each for each in self.unpaired[side] if each.record.key.phase is phase and self._counts(each)]
        if phase is Phase.UPDATE:
            # Where no gradient has an answer the optimizer did not run; the walk tells what it was made from.
            return [each for each in found if each.owner in self.has[Phase.GRADIENT]] if self.has[phase] else []
        found = [each for each in found if each.micro in self.micros and self._is_used(each, side)]
        first = min((each.micro for each in found), default=0)
        return [each for each in found if each.micro == first]

    def _is_used(self, lost: _Lost, side: int) -> bool:
        """Whether the optimizer takes the gradient, or what it is added to over the micro-steps of the step."""
        if self.has[Phase.UPDATE] or any(self.taken):
            alone = lost.owner in self.taken[side] and lost.owner not in self.taken[1 - side]
            return alone or (Phase.UPDATE, lost.owner) in self.differ
        return lost.owner not in self.has[Phase.GRADIENT] or (Phase.GRADIENT, lost.owner) in self.differ

    def gap(self, phase: Phase, lost: Sequence[_Lost], *, by_candidate: bool) -> GradientGap:
        """The gap of these gradients; what is nearest to the loss stands first."""
        micro = lost[0].micro
        ran = _last_calls(self.result.comparisons, micro)
        places = {each.owner: _position(each.owner[0], ran) for each in lost}
        ordered = sorted(lost, key=lambda each: (-places[each.owner], each.record.order))
        first = ordered[0]
        same = {
            pair.reference.key.owner
            for pair in self.paired.pairs
            if pair.key.phase is phase and (pair.key.micro == micro or phase is Phase.UPDATE)
        }
        others = {owner: _position(owner[0], ran) for owner in same if _position(owner[0], ran) >= 0.0}
        known = places[first.owner] >= 0.0
        cut = phase is Phase.GRADIENT and known and all(place > places[first.owner] for place in others.values())
        unreached = self._unreached(micro, side=0 if by_candidate else 1)
        reached = self._reached(first, micro)
        if reached is None and first.owner[0] in unreached:
            reached = False
        last = first.owner[0]
        if cut and reached is False:
            until = min(others.values(), default=math.inf)
            last = max((name for name in unreached if name in ran and ran[name] < until), key=ran.__getitem__)
        return GradientGap(
            self._suspect(first, by_candidate=by_candidate),
            by_candidate,
            tuple(each.owner for each in ordered),
            len(lost) + len(same),
            cut,
            reached,
            _outermost(last, unreached) if reached is False else "",
        )

    def _unpaired(self, side: int) -> Iterator[_Lost]:
        for record in self.paired.unpaired[side]:
            if record.key.phase not in GRADIENTS:
                continue
            owner = record.key.owner if side == 0 else self.back.get(record.key.owner)
            if owner is None or owner not in self.partner:
                continue
            place = (record.key.micro, 0) if side == 0 else self.paired.shifts.place(record.key, owner[0])
            if place is not None:
                yield _Lost(owner, place[0], record)

    def _counts(self, lost: _Lost) -> bool:
        """Whether the gradient moves something, and would be there in a run in which the same code ran."""
        stats = lost.record.stats
        if stats is None or stats.zeros == stats.count:
            return False
        name = lost.owner[0]
        if name in self.called:
            return name not in self.empty and not self._chooses(name)
        # Parameters of a list are used by code above: an expert of them may have got no tokens.
        above = [name[:end] for end in range(len(name)) if name[end] == "."]
        above += [each for each in self.modules if each.startswith("<")]
        return name not in self.called_once and not any(self._chooses(each) for each in above)

    def _chooses(self, name: str) -> bool:
        return name in self.modules and self.modules[name].chooses

    def _reached(self, first: _Lost, micro: int) -> bool | None:
        """Whether the gradient of the output of the parameter's module was seen in both runs."""
        seen = {
            pair.key.name
            for pair in self.paired.pairs
            if (pair.key.phase, pair.key.micro) == (Phase.BACKWARD, micro)
            and pair.key.slot.startswith(GRADIENT_OF_OUTPUT)
        }
        return True if first.owner[0] in seen else None

    def _unreached(self, micro: int, side: int) -> set[str]:
        """The modules, by the reference's names, the gradient of whose output only this side has."""
        names = {theirs[0]: ours[0] for ours, theirs in self.partner.items()} if side else {}
        names |= {pair.candidate.key.name: pair.key.name for pair in self.paired.pairs} if side else {}
        return {
            names.get(record.key.name, record.key.name)
            for record in self.paired.unpaired[side]
            if record.key.phase is Phase.BACKWARD
            and record.key.slot.startswith(GRADIENT_OF_OUTPUT)
            and self._micro(record, side) == micro
        }

    def _micro(self, record: TensorRecord, side: int) -> int | None:
        """The micro-step of the reference that a record belongs to."""
        place = (record.key.micro, 0) if side == 0 else self.paired.shifts.place(record.key, record.key.name)
        return None if place is None else place[0]

    def _suspect(self, first: _Lost, *, by_candidate: bool) -> Suspect:
        """The place of a gradient that is not there, with a record in its stead that holds nothing."""
        record, owner = first.record, first.owner
        stand_in = replace(
            record,
            dtype=NOT_THERE,
            stats=None,
            hash=None,
            sketch=None,
            same_as=None,
            has_values=False,
            row_hashes=None,
            exponents=None,
            order=self._order_there(record.order, side=0 if by_candidate else 1),
            key=replace(
                record.key,
                name=(self.partner[owner] if by_candidate else owner)[0],
                slot=(self.partner[owner] if by_candidate else owner)[1],
                micro=record.key.micro if by_candidate else first.micro,
            ),
        )
        sides = (record, stand_in) if by_candidate else (stand_in, record)
        comparison = Comparison(*sides, Status.ORIGIN)
        kind = Kind.MISSING if by_candidate else Kind.EXTRA
        by_script = record.key.phase is Phase.UPDATE
        origin = Origin.FUNCTIONAL if by_script else Origin.MODULE
        return Suspect(comparison, kind, origin, SCRIPT if by_script else owner[0])

    def _order_there(self, order: int, side: int) -> int:
        """Behind which record of the other run it would stand."""
        before = [pair for pair in self.paired.pairs if _of(pair, side).order < order]
        return max((_of(pair, 1 - side).order for pair in before), default=-1)


def _outermost(name: str, unreached: Collection[str]) -> str:
    """The module, or what holds it where the gradient of that has not come either."""
    found = name
    while name := name.rpartition(".")[0]:
        found = name if name in unreached else found
    return found


def _of(pair: Pair, side: int) -> TensorRecord:
    return (pair.reference, pair.candidate)[side]


def _last_calls(comparisons: Iterable[Comparison], micro: int) -> dict[str, int]:
    """When each module was called last in a micro-step, in the reference."""
    found: dict[str, int] = {}
    for each in comparisons:
        if each.key.phase is Phase.FORWARD and each.key.micro == micro and not each.key.slot.startswith("output"):
            found[each.key.name] = max(found.get(each.key.name, -1), each.reference.order)
    return found


def _position(name: str, ran: Mapping[str, int]) -> float:
    """When a module ran, or what holds it; before everything where that is not known."""
    while name and name not in ran:
        name = name.rpartition(".")[0]
    return float(ran[name]) if name in ran else -math.inf
