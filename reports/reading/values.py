"""Values of a parsed JSON document back into records: the inverse of what `json_report.plain` does."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from align.sentences import say

T = TypeVar("T")
W = TypeVar("W", bound=Enum)

SPECIAL: Mapping[str, float] = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
"""The words that stand for numbers JSON cannot hold."""
MOST = 2**63
SHOWN_LETTERS = 60
"""Letters of a wrong value that an error shows."""


class Misread(Exception):
    """A value of a document is not what it has to be; `place` says where it stands."""

    def __init__(self, place: str, wrong: str) -> None:
        super().__init__(place, wrong)
        self.place, self.wrong = place, wrong


def read_record(kind: type[T], value: Any, place: str) -> T:
    """The record of a dataclass; a key that is not there has the field's default, keys without a field are left out.

    Raises Misread where a value has another type or a field without default is missing.
    """
    known = mapping(value, place)
    fields = {}
    for name, annotation, needed in _fields(kind):  # type: ignore[arg-type]
        if name in known:
            fields[name] = read_as(annotation, known[name], below(place, name))
        elif needed:
            raise Misread(below(place, name), say("is missing"))
    return kind(**fields)


def read_as(kind: Any, value: Any, place: str) -> Any:
    """The value that an annotation describes; lists become tuples. Raises Misread where it is of another type."""
    if kind is Any:
        return free(value)
    origin = get_origin(kind)
    if origin is not None:
        return _composed(origin, get_args(kind), value, place)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return read_record(kind, value, place)
    if issubclass(kind, Enum):
        return read_word(kind, value, place)
    return _scalar(kind, value, place)


def read_key(kind: Any, found: Mapping[str, Any], key: str) -> Any:
    """The value of a key, which has to be there, null where the kind allows that."""
    if key not in found:
        raise Misread(key, say("is missing"))
    return read_as(kind, found[key], key)


def free(value: Any) -> Any:
    """A value of no known type: lists become tuples, the words nan, inf and -inf numbers."""
    if isinstance(value, dict):
        return {name: free(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return tuple(free(entry) for entry in value)
    return SPECIAL.get(value, value) if isinstance(value, str) else value


def mapping(value: Any, place: str) -> dict[str, Any]:
    """An object of JSON."""
    if not isinstance(value, dict):
        raise Misread(place, say("is {}, not an object", shown(value)))
    return value


def sequence(value: Any, place: str) -> list[Any]:
    """A list of JSON."""
    if not isinstance(value, list):
        raise Misread(place, say("is {}, not a list", shown(value)))
    return value


def read_word(kind: type[W], value: Any, place: str) -> W:
    """One word of an enumeration."""
    words = {str(member.value): member for member in kind}
    if not isinstance(value, str) or value not in words:
        raise Misread(place, say("is {}, not one of {}", shown(value), ", ".join(words)))
    return words[value]


def number(value: Any, place: str) -> float:
    """A number, which keeps its type: whole ones stay integers."""
    found = SPECIAL.get(value) if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise Misread(place, say("is {}, not a number", shown(value)))
    return _bounded(found, place)


def _bounded(value: T, place: str) -> T:
    """The number; whole ones of more than 64 bits are none that a result has."""
    if isinstance(value, int) and not -MOST <= value < MOST:
        raise Misread(place, say("is {}, which is too large", shown(value)))
    return value


def below(place: str, name: str | int) -> str:
    """The place of an entry: `findings[3].where`."""
    if isinstance(name, int):
        return f"{place}[{name}]"
    return f"{place}.{name}" if place else name


def shown(value: Any) -> str:
    """A wrong value as an error names it."""
    if isinstance(value, (dict, list)):
        return say("an object") if isinstance(value, dict) else say("a list")
    text = ascii(value) if isinstance(value, str) else {None: "null", True: "true", False: "false"}.get(value)
    text = str(value) if text is None else text
    return text if len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}..."


@cache
def _fields(kind: Any) -> Sequence[tuple[str, Any, bool]]:
    """Name, annotation and whether it must be there, of each field of a dataclass."""
    hints = get_type_hints(kind)
    absent = dataclasses.MISSING
    return [
        (field.name, hints[field.name], field.default is absent and field.default_factory is absent)
        for field in dataclasses.fields(kind)
    ]


def _composed(origin: Any, kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    """A tuple, one of several types, or a mapping."""
    if origin is tuple:
        return _tuple(kinds, value, place)
    if origin in (Union, types.UnionType):
        return _either(kinds, value, place)
    return {name: read_as(kinds[1], entry, below(place, name)) for name, entry in mapping(value, place).items()}


def _tuple(kinds: tuple[Any, ...], value: Any, place: str) -> tuple[Any, ...]:
    listed = sequence(value, place)
    if kinds[-1] is Ellipsis:
        return tuple(read_as(kinds[0], entry, below(place, i)) for i, entry in enumerate(listed))
    if len(listed) != len(kinds):
        raise Misread(place, say("has {} entries, not {}", len(listed), len(kinds)))
    return tuple(read_as(kind, each, below(place, i)) for i, (kind, each) in enumerate(zip(kinds, listed, strict=True)))


def _either(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    """One of several types: null, or the only other one; of several plain types any."""
    if value is None and type(None) in kinds:
        return None
    others = [kind for kind in kinds if kind is not type(None)]
    if len(others) == 1:
        return read_as(others[0], value, place)
    if isinstance(value, (dict, list)) or value is None:
        raise Misread(place, say("is {}, not a plain value", shown(value)))
    return value


def _scalar(kind: type, value: Any, place: str) -> Any:
    if kind is float:
        return number(value, place)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        names = {int: say("a whole number"), str: say("a text"), bool: say("true or false")}
        raise Misread(place, say("is {}, not {}", shown(value), names[kind]))
    return _bounded(value, place)
