"""The numbers of pairs to the digits that saved results keep, so that a report says the same of a saved one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, overload

from align.reports.columns import rounded

if TYPE_CHECKING:
    from align.records import Comparison

DIGITS = 6
"""Significant digits of the numbers in columns; numbers of findings keep all theirs."""


@overload
def kept(value: float) -> float: ...
@overload
def kept(value: None) -> None: ...
@overload
def kept(value: float | None) -> float | None: ...
def kept(value: float | None) -> float | None:
    """The number to the digits that columns keep."""
    return value if isinstance(value, int) else rounded(value, DIGITS)


def kept_pair(pair: Comparison) -> Comparison:
    """The pair with such numbers."""
    return replace(
        pair,
        relative_l2=kept(pair.relative_l2),
        floor=kept(pair.floor),
        times_floor=kept(pair.times_floor),
        limit=kept(pair.limit),
        part=kept(pair.part),
    )
