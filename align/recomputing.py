"""Whether activation checkpoints compute again what they computed first, told within one run.

The first call and its repetition run the same code on the same numbers, on the same device. So they are equal to the
bit where the device is deterministic, and else within the rounding of what was computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from align import sketch
from align.dropped import of_one_rate, zero_share
from align.records import ModuleInfo, Phase, TensorRecord
from align.tolerance import FLOAT32, PRECISIONS, coarsest, limit

AGAIN = ".recomputed"
"""Ends the slot of what was computed again."""

RANDOM = ("Dropout", "DropPath", "DropBlock", "StochasticDepth")
"""Parts of the names of classes that draw."""


@dataclass(frozen=True, slots=True, eq=False)
class Repetition:
    """A tensor whose repetition is not what it was first; `cause` says in which way.

    `mask` (zeros in other places), `rate` (zeros in one of both only), `dtype`, `shape`, `nonfinite`, or `value`.
    `zeros` are the shares of zeros, first and again; `relative_l2` is None where only statistics are known to differ.
    """

    first: TensorRecord
    again: TensorRecord
    cause: str
    relative_l2: float | None
    zeros: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Recomputing:
    """What a step computed again: how many tensors, how many are equal to the bit, which are not the same."""

    step: int
    compared: int = 0
    equal: int = 0
    differing: tuple[Repetition, ...] = ()


def check_recomputing(
    step: int, records: Sequence[TensorRecord], modules: Mapping[str, ModuleInfo]
) -> Recomputing | None:
    """Compare what was computed again in a step with what was computed first; None where nothing was."""
    first = {
        (record.key.micro, record.key.name, record.key.call, record.key.slot): record
        for record in records
        if record.key.phase is Phase.FORWARD and not record.recomputed
    }
    repeated = [record for record in records if record.recomputed and record.key.phase is Phase.FORWARD]
    if not repeated:
        return None
    compared = equal = 0
    inherited = 0.0
    differing = []
    for again in sorted(repeated, key=lambda record: record.order):
        slot = again.key.slot.removesuffix(AGAIN)
        known = first.get((again.key.micro, again.key.name, again.key.call, slot))
        if known is None or again.dtype not in PRECISIONS:
            continue
        compared += 1
        error = _distance(known, again)
        if known.dtype == again.dtype and known.shape == again.shape and error == 0.0:
            equal += 1
            continue
        floor = max(_unit(known, again, modules.get(again.key.name)), inherited)
        cause = _cause(known, again, error, floor, modules.get(again.key.name))
        if cause:
            differing.append(Repetition(known, again, cause, error, (zero_share(known), zero_share(again))))
        elif error is not None:
            inherited = max(inherited, error)
    return Recomputing(step, compared, equal, tuple(differing))


def _distance(first: TensorRecord, again: TensorRecord) -> float | None:
    """The relative L2 distance, 0 only for what is equal to the bit; None where it is not known."""
    ours, theirs = sketch.sketch_of(first), sketch.sketch_of(again)
    if first.shape != again.shape or first.stats is None or again.stats is None:
        return None
    if ours is None or theirs is None:
        return 0.0 if first.stats == again.stats else None
    if ours.values.tobytes() == theirs.values.tobytes() and first.stats == again.stats:
        return 0.0
    found = sketch.distance(ours, theirs)
    return None if found is None else max(found, np.finfo(np.float64).tiny)


def _unit(first: TensorRecord, again: TensorRecord, module: ModuleInfo | None) -> float:
    """The unit roundoff of what was computed."""
    computed = module.compute_dtype if module is not None else None
    known = [PRECISIONS[dtype] for dtype in (first.dtype, again.dtype, computed or "") if dtype in PRECISIONS]
    return (coarsest(known) or FLOAT32).unit


def _cause(
    first: TensorRecord, again: TensorRecord, error: float | None, floor: float, module: ModuleInfo | None
) -> str:
    """In which way the repetition is another one, empty where it is the same within rounding."""
    if first.shape != again.shape or first.dtype != again.dtype:
        return "shape" if first.shape != again.shape else "dtype"
    if first.stats is None or again.stats is None:
        return ""
    if first.stats.nonfinite != again.stats.nonfinite:
        return "nonfinite"
    allowed = limit(first.numel) * floor
    if (error is not None and error <= allowed) or (
        error is None and math.isclose(first.stats.norm, again.stats.norm, rel_tol=allowed)
    ):
        return ""
    return _of_zeros(first, again) if module is not None and _draws(module) else "value"


def _draws(module: ModuleInfo) -> bool:
    return any(word in module.class_name for word in RANDOM)


def _of_zeros(first: TensorRecord, again: TensorRecord) -> str:
    """What two outputs of one dropout say of each other."""
    shares = zero_share(first), zero_share(again)
    if of_one_rate(shares, first.numel):
        return "mask"
    return "rate" if min(shares) == 0.0 < max(shares) else "value"
