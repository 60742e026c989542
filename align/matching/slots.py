"""Which tensor of a call is which where runs give them other names: `output.logits` and `output.0`, `tokens` and `ids`.

Only tensors that hold the same values are paired so, as nothing else tells that they are the same ones; and what a
model is given, where its shapes tell it too, since that has to be equal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np

from align.matching.alignment import align_sequences
from align.matching.calls import tensor_likeness
from align.matching.likeness import SAME_VALUES
from align.records import Phase, TensorRecord

Place: TypeAlias = tuple[Phase, str, str, int, int]
"""Phase, name, slot, micro-step and call, by the names of one run and the numbers of the reference."""

_Group: TypeAlias = tuple[Phase, str, str, int, int]


def pair_slots(ours: Mapping[Place, TensorRecord], theirs: Mapping[Place, TensorRecord]) -> dict[Place, Place]:
    """The places of the reference and those of the candidate that are pairs; both are given without partners."""
    found: dict[Place, Place] = {}
    renamed: dict[tuple[str, str], str] = {}
    groups = _grouped(ours), _grouped(theirs)
    for group, places in groups[0].items():
        others = groups[1].get(group, [])
        for place, other in _same_values(
            [(each, ours[each]) for each in places], [(each, theirs[each]) for each in others]
        ):
            found[place] = other
            renamed[place[1], place[2]] = other[2]
        if group[0] is Phase.INPUT:
            left = [each for each in places if each not in found]
            right = [each for each in others if each not in found.values()]
            if [ours[each].shape for each in left] == [theirs[each].shape for each in right]:
                found.update(zip(left, right, strict=True))
    for place in ours:
        # The gradient of a tensor is called after it.
        phase, name, slot, *numbers = place
        new = renamed.get((name, slot.removeprefix("grad_")))
        if phase is Phase.BACKWARD and new is not None:
            other = (phase, name, f"grad_{new}", numbers[0], numbers[1])
            if other in theirs:
                found[place] = other
    return found


def _grouped(places: Iterable[Place]) -> dict[_Group, list[Place]]:
    """The tensors that may stand for each other: inputs or outputs of one call, what a model is given."""
    found: dict[_Group, list[Place]] = defaultdict(list)
    for place in places:
        phase, name, slot, micro, call = place
        if phase is Phase.FORWARD:
            found[phase, name, slot.partition(".")[0], micro, call].append(place)
        elif phase is Phase.INPUT:
            found[phase, "", "", micro, call].append(place)
    return found


def _same_values(
    ours: list[tuple[Place, TensorRecord]], theirs: list[tuple[Place, TensorRecord]]
) -> list[tuple[Place, Place]]:
    if not ours or not theirs:
        return []
    likeness = tensor_likeness([record for _, record in ours], [record for _, record in theirs])
    gains = np.where(np.nan_to_num(likeness) >= SAME_VALUES, likeness, -1.0)
    return [(ours[match.row][0], theirs[match.column][0]) for match in align_sequences(gains)]
