"""The facts of a capture's steps as short lines: hyper-parameters, scaler, clipping, training mode, generators."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from align import wording
from align.records import Phase
from align.reports.visible import shortened, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from align.records import Fact, TensorRecord

WIDTH = 100
MOST_VALUES = 4
"""Values of one fact that are printed, one for each step."""

GROUP = "group"
OF_PARAMETERS = (f".{GROUP}", ".step")
"""Ends of the slots that every parameter has: they are counted, not listed."""

Facts = Mapping[int, Sequence["Fact"]]


class Owner(NamedTuple):
    """What facts are about: a parameter group, the scaler, a module."""

    phase: Phase
    name: str


def fact_lines(facts: Facts) -> Iterator[str]:
    """One entry for each owner; values that are the same in every step stand once."""
    owners = _by_owner(facts)
    parameters = _parameters_of_groups(facts)
    for owner, slots in owners.items():
        own = {slot: values for slot, values in slots.items() if not slot.endswith(OF_PARAMETERS)}
        parts = [_slot_text(slot, values) for slot, values in own.items() if not _says_nothing(owner, values)]
        if owner.name in parameters and owner.phase is Phase.OPTIMIZER:
            parts.append(wording.plural(parameters[owner.name], "parameter"))
        if parts:
            yield from wrapped(f"{owner.phase} {shortened(owner.name)}: {'; '.join(parts)}")


def matching_fact_lines(facts: Facts, wanted: Callable[[str, str], bool]) -> Iterator[str]:
    """The same for the facts whose name or slot is asked for, none left out."""
    chosen = {step: [fact for fact in noted if wanted(fact.key.name, fact.key.slot)] for step, noted in facts.items()}
    for owner, slots in _by_owner(chosen).items():
        parts = [_slot_text(slot, values) for slot, values in slots.items()]
        yield from wrapped(f"{owner.phase} {shortened(owner.name)}: {'; '.join(parts)}")


def generator_rows(records: Mapping[int, Sequence[TensorRecord]]) -> list[list[str]]:
    """A table of the states of the generators, as hashes: a row for each step, a column for each generator."""
    states = {
        step: {record.key.name: record.hash for record in noted if record.key.phase is Phase.RNG}
        for step, noted in records.items()
    }
    names = list(dict.fromkeys(name for found in states.values() for name in found))
    if not names:
        return []
    rows = [["step", *map(shortened, names)]]
    for step, found in sorted(states.items()):
        if found:
            hashes = [found.get(name) for name in names]
            rows.append([str(step), *("" if number is None else wording.short_hash(number) for number in hashes)])
    return rows


def settings_text(settings: Mapping[str, Any]) -> str:
    """A handful of settings in one line: `eps 1e-05, elementwise_affine yes`."""
    return ", ".join(f"{visible(name)} {value_text(value)}" for name, value in settings.items())


def value_text(value: Any) -> str:
    """One setting: numbers with up to six digits, yes or no, words as they are."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, Mapping):
        return f"{{{settings_text(value)}}}"
    return "none" if value is None else shortened(str(value)) or "''"


def wrapped(text: str, indent: str = "  ") -> list[str]:
    """A long line in several, those after the first further in."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _by_owner(facts: Facts) -> dict[Owner, dict[str, list[Any]]]:
    """The values of every fact, one for each time that it was noted, in the order in which owners first came."""
    found: dict[Owner, dict[str, list[Any]]] = {}
    for step in sorted(facts):
        for fact in facts[step]:
            key = fact.key
            found.setdefault(Owner(key.phase, key.name), {}).setdefault(key.slot, []).append(fact.value)
    return found


def _parameters_of_groups(facts: Facts) -> dict[str, int]:
    """How many parameters each group has, in the first step that says so."""
    for step in sorted(facts):
        groups = [fact.value for fact in facts[step] if fact.key.slot.endswith(f".{GROUP}")]
        if groups:
            return {str(group): groups.count(group) for group in dict.fromkeys(groups)}
    return {}


def _says_nothing(owner: Owner, values: Sequence[Any]) -> bool:
    """Whether the fact is None in all steps, or a switch of an optimizer that is off in all of them."""
    switch = owner.phase is Phase.OPTIMIZER
    return all(value is None or (switch and value is False) for value in values)


def _slot_text(slot: str, values: Sequence[Any]) -> str:
    texts = [value_text(value) for value in values]
    if len(set(texts)) == 1:
        return f"{visible(slot)} {texts[0]}"
    more = f", ... ({len(texts)} values)" if len(texts) > MOST_VALUES else ""
    return f"{visible(slot)} {', '.join(texts[:MOST_VALUES])}{more}"
