"""AL603: an overflow that one run turned into the greatest number of the format, where the other has Inf or more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from align import wording
from align.comparison import Walk
from align.diagnosis import telling
from align.diagnosis.registry import rule
from align.records import Finding, Kind, Severity, TensorRecord, TimelineRow
from align.sentences import say
from align.tolerance import PRECISIONS, Precision
from align.walk import Suspect

CODE = "AL603"
LABEL = "overflow-saturated"


@dataclass(frozen=True, slots=True, eq=False)
class Saturated:
    """The suspect, the record at the limit of its format and that of the other run, and the side that saturates."""

    suspect: Suspect
    record: TensorRecord
    other: TensorRecord
    side: str
    precision: Precision


@rule(CODE, LABEL, rank=39)
def find(walk: Walk) -> Iterator[Finding]:
    """An error where the runs part in a tensor that is at its limit in one run and beyond it in the other."""
    found = saturated(walk)
    if found is None:
        return
    comparison = found.suspect.comparison
    key, other = comparison.key, "reference" if found.side == "candidate" else "candidate"
    limit = say("{}, the greatest {} number", wording.value(found.precision.largest), found.precision.name)
    yield Finding(
        CODE,
        LABEL,
        Severity.ERROR,
        say(
            "{}: {} reaches exactly {}, in the {}; the {} {}. What overflows is set to the limit there.{}",
            telling.opening(key),
            telling.tensor(key),
            limit,
            found.side,
            other,
            _beyond(found),
            _skipped(walk, found, other),
        ),
        say(
            "Run {} in bf16 or fp32 in both runs, whose range is wider. On an NPU that supports it set "
            "INF_NAN_MODE_ENABLE=1: then an overflow is Inf, and a loss scaler skips the step.",
            telling.blamed(found.suspect) or "it",
        ),
        telling.place_of(key, telling.blamed(found.suspect)),
        {
            "side": found.side,
            "limit": found.precision.largest,
            "infinite_in_other": _infinite(found.other),
            "largest_of_other": found.other.stats.absolute_maximum if found.other.stats is not None else None,
            "carried_on": telling.carried_on(walk.comparisons, comparison),
        },
        {**telling.arguments_of(found.suspect), "side": found.side, "precision": found.precision.name},
    )


def saturated(walk: Walk) -> Saturated | None:
    """What saturates where the runs part; None elsewhere."""
    first = walk.first
    if first is None or first.kind not in {Kind.NONFINITE, Kind.VALUE}:
        return None
    sides = (first.comparison.candidate, "candidate"), (first.comparison.reference, "reference")
    for (record, side), (other, _) in zip(sides, reversed(sides), strict=True):
        precision = PRECISIONS.get(record.dtype)
        if precision is not None and _is_saturated(record, other, precision):
            return Saturated(first, record, other, side, precision)
    return None


def _is_saturated(record: TensorRecord, other: TensorRecord, precision: Precision) -> bool:
    """Whether one is at the limit, without Inf, where the other is beyond it on that side.

    A finite negative number is held against -Inf only: masks of a wider format are made of less.
    """
    ours, theirs = record.stats, other.stats
    if ours is None or theirs is None or ours.positive_infs or ours.negative_infs:
        return False
    if ours.maximum == precision.largest and (theirs.positive_infs > 0 or theirs.maximum > precision.largest):
        return True
    return ours.minimum == -precision.largest and theirs.negative_infs > 0


def _infinite(record: TensorRecord) -> int:
    return record.stats.positive_infs + record.stats.negative_infs if record.stats is not None else 0


def _beyond(found: Saturated) -> str:
    infinite, stats = _infinite(found.other), found.other.stats
    if infinite or stats is None:
        return say("has Inf in {} of {}", wording.count(infinite), wording.plural(found.other.numel, "element"))
    return say("reaches {} in {}", wording.value(stats.absolute_maximum), wording.dtype(found.other.dtype))


def _skipped(walk: Walk, found: Saturated, other: str) -> str:
    """That the other run skipped the step, where only that one did."""
    step = found.suspect.comparison.key.step
    rows = {"reference": walk.reference_timeline, "candidate": walk.candidate_timeline}
    if not _has_skipped(rows[other], step) or _has_skipped(rows[found.side], step):
        return ""
    return say(
        " The loss scaler of the {} skipped the step; that of the {} saw no Inf and let it through.", other, found.side
    )


def _has_skipped(rows: tuple[TimelineRow, ...], step: int) -> bool:
    return any(row.skipped for row in rows if row.step == step)
