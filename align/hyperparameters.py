"""Whether both optimizers were set alike for every parameter, whatever groups the parameters stand in.

Settings are given, not computed: they must be equal. Compared is what the method of an optimizer is told, by the names
that torch's optimizers have for it; how it is carried out (fused, foreach, capturable), labels and what a scheduler
keeps in the groups change nothing or are seen in the rate itself. A setting that only one run has is no difference:
versions and fused classes have keys of their own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from align.records import FactValue, Owner

METHOD = frozenset(
    ("lr", "betas", "eps", "weight_decay", "momentum", "dampening", "nesterov", "amsgrad", "maximize", "alpha", "rho",
     "centered", "lambd", "t0", "lr_decay", "initial_accumulator_value", "momentum_decay", "etas", "step_sizes",
     "beta2_decay", "ns_coefficients", "ns_steps", "adjust_lr_fn", "max_iter", "max_eval", "tolerance_grad",
     "tolerance_change", "history_size", "line_search_fn", "trust_coefficient")
)  # fmt: skip
"""The first part of the names of what is compared; `betas.1` is the second of the betas."""

RATE = "lr"
START = "initial_lr"
"""The rate that a scheduler started from."""

SAME_SETTING = 1e-6
"""Schedules computed in another order of operations differ in the last digits; near their end, by this share of where
they started."""

Groups: TypeAlias = Mapping[str, Mapping[str, FactValue]]


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """A setting that differs for some parameters, of `compared` ones; the values are those of the first of them.

    `owners` are modules and names of the parameters as the reference calls them.
    """

    name: str
    reference: FactValue
    candidate: FactValue
    owners: tuple[Owner, ...]
    compared: int


@dataclass(frozen=True, slots=True)
class SettingsCheck:
    """The settings of one step over `compared` parameters; `rates_known` says that their rates were among them."""

    step: int
    compared: int
    rates_known: bool
    differences: tuple[SettingDifference, ...] = ()

    @property
    def first(self) -> Owner | None:
        """The first parameter that is set differently."""
        return self.differences[0].owners[0] if self.differences else None


def compare_settings(
    step: int,
    ours: Groups,
    theirs: Groups,
    partner: Mapping[Owner, Owner],
    updated: Collection[Owner] | None = None,
) -> SettingsCheck:
    """Compare how both runs set each parameter; `partner` gives the candidate's owner of each, in the order to tell.

    `updated` are those that got a gradient (None where that is not known): the others are set for nothing.
    """
    found: dict[str, list[tuple[Owner, FactValue, FactValue]]] = {}
    compared, rates_known = 0, False
    for owner, other in partner.items():
        mine, its = group_of(owner, ours), group_of(other, theirs)
        if mine is None or its is None or (updated is not None and owner not in updated):
            continue
        compared += 1
        rates_known = rates_known or (_is_number(mine.get(RATE)) and _is_number(its.get(RATE)))
        for name, value in mine.items():
            if name.partition(".")[0] in METHOD and name in its and not _alike(name, mine, its):
                found.setdefault(name, []).append((owner, value, its[name]))
    # The setting of the first parameter stands first.
    order = {owner: place for place, owner in enumerate(partner)}
    ranked = sorted(found.items(), key=lambda each: order[each[1][0][0]])
    differences = tuple(
        SettingDifference(name, each[0][1], each[0][2], tuple(owner for owner, _, _ in each), compared)
        for name, each in ranked
    )
    return SettingsCheck(step, compared, rates_known, differences)


def group_of(owner: Owner, groups: Groups) -> Mapping[str, FactValue] | None:
    """The settings of the group that a parameter is in, None where it is in none."""
    name = groups.get(owner[0], {}).get(f"{owner[1]}.group")
    return groups.get(name) if isinstance(name, str) else None


def _alike(name: str, ours: Mapping[str, FactValue], theirs: Mapping[str, FactValue]) -> bool:
    """Whether a setting is the same; one that is not known in one run is taken to be."""
    left, right = ours[name], theirs[name]
    if left is None or right is None or left == right:
        return True
    if not (_is_number(left) and _is_number(right)):
        # A switch may be kept as a number on one side.
        return False
    numbers = [float(value) for value in (left, right) if isinstance(value, (int, float))]
    if all(math.isnan(number) for number in numbers):
        return True
    starts = [abs(float(value)) for side in (ours, theirs) if isinstance(value := side.get(START), (int, float))]
    near = SAME_SETTING * max(starts, default=0.0) if name == RATE else 0.0
    return math.isclose(*numbers, rel_tol=SAME_SETTING, abs_tol=near)


def _is_number(value: FactValue) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
