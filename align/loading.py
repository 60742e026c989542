"""What the calls of `load_state_dict` of a run say: keys that the model has not, parameters that no key filled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from align import wording
from align.sentences import say


def first_loads(loads: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """The last load before the first step of each class of module: an earlier one may have been a try."""
    last = {str(load.get("class")): load for load in loads if not load.get("step")}
    return tuple(last.values())


def left_out(loads: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """A load before the first step that neither filled all parameters nor used all keys; None where there is none.

    Only one of both is meant as a rule: an adapter fills few parameters, a body needs few keys of a whole model.
    """
    return next((load for load in first_loads(loads) if load.get("missing") and load.get("unexpected")), None)


def tell_load(load: Mapping[str, Any]) -> str:
    """`load_state_dict of Network was given 6 keys, does not know 2 of them (such as 'mixing.weight'), ...`."""
    prefix = str(load.get("prefix", ""))
    keys, unexpected, missing = (int(load[name]) for name in ("keys", "unexpected", "missing"))
    unknown = "knows none of them" if unexpected == keys else say("does not know {} of them", wording.count(unexpected))
    told = say(
        "load_state_dict of {} was given {}, {}{} and misses {} of its own{}",
        load["class"],
        wording.plural(keys, "key"),
        unknown,
        _example(load["unexpected_examples"]),
        wording.count(missing),
        _example(load["missing_examples"]),
    )
    if load.get("renamed"):
        return say("{}; with {} all of them would fit, in name and shape", told, _renaming(load))
    if not prefix:
        return told
    how = say("without '{}'", prefix) if load.get("prefix_in") == "file" else say("with '{}' in front", prefix)
    return say("{}; {} {} of them would fit", told, how, wording.count(int(load["prefix_explains"])))


def rename_advice(load: Mapping[str, Any]) -> str:
    """What to do to the keys before loading: `Put 'blocks' in the place of 'layers' in the keys`; empty if unknown."""
    prefix = load.get("prefix")
    if load.get("renamed"):
        return say("Put {} in the keys", _renaming(load))
    if not prefix:
        return ""
    return (
        say("Take '{}' from the keys", prefix)
        if load.get("prefix_in") == "file"
        else say("Put '{}' before the keys", prefix)
    )


def _renaming(load: Mapping[str, Any]) -> str:
    return say("'{}' in the place of '{}'", load["renamed_to"], load["renamed"])


def _example(names: Sequence[str]) -> str:
    return say(" (such as '{}')", names[0]) if names else ""
