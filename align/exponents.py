"""Which tensors come nearest to the limits of their formats: what a picture of exponents shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

from align.records import (
    Comparison,
    Divergence,
    Exponents,
    Magnitudes,
    Phase,
    TensorRecord,
    TimelineRow,
)

MOST = 6
"""As many as a picture has panels."""
GRADIENTS = frozenset({Phase.BACKWARD, Phase.GRADIENT, Phase.UPDATE})
"""Zeros are what becomes of gradients that are too small; activations have theirs by design (ReLU, masks)."""
SHORT = frozenset({"float16", "bfloat16"})
COUNTED = SHORT | {"float32"}
"""Formats whose exponent codes are counted."""

Found: TypeAlias = tuple[bool, bool, float, Exponents]
"""Whether it is the first difference, whether its step was skipped, the share at the limits, the magnitudes."""


def exponents_of_pairs(
    comparisons: Iterable[Comparison], first: Divergence | None, skipped: Collection[int]
) -> tuple[Exponents, ...]:
    """The first tensor that differs, then those with most elements at the limits of their format in either run.

    Those of `skipped` steps come last: a scaler that looks for its scale overflows.
    """
    wanted = None if first is None else first.key
    found: list[Found] = []
    for pair in comparisons:
        is_first = pair.key == wanted
        if not (is_first or pair.key.phase in GRADIENTS):
            continue
        sides = (magnitudes_of(pair.reference), magnitudes_of(pair.candidate))
        if sides[0] is None or sides[1] is None:
            continue
        shares = (risk(sides[0]), risk(sides[1]))
        score = max(shares) + abs(shares[0] - shares[1])
        found.append((is_first, pair.key.step in skipped, score, Exponents(pair.key, sides[1], sides[0])))
    return _worst(found)


def exponents_of_run(records: Iterable[TensorRecord], skipped: Collection[int]) -> tuple[Exponents, ...]:
    """The gradients with most elements at the limits of their format; those of skipped steps come last."""
    found: list[Found] = []
    for record in records:
        magnitudes = magnitudes_of(record) if record.key.phase in GRADIENTS and not record.recomputed else None
        if magnitudes is not None:
            late = record.key.step in skipped
            found.append((False, late, risk(magnitudes), Exponents(record.key, magnitudes)))
    return _worst(found)


def magnitudes_of(record: TensorRecord) -> Magnitudes | None:
    """How large the elements of a record are; None of what is neither short nor counted, and of empty tensors."""
    stats = record.stats
    counted = record.exponents is not None and record.dtype in COUNTED
    if stats is None or stats.count == 0 or not (counted or record.dtype in SHORT):
        return None
    codes: tuple[int, ...] = ()
    subnormals = stats.subnormals
    if counted and record.exponents is not None:
        codes = tuple(record.exponents.tolist())
        # Those of float32 are not counted one by one: what has the lowest code and is not zero is one.
        subnormals = max(0, codes[0] - stats.zeros)
    return Magnitudes(
        dtype=record.dtype,
        count=stats.count,
        zeros=stats.zeros,
        subnormals=subnormals,
        nonfinite=stats.nonfinite,
        largest=stats.absolute_maximum,
        codes=codes,
    )


def risk(magnitudes: Magnitudes) -> float:
    """The share of the elements that are zero, subnormal or not finite."""
    return (magnitudes.zeros + magnitudes.subnormals + magnitudes.nonfinite) / magnitudes.count


def skipped_steps(*timelines: Iterable[TimelineRow]) -> frozenset[int]:
    """The steps that any of these runs skipped."""
    return frozenset(row.step for timeline in timelines for row in timeline if row.skipped)


def _worst(found: Sequence[Found]) -> tuple[Exponents, ...]:
    """The first tensor that differs, then the worst of each module; what is at no limit only where nothing is."""
    ranked = sorted(found, key=lambda entry: (not entry[0], entry[1], -entry[2]))
    chosen: dict[str, Exponents] = {}
    for is_first, _, share, entry in ranked:
        if is_first or share > 0.0 or not chosen:
            chosen.setdefault(entry.key.name, entry)
    return tuple(chosen.values())[:MOST]
