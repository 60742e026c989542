"""AL108: modules are in training mode in one run and in evaluation mode in the other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from align import wording
from align.comparison import Walk
from align.configuration import Modes
from align.diagnosis import telling
from align.diagnosis.pair.setup import explaining
from align.diagnosis.pair.setup.dropout_rates import RateOff, rate_off
from align.diagnosis.registry import rule
from align.matching.places import Places
from align.records import Finding, ModuleInfo, Origin, Phase, Place, Severity
from align.sentences import say
from align.walk import Suspect

CODE = "AL108"
LABEL = "train-eval-mode"

EXAMPLES = 5

SAME_IN_BOTH = re.compile(
    r"Linear|Conv(Transpose)?[123]d|Conv1D|Embedding|(Layer|Group|RMS)Norm|GELU|SiLU|Sigmoid|Tanh"
)
"""Classes of modules without children that compute the same in both modes; of those not listed nobody knows."""
MODE_MATTERS = "Drop"


class ModeDifference(NamedTuple):
    """One call whose mode differs; `training` is that of the reference."""

    step: int
    name: str
    micro: int
    call: int
    training: bool


@rule(CODE, LABEL, rank=31)
def find(walk: Walk) -> Iterator[Finding]:
    """The modes that differ; an error where they stand at what made the first difference.

    So does a dropout rate that one run has set to 0 and not back, in a module that it keeps in training mode.
    """
    off = rate_off(walk)
    if off is not None and walk.first is not None:
        yield _tell_rate(off, walk.first)
    differences = [difference for step in walk.steps for difference in _differences(walk, step)]
    cause = _cause(walk)
    if not differences and cause is None:
        return
    told = cause or differences[0]
    # What a root has, its modules have too: they are not counted.
    names = list(dict.fromkeys(each.name for each in differences))
    first = walk.first if cause is not None else None
    summary = _sentence(told, [name for name in names if name != told.name])
    yield Finding(
        CODE,
        LABEL,
        explaining.severity(walk, sure=first is not None),
        summary if first is None else say("{} {}", summary, explaining.first_sentence(first)),
        _advice(walk, told),
        Place(told.step, str(Phase.FORWARD), told.name)
        if first is None
        else telling.place_of(first.comparison.key, told.name),
        {"modules": names[:EXAMPLES], "steps": sorted({each.step for each in differences})},
        {"step": told.step, "name": told.name, "training": told.training, "names": names[:EXAMPLES],
         "modules": len(names)},
    )  # fmt: skip


def _tell_rate(off: RateOff, first: Suspect) -> Finding:
    rates = say("{} in the reference and {} in the candidate", f"{off.reference:g}", f"{off.candidate:g}")
    return Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "In {} {} drops nothing in the {}, as in evaluation mode: its {} is {}, and was changed since the "
            "capture began. {}",
            wording.step(off.step),
            off.name,
            off.side,
            off.attribute,
            rates,
            explaining.first_sentence(first),
        ),
        say(
            "Look for code that sets {} of {} for an evaluation and does not set it back; let it follow the "
            "training mode of the module (`self.training`) in both runs.",
            off.attribute,
            off.name,
        ),
        telling.place_of(first.comparison.key, off.name),
        {"attribute": off.attribute, "reference": off.reference, "candidate": off.candidate},
        {
            **telling.arguments_of(first),
            "name": off.name,
            "attribute": off.attribute,
            "reference": off.reference,
            "candidate": off.candidate,
        },
    )


def _differences(walk: Walk, step: int) -> Iterator[ModeDifference]:
    """The calls of a step that either side's facts tell of, where both modes are known and differ."""
    ours, theirs = _modes(walk, step)
    places = Places(walk.names, walk.pairing.calls, step)
    for place in dict.fromkeys([*ours.told, *map(places.in_reference, theirs.told)]):
        answer = places.in_candidate(place) if place is not None else None
        if place is None or answer is None:
            continue
        modes = ours.of(*place), theirs.of(*answer)
        if modes[0] is not None and modes[1] is not None and modes[0] != modes[1]:
            yield ModeDifference(step, *place, modes[0])


def _modes(walk: Walk, step: int) -> tuple[Modes, Modes]:
    return (
        Modes(walk.reference_facts.get(step, ()), walk.modules),
        Modes(walk.candidate_facts.get(step, ()), walk.candidate_modules),
    )


def _cause(walk: Walk) -> ModeDifference | None:
    """The mode of the code that made the first difference, where it differs and can matter."""
    first = walk.first
    if first is None or first.statistics_only or not explaining.made_by_code(first):
        return None
    code, key = telling.blamed(first), first.comparison.key
    if not _can_matter(first, walk.modules.get(code)):
        return None
    ours, theirs = _modes(walk, key.step)
    answer = Places(walk.names, walk.pairing.calls, key.step).in_candidate((code, key.micro, key.call))
    mode = ours.of(code, key.micro, key.call)
    other = theirs.of(*answer) if answer is not None else None
    if mode is None or other is None or mode == other:
        return None
    return ModeDifference(key.step, code, key.micro, key.call, mode)


def _can_matter(first: Suspect, module: ModuleInfo | None) -> bool:
    """Whether code in another mode may compute something else: parents may call dropout themselves."""
    if first.origin is Origin.FUNCTIONAL or module is None or not module.leaf or MODE_MATTERS in module.class_name:
        return True
    return SAME_IN_BOTH.search(module.class_name) is None


def _sentence(told: ModeDifference, others: Sequence[str]) -> str:
    modes = (say("training"), say("evaluation"))
    if not told.training:
        modes = (modes[1], modes[0])
    more = (
        say("; so {} {}", "does" if len(others) == 1 else "do", wording.plural(len(others), "other module"))
        if others
        else ""
    )
    return say(
        "In {} {} runs in {} mode in the reference and in {} mode in the candidate{}.",
        wording.step(told.step, told.micro),
        told.name,
        modes[0],
        modes[1],
        more,
    )


def _advice(walk: Walk, told: ModeDifference) -> str:
    side = "candidate" if told.training else "reference"
    text = say(
        "Call train() on the model of the {} before its steps, or freeze the same modules with eval() in both: "
        "dropout and batch norm compute something else in evaluation mode.",
        side,
    )
    return text if walk.first is not None else say("Nothing that was compared differs because of it. {}", text)
