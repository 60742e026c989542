"""Dropout rates that a run has changed on the way: off in one run while the module trains, as in evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.pair.setup import explaining
from align.matching.places import CallPlace, Places
from align.records import Fact, ModuleInfo, Phase


@dataclass(frozen=True, slots=True)
class RateOff:
    """A dropout rate that is 0 in one run only, in the call that makes the first difference."""

    step: int
    name: str
    attribute: str
    reference: float
    candidate: float

    @property
    def side(self) -> str:
        """The run that drops nothing."""
        return "reference" if self.reference == 0.0 else "candidate"


def rate_off(walk: Walk) -> RateOff | None:
    """The rate of the module that makes the first difference, where one run has set it to 0 since it began."""
    first = walk.first
    if first is None or first.statistics_only or not explaining.made_by_code(first):
        return None
    key = first.comparison.key
    place = (telling.blamed(first), key.micro, key.call)
    answer = Places(walk.names, walk.pairing.calls, key.step).in_candidate(place)
    ours, theirs = walk.modules.get(place[0]), walk.candidate_modules.get(answer[0] if answer is not None else "")
    if ours is None or theirs is None or answer is None:
        return None
    changed = (
        _changed(walk.reference_facts.get(key.step, ()), place, ours),
        _changed(walk.candidate_facts.get(key.step, ()), answer, theirs),
    )
    for attribute in {**changed[0], **changed[1]}:
        values = [
            side.get(attribute, info.config.get(attribute)) for side, info in zip(changed, (ours, theirs), strict=True)
        ]
        rates = [float(value) for value in values if isinstance(value, int | float)]
        if len(rates) == len(values) and min(rates) == 0.0 < max(rates):
            return RateOff(key.step, place[0], attribute, rates[0], rates[1])
    return None


def _changed(facts: Iterable[Fact], place: CallPlace, module: ModuleInfo) -> Mapping[str, object]:
    """The attributes of a module that the facts of one of its calls tell anew."""
    return {
        fact.key.slot: fact.value
        for fact in facts
        if (fact.key.phase, fact.key.name, fact.key.micro, fact.key.call) == (Phase.FORWARD, *place)
        and fact.key.slot in module.config
    }
