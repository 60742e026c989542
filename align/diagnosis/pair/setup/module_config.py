"""AL107: modules are configured differently: an eps, a dropout rate, an activation, a scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from align import wording
from align.comparison import Walk
from align.configuration import MODEL_CONFIG, ConfigDifference, config_differences
from align.diagnosis import telling
from align.diagnosis.pair.setup import explaining
from align.diagnosis.registry import rule
from align.records import Finding, Place
from align.sentences import say

CODE = "AL107"
LABEL = "module-config-differs"

EXAMPLES = 5
TOLD = 3
LONGEST_VALUE = 60


@rule(CODE, LABEL, rank=32)
def find(walk: Walk) -> Iterator[Finding]:
    """All settings that differ; an error where one of them stands at, or above, what made the first difference."""
    differences = config_differences(walk.modules, walk.candidate_modules, walk.names)
    if not differences:
        return
    reach = [explaining.settled_by(walk, difference) for difference in differences]
    # Of several modules above the code the nearest, whose name is the longest.
    near = [(level, -len(differences[place].name), place) for place, level in enumerate(reach) if level is not None]
    yield _finding(walk, differences[min(near)[2]] if near else differences[0], differences, sure=bool(near))


def _finding(walk: Walk, told: ConfigDifference, differences: Sequence[ConfigDifference], *, sure: bool) -> Finding:
    of_module = [each for each in differences if each.name == told.name]
    alike = [each for each in differences if each is not told and _setting(each) == _setting(told)]
    first = walk.first if sure else None
    others = _others(len(alike), len(differences) - len(of_module) - len(alike))
    summary = say("{}{}.", _sentence(of_module[:TOLD]), others)
    arguments = {
        "name": told.name,
        "attribute": told.attribute,
        "reference": told.reference,
        "candidate": told.candidate,
        "alike": len(alike),
        "settings": len(differences),
    }
    return Finding(
        CODE,
        LABEL,
        explaining.severity(walk, sure=sure),
        summary if first is None else say("{} {}", summary, explaining.first_sentence(first)),
        _advice(walk, told),
        Place(name=told.name) if first is None else telling.place_of(first.comparison.key, told.name),
        {
            "settings": len(differences),
            "examples": [
                say("{} {}: {} / {}", each.name, each.attribute, _value(each.reference), _value(each.candidate))
                for each in _examples(told, differences)
            ],
            **({} if first is None else telling.evidence_of(first.comparison)),
        },
        arguments
        if first is None
        else {**telling.arguments_of(first), **arguments, "tensor": first.comparison.key.name},
    )


def _sentence(told: Sequence[ConfigDifference]) -> str:
    """`norm has eps 1e-05 in the reference and 1e-06 in the candidate`; of several attributes a list on each side."""
    sides = [
        wording.listing([say("{} {}", each.attribute, _value(value)) for each, value in zip(told, values, strict=True)])
        for values in ([each.reference for each in told], [each.candidate for each in told])
    ]
    if len(told) == 1:
        sides[1] = _value(told[0].candidate)
        return say("{} has {} in the reference and {} in the candidate", told[0].name, sides[0], sides[1])
    return say("{} has {} in the reference, {} in the candidate", told[0].name, sides[0], sides[1])


def _others(alike: int, rest: int) -> str:
    parts = []
    if alike:
        parts.append(
            say("{} {} likewise", wording.plural(alike, "other module"), "differs" if alike == 1 else "differ")
        )
    if rest:
        parts.append(say("{} {} too", wording.plural(rest, "other setting"), "differs" if rest == 1 else "differ"))
    return say("; {}", wording.listing(parts)) if parts else ""


def _examples(told: ConfigDifference, differences: Sequence[ConfigDifference]) -> list[ConfigDifference]:
    """The told one, then one of each other setting."""
    found = {_setting(told): told}
    for each in differences:
        found.setdefault(_setting(each), each)
    return list(found.values())[:EXAMPLES]


def _setting(difference: ConfigDifference) -> tuple[str, str, str]:
    return difference.attribute, _value(difference.reference), _value(difference.candidate)


def _value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def _advice(walk: Walk, told: ConfigDifference) -> str:
    if told.attribute.startswith(MODEL_CONFIG):
        text = say(
            "Build both models from one configuration, with the same {}.", told.attribute.removeprefix(MODEL_CONFIG)
        )
    else:
        text = say("Build {} with the same {} in both runs.", told.name, told.attribute)
    if _is_dropout(walk, told):
        text += " Or capture both with `align capture --no-dropout`."
    return text if walk.first is not None else say("Nothing that was compared differs because of it. {}", text)


def _is_dropout(walk: Walk, told: ConfigDifference) -> bool:
    """Whether the setting is the rate of a dropout."""
    if "drop" in told.attribute:
        return True
    return told.attribute == "p" and telling.is_dropout(walk.modules.get(told.name))
