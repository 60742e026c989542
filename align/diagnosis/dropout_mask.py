"""AL204: two dropout modules drew different masks."""

from __future__ import annotations

import math
from collections.abc import Iterator

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.records import Finding, Kind, Severity, TensorRecord
from align.walk import Suspect

CODE = "AL204"
LABEL = "dropout-mask-differs"

LARGEST_DEVIATION = 5.0
"""The zero shares of two masks of one rate differ by less than so many standard deviations."""


@rule(CODE, LABEL, rank=35)
def find(walk: Walk) -> Iterator[Finding]:
    """The first difference, where it is the output of a dropout module with as many zeros on both sides."""
    shares = zero_shares(walk)
    if walk.first is None or shares is None:
        return
    key = walk.first.comparison.key
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        f"{telling.opening(key)}: {key.name} drops other elements in each run ({wording.percent(shares[0])} and "
        f"{wording.percent(shares[1])} are zero), so all that follows differs. No module is to blame.",
        "Capture both runs with `align capture --no-dropout`, or set the dropout rate to 0: two kinds of device never "
        "draw the same mask.",
        telling.place_of(key),
        {"reference_zero_share": shares[0], "candidate_zero_share": shares[1]},
        {**telling.arguments_of(walk.first), "zero_shares": list(shares)},
    )


def zero_shares(walk: Walk) -> tuple[float, float] | None:
    """The shares of zeros that a dropout module makes in both runs, where other masks are the first difference."""
    first = walk.first
    if first is None or not _is_dropout_output(walk, first):
        return None
    comparison = first.comparison
    shares = (_zero_share(comparison.reference), _zero_share(comparison.candidate))
    mean = sum(shares) / 2
    deviation = math.sqrt(max(2 * mean * (1 - mean), 0.0) / max(comparison.reference.numel, 1))
    alike = min(shares) > 0.0 and abs(shares[0] - shares[1]) <= LARGEST_DEVIATION * deviation
    return shares if alike else None


def _is_dropout_output(walk: Walk, first: Suspect) -> bool:
    key = first.comparison.key
    return (
        first.kind is Kind.VALUE
        and not first.statistics_only
        and key.slot.startswith("output")
        and telling.is_dropout(walk.modules.get(key.name))
    )


def _zero_share(record: TensorRecord) -> float:
    return record.stats.zeros / record.numel if record.stats is not None and record.numel else 0.0
