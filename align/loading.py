"""What the calls of `load_state_dict` of a run say: keys that the model has not, parameters that no key filled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from align import wording


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
    unknown = "knows none of them" if unexpected == keys else f"does not know {wording.count(unexpected)} of them"
    told = (
        f"load_state_dict of {load['class']} was given {wording.plural(keys, 'key')}, {unknown}"
        f"{_example(load['unexpected_examples'])} and misses {wording.count(missing)} of its own"
        f"{_example(load['missing_examples'])}"
    )
    if load.get("renamed"):
        return f"{told}; with {_renaming(load)} all of them would fit, in name and shape"
    if not prefix:
        return told
    how = f"without '{prefix}'" if load.get("prefix_in") == "file" else f"with '{prefix}' in front"
    return f"{told}; {how} {wording.count(int(load['prefix_explains']))} of them would fit"


def rename_advice(load: Mapping[str, Any]) -> str:
    """What to do to the keys before loading: `Put 'blocks' in the place of 'layers' in the keys`; empty if unknown."""
    prefix = load.get("prefix")
    if load.get("renamed"):
        return f"Put {_renaming(load)} in the keys"
    if not prefix:
        return ""
    return f"Take '{prefix}' from the keys" if load.get("prefix_in") == "file" else f"Put '{prefix}' before the keys"


def _renaming(load: Mapping[str, Any]) -> str:
    return f"'{load['renamed_to']}' in the place of '{load['renamed']}'"


def _example(names: Sequence[str]) -> str:
    return f" (such as '{names[0]}')" if names else ""
