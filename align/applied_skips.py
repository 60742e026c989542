"""Steps that a gradient scaler found to overflow, and that moved the parameters all the same.

That a parameter changed is not enough: a script may clamp or copy weights between two steps. It is the optimizer's
doing where its own state moved too, where the parameter went along its gradient, or where it is not finite any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from align.optimizer_records import OptimizerRecords
from align.records import Fact, Owner, Phase, TensorRecord

STATES = ("exp_avg", "exp_avg_sq", "momentum_buffer", "square_avg", "sum", "max_exp_avg_sq")
ALONG = 0.99
"""A move along the gradient: the least cosine; a clamped or copied weight has none to speak of."""


@dataclass(frozen=True, slots=True)
class AppliedSkip:
    """A step whose update should have been skipped: the parameters that moved, of all that were seen, and the proof.

    `proof` is `state`, `gradient` or `nonfinite`; `farthest` the greatest relative move, None where it is not finite.
    """

    step: int
    moved: tuple[Owner, ...]
    seen: int
    proof: str
    farthest: float | None


def overflow_found(facts: Iterable[Fact]) -> bool:
    """Whether the scaler found an overflow in every attempt of a step."""
    found = [fact.value for fact in facts if fact.key.phase is Phase.SCALER and fact.key.slot == "found_inf"]
    return bool(found) and all(isinstance(value, (int, float)) and value > 0 for value in found)


def scale_lowered(facts: Iterable[Fact], gradients: Iterable[TensorRecord]) -> bool:
    """Whether the scale came down for a gradient that is not finite, and the scaler was asked for no step at all."""
    seen = [fact for fact in facts if fact.key.phase is Phase.SCALER]
    before, after = ([fact.value for fact in seen if fact.key.slot == slot] for slot in ("scale", "scale_after"))
    if any(fact.key.slot == "found_inf" for fact in seen) or not before or not after:
        return False
    lower = isinstance(before[0], (int, float)) and isinstance(after[-1], (int, float)) and after[-1] < before[0]
    return lower and not all(_is_finite(record) for record in gradients)


def applied_skip(step: int, records: OptimizerRecords) -> AppliedSkip | None:
    """Whether an update was made in a step that overflowed, None where not, or where it cannot be told."""
    if not overflow_found(records.facts) and not scale_lowered(records.facts, records.gradients.values()):
        return None
    before, after = records.parameters_before, records.parameters_after
    seen = [owner for owner in after if owner in before]
    moved = tuple(owner for owner in seen if not same(before[owner], after[owner]))
    proof = _proof(records, moved) if moved else ""
    if not proof:
        return None
    moves = [_relative_move(before[owner], after[owner]) for owner in moved]
    return AppliedSkip(step, moved, len(seen), proof, max((move for move in moves if move is not None), default=None))


def stood_still(records: OptimizerRecords) -> bool:
    """Whether a step that overflowed left every parameter that was seen as it was."""
    before, after = records.parameters_before, records.parameters_after
    seen = [owner for owner in after if owner in before]
    return bool(seen) and all(same(before[owner], after[owner]) for owner in seen)


def same(one: TensorRecord, other: TensorRecord) -> bool:
    """Whether two records of a parameter were measured the same, to the last bit of their sketches."""
    if one.stats != other.stats:
        return False
    if one.sketch is None or other.sketch is None:
        return True
    return one.sketch.tobytes() == other.sketch.tobytes()


def _proof(records: OptimizerRecords, moved: Sequence[Owner]) -> str:
    before, after = records.parameters_before, records.parameters_after
    if any(_is_finite(before[owner]) and not _is_finite(after[owner]) for owner in moved):
        return "nonfinite"
    if any(_state_moved(records, owner) for owner in moved):
        return "state"
    return "gradient" if any(_along_gradient(records, owner) for owner in moved) else ""


def _state_moved(records: OptimizerRecords, owner: Owner) -> bool:
    return any(not same(one, other) for one, other in _states(records, owner))


def _states(records: OptimizerRecords, owner: Owner) -> Iterator[tuple[TensorRecord, TensorRecord]]:
    name, slot = owner
    for state in STATES:
        key = (name, f"{slot}.{state}")
        if key in records.states_before and key in records.states_after:
            yield records.states_before[key], records.states_after[key]


def _along_gradient(records: OptimizerRecords, owner: Owner) -> bool:
    before, after = records.parameters_before[owner], records.parameters_after[owner]
    gradient = records.gradients.get(owner)
    if gradient is None or not _is_finite(gradient):
        return False
    if before.sketch is None or after.sketch is None or gradient.sketch is None:
        return False
    move = after.sketch.astype(np.float64) - before.sketch.astype(np.float64)
    slope = gradient.sketch.astype(np.float64)
    if move.shape != slope.shape:
        return False
    sizes = float(np.linalg.norm(move)) * float(np.linalg.norm(slope))
    return sizes > 0.0 and abs(float(move @ slope)) >= ALONG * sizes


def _relative_move(before: TensorRecord, after: TensorRecord) -> float | None:
    if before.sketch is None or after.sketch is None or not (_is_finite(before) and _is_finite(after)):
        return None
    size = float(np.linalg.norm(before.sketch.astype(np.float64)))
    move = float(np.linalg.norm(after.sketch.astype(np.float64) - before.sketch.astype(np.float64)))
    return move / size if size else None


def _is_finite(record: TensorRecord) -> bool:
    return record.stats is not None and record.stats.nonfinite == 0
