"""What an optimizer does that leaves its settings: which other setting explains all of it, as people set them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from align import wording
from align.optimizer_formulas import EPS_INSIDE
from align.optimizer_records import OptimizerRecords
from align.optimizer_replay import Explanation, FormulaError, Group, as_it_is, groups_of, replay
from align.records import FactValue
from align.sentences import say

RATE = "lr"

EPSILONS = tuple(10.0**power for power in range(-16, 0))
DECAYS = (0.0, 1e-6, 1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
BETAS = (0.0, 0.5, 0.8, 0.85, 0.88, 0.89, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999)
"""What people set, and what is asked in the place of a setting that does not fit."""


def explained(records: OptimizerRecords, wrong: Sequence[FormulaError]) -> Explanation | None:
    """The first other setting with which everything that does not follow does; None where none was found."""
    groups = groups_of(records.facts)
    name, slot = wrong[0].owner
    group = groups.get(str(groups.get(name, {}).get(f"{slot}.group")))
    if group is None:
        return None
    places = {(error.owner, error.what) for error in wrong}
    for explanation, settings_of in _other_settings(group, wrong):
        tensors = {(tensor.owner, tensor.what): tensor for tensor in replay(records, settings_of).tensors}
        if places <= tensors.keys() and all(tensors[place].error <= tensors[place].allowed for place in places):
            return explanation
    return None


def _other_settings(
    group: Mapping[str, FactValue], wrong: Sequence[FormulaError]
) -> Iterator[tuple[Explanation, Callable[[Group], Group]]]:
    """Each other setting that is tried, and how a group has it."""
    factor, rate = wrong[0].factor, group.get(RATE)
    if isinstance(rate, (int, float)):
        yield Explanation(RATE, rate, rate * factor, factor), _with_rate(factor)
    for name in ("betas.0", "betas.1", "momentum", "alpha", "dampening"):
        yield from _values(group, name, BETAS)
    if "eps" in group:
        yield Explanation(EPS_INSIDE, group["eps"], group["eps"]), _with(EPS_INSIDE, value=True)
        yield from _values(group, "eps", EPSILONS)
    yield from _values(group, "weight_decay", DECAYS)
    other = {"AdamW": "Adam", "Adam": "AdamW"}.get(str(group.get("class")))
    if other is not None:
        yield Explanation("class", group["class"], other), _with("class", value=other)


def _values(
    group: Mapping[str, FactValue], name: str, values: Sequence[float]
) -> Iterator[tuple[Explanation, Callable[[Group], Group]]]:
    known = group.get(name)
    if isinstance(known, (int, float)):
        for value in values:
            if value != known:
                yield Explanation(name, known, value), _with(name, value=value)


def _with(name: str, *, value: FactValue) -> Callable[[Group], Group]:
    return lambda group: {**group, name: value} if group else group


def _with_rate(factor: float) -> Callable[[Group], Group]:
    def settings_of(group: Group) -> Group:
        rate = group.get(RATE)
        return {**group, RATE: float(rate) * factor} if isinstance(rate, (int, float)) else as_it_is(group)

    return settings_of


def what_differs(error: FormulaError) -> str:
    """What does not follow from the settings: the update of a parameter, or one of its states."""
    return "the update" if error.what == "update" else say("the state {}", error.what)


def told(found: Explanation | None) -> str:
    """The explanation as a sentence."""
    if found is None:
        return "No other setting that was tried explains it."
    if found.setting == RATE:
        return say(
            "All of it is explained by a learning rate {} times the one that is set ({}).",
            wording.factor(found.factor),
            _value(found.told),
        )
    if found.setting == EPS_INSIDE:
        return say(
            "All of it is explained by eps ({}) inside the square root instead of behind it.", _value(found.told)
        )
    if found.setting == "class":
        how = "through the gradient" if found.really == "Adam" else "to the parameter itself"
        return say("All of it is explained by a weight decay applied {}, as {} does.", how, found.really)
    return say(
        "All of it is explained by {} {}; the setting is {}.", found.setting, _value(found.really), _value(found.told)
    )


def _value(value: FactValue) -> str:
    return f"{value:.6g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
